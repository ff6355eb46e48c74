package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/market"
)

// beginner begins moves that a search has found.
type beginner struct {
	*frame
	*waits
	*fences
	*savingMoves
}

// beginProposed begins the moves that a search has found, as far as they still hold beside those under way and the
// budgets allow them. Where the search has put the pods is proof enough if these places are still free; otherwise they
// are placed once more. Each move is verified again when its nodes are fenced.
func (bg *beginner) beginProposed(found *disrupt.Proposal) {
	if found == nil {
		return
	}
	if bg.fencePending { // others are about to begin, and nobody can tell yet what room they need
		for i := range found.Moves {
			bg.skip(&found.Moves[i], disrupt.BeingDisrupted)
		}
		return
	}
	before := len(bg.Begun)
	if t := bg.beginCertain(found.Moves); len(t.active) > 0 {
		bg.beginDecided(bg.decideLinked(t, t.active), before)
	}
}

// uncertainMoves is moves that were found and that only a placement can tell about.
type uncertainMoves struct {
	active   []*destination.Move
	proposed map[*destination.Move]*disrupt.Move
	// others is what others have taken.
	others *destination.Others
}

// beginCertain begins the moves of which it is certain that they hold, passes those that may not begin, and returns the
// others.
func (bg *beginner) beginCertain(moves []disrupt.Move) *uncertainMoves {
	p := bg.newPlacementCheck()
	t := &uncertainMoves{proposed: make(map[*destination.Move]*disrupt.Move), others: p.others}
	for i := range moves {
		m := &moves[i]
		candidates, reason := bg.recheckNodes(m, p.promisedHosts)
		if reason == "" {
			reason = bg.reserveBudgets(m, candidates)
		}
		if reason != "" {
			bg.skip(m, reason)
			continue
		}
		am := &destination.Move{ID: m.ID, Reason: m.Reason, Nodes: candidates}
		if bins, ok := p.stillHolds(m, candidates); ok {
			bg.fence(am)
			bg.Begun[len(bg.Begun)-1] = *m
			for i := range bins {
				bg.Replacements = append(bg.Replacements, disrupt.ReplacementRequest{Bin: bins[i], Replaces: am.ID,
					Reason: am.Reason})
			}
			continue
		}
		t.proposed[am] = m
		t.active = append(t.active, am)
	}
	return t
}

// linkedDecision is what becomes of moves that share new nodes. stay is why they may not begin, nil if they may.
type linkedDecision struct {
	*linkedMoves
	proposals []*disrupt.Move
	blocked   *disrupt.BlockedNode
}

// decideLinked places the pods of some of the uncertain moves together and says which of the moves may begin.
func (bg *beginner) decideLinked(t *uncertainMoves, moves []*destination.Move) []linkedDecision {
	var before, memo destination.Answer
	bg.PlaceMoves(moves, bg.Ongoing(), t.others, &before, &memo)
	var out []linkedDecision
	for _, l := range bg.linkMoves(moves) {
		v := linkedDecision{linkedMoves: l}
		for _, m := range l.moves {
			v.proposals = append(v.proposals, t.proposed[m])
		}
		v.blocked = bg.blockedBy(&v, memo.Placement.Bins)
		out = append(out, v)
	}
	return out
}

// beginDecided begins the moves that may. If some of what was found begins, which is what was begun after the first so
// many, the others are looked at again once that is done: all were placed together.
func (bg *beginner) beginDecided(list []linkedDecision, first int) {
	for _, v := range list {
		if v.blocked != nil {
			continue
		}
		for i, m := range v.moves {
			bg.fence(m)
			bg.Begun[len(bg.Begun)-1] = *v.proposals[i]
		}
	}
	for _, v := range list {
		if v.blocked == nil {
			continue
		}
		if len(bg.Begun) > first {
			v.blocked = &disrupt.BlockedNode{Reason: disrupt.OthersFirst}
		}
		for i, m := range v.moves {
			bg.skipBlocked(v.proposals[i], v.blocked)
			for j := range m.Nodes {
				bg.budgets.Return(m.Nodes[j].Claim.Pool, 1)
				delete(bg.RemovedNodes, m.Nodes[j].Node.Name)
			}
		}
	}
}

// skip tells that a move which was found is not begun.
func (bg *beginner) skip(m *disrupt.Move, reason disrupt.BlockReason) {
	bg.NotBegun = append(bg.NotBegun, disrupt.GivenUp{ID: m.ID, Reason: m.Reason, Claims: m.Claims,
		BlockReason: reason})
}

// skipBlocked is pass with what a placement has come to.
func (bg *beginner) skipBlocked(m *disrupt.Move, blocked *disrupt.BlockedNode) {
	bg.skip(m, blocked.Reason)
	last := &bg.NotBegun[len(bg.NotBegun)-1]
	last.Saving, last.CertainSaving, last.NeededSaving = blocked.Saving, blocked.CertainSaving, blocked.NeededSaving
}

// minKeptSaving is how much of what a search has promised must be left for a move to begin that takes more new nodes
// than that.
const minKeptSaving = 0.5

