package disrupt

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// mostNodes is how many nodes go together at most: their replacements must all be there before the first of them goes.
const mostNodes = 16

// groups finds nodes whose pods can be had for less on new ones if they are packed anew together. Nodes of a pool and a zone
// are looked at together first, because their pods mostly can be; then what is left of each pool, and then of all. Spot nodes are
// looked at apart where their pods may not go to new spot nodes.
func (sr *searcher) groups() {
	keys := []func(*prospect) string{
		func(p *prospect) string {
			zone, _ := p.Node.Labels.Get(cluster.ZoneLabel)
			return p.Pool.Name + "\x00" + zone
		},
		func(p *prospect) string { return p.Pool.Name },
		func(p *prospect) string { return strconv.FormatBool(p.Pool.Care.DryRun) },
	}
	for _, key := range keys {
		lists := make(map[string][]int)
		for i := range sr.all {
			if !sr.open(i) {
				continue
			}
			name := key(&sr.all[i])
			if !sr.set.SpotToSpot && sr.all[i].CapacityType == spot {
				name += "\x00" + spot
			}
			lists[name] = append(lists[name], i)
		}
		sr.group(lists)
	}
}

// group looks for groups in lists of nodes, the least efficient nodes of a list first, and the list first that wastes the most.
func (sr *searcher) group(lists map[string][]int) {
	var all []*grouping
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		g := &grouping{searcher: sr, list: lists[name], loss: usualLoss, housed: usually}
		slices.SortFunc(g.list, func(i, j int) int {
			a, b := &sr.all[i], &sr.all[j]
			return cmp.Or(cmp.Compare(a.worth/a.Price, b.worth/b.Price), Compare(&a.Candidate, &b.Candidate))
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
		if g.list = g.list[g.next(g.list):]; len(g.list) == 0 || sr.work <= 0 {
			all = slices.Delete(all, worst, worst+1)
		}
	}
}

// waste is the part of the price of the first nodes that their pods are not worth.
func (g *grouping) waste() float64 {
	price, worth := 0.0, 0.0
	for _, i := range g.list[:min(len(g.list), mostNodes)] {
		price, worth = price+g.all[i].Price, worth+g.all[i].worth
	}
	return 1 - worth/max(price, 1e-12)
}

// grouping is the search for groups in one list of nodes.
type grouping struct {
	*searcher
	list []int
	// loss is by how much new nodes have lately cost more than their pods are worth: what can't be filled to the last bit.
	loss float64
	// housed is which part of the pods, by worth, has lately found room on nodes that are there.
	housed float64
	// riding are the places of those who only rode along in what was tried last.
	riding []int
}

const (
	skip      = 2 // how many nodes are passed over where no group was found
	usualLoss = 1.02
	mostLoss  = 1.10
	usually   = 0.15 // of pods find room
	hope      = 1.5  // by how much better the next group may do
	manyNodes = 100
	mostTried = 3 // how often a group is tried, each time without those who only rode along
)

// next tries the first nodes of the list together, then fewer of them, down to the first alone, which may become several. It
// says how many of them it is done with.
func (g *grouping) next(list []int) int {
	last, less := 0, 2
	if len(g.all) >= manyNodes {
		less = 4
	}
	for size := mostNodes; size > 0; size /= less {
		places := g.first(list, size)
		if len(places) == 0 {
			return len(list)
		}
		if len(places) == last {
			continue
		}
		last = len(places)
		if g.hopeless(places) {
			continue
		}
		places, a, ok := g.attempt(places)
		if ok {
			g.accept(places, a)
			return slices.Index(list, places[len(places)-1]) + 1
		}
		g.stage.Undo()
	}
	return min(len(list), skip)
}

// attempt tries some nodes together and, if some of them only ride along, the others without them.
func (g *grouping) attempt(places []int) (tried []int, a Appraisal, ok bool) {
	for range mostTried {
		g.riding = nil
		if a, ok = g.try(places, g.together); ok || len(g.riding) == 0 || len(g.riding) == len(places) {
			break
		}
		g.stage.Undo()
		places = slices.DeleteFunc(slices.Clone(places), func(i int) bool { return slices.Contains(g.riding, i) })
	}
	return places, a, ok
}

// hopeless reports whether a group would have to do much better than those before to pay. Where there are few nodes, nothing is
// hopeless before it was tried.
func (g *grouping) hopeless(places []int) bool {
	if len(g.all) < manyNodes {
		return false
	}
	if g.work <= 0 {
		return true
	}
	price, needed := g.asks(places, g.chosen(places))
	worth := 0.0
	for _, i := range places {
		worth += g.all[i].worth
	}
	rest := worth * max(0, 1-hope*g.housed)
	return price-g.loss*rest < needed
}

// first is the first nodes of the list that may go, at most size, and no more than the budgets allow.
func (sr *searcher) first(list []int, size int) []int {
	var out []int
	taken := make(map[string]int)
	for _, i := range list {
		if len(out) == size {
			break
		}
		if pool := sr.all[i].Pool.Name; sr.open(i) && taken[pool] < sr.budgets.Left(pool, command.Underutilized) {
			taken[pool]++
			out = append(out, i)
		}
	}
	return out
}

// together buys nodes for all who have found no room. What can't pay, by what is known of how well such nodes are filled, is
// not tried.
func (g *grouping) together(places []int, chosen []Candidate, before, needed float64) (Appraisal, bool) {
	worth, all := g.stage.Rest(), 0.0
	for _, i := range places {
		all += g.all[i].worth
	}
	if all > 0 {
		g.housed = (3*g.housed + 1 - worth/all) / 4
	}
	if before-g.loss*worth < needed || g.work <= 0 {
		return Appraisal{}, false
	}
	g.work -= g.stage.Crowd()
	bins, whole := g.stage.Buy(true)
	if !whole {
		return Appraisal{}, false
	}
	price := binsPrice(bins)
	if worth > 0 {
		g.loss = (g.loss + min(price/worth, mostLoss)) / 2
	}
	if saving := before - price; saving < needed {
		g.note(places, unpaid(saving, needed))
		return Appraisal{}, false
	}
	if len(places) > 1 {
		if g.riding = g.ridersOf(places, chosen, bins); len(g.riding) > 0 {
			return Appraisal{}, false
		}
	}
	return g.appraise(places, chosen, bins)
}

// ridersOf finds those of the places who only ride along. Pods that were to go to their nodes count as theirs.
func (g *grouping) ridersOf(places []int, chosen []Candidate, bins []schedule.Bin) []int {
	guests := make(map[string]int)
	for n, i := range places {
		for p := range g.stage.Guests(i) {
			guests[p.UID] = n
		}
	}
	own := byNode(chosen)
	list, _ := riders(g.set, chosen, bins, func(p *cluster.Pod) int {
		if n, guest := guests[p.UID]; guest {
			return n
		}
		return own(p)
	}, demand{enough: true, choice: true})
	for n := range list {
		list[n] = places[list[n]]
	}
	return list
}

func binsPrice(bins []schedule.Bin) float64 {
	sum := 0.0
	for i := range bins {
		sum += bins[i].Price
	}
	return sum
}
