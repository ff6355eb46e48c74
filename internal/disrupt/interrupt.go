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
// has one; without a deadline it keeps the node, and so do pods that would find no place elsewhere. A node that is kept is open.
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
	d.interrupting = true
	d.groups = d.interrupted()
	var placed []*group
	for _, g := range d.groups {
		if !g.static || d.replacement(g) != nil {
			placed = append(placed, g)
		}
	}
	d.memo = &Memo{}
	room := roomFor(o.Placement)
	d.expect(placed, room)
	d.due = d.place(placed, nil, room, &d.before.due, &d.memo.due)
	d.proceedInterrupted(counting)
	return d.Result, d.due, d.memo
}

// expect counts the pods that the plan sends to a node which the cloud only advises to let go as the node's: up to now it was open to
// them. They get places elsewhere together with its own, and if there are none it stays.
func (d *desk) expect(groups []*group, r *room) {
	for _, g := range groups {
		c := &g.nodes[0]
		if !c.Claim.Advised() {
			continue
		}
		g.guests = r.on[c.Node.Name]
		for _, p := range g.guests {
			delete(r.cared, p.UID)
		}
	}
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
	return i.Deadline.Add(-d.drain()), true
}

// drain is how long before its deadline an interrupted node's pods are told to leave at the latest.
func (d *desk) drain() time.Duration {
	if d.set.InterruptionDrain > 0 {
		return d.set.InterruptionDrain
	}
	return defaultInterruptionDrain
}

