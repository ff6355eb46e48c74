package disrupt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// defaultInterruptionDrain is how long before its deadline an interrupted node's pods are told to leave at the latest, if nobody
// says otherwise.
const defaultInterruptionDrain = 45 * time.Second

// Interrupt sees to the nodes whose instances the cloud takes away, or has given up.
//
// Such a node is fenced at once, and in the same moment its pods get places on other nodes, new ones if need be. It goes when
// every place is up, or when only the time that a drain takes is left before the deadline; one that is of no use any more goes
// at once. No budget of a pool is asked. What pods say about being disturbed counts until the deadline, as with every node that
// has one; without a deadline it keeps the node.
//
// Like every move this one is written on the claims: a crash changes nothing. counting says that pods are still being counted:
// where those go is not known yet, so that no place is safe from them and nodes only go when they have to. The placement is where
// the pods of such nodes go.
func Interrupt(s *cluster.Snapshot, set Settings, o Orders, counting bool) (Result, *schedule.Placement, *Memo) {
	if !slices.ContainsFunc(s.Claims, (*cluster.Claim).Interrupted) {
		return Result{}, nil, nil
	}
	if counting {
		o.Placement = counted(s)
	}
	d := newDesk(s, set, o)
	d.groups = d.interrupted()
	var placed []*group
	for _, g := range d.groups {
		if !g.static || d.replacement(g) != nil {
			placed = append(placed, g)
		}
	}
	d.memo = &Memo{}
	d.due = d.place(placed, nil, roomFor(o.Placement), &d.before.due, &d.memo.due)
	d.proceedInterrupted(counting)
	return d.Result, d.due, d.memo
}

// counted is a placement that knows of the pods without a place only that others look after them.
func counted(s *cluster.Snapshot) *schedule.Placement {
	pending := s.Pending()
	out := &schedule.Placement{Unplaced: make([]schedule.Unplaced, len(pending))}
	for i, p := range pending {
		out.Unplaced[i].Pod = p
	}
	return out
}

// hurried reports whether a claim's node goes because of an interruption, whatever else is going on with it.
func hurried(c *cluster.Claim) bool {
	return c.Interrupted() && (c.Interruption.Urgent() || ReasonOf(c.Move) == command.Interrupted)
}

// latest is when the pods of an interrupted node are told to leave, whether or not their places are ready; has is false if there
// is no such time.
func (d *desk) latest(c *cluster.Claim) (at time.Time, has bool) {
	i := &c.Interruption
	switch {
	case i.Force:
		return d.s.Now, true
	case i.Deadline.IsZero():
		return time.Time{}, false
	}
	drain := d.set.InterruptionDrain
	if drain <= 0 {
		drain = defaultInterruptionDrain
	}
	return i.Deadline.Add(-drain), true
}

// interrupted lists the nodes that are interrupted and still have time, the most urgent first. The others, and those that have
// not joined yet, go at once.
func (d *desk) interrupted() []*group {
	var out []*group
	forced := d.s.Homeless()
	for _, c := range d.s.Claims {
		n := d.s.NodeOf(c.Name)
		if !c.Interrupted() || c.Foreign || c.Expected || !c.Deleting.IsZero() || n != nil && !n.Deleting.IsZero() ||
			d.s.Busy[command.DeleteClaim{Claim: c.Name}.Key()] {
			continue
		}
		at, has := d.latest(c)
		switch {
		case has && d.absent(c, n):
			d.endInterrupted(c, n, "no node has come of it yet")
			continue
		case has && !d.s.Now.Before(at):
			d.endInterrupted(c, n, "its pods leave whether or not they have a place elsewhere")
			continue
		}
		d.wake(at)
		p := d.s.Pool(c.Pool)
		g := &group{id: MoveID(command.Interrupted, []string{c.Name}), reason: command.Interrupted, static: p != nil && p.Static && d.orders.Static,
			nodes: []Candidate{{Claim: c, Node: n, Pool: p}}}
		if !has && !d.mayYield(g) {
			continue
		}
		if ReasonOf(c.Move) == command.Interrupted && Fenced(c, n) {
			g.since = c.Condition(cluster.DisruptionReason).Since
		}
		d.gone[n.Name] = true
		estimate(d.s, &g.nodes[0])
		if has {
			forced = append(forced, d.force(n)...)
		}
		out = append(out, g)
	}
	d.homeless, d.counted = forced, true
	slices.SortStableFunc(out, func(a, b *group) int {
		x, y := a.nodes[0].Claim, b.nodes[0].Claim
		return cmp.Or(compareDeadlines(x.Interruption.Deadline, y.Interruption.Deadline), strings.Compare(x.Name, y.Name))
	})
	return out
}

