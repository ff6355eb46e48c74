package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/reason"
)

// linkedMoves are moves that share new nodes: what they save can only be told together.
type linkedMoves struct {
	moves []*destination.Move
	// bins are the numbers of the nodes that would have to be made; replacements are those that were.
	bins         []int
	replacements []*cluster.Claim
}

// savingMoves are the moves that save money.
type savingMoves struct {
	*frame
	*waits
	*fences
	*balancer
}

// proceedSaving is about the moves that save money.
func (sm *savingMoves) proceedSaving() {
	var list []*destination.Move
	for _, m := range sm.Moves {
		if m.GiveUpReason == "" && disrupt.SavesMoney(m.Reason) {
			list = append(list, m)
		}
	}
	for _, l := range sm.linkMoves(list) {
		sm.proceedLinked(l)
	}
}

func (sm *savingMoves) proceedLinked(l *linkedMoves) {
	farthest, hindered := destination.AtReadyNode, false
	for _, m := range l.moves {
		hindered = sm.isHeldUp(m) || hindered
		farthest = max(farthest, m.Farthest())
	}
	switch {
	case farthest == destination.Nowhere: // without those that stay the rest looks different
		sm.shrinkLinked(l, sm.nodesToKeep(l, destination.Nowhere), disrupt.PodsStranded)
		sm.mayWaitAll(l)
	case hindered:
		sm.mayWaitAll(l)
	case farthest == destination.AtComingNode || farthest == destination.AtReadyNode && slices.ContainsFunc(l.moves,
		sm.lacksReplacement):
		if sm.mayWaitAll(l) {
			sm.recheckSaving(l)
		}
	case farthest == destination.AtNewNode:
		sm.requestReplacements(l)
	default:
		sm.deleteLinked(l)
	}
}

// recheckSaving gives linked moves up that waits for what would not pay any more if it were there.
func (sm *savingMoves) recheckSaving(l *linkedMoves) {
	t, known := sm.balanceOf(l, nodesOf(l))
	if why := t.Shortfall(sm.set, 0); known && why != "" {
		l.giveUp(why)
	}
}

// mayWaitAll reports whether linked moves may go on waiting.
func (sm *savingMoves) mayWaitAll(l *linkedMoves) bool {
	ok := true
	for _, m := range l.moves {
		ok = sm.mayWait(m) && ok
	}
	return ok
}

// requestReplacements asks for the new nodes of linked moves if it pays. If it does not, the nodes stay whose pods have
// no place without them, and the others go on.
//
// Where replacements have been made already those are paid for, and more are only made in place of nodes that would
// have to stay otherwise, if that pays by itself: how the pods are put beside each other this time is no reason to give
// up what was bought for.
func (sm *savingMoves) requestReplacements(l *linkedMoves) {
	if !sm.mayWaitAll(l) {
		return
	}
	bins := make([]market.Bin, len(l.bins))
	for i, n := range l.bins {
		bins[i] = sm.savingPlacement.Bins[n]
	}
	part, held := nodesOf(l), sm.nodesToKeep(l, destination.AtNewNode)
	if len(l.replacements) > 0 {
		part = candidatesOf(held)
	}
	if freeRiders, why := sm.freeRidersOf(l, part, bins); len(freeRiders) > 0 && len(freeRiders) < len(part) {
		sm.shrinkLinked(l, freeRiders, why)
		return
	}
	a, no := saving.AppraiseCheapestZones(sm.set, part, bins)
	whole, known := sm.fullBalance(l, nodesOf(l))
	switch {
	case no != nil:
		sm.shrinkLinked(l, held, no.Reason)
	case !known:
		l.giveUp(disrupt.PriceUnknown)
	case whole.Shortfall(sm.set, a.MaxAfter) != "":
		sm.shrinkLinked(l, held, whole.Shortfall(sm.set, a.MaxAfter))
	case len(leavingOf(l)) == 0 && sm.isUnbalanced(whole.Removed, whole.Saving()-a.After):
		sm.shrinkLinked(l, held, disrupt.NotBalanced)
	default:
		for i, n := range l.bins {
			m := mainMoveOf(l.moves, n)
			sm.Replacements = append(sm.Replacements, disrupt.ReplacementRequest{Bin: a.Bins[i], Replaces: m.ID,
				Reason: m.Reason, LinkedWith: l.moves[0].ID})
		}
	}
}

