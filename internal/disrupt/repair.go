package disrupt

import (
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// RepairSettings say when a node is beyond hope.
type RepairSettings struct {
	// Enabled is the gate NodeRepair.
	Enabled bool
	// Policies name the conditions of a node that call for its replacement.
	Policies []RepairPolicy
	// Legacy ends sick nodes at once, without waiting for what is to take their place.
	Legacy bool
	// MaxUnhealthy is the percentage of a pool's nodes, rounded up, above which none is replaced: the cause is elsewhere.
	MaxUnhealthy int
}

// RepairPolicy names a condition that, once it has held for Toleration, means that the node is to be replaced. If it has a grace, pods
// have at most so long to leave, whatever they say; otherwise the node's own terminationGracePeriod counts.
type RepairPolicy struct {
	Type, Status string
	Toleration   time.Duration
	HasGrace     bool
	Grace        time.Duration
}

// Repair removes nodes that are beyond hope and that no move can be made for: those of no pool and, where the settings ask for
// it, all. What is wrong with many nodes of a pool at the same time, however briefly, is not wrong with the nodes: then none
// is touched.
func Repair(s *cluster.Snapshot, set RepairSettings) Result {
	var out Result
	if !set.Enabled || len(set.Policies) == 0 {
		return out
	}
	end := func(c *cluster.Claim, n *cluster.Node, ill illness) bool {
		if p := s.Pool(c.Pool); p != nil && p.Care.DryRun {
			g := ailing(s, c, n, p)
			out.would(g.move(), g.nodes)
			return true
		}
		out.Commands = append(out.Commands, command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: n.Name, Reason: command.Unhealthy,
			Deadline: s.Now, Condition: ill.policy.Type, Message: ill.message(n)})
		return true
	}
	if set.Legacy {
		for _, p := range s.Pools {
			repairGroup(s, s.ClaimsOf(p.Name), set, p, &out, end)
		}
	}
	repairGroup(s, s.ClaimsOf(""), set, nil, &out, end)
	return out
}

// message says what ails the node.
func (i *illness) message(n *cluster.Node) string {
	return fmt.Sprintf("condition %s of node %s has been %s for %s or longer", i.policy.Type, n.Name, i.policy.Status, i.policy.Toleration)
}

// repair begins the replacement of sick nodes. They go like the others, when what takes their place is up. Then their pods have the
// time that the policy or the node gives them; where neither does, a pod may keep its node.
func (d *desk) repair() {
	set := d.orders.Repair
	if !set.Enabled || len(set.Policies) == 0 || set.Legacy {
		return
	}
	for _, p := range d.s.Pools {
		if p.Deleting {
			continue
		}
		repairGroup(d.s, d.s.ClaimsOf(p.Name), set, p, &d.Result, func(c *cluster.Claim, n *cluster.Node, _ illness) bool {
			if d.gone[n.Name] {
				return false
			}
			if p.Static && !d.orders.Static {
				d.Notes = append(d.Notes, blocked(d.s, c, n, fmt.Sprintf("NodePool %s is static and the feature gate StaticCapacity is off: nothing would take the node's place", p.Name))...)
				return false
			}
			if d.s.Now.Before(c.RestUntil) {
				d.wake(c.RestUntil)
				return false
			}
			if why := d.keptByPods(c); why != "" {
				d.Notes = append(d.Notes, blocked(d.s, c, n, why)...)
				return false
			}
			return d.admit(c, n, p)
		})
	}
}

// keptByPods says which pod keeps a sick node that has no time after which nobody is asked; empty if none does.
func (d *desk) keptByPods(c *cluster.Claim) string {
	if d.clinic.Bounded(c) {
		return ""
	}
	_, stay := d.judge.MayGo(c, command.Unhealthy)
	if stay == nil || !stay.ByPods() {
		return ""
	}
	d.wake(stay.Until)
	return fmt.Sprintf("pod %s may not be evicted now (%s), and nothing says after which time it may be: set terminationGracePeriod in NodePool %s", stay.Pod, stay.Why, c.Pool)
}

// forceSick counts the pods of a sick node that will be made to leave although they, or a disruption budget, object: they need
// other places, too.
func (d *desk) forceSick(g *group) {
	if g.reason != command.Unhealthy || g.static {
		return
	}
	for i := range g.nodes {
		if !d.clinic.Bounded(g.nodes[i].Claim) {
			continue
		}
		for _, p := range d.s.PodsOn(g.nodes[i].Node.Name) {
			if p.Reschedulable() && !d.s.Moves(p) {
				d.expel(p)
			}
		}
	}
}

// admit lines a sick node up to be replaced. Its pool's budgets have been asked.
func (d *desk) admit(c *cluster.Claim, n *cluster.Node, p *cluster.Pool) bool {
	g := ailing(d.s, c, n, p)
	if p.Care.DryRun {
		d.would(g.move(), g.nodes)
		return true
	}
	if n.Ready { // one that is not counts as out already
		g.taken = true
		d.ledger.Give(p.Name, -1)
	}
	d.gone[n.Name] = true
	d.groups = append(d.groups, g)
	return true
}

