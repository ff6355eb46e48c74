package execute

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Interrupt sees to the nodes whose instances the cloud takes away, or has given up.
//
// Such a node is fenced at once, and in the same moment its pods get places on other nodes, new ones if need be. It
// goes when every place is up, or when only the time that a drain takes is left before the deadline; one that is of no
// use any more goes at once. No budget of a pool is asked. What pods say about being disturbed counts until the
// deadline, as with every node that has one; without a deadline it keeps the node, and so do pods that would find no
// place elsewhere. A node that is kept is open.
//
// Like every move this one is written on the claims: a crash changes nothing. counting says that pods are still being
// counted: where those go is not known yet, so that no place is safe from them and nodes only go when they have to. The
// placement is where the pods of such nodes go.
func Interrupt(s *cluster.Snapshot, set disrupt.Settings, o Input, counting bool) (disrupt.Result,
	*schedule.Placement, *destination.Memo) {
	if !slices.ContainsFunc(s.Claims, (*cluster.Claim).IsInterrupted) {
		return disrupt.Result{}, nil, nil
	}
	if counting {
		o.Placement = destination.PlacementOfPending(s)
	}
	ex := newExecutor(s, set, o)
	x := &interruptions{ex.frame, ex.waits, ex.fences, ex.requiredMoves}
	x.InterruptionsOnly = true
	x.Moves = x.interruptedMoves()
	var placed []*destination.Move
	for _, m := range x.Moves {
		if !m.IsStatic || x.staticReplacement(m) != nil {
			placed = append(placed, m)
		}
	}
	x.memo = &destination.Memo{}
	others := destination.OthersOf(o.Placement)
	x.expectPods(placed, others)
	x.requiredPlacement = x.PlaceMoves(placed, nil, others, &x.lastMemo.Required, &x.memo.Required)
	x.proceedInterrupted(counting)
	return *x.Result, x.requiredPlacement, x.memo
}

// interruptions are the nodes that the cloud takes away.
type interruptions struct {
	*frame
	*waits
	*fences
	*requiredMoves
}

// expectPods counts the pods that the plan sends to a node which the cloud only advises to let go as the node's: up to
// now it was open to them. They get places elsewhere together with its own, and if there are none it stays.
func (ir *interruptions) expectPods(moves []*destination.Move, o *destination.Others) {
	for _, m := range moves {
		c := &m.Nodes[0]
		if !c.Claim.IsAdvisedToGo() {
			continue
		}
		m.ExpectedPods = o.PlacedOn[c.Node.Name]
		for _, p := range m.ExpectedPods {
			delete(o.Handled, p.UID)
		}
	}
}

// interruptedMoves lists the nodes that are interrupted and still have pods to see to, the most urgent first. Those
// whose time is up, and those that have not joined yet, go at once.
func (ir *interruptions) interruptedMoves() []*destination.Move {
	var out []*destination.Move
	for _, c := range ir.s.Claims {
		if !c.IsInterrupted() || c.Expected {
			continue
		}
		m, n := (*destination.Move)(nil), ir.s.NodeOf(c.Name)
		if !c.Deleting.IsZero() || n != nil && !n.Deleting.IsZero() ||
			ir.s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()] {
			m = ir.drainingMove(c, n)
		} else {
			m = ir.interruptedMove(c, n)
		}
		if m != nil {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b *destination.Move) int {
		x, y := a.Nodes[0].Claim, b.Nodes[0].Claim
		return cmp.Or(compareDeadlines(x.Interruption.Deadline, y.Interruption.Deadline),
			strings.Compare(x.Name, y.Name))
	})
	return out
}

// interruptedMove is the move of an interrupted node; nil if it goes at once, or stays for now.
func (ir *interruptions) interruptedMove(c *cluster.Claim, n *cluster.Node) *destination.Move {
	at, has := destination.LatestDrainStart(ir.s, ir.set, c)
	switch {
	case has && disrupt.NeverOpened(ir.s, c, n):
		ir.deleteInterrupted(c, n, "", reason.Of(reason.NodeNeverCame))
		return nil
	case has && !ir.s.Now.Before(at):
		ir.deleteInterrupted(c, n, "", reason.Of(reason.PodsLeaveAnyway))
		return nil
	}
	ir.Wake(at)
	p := ir.s.Pool(c.Pool)
	m := &destination.Move{ID: disrupt.MoveID(command.Interrupted, []string{disrupt.ClaimIdentity(c)}),
		Reason:   command.Interrupted,
		IsStatic: p != nil && p.Static && ir.input.Static,
		Nodes:    []disrupt.Candidate{{Claim: c, Node: n, Pool: p}}}
	if !has && !ir.mayGoNow(m) {
		return nil
	}
	if disrupt.MoveReason(c.Move) == command.Interrupted && disrupt.Fenced(c, n) {
		m.FencedAt = c.Condition(cluster.DisruptionReason).Since
	}
	ir.RemovedNodes[n.Name] = true
	disrupt.FillEstimates(ir.s, &m.Nodes[0])
	if has {
		ir.Wake(ir.ForcePods(c, n))
	}
	return m
}

// drainingMove is about an interrupted node that is being drained already: nothing is left to do for it but to make
// places ahead for the pods that will be made to leave. It is a move without a name, for nothing begins with it. Nil if
// its pods may take their time.
func (ir *interruptions) drainingMove(c *cluster.Claim, n *cluster.Node) *destination.Move {
	if n == nil || !c.Interruption.IsUrgent() {
		return nil
	}
	ir.RemovedNodes[n.Name] = true
	ir.Wake(ir.ForcePods(c, n))
	return &destination.Move{Reason: command.Interrupted, PlacesOnly: true,
		Nodes: []disrupt.Candidate{{Claim: c, Node: n, Pool: ir.s.Pool(c.Pool)}}}
}

