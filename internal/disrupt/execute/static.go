package execute

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/static"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// staticReplacement is the claim that was made for a move of a static pool, or nil. Such a pool replaces one node by
// one.
func (fr *frame) staticReplacement(m *destination.Move) *cluster.Claim {
	return static.Replacement(fr.s, m.Nodes[0].Claim.Pool, m.ID)
}

// freeStaticNodes is how many nodes a static pool could make beyond those that it has, within its limits.
func (rq *requiredQueue) freeStaticNodes(p *cluster.Pool) int {
	if !p.NodeClass.Ready || p.Catalog == nil || p.InBackoff || p.Probing {
		return 0
	}
	waiting := 0
	for _, m := range rq.Moves {
		if m.GiveUpReason == "" && m.Nodes[0].Pool == p && rq.staticReplacement(m) == nil {
			waiting++
		}
	}
	for _, c := range rq.s.ClaimsOf(p.Name) { // those whose fences are just going up are in no move yet
		if disrupt.BeingFenced(rq.s, c) {
			waiting++
		}
	}
	bins, _ := schedule.EmptyBins(rq.s, p, rq.set.Schedule, rq.budgets.Remaining(p.Name, command.Drifted)+waiting)
	return max(0, len(bins)-waiting)
}

// proceedStatic is about the moves of static pools: each node gets one in its place and goes when that is up, whatever
// runs there: more room than that such a pool does not give. What it has is kept for the pods of the node that goes.
func (rm *requiredMoves) proceedStatic() {
	var missing missingNodes
	for _, m := range rm.Moves {
		if m.GiveUpReason != "" || !m.IsStatic {
			continue
		}
		if m.HasNotBegun() {
			rm.fence(m)
			continue
		}
		c := rm.staticReplacement(m)
		switch {
		case rm.isHeldUp(m):
			rm.mayWait(m)
		case c == nil:
			if rm.mayWait(m) {
				missing.add(m)
			}
		case c.Is(cluster.Initialized):
			rm.departures = append(rm.departures, departure{[]*destination.Move{m}, rm.deleteMessage(m)})
		default:
			rm.mayWait(m)
		}
	}
	rm.requestStatic(&missing)
}

// missingNodes are moves of static pools for which a node is to be made, by pool, in the order of the first of each.
type missingNodes struct {
	pools []*cluster.Pool
	moves map[*cluster.Pool][]*destination.Move
}

func (mn *missingNodes) add(m *destination.Move) {
	p := m.Nodes[0].Pool
	if mn.moves == nil {
		mn.moves = make(map[*cluster.Pool][]*destination.Move)
	}
	if mn.moves[p] == nil {
		mn.pools = append(mn.pools, p)
	}
	mn.moves[p] = append(mn.moves[p], m)
}

// requestStatic asks for a node in place of each that goes.
func (rm *requiredMoves) requestStatic(missing *missingNodes) {
	for _, p := range missing.pools {
		if len(p.Problems) > 0 || !p.NodeClass.Ready || p.Catalog == nil || p.InBackoff {
			continue
		}
		moves := missing.moves[p]
		bins, _ := schedule.EmptyBins(rm.s, p, rm.set.Schedule, len(moves))
		slots := static.SlotsOf(rm.s, p).NewSlots(len(bins))
		for i := range bins {
			bins[i].Seats = rm.seatsFor(moves[i])
			rm.Replacements = append(rm.Replacements, disrupt.ReplacementRequest{Bin: bins[i], Name: slots[i].Name,
				Slot: slots[i].Slot, Replaces: moves[i].ID, Reason: moves[i].Reason})
		}
	}
}

// seatsFor are seats for the pods of a move.
func (rm *requiredMoves) seatsFor(m *destination.Move) []cluster.Seat {
	count := make(map[string]int)
	for i := range m.Nodes {
		for _, pod := range rm.s.PodsOn(m.Nodes[i].Node.Name) {
			if rm.NeedsPlace(pod) {
				count[pod.Class.Key]++
			}
		}
	}
	var out []cluster.Seat
	for _, class := range slices.Sorted(maps.Keys(count)) {
		out = append(out, cluster.Seat{Class: class, Count: count[class]})
	}
	return out
}