// absent reports whether nobody has come to the claim's node, and nobody will because it has not been opened.
func (d *desk) absent(c *cluster.Claim, n *cluster.Node) bool {
	return n == nil || !c.Is(cluster.Registered) && !slices.ContainsFunc(d.s.PodsOn(n.Name), d.s.Moves)
}

// compareDeadlines puts the earlier first, and none last.
func compareDeadlines(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

// force finds the pods of a node that will be made to leave at its deadline although they, or a disruption budget, say that they
// don't: they need other places, too.
func (d *desk) force(n *cluster.Node) []*cluster.Pod {
	var out []*cluster.Pod
	for _, p := range d.s.PodsOn(n.Name) {
		if !p.Reschedulable() || d.s.Moves(p) {
			continue
		}
		if d.forced == nil {
			d.forced = make(map[string]bool)
		}
		d.forced[p.UID] = true
		out = append(out, p)
	}
	return out
}

// moves reports whether the pod will need another place when its node goes.
func (d *desk) moves(p *cluster.Pod) bool { return d.s.Moves(p) || d.forced[p.UID] }

// mayYield reports whether a node without a deadline may go now: its pods may keep it, and another move may have it already.
func (d *desk) mayYield(g *group) bool {
	c := &g.nodes[0]
	if ReasonOf(c.Claim.Move) == command.Interrupted {
		_, stay := d.judge.MayStillGo(c.Claim, command.Interrupted)
		g.blocked = stay != nil
		return c.Node != nil
	}
	_, stay := d.judge.MayGo(c.Claim, command.Interrupted)
	if stay != nil {
		d.wake(stay.Until)
	}
	return stay == nil
}

// proceedInterrupted fences the nodes, asks for what their pods need, and lets those go whose pods all have a place that is up.
func (d *desk) proceedInterrupted(counting bool) {
	made := make(map[int]bool)
	lacking := make(map[*cluster.Pool][]*group)
	var pools []*cluster.Pool
	for _, g := range d.groups {
		c, replaced := &g.nodes[0], d.replacement(g)
		far := g.worst()
		if g.static {
			far = wished
			if replaced != nil && replaced.Is(cluster.Initialized) {
				far = ready
			}
		}
		if g.fresh() {
			if far == none && !c.Claim.Interruption.Urgent() {
				continue // it may stay, and some pod would have to wait
			}
			if !d.s.Busy[command.Unfence{Node: c.Node.Name}.Key()] { // one fence after the other
				d.fence(g)
			}
		}
		switch {
		case far == ready && !g.fresh() && !g.blocked && !counting:
			d.endInterrupted(c.Claim, c.Node, d.destiny(g))
		case g.static && !g.fresh() && replaced == nil:
			if lacking[c.Pool] == nil {
				pools = append(pools, c.Pool)
			}
			lacking[c.Pool] = append(lacking[c.Pool], g)
		case !g.static && far >= wished:
			d.want(g, d.due.Bins, made)
		}
	}
	for _, p := range pools {
		d.fillSlots(p, lacking[p])
	}
}

// endInterrupted lets an interrupted node go.
func (d *desk) endInterrupted(c *cluster.Claim, n *cluster.Node, destiny string) {
	i := &c.Interruption
	cmd := command.DeleteClaim{Claim: c.Name, UID: c.UID, Reason: command.Interrupted}
	if n != nil {
		cmd.Node = n.Name
		d.gone[n.Name] = true
	}
	switch {
	case i.Force:
		cmd.Deadline, destiny = d.s.Now, "nothing on it is waited for"
	case !i.Deadline.IsZero():
		cmd.Deadline = i.Deadline
		if own := d.s.Now.Add(c.TerminationGrace); c.HasTerminationGrace && own.Before(cmd.Deadline) {
			cmd.Deadline = own
		}
	}
	what := i.Kind
	if !i.Deadline.IsZero() {
		what += ", gone by " + i.Deadline.UTC().Format(time.RFC3339)
	}
	cmd.Message = fmt.Sprintf("its instance is interrupted (%s); %s", what, destiny)
	d.going[c.Name] = true
	d.do(cmd)
}