// interrupted lists the nodes that are interrupted and still have pods to see to, the most urgent first. Those whose time is up,
// and those that have not joined yet, go at once.
func (d *desk) interrupted() []*group {
	var out []*group
	for _, c := range d.s.Claims {
		if !c.Interrupted() || c.Expected {
			continue
		}
		g, n := (*group)(nil), d.s.NodeOf(c.Name)
		if !c.Deleting.IsZero() || n != nil && !n.Deleting.IsZero() || d.s.Busy[command.DeleteClaim{Claim: c.Name}.Key()] {
			g = d.drained(c, n)
		} else {
			g = d.takenAway(c, n)
		}
		if g != nil {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(a, b *group) int {
		x, y := a.nodes[0].Claim, b.nodes[0].Claim
		return cmp.Or(compareDeadlines(x.Interruption.Deadline, y.Interruption.Deadline), strings.Compare(x.Name, y.Name))
	})
	return out
}

// takenAway is the move of an interrupted node; nil if it goes at once, or stays for now.
func (d *desk) takenAway(c *cluster.Claim, n *cluster.Node) *group {
	at, has := d.latest(c)
	switch {
	case has && unopened(d.s, c, n):
		d.endInterrupted(c, n, "", "no node has come of it yet")
		return nil
	case has && !d.s.Now.Before(at):
		d.endInterrupted(c, n, "", "its pods leave whether or not they have a place elsewhere")
		return nil
	}
	d.wake(at)
	p := d.s.Pool(c.Pool)
	g := &group{id: MoveID(command.Interrupted, []string{Identity(c)}), reason: command.Interrupted, static: p != nil && p.Static && d.orders.Static,
		nodes: []Candidate{{Claim: c, Node: n, Pool: p}}}
	if !has && !d.mayYield(g) {
		return nil
	}
	if ReasonOf(c.Move) == command.Interrupted && Fenced(c, n) {
		g.since = c.Condition(cluster.DisruptionReason).Since
	}
	d.gone[n.Name] = true
	estimate(d.s, &g.nodes[0])
	if has {
		d.force(c, n)
	}
	return g
}

// drained is about an interrupted node that is being drained already: nothing is left to do for it but to make places ahead for the
// pods that will be made to leave. It has a group without a name, for it begins no move. Nil if its pods may take their time.
func (d *desk) drained(c *cluster.Claim, n *cluster.Node) *group {
	if n == nil || !c.Interruption.Urgent() {
		return nil
	}
	d.gone[n.Name] = true
	d.force(c, n)
	return &group{reason: command.Interrupted, drained: true, nodes: []Candidate{{Claim: c, Node: n, Pool: d.s.Pool(c.Pool)}}}
}

// unopened reports whether nobody has come to the claim's node, and nobody will because it has not been opened. The node says so
// itself: it is opened before its claim is told that it is registered.
func unopened(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	if n == nil {
		return true
	}
	opening := c.Is(cluster.Registered) || s.Busy[command.Register{Claim: c.Name}.Key()]
	return !opening && n.HasTaint(cluster.UnregisteredTaint, cluster.NoExecute) && !slices.ContainsFunc(s.PodsOn(n.Name), s.Moves)
}

// HasToGo reports whether an interrupted node goes even if its pods have no place elsewhere: time is up, or it has no pods.
func HasToGo(s *cluster.Snapshot, set Settings, c *cluster.Claim) bool {
	d := &desk{s: s, set: set}
	at, has := d.latest(c)
	return has && (!s.Now.Before(at) || unopened(s, c, s.NodeOf(c.Name)))
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

// endOf is when an interrupted node must be gone if it is let go now, or when it must be if it goes already.
func (d *desk) endOf(c *cluster.Claim) time.Time {
	if at, has := c.End(); has && !c.Deleting.IsZero() {
		return at
	}
	i := &c.Interruption
	if own := d.s.Now.Add(c.TerminationGrace); !i.Force && !i.Deadline.IsZero() && c.HasTerminationGrace && own.Before(i.Deadline) {
		return own
	}
	if i.Force {
		return d.s.Now
	}
	return i.Deadline
}

// force finds the pods of a node that will be made to leave at its deadline although they, or a disruption budget, say that they
// don't: they need other places, too. As long as there is more time than a new node may take to come up, none is made: it would
// stand there empty.
func (d *desk) force(c *cluster.Claim, n *cluster.Node) {
	end := d.endOf(c)
	for _, p := range d.s.PodsOn(n.Name) {
		if !p.Reschedulable() || d.s.Moves(p) {
			continue
		}
		if from := end.Add(-max(d.drain(), p.Grace) - d.timeout()); d.s.Now.Before(from) {
			d.wake(from)
			continue
		}
		d.expel(p)
	}
}

// expel counts a pod among those that will be made to leave.
func (d *desk) expel(p *cluster.Pod) {
	d.count()
	if d.forced == nil {
		d.forced = make(map[string]bool)
	}
	d.forced[p.UID] = true
	d.homeless = append(d.homeless, p)
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
		far := d.farness(g, replaced)
		if g.drained {
			d.want(g, d.due.Bins, made)
			continue
		}
		if d.stranded(g, far) && !counting {
			g.giveUp(PodsStranded, true)
			d.release(g)
			continue
		}
		if g.fresh() {
			if (far == none || counting || d.s.LeftAlone(c.Claim)) && !c.Claim.Interruption.Urgent() {
				continue // it may stay, and some pod would have to wait, or might
			}
			if !d.s.Busy[command.Unfence{Node: c.Node.Name}.Key()] { // one fence after the other
				d.fence(g)
			}
		}
		switch {
		case d.s.LeftAlone(c.Claim): // some of its pods may have no place that anybody could find: it goes when its time is up
		case far == ready && !g.fresh() && !g.blocked && !counting && !d.lacks(g):
			d.endInterrupted(c.Claim, c.Node, g.id, d.destiny(g))
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

// stranded reports whether a move has begun that need not be, and some pod has no place any more: what was to take the node's place
// could not be had, or others have taken it.
func (d *desk) stranded(g *group, far rank) bool {
	c := &g.nodes[0]
	return far == none && c.Claim.Move != "" && !c.Claim.Interruption.Urgent() && !underWay(d.s, c.Claim, c.Node)
}

// farness is how far the last place of an interrupted node's pods is; in a static pool it is another node that counts.
func (d *desk) farness(g *group, replaced *cluster.Claim) rank {
	switch {
	case !g.static:
		return g.worst()
	case replaced != nil && replaced.Is(cluster.Initialized):
		return ready
	}
	return wished
}

// endInterrupted lets an interrupted node go. A party is named if it goes because there is room for its pods: that is looked at once
// more before it is done.
func (d *desk) endInterrupted(c *cluster.Claim, n *cluster.Node, party, destiny string) {
	i := &c.Interruption
	cmd := command.DeleteClaim{Claim: c.Name, UID: c.UID, Reason: command.Interrupted, Party: party, Deadline: d.endOf(c)}
	if n != nil {
		cmd.Node = n.Name
		d.gone[n.Name] = true
	}
	if i.Force {
		destiny = "nothing on it is waited for"
	}
	what := i.Kind
	if !i.Deadline.IsZero() {
		what += ", gone by " + i.Deadline.UTC().Format(time.RFC3339)
	}
	cmd.Message = fmt.Sprintf("its instance is interrupted (%s); %s", what, destiny)
	d.do(cmd)
}
