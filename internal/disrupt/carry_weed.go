package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// weed gives up the moves that people, pods or pools no longer allow.
func (d *desk) weed() {
	d.diagnoseAll()
	for _, g := range d.groups {
		outs := make(map[int]Why)
		for i := range g.nodes {
			if why := d.ask(g, &g.nodes[i]); why != "" {
				outs[i] = why
			}
		}
		d.drop(g, outs, false)
	}
}

// ask asks about one node of a move, and says why it may no longer go.
func (d *desk) ask(g *group, c *Candidate) Why {
	if why := d.changed(g, c); why != "" {
		return why
	}
	still, stay := d.judge.MayStillGo(c.Claim, g.reason)
	if stay == nil {
		*c = still
		return ""
	}
	estimate(d.s, c)
	forced := g.reason == command.Unhealthy && d.clinic.Bounded(c.Claim)
	switch stay.Why {
	case GuardBlocks: // another node that is being drained may have used it up for the moment
		if forced {
			return ""
		}
		if d.neverAllows(c.Node) {
			return stay.Why
		}
		g.blocked = true
		return ""
	case PodDoNotDisrupt, SeveralGuards:
		if forced { // there is a time after which they are not asked
			return ""
		}
	case PodsExpected:
		if !saves(g.reason) { // they come and then are moved like the others
			if g.reason != command.Unhealthy {
				g.blocked = true
			}
			return ""
		}
	}
	return stay.Why
}

// changed says why the reason for which the node was to go no longer holds, if it does not.
func (d *desk) changed(g *group, c *Candidate) Why {
	switch p := c.Pool; {
	case p == nil || p.Deleting:
		return PoolUnknown
	case p.Care.DryRun:
		return DryRun
	case saves(g.reason) && d.needed[c.Node.Name]:
		return PodsExpected
	case p.Static && !d.orders.Static:
		return PoolUnknown
	}
	switch g.reason {
	case command.Underutilized, command.Empty:
		return ""
	case command.Drifted:
		if how, known := driftOf(d.s, c.Claim); known && how == "" {
			return NoLongerDue
		}
	case command.Expired:
		if at, soft := softEnd(c.Pool, c.Claim); !soft || d.s.Now.Before(at) {
			return NoLongerDue
		}
	case command.Unhealthy:
		if _, sick := d.sick[c.Claim.Name]; !sick {
			return NoLongerDue
		}
		if d.clinic.Crowded(c.Claim.Pool) {
			return ManyUnhealthy
		}
	default:
		return NoLongerDue
	}
	return ""
}

// estimate fills in what is known of a node that may not go now, or is forced to.
func estimate(s *cluster.Snapshot, c *Candidate) {
	c.Price, c.Evicted = c.Claim.Price, 0
	for _, p := range s.PodsOn(c.Node.Name) {
		if p.Workload() && !p.StaysThroughDrain {
			c.Evicted++
		}
	}
}

// neverAllows reports whether a disruption budget of some pod of the node wants all its pods.
func (d *desk) neverAllows(n *cluster.Node) bool {
	return slices.ContainsFunc(d.s.PodsOn(n.Name), func(p *cluster.Pod) bool {
		return p.Moves() && !p.StaysThroughDrain && slices.ContainsFunc(d.s.GuardsOf(p), (*cluster.Guard).Never)
	})
}

// balance takes nodes out of moves that a budget no longer covers, those of the youngest first, and has those wait that it covers
// only when nodes are back that are out for other reasons.
func (d *desk) balance() {
	for _, g := range d.groups {
		if g.over != "" {
			d.free(g)
		}
	}
	fenced := make(map[purse]int)
	for _, g := range d.groups {
		if g.over != "" {
			continue
		}
		for i := range g.nodes {
			fenced[purse{g.nodes[i].Pool, g.reason}]++
		}
	}
	for _, g := range slices.Backward(d.groups) {
		if g.over != "" {
			continue
		}
		outs := make(map[int]Why)
		for i := range slices.Backward(g.nodes) {
			c := &g.nodes[i]
			if p := (purse{c.Pool, g.reason}); fenced[p] > d.allowed(c.Pool, g.reason) {
				fenced[p]--
				outs[i] = BudgetBlocks
				d.giveBack(c)
			}
		}
		d.drop(g, outs, false)
	}
}

// purse is what a pool's budgets allow for a reason.
type purse struct {
	pool   *cluster.Pool
	reason command.Reason
}

// allowed is how many of the pool's nodes may be out at the same time for the reason.
func (d *desk) allowed(p *cluster.Pool, reason command.Reason) int {
	return d.ledger.accounts[p.Name].share(reason).allowed
}

// free returns the nodes of a move that was given up to their budgets.
func (d *desk) free(g *group) {
	for i := range g.nodes {
		d.giveBack(&g.nodes[i])
	}
}

// giveBack returns a node to its budget.
func (d *desk) giveBack(c *Candidate) {
	if tainted(c.Node) && c.Node.Ready && c.Claim.Is(cluster.Initialized) {
		d.ledger.Give(c.Claim.Pool, 1)
	}
}

// afford reports whether the budgets let the nodes of a move go now, and takes them if so. What is only fenced does not count:
// it has not gone yet. A node that is sick does not count against others that are.
func (d *desk) afford(groups ...*group) bool {
	going := make(map[purse]int)
	for _, g := range groups {
		for i := range g.nodes {
			going[purse{g.nodes[i].Pool, g.reason}]++
		}
	}
	for p, n := range going {
		if d.out(p.pool, p.reason)+n > d.allowed(p.pool, p.reason) {
			return false
		}
	}
	for _, g := range groups {
		for i := range g.nodes {
			d.send(&g.nodes[i])
		}
	}
	return true
}

// send counts a node as gone.
func (d *desk) send(c *Candidate) {
	for _, reason := range append(Budgeted(), command.Expired) {
		p := purse{c.Pool, reason}
		if n, counted := d.outs[p]; counted && !d.isOut(c.Claim, reason) {
			d.outs[p] = n + 1
		}
	}
	d.going[c.Claim.Name] = true
}

// out is how many of the pool's nodes are out and not just fenced by us. They are counted once; whoever goes after that is added.
func (d *desk) out(p *cluster.Pool, reason command.Reason) int {
	key := purse{p, reason}
	if n, counted := d.outs[key]; counted {
		return n
	}
	out := 0
	for _, c := range d.s.ClaimsOf(p.Name) {
		if d.isOut(c, reason) {
			out++
		}
	}
	d.outs[key] = out
	return out
}

// isOut reports whether a claim's node is out and not just fenced by us.
func (d *desk) isOut(c *cluster.Claim, reason command.Reason) bool {
	if !c.Is(cluster.Initialized) || c.Is(cluster.InstanceTerminating) {
		return false
	}
	n := d.s.NodeOf(c.Name)
	switch {
	case d.going[c.Name], n == nil, !c.Deleting.IsZero(), !n.Deleting.IsZero():
		return true
	case len(d.s.Busy) > 0 && d.s.Busy[command.DeleteClaim{Claim: c.Name}.Key()]:
		return true
	case !n.Ready:
		return reason != command.Unhealthy && c.Move == ""
	}
	return tainted(n) && !c.Is(cluster.DisruptionReason)
}