// MustGoNow reports whether an interrupted node goes even if its pods have no place elsewhere: time is up, or it has no
// pods.
func MustGoNow(s *cluster.Snapshot, set disrupt.Settings, c *cluster.Claim) bool {
	at, has := destination.LatestDrainStart(s, set, c)
	return has && (!s.Now.Before(at) || disrupt.NeverOpened(s, c, s.NodeOf(c.Name)))
}

// compareDeadlines puts the earlier first, and none last.
func compareDeadlines(a, b time.Time) int {
	return cmp.Or(disrupt.TrueFirst(!a.IsZero(), !b.IsZero()), a.Compare(b))
}

// mayGoNow reports whether a node without a deadline may go now: its pods may keep it, and another move may have it
// already.
func (ir *interruptions) mayGoNow(m *destination.Move) bool {
	c := &m.Nodes[0]
	if disrupt.MoveReason(c.Claim.Move) == command.Interrupted {
		_, blocked := ir.eligibility.MayStillDisrupt(c.Claim, command.Interrupted)
		m.Waiting = blocked != nil
		return c.Node != nil
	}
	_, stay := ir.eligibility.MayDisrupt(c.Claim, command.Interrupted)
	if stay != nil {
		ir.Wake(stay.Until)
	}
	return stay == nil
}

// proceedInterrupted fences the nodes, asks for what their pods need, and lets those go whose pods all have a place
// that is up.
func (ir *interruptions) proceedInterrupted(counting bool) {
	made := make(map[int]int)
	var missing missingNodes
	for _, m := range ir.Moves {
		c := &m.Nodes[0]
		step := ir.nextStep(m, counting)
		if step > opens && m.HasNotBegun() && !m.PlacesOnly &&
			!ir.s.InFlight[command.Unfence{Node: c.Node.Name}.Key()] { // one fence after the other
			ir.fence(m)
		}
		switch step {
		case opens:
			m.GiveUp(disrupt.PodsStranded, true)
			ir.reopenNodes(m)
		case asksForNodes:
			ir.requestBins(m, ir.requiredPlacement.Bins, made)
		case asksForItsNode:
			missing.add(m)
		case goes:
			ir.deleteInterrupted(c.Claim, c.Node, m.ID, ir.describeDestinations(m))
		}
	}
	ir.requestStatic(&missing)
}

// interruptionStep is what is done next about an interrupted node.
type interruptionStep int

const (
	stays          interruptionStep = iota // it need not go, and some pod would have to wait, or might
	opens                                  // it need not go, and some pod has no place any more
	isFenced                               // and nothing else
	asksForNodes                           // new nodes for its pods
	asksForItsNode                         // the one in its place, of a static pool
	goes
)

// nextStep says what is done next about an interrupted node.
func (ir *interruptions) nextStep(m *destination.Move, counting bool) interruptionStep {
	replaced := ir.staticReplacement(m)
	claim, farthest := m.Nodes[0].Claim, ir.farthestOf(m, replaced)
	leftAlone := ir.s.IsLeftAlone(claim)
	switch {
	case m.PlacesOnly:
		return asksForNodes
	case ir.isStranded(m, farthest) && !counting:
		return opens
	case m.HasNotBegun() && !claim.Interruption.IsUrgent() && (farthest == destination.Nowhere || counting ||
		leftAlone):
		return stays
	case leftAlone: // some of its pods may have no place that anybody could find: it goes when its time is up
		return isFenced
	case farthest == destination.AtReadyNode && !m.HasNotBegun() && !m.Waiting && !counting && !ir.lacksReplacement(m):
		return goes
	case m.IsStatic && !m.HasNotBegun() && replaced == nil:
		return asksForItsNode
	case !m.IsStatic && farthest >= destination.AtNewNode:
		return asksForNodes
	}
	return isFenced
}

// isStranded reports whether a move has begun that need not be, and some pod has no place any more: what was to take
// the node's place could not be had, or others have taken it.
func (ir *interruptions) isStranded(m *destination.Move, farthest destination.Distance) bool {
	c := &m.Nodes[0]
	return farthest == destination.Nowhere && c.Claim.Move != "" && !c.Claim.Interruption.IsUrgent() &&
		!disrupt.HasCommandUnderWay(ir.s,
			c.Claim, c.Node)
}

// farthestOf is how far the last place of an interrupted node's pods is; in a static pool it is another node that
// counts.
func (ir *interruptions) farthestOf(m *destination.Move, replaced *cluster.Claim) destination.Distance {
	switch {
	case !m.IsStatic:
		return m.Farthest()
	case replaced != nil && replaced.Is(cluster.Initialized):
		return destination.AtReadyNode
	}
	return destination.AtNewNode
}

// deleteInterrupted lets an interrupted node go. A departure is named if it goes because there is room for its pods:
// that is looked at once more before it is done.
func (ir *interruptions) deleteInterrupted(c *cluster.Claim, n *cluster.Node, departure string,
	destiny reason.Text) {
	i := &c.Interruption
	cmd := command.DeleteClaim{Claim: c.Name, UID: c.UID, Reason: command.Interrupted, Departure: departure,
		Deadline: destination.InterruptionEnd(ir.s, c)}
	if n != nil {
		cmd.Node = n.Name
		ir.RemovedNodes[n.Name] = true
	}
	if i.Force {
		destiny = reason.Of(reason.NothingAwaited)
	}
	what := reason.Said(i.Kind)
	if !i.Deadline.IsZero() {
		what = reason.Of(reason.GoneBy, i.Kind, i.Deadline)
	}
	cmd.Text = reason.Of(reason.NodeInterrupted, what, destiny)
	ir.Emit(cmd)
}
