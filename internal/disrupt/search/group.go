package search

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/market"
)

// mostNodes is how many nodes go together at most: their replacements must all be there before the first of them goes.
const mostNodes = 16

// findGroups finds nodes whose pods can be had for less on new ones if they are packed anew together. Nodes of a pool
// and a zone are looked at together first, because their pods mostly can be; then what is left of each pool, and then
// of all. Spot nodes are looked at apart where their pods may not go to new spot nodes.
func (sr *searcher) findGroups() {
	keys := []func(*searchCandidate) string{
		func(c *searchCandidate) string {
			zone, _ := c.Node.Labels.Get(cluster.ZoneLabel)
			return c.Pool.Name + "\x00" + zone
		},
		func(c *searchCandidate) string { return c.Pool.Name },
		func(c *searchCandidate) string { return strconv.FormatBool(c.Pool.Overrides.DryRun) },
	}
	for _, key := range keys {
		lists := make(map[string][]int)
		for i := range sr.candidates {
			if !sr.mayStillGo(i) {
				continue
			}
			name := key(&sr.candidates[i])
			if !sr.set.SpotToSpot && sr.candidates[i].CapacityType == disrupt.Spot {
				name += "\x00" + disrupt.Spot
			}
			lists[name] = append(lists[name], i)
		}
		sr.searchLists(lists)
	}
}

// searchLists looks for groups in lists of nodes, the least efficient nodes of a list first, and the list first that
// wastes the most.
func (sr *searcher) searchLists(lists map[string][]int) {
	var all []*groupSearch
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		g := &groupSearch{searcher: sr, list: lists[name], packingLoss: usualLoss, roomShare: usualRoomShare}
		slices.SortFunc(g.list, func(i, j int) int {
			a, b := &sr.candidates[i], &sr.candidates[j]
			return cmp.Or(cmp.Compare(a.worth/a.Price, b.worth/b.Price), disrupt.Compare(&a.Candidate, &b.Candidate))
		})
		all = append(all, g)
	}
	for len(all) > 0 {
		worst := 0
		for i := range all {
			if all[i].waste() > all[worst].waste() {
				worst = i
			}
		}
		g := all[worst]
		if g.list = g.list[g.tryNext(g.list):]; len(g.list) == 0 || sr.packingBudget <= 0 {
			all = slices.Delete(all, worst, worst+1)
		}
	}
}

// waste is the part of the price of the first nodes that their pods are not worth.
func (g *groupSearch) waste() float64 {
	price, worth := 0.0, 0.0
	for _, i := range g.list[:min(len(g.list), mostNodes)] {
		price, worth = price+g.candidates[i].Price, worth+g.candidates[i].worth
	}
	return 1 - worth/max(price, 1e-12)
}

// groupSearch is the search for groups in one list of nodes.
type groupSearch struct {
	*searcher
	list []int
	// packingLoss is by how much new nodes have lately cost more than their pods are worth: what can't be filled to the
	// last bit.
	packingLoss float64
	// roomShare is which part of the pods, by worth, has lately found room on nodes that are there.
	roomShare float64
	// freeRiderIndices are the places of those who only rode along in what was tried last.
	freeRiderIndices []int
}

const (
	skipAfterMiss  = 2 // how many nodes are passed over where no group was found
	usualLoss      = 1.02
	mostLoss       = 1.10
	usualRoomShare = 0.15 // of pods find room
	hopeFactor     = 1.5  // by how much better the next group may do
	manyNodes      = 100
	maxAttempts    = 3 // how often a group is tried, each time without those who only rode along
)

// tryNext tries the first nodes of the list together, then fewer of them, down to the first alone, which may become
// several. It says how many of them it is done with.
func (g *groupSearch) tryNext(list []int) int {
	last, less := 0, 2
	if len(g.candidates) >= manyNodes {
		less = 4
	}
	for size := mostNodes; size > 0; size /= less {
		places := g.firstAllowed(list, size)
		if len(places) == 0 {
			return len(list)
		}
		if len(places) == last {
			continue
		}
		last = len(places)
		if g.isHopeless(places) {
			continue
		}
		places, a, ok := g.attempt(places)
		if ok {
			g.acceptStep(places, a)
			return slices.Index(list, places[len(places)-1]) + 1
		}
		g.whatIf.Undo()
	}
	return min(len(list), skipAfterMiss)
}