// ailing is the move of a sick node.
func ailing(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, p *cluster.Pool) *group {
	g := &group{id: MoveID(command.Unhealthy, []string{Identity(c)}), reason: command.Unhealthy, static: p.Static,
		nodes: []Candidate{{Claim: c, Node: n, Pool: p, Cost: nodeCost}}}
	estimate(s, &g.nodes[0])
	return g
}

// diagnoseAll finds the nodes that are beyond hope, by claim.
func (d *desk) diagnoseAll() {
	d.sick = make(map[string]illness)
	if !d.orders.Repair.Enabled {
		return
	}
	for _, c := range d.s.Claims {
		if ill, sick := beyondHope(d.s, d.orders.Repair, c); sick {
			d.sick[c.Name] = ill
		}
	}
}

// beyondHope reports whether a claim's node is so ill, and has been for so long, that it is to be replaced, and nobody has asked to
// leave it alone.
func beyondHope(s *cluster.Snapshot, set RepairSettings, c *cluster.Claim) (illness, bool) {
	n := s.NodeOf(c.Name)
	if n == nil || n.DoNotRepair || c.DoNotRepair {
		return illness{}, false
	}
	ill, sick := diagnose(n, set.Policies)
	return ill, sick && !s.Now.Before(ill.due())
}

// illness is what ails a node, and when that has been tolerated for long enough.
type illness struct {
	policy RepairPolicy
	since  time.Time
}

func (i *illness) due() time.Time { return i.since.Add(i.policy.Toleration) }

// ward counts the nodes of claims and those of them that are on their way out. Nodes that are not ready don't use up the budget
// for repairs, as they would for other reasons: they are those that it is for.
func ward(s *cluster.Snapshot, claims []*cluster.Claim) (total, leaving int) {
	for _, c := range claims {
		n := s.NodeOf(c.Name)
		if !inWard(c, n) {
			continue
		}
		total++
		if !c.Deleting.IsZero() || !n.Deleting.IsZero() || tainted(n) || underWay(s, c, n) {
			leaving++
		}
	}
	return total, leaving
}

// inWard reports whether a node counts among those that may fall sick. One whose machine is being ended does not, as with all
// other budgets: that nobody hears from it any more is no illness.
func inWard(c *cluster.Claim, n *cluster.Node) bool {
	return n != nil && c.Is(cluster.Registered) && !c.Is(cluster.InstanceTerminating)
}

// repairGroup looks after the nodes of a pool, or those without one (p is nil).
func repairGroup(s *cluster.Snapshot, claims []*cluster.Claim, set RepairSettings, p *cluster.Pool, out *Result, begin func(*cluster.Claim, *cluster.Node, illness) bool) {
	group := "all standalone NodeClaims"
	total, leaving := ward(s, claims)
	sick := make(map[string]illness)
	for _, c := range claims {
		if n := s.NodeOf(c.Name); inWard(c, n) {
			if ill, is := diagnose(n, set.Policies); is {
				sick[c.Name] = ill
			}
		}
	}
	allowed, left := set.bearable(total), total
	if p != nil {
		group, left = "NodePool "+p.Name, newAccount(s, p).share(command.Unhealthy).allowed-leaving
	}
	for _, c := range claims {
		ill, is := sick[c.Name]
		n := s.NodeOf(c.Name)
		if !is || s.LeftAlone(c) || !c.Deleting.IsZero() || !n.Deleting.IsZero() || n.DoNotRepair || c.DoNotRepair || c.Move != "" && !set.Legacy {
			continue
		}
		if s.Now.Before(ill.due()) {
			out.WakeAt = cluster.Earlier(out.WakeAt, ill.due())
			continue
		}
		if len(sick) > allowed {
			out.Notes = append(out.Notes, blocked(s, c, n, fmt.Sprintf("%d of the %d nodes of %s are unhealthy, more than %d%%: the cause is not this node",
				len(sick), total, group, set.MaxUnhealthy))...)
			continue
		}
		if left <= 0 {
			out.Eager = out.Eager || left+leaving > 0
			out.Notes = append(out.Notes, blocked(s, c, n, fmt.Sprintf("the disruption budgets of %s allow no more nodes to be replaced now", group))...)
			continue
		}
		if begin(c, n, ill) {
			left--
		}
	}
}

// blocked tells node, claim and pool why a node is not replaced.
func blocked(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node, why string) []cluster.Note {
	notes := []cluster.Note{n.Note("NodeRepairBlocked", why), c.Note("NodeRepairBlocked", why)}
	if p := s.Pool(c.Pool); p != nil {
		notes = append(notes, p.Note("NodeRepairBlocked", why))
	}
	for i := range notes {
		notes[i].Warning = true
	}
	return notes
}

// diagnose finds the illness of a node that has been tolerated first.
func diagnose(n *cluster.Node, policies []RepairPolicy) (worst illness, sick bool) {
	for _, policy := range policies {
		for _, cond := range n.Conditions {
			if cond.Type != policy.Type || cond.Status != policy.Status {
				continue
			}
			if ill := (illness{policy, cond.Since}); !sick || ill.due().Before(worst.due()) {
				worst, sick = ill, true
			}
		}
	}
	return worst, sick
}
