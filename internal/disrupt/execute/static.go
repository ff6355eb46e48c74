package execute

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/static"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// staticReplacement is the claim that was made for a move of a static pool, or nil. Such a pool replaces one node by
// one.
func (ex *executor) staticReplacement(m *activeMove) *cluster.Claim {
	return static.Replacement(ex.s, m.nodes[0].Claim.Pool, m.id)
}

// freeStaticNodes is how many nodes a static pool could make beyond those that it has, within its limits.
func (ex *executor) freeStaticNodes(p *cluster.Pool) int {
	if !p.NodeClass.Ready || p.Catalog == nil || p.InBackoff || p.Probing {
		return 0
	}
	waiting := 0
	for _, m := range ex.moves {
		if m.giveUpReason == "" && m.nodes[0].Pool == p && ex.staticReplacement(m) == nil {
			waiting++
		}
	}
	for _, c := range ex.s.ClaimsOf(p.Name) { // those whose fences are just going up are in no move yet
		if disrupt.BeingFenced(ex.s, c) {
			waiting++
		}
	}
	bins, _ := schedule.EmptyBins(ex.s, p, ex.set.Schedule, ex.budgets.Remaining(p.Name, command.Drifted)+waiting)
	return max(0, len(bins)-waiting)
}

// proceedStatic is about the moves of static pools: each node gets one in its place and goes when that is up, whatever
// runs there: more room than that such a pool does not give. What it has is kept for the pods of the node that goes.
func (ex *executor) proceedStatic() {
	missing := make(map[*cluster.Pool][]*activeMove)
	var pools []*cluster.Pool
	for _, m := range ex.moves {
		if m.giveUpReason != "" || !m.isStatic {
			continue
		}
		if m.hasNotBegun() {
			ex.fence(m)
			continue
		}
		c := ex.staticReplacement(m)
		switch {
		case ex.isHeldUp(m):
			ex.mayWait(m)
		case c == nil:
			if p := m.nodes[0].Pool; ex.mayWait(m) {
				if missing[p] == nil {
					pools = append(pools, p)
				}
				missing[p] = append(missing[p], m)
			}
		case c.Is(cluster.Initialized):
			ex.departures = append(ex.departures, departure{[]*activeMove{m}, ex.deleteMessage(m)})
		default:
			ex.mayWait(m)
		}
	}
	for _, p := range pools {
		ex.requestStatic(p, missing[p])
	}
}

// requestStatic asks for a node in place of each that goes.
func (ex *executor) requestStatic(p *cluster.Pool, moves []*activeMove) {
	if len(p.Problems) > 0 || !p.NodeClass.Ready || p.Catalog == nil || p.InBackoff {
		return
	}
	bins, _ := schedule.EmptyBins(ex.s, p, ex.set.Schedule, len(moves))
	slots := static.SlotsOf(ex.s, p).NewSlots(len(bins))
	for i := range bins {
		bins[i].Seats = ex.seatsFor(moves[i])
		ex.Replacements = append(ex.Replacements, disrupt.ReplacementRequest{Bin: bins[i], Name: slots[i].Name,
			Slot: slots[i].Slot, Replaces: moves[i].id, Reason: moves[i].reason})
	}
}

// seatsFor are seats for the pods of a move.
func (ex *executor) seatsFor(m *activeMove) []cluster.Seat {
	count := make(map[string]int)
	for i := range m.nodes {
		for _, pod := range ex.s.PodsOn(m.nodes[i].Node.Name) {
			if ex.needsPlace(pod) {
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