// attempt tries some nodes together and, if some of them only ride along, the others without them.
func (g *groupSearch) attempt(places []int) (tried []int, a saving.Appraisal, ok bool) {
	for range maxAttempts {
		g.freeRiderIndices = nil
		if a, ok = g.try(places, g.buyTogether); ok || len(g.freeRiderIndices) == 0 ||
			len(g.freeRiderIndices) == len(places) {
			break
		}
		g.whatIf.Undo()
		places = slices.DeleteFunc(slices.Clone(places), func(i int) bool {
			return slices.Contains(g.freeRiderIndices, i)
		})
	}
	return places, a, ok
}

// isHopeless reports whether a group would have to do much better than those before to pay. Where there are few nodes,
// nothing is hopeless before it was tried.
func (g *groupSearch) isHopeless(places []int) bool {
	if len(g.candidates) < manyNodes {
		return false
	}
	if g.packingBudget <= 0 {
		return true
	}
	price, needed := g.priceAndNeeded(places, g.candidates.at(places))
	worth := 0.0
	for _, i := range places {
		worth += g.candidates[i].worth
	}
	rest := worth * max(0, 1-hopeFactor*g.roomShare)
	return price-g.packingLoss*rest < needed
}

// firstAllowed is the first nodes of the list that may go, at most size, and no more than the budgets allow.
func (sr *searcher) firstAllowed(list []int, size int) []int {
	var out []int
	taken := make(map[string]int)
	for _, i := range list {
		if len(out) == size {
			break
		}
		if pool := sr.candidates[i].Pool.Name; sr.mayStillGo(i) && taken[pool] < sr.budgets.Remaining(pool,
			command.Underutilized) {
			taken[pool]++
			out = append(out, i)
		}
	}
	return out
}

// buyTogether buys nodes for all who have found no room. What can't pay, by what is known of how well such nodes are
// filled, is not tried.
func (g *groupSearch) buyTogether(places []int, chosen []disrupt.Candidate, before, needed float64) (saving.Appraisal,
	bool) {
	worth, all := g.whatIf.WorthWithoutRoom(), 0.0
	for _, i := range places {
		all += g.candidates[i].worth
	}
	if all > 0 {
		g.roomShare = (3*g.roomShare + 1 - worth/all) / 4
	}
	if before-g.packingLoss*worth < needed || g.packingBudget <= 0 {
		return saving.Appraisal{}, false
	}
	g.packingBudget -= g.whatIf.CountWithoutRoom()
	bins, whole := g.whatIf.Buy(true)
	if !whole {
		return saving.Appraisal{}, false
	}
	price := saving.BinsPrice(bins)
	if worth > 0 {
		g.packingLoss = (g.packingLoss + min(price/worth, mostLoss)) / 2
	}
	if saved := before - price; saved < needed {
		g.candidates.noteBlocked(places, savesTooLittle(saved, needed))
		return saving.Appraisal{}, false
	}
	if len(places) > 1 {
		if g.freeRiderIndices = g.freeRidersIn(places, chosen, bins); len(g.freeRiderIndices) > 0 {
			return saving.Appraisal{}, false
		}
	}
	return g.appraise(places, chosen, bins)
}

// freeRidersIn finds those of the places who only ride along. Pods that were to go to their nodes count as theirs.
func (g *groupSearch) freeRidersIn(places []int, chosen []disrupt.Candidate, bins []market.Bin) []int {
	guests := make(map[string]int)
	for n, i := range places {
		for p := range g.whatIf.PodsFromOthers(i) {
			guests[p.UID] = n
		}
	}
	own := saving.CandidateByNode(chosen)
	list, _ := saving.FreeRiders(g.set, chosen, bins, func(p *cluster.Pod) int {
		if n, guest := guests[p.UID]; guest {
			return n
		}
		return own(p)
	}, saving.PartDemand{NeedsSaving: true, NeedsChoice: true})
	for n := range list {
		list[n] = places[list[n]]
	}
	return list
}