// blockedBy says why moves that share new nodes may not begin: if they don't pay, or not about as much as was found.
func (bg *beginner) blockedBy(v *linkedDecision, made []market.Bin) *disrupt.BlockedNode {
	var candidates []disrupt.Candidate
	most, promised := 0, 0.0
	for i, am := range v.moves {
		m := v.proposals[i]
		most, promised = most+len(m.Bins), promised+m.Before-m.After
		candidates = append(candidates, am.Nodes...)
		for _, dest := range am.Destinations {
			if dest.Distance == destination.Nowhere {
				return &disrupt.BlockedNode{Reason: disrupt.PodsStranded, Pod: dest.Pod.ID()}
			}
		}
	}
	bins := make([]market.Bin, len(v.bins))
	for i, n := range v.bins {
		bins[i] = made[n]
	}
	a, blocked := saving.AppraiseCheapestZones(bg.set, candidates, bins)
	if blocked != nil {
		return blocked
	}
	whole, known := bg.fullBalance(v.linkedMoves, candidates)
	blocked = &disrupt.BlockedNode{Saving: a.Saving(), CertainSaving: a.Before - a.MaxAfter,
		NeededSaving: a.NeededSaving}
	switch {
	case !known:
		blocked.Reason = disrupt.PriceUnknown
	case whole.Shortfall(bg.set, a.MaxAfter) != "": // an earlier try has left nodes that nobody uses
		blocked.Reason = whole.Shortfall(bg.set, a.MaxAfter)
		blocked.Saving = whole.Saving() - a.After
		blocked.CertainSaving = whole.Saving() - a.MaxAfter
	case len(bins) > most && a.Saving() < minKeptSaving*promised:
		blocked.Reason, blocked.NeededSaving = disrupt.SavesTooLittle, minKeptSaving*promised
	case bg.isUnbalanced(candidates, a.Saving()):
		return bg.totals.Approves(bg.set, candidates, a.Saving())
	default:
		return nil
	}
	return blocked
}

// recheckNodes finds the nodes of a move; why says why one of them may no longer go. To those that are promised go the
// pods of nodes that are on their way out or about to be: whoever took such a node away, too, would leave them with
// nowhere to go.
func (bg *beginner) recheckNodes(m *disrupt.Move, promised map[string]bool) (candidates []disrupt.Candidate,
	reason disrupt.BlockReason) {
	for _, name := range m.Claims {
		c := bg.s.Claim(name)
		if c == nil {
			return nil, disrupt.NotInitialized
		}
		candidate, blocked := bg.eligibility.MayDisrupt(c, m.Reason)
		switch {
		case blocked != nil:
			return nil, blocked.Reason
		case bg.RemovedNodes[candidate.Node.Name]:
			return nil, disrupt.BeingDisrupted
		case bg.neededHosts[candidate.Node.Name] || promised[candidate.Node.Name]:
			return nil, disrupt.PodsExpected
		case bg.s.Now.Before(bg.s.Retry[command.Fence{Node: candidate.Node.Name}.Key()].NotBefore):
			return nil, disrupt.MoveFailedLately // its fence did not go up
		case candidate.Pool.Deleting:
			return nil, disrupt.PoolUnknown
		}
		candidates = append(candidates, candidate)
	}
	if len(candidates) == 0 {
		return nil, disrupt.NotInitialized
	}
	return candidates, ""
}

// reserveBudgets takes the nodes of a move from their budgets; why says why not, if there is nothing left or one is
// only to be told of.
func (bg *beginner) reserveBudgets(m *disrupt.Move, candidates []disrupt.Candidate) (reason disrupt.BlockReason) {
	if !bg.budgets.ReserveAll(candidates, m.Reason) {
		return disrupt.BudgetBlocks
	}
	if slices.ContainsFunc(candidates, func(c disrupt.Candidate) bool { return c.Pool.Overrides.DryRun }) {
		bg.AddDryRun(*m, candidates)
		return disrupt.DryRun
	}
	for i := range candidates {
		bg.RemovedNodes[candidates[i].Node.Name] = true
	}
	return ""
}

// maxTriedAlone is how many moves are tried alone if nothing of them begins together.
const maxTriedAlone = 8

// TryBegin says of moves that were found why they may not begin, if removed nodes go by themselves; nothing if some of
// them may.
func TryBegin(s *cluster.Snapshot, set disrupt.Settings, removed map[string]bool,
	moves []disrupt.Move) map[*disrupt.Move]*disrupt.BlockedNode {
	x := newExecutor(s, set, Input{Placement: destination.PlacementOfPending(s)})
	for name := range removed {
		x.RemovedNodes[name] = true
	}
	t := x.beginCertain(moves)
	if len(t.active) == 0 || len(x.Begun) > 0 {
		return nil
	}
	return x.blockedUncertain(t)
}

// blockedUncertain says of the uncertain moves why they may not begin; nothing if some may. If none may together with
// the others, they are tried alone, and the first that may then is kept: the others come after it.
func (bg *beginner) blockedUncertain(t *uncertainMoves) map[*disrupt.Move]*disrupt.BlockedNode {
	no := make(map[*disrupt.Move]*disrupt.BlockedNode)
	for _, r := range bg.decideLinked(t, t.active) {
		if r.blocked == nil {
			return nil
		}
		for _, m := range r.proposals {
			no[m] = r.blocked
		}
	}
	if len(t.active) == 1 {
		return no
	}
	for n, am := range t.active[:min(len(t.active), maxTriedAlone)] {
		bg.letOnly(t, am)
		m := t.proposed[am]
		if no[m] = bg.decideLinked(t, t.active[n:n+1])[0].blocked; no[m] != nil {
			continue
		}
		for _, later := range t.active[n+1:] {
			no[t.proposed[later]] = &disrupt.BlockedNode{Reason: disrupt.OthersFirst}
		}
		break
	}
	return no
}

// letOnly lets one of the uncertain moves go and has the others stay.
func (bg *beginner) letOnly(t *uncertainMoves, only *destination.Move) {
	clear(bg.OtherPodsHosts)
	for _, m := range t.active {
		for i := range m.Nodes {
			if name := m.Nodes[i].Node.Name; m == only {
				bg.RemovedNodes[name] = true
			} else {
				delete(bg.RemovedNodes, name)
			}
		}
	}
}