// mainMoveOf is the move that has the most pods in a new node.
func mainMoveOf(moves []*destination.Move, bin int) *destination.Move {
	best, most := moves[0], 0
	for _, m := range moves {
		n := 0
		for i := range m.Destinations {
			if m.Destinations[i].Distance == destination.AtNewNode && m.Destinations[i].Bin == bin {
				n++
			}
		}
		if n > most {
			best, most = m, n
		}
	}
	return best
}

// nodesOf are the nodes of linked moves.
func nodesOf(l *linkedMoves) []disrupt.Candidate {
	var out []disrupt.Candidate
	for _, m := range l.moves {
		out = append(out, m.Nodes...)
	}
	return out
}

// deleteLinked has the nodes of linked moves go: all that their pods need is up. It is asked once more whether it pays,
// since prices change and the cloud chooses; and, where nothing has been bought, whether it is worth the disturbance.
func (sm *savingMoves) deleteLinked(l *linkedMoves) {
	t, known := sm.balanceOf(l, nodesOf(l))
	switch short := t.Shortfall(sm.set, 0); {
	case !known:
		l.giveUp(disrupt.PriceUnknown)
	case short != "":
		l.giveUp(short)
	case len(l.replacements)+len(leavingOf(l)) == 0 && sm.isUnbalanced(t.Removed, t.Saving()):
		l.giveUp(disrupt.NotBalanced)
	default:
		sm.departures = append(sm.departures, departure{l.moves, reason.Of(reason.SavingPerHour, t.Saving())})
	}
}

// giveUp gives all moves of the linked moves up.
func (l *linkedMoves) giveUp(why disrupt.BlockReason) {
	for _, m := range l.moves {
		m.GiveUp(why, true)
	}
}

// linkMoves puts moves together that share new nodes, in the order of the first of each.
func (sm *savingMoves) linkMoves(list []*destination.Move) []*linkedMoves {
	byID := make(map[string]int, len(list))
	for i, m := range list {
		byID[m.ID] = i
	}
	joined := disrupt.NewComponents(len(list))
	first, made := make(map[int]int), make([][]*cluster.Claim, len(list))
	for i, m := range list {
		for _, dest := range m.Destinations {
			if dest.Distance == destination.AtNewNode {
				if j, known := first[dest.Bin]; known {
					joined.Join(i, j)
				} else {
					first[dest.Bin] = i
				}
			}
			if c := sm.ClaimAt(dest); c != nil && sm.isChargedToMove(c) {
				if j, known := byID[c.Replaces]; known {
					joined.Join(i, j)
				}
			}
		}
	}
	for _, c := range sm.s.Claims { // what was made and is not used is paid for all the same
		if i, known := byID[c.Replaces]; known && c.Deleting.IsZero() && sm.isChargedToMove(c) {
			made[i] = append(made[i], c)
		}
	}
	return linkByUse(list, made, joined)
}

func linkByUse(list []*destination.Move, made [][]*cluster.Claim, joined *disrupt.Components) []*linkedMoves {
	var out []*linkedMoves
	at := make(map[int]*linkedMoves)
	for i, m := range list {
		root := joined.Root(i)
		l := at[root]
		if l == nil {
			l = &linkedMoves{}
			at[root] = l
			out = append(out, l)
		}
		l.moves = append(l.moves, m)
		l.replacements = append(l.replacements, made[i]...)
		for _, dest := range m.Destinations {
			if dest.Distance == destination.AtNewNode && !slices.Contains(l.bins, dest.Bin) {
				l.bins = append(l.bins, dest.Bin)
			}
		}
	}
	for _, l := range out {
		slices.Sort(l.bins)
	}
	return out
}
