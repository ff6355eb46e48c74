package disrupt

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// good is the part of what could be saved at best from which on a node is exchanged for another by itself: if less is saved so,
// others may be found with which more is.
const good = 0.85

// swaps finds nodes that can be exchanged for one that is cheaper, the most wasteful for the disturbance first. Of what could be
// saved at best they must save a part.
func (sr *searcher) swaps(part float64) {
	alone := func(places []int, chosen []Candidate, before, needed float64) (Appraisal, bool) {
		asked := max(needed, part*(before-sr.stage.Rest()))
		bins, price, why := sr.stage.Swap(before - asked)
		if why != "" {
			if saving := before - price; asked == needed || saving < needed { // else it is tried again, for less
				sr.note(places, unswapped(why, saving, needed))
			}
			return Appraisal{}, false
		}
		return sr.appraise(places, chosen, bins)
	}
	for _, i := range sr.order() {
		if !sr.open(i) {
			continue
		}
		if a, ok := sr.try([]int{i}, alone); ok {
			sr.accept([]int{i}, a)
		} else {
			sr.stage.Undo()
		}
	}
}

// thrift is by how much more than the least saving is asked, for the pods that are evicted, where nodes have to be bought: packing
// anew disturbs everybody for a part of the price, and what has just been moved should not be moved again for little.
const thrift = 2.5

// asks is what nodes cost, and what must be saved if they go and others have to be bought. Pods of other nodes that were to go
// there are evicted in any case.
func (sr *searcher) asks(places []int, chosen []Candidate) (before, needed float64) {
	own := 0.0
	for _, i := range places {
		before, own = before+sr.all[i].Price, own+sr.all[i].own
	}
	needed = Needed(sr.set, chosen)
	return before, max(needed, thrift*needed*own/max(before, leastSaving))
}

// unswapped says why a node stays in whose place no single other one can be bought; saving is what the cheapest with room would save.
func unswapped(why schedule.NoSwap, saving, needed float64) Stay {
	switch {
	case why == schedule.FewValues:
		return Stay{Why: MinValuesTooDear, Saving: saving, Needed: needed}
	case why == schedule.NotAlone:
		return Stay{Why: PodsStranded, Saving: saving, Needed: needed}
	case math.IsInf(saving, -1):
		return Stay{Why: NothingCheaper, Needed: needed}
	}
	return unpaid(saving, needed)
}

// unpaid says why a node stays whose pods could be had for so much less, which is not what is needed.
func unpaid(saving, needed float64) Stay {
	why := SavesTooLittle
	if saving <= 0 {
		why = NothingCheaper
	}
	return Stay{Why: why, Saving: saving, Sure: saving, Needed: needed}
}

// purchase buys what is needed for those who have found no room; ok is false if it does not pay.
type purchase func(places []int, chosen []Candidate, before, needed float64) (a Appraisal, ok bool)

// try lets the nodes go on the stage and buys what their pods need; ok is false if it does not pay.
func (sr *searcher) try(places []int, buy purchase) (a Appraisal, ok bool) {
	chosen := sr.chosen(places)
	if pod, until, bears := sr.patience.Bears(chosen...); !bears {
		sr.note(places, Stay{Why: WorkloadResting, Pod: pod.ID(), Until: until})
		return Appraisal{}, false
	}
	if !sr.joinable(places) {
		return Appraisal{}, false
	}
	before, needed := sr.asks(places, chosen)
	if sr.stage.Leave(places...) {
		return sr.appraise(places, chosen, nil)
	}
	if saving := before - sr.stage.Rest(); saving < needed {
		sr.note(places, Stay{Why: NothingCheaper, Saving: saving, Sure: saving, Needed: needed})
		return Appraisal{}, false
	}
	return buy(places, chosen, before, needed)
}

// AppraiseClosely is Appraise for moves that were found and for nodes that need not be free to come up in any zone: where a move
// pays, but might not if the cloud chose another zone than the cheapest, the new nodes are kept to that.
//
// The pods of a move are placed once more when it begins, together with those of others, and all of them may come to share one new
// node that is like one of those that go. A search would keep that one instead, and look for something better. Here nobody looks, so
// that all that counts is whether it pays: what was refused would be found again and again.
func AppraiseClosely(set Settings, candidates []Candidate, bins []schedule.Bin) (Appraisal, *Stay) {
	a, stay := appraiseClosely(set, candidates, candidates, bins, true)
	if stay != nil && outdoes(candidates, bins) {
		a, stay = appraiseClosely(set, candidates, candidates, bins, false)
	}
	return a, stay
}

func appraiseClosely(set Settings, candidates, origins []Candidate, bins []schedule.Bin, choice bool) (Appraisal, *Stay) {
	a, stay := appraise(set, candidates, origins, bins, choice)
	if stay != nil && len(bins) > 0 && stay.Saving >= stay.Needed {
		a, stay = appraise(set, candidates, origins, inCheapestZones(bins), choice)
	}
	return a, stay
}

// appraise says what a move is worth.
func (sr *searcher) appraise(places []int, chosen []Candidate, bins []schedule.Bin) (Appraisal, bool) {
	a, stay := appraiseClosely(sr.set, chosen, sr.originsOf(places, chosen), bins, true)
	if spare := leftOver(chosen, a.Bins); stay == nil && a.Saving() < a.Needed+spare {
		stay = &Stay{Why: SavesTooLittle, Saving: a.Saving(), Sure: a.Saving(), Needed: a.Needed + spare}
	}
	if stay == nil {
		stay = sr.totals.Approves(sr.set, chosen, a.Saving())
	}
	if stay == nil && len(bins) > 0 {
		stay = sr.dragged(places, chosen, a.Bins)
	}
	if stay != nil {
		sr.note(places, *stay)
		return Appraisal{}, false
	}
	return a, true
}

// originsOf are the nodes that pods come from if the candidates go: their own, and those of pods that were to go there.
func (sr *searcher) originsOf(places []int, chosen []Candidate) []Candidate {
	out := chosen[:len(chosen):len(chosen)]
	for _, i := range places {
		out = append(out, sr.chosen(sr.guestsOf(i))...)
	}
	return out
}

// dragged says why nodes stay to which pods of others were to go, if that would have some of those go for nothing: their pods had
// room there, and would need new nodes that cost no less than theirs.
func (sr *searcher) dragged(places []int, chosen []Candidate, bins []schedule.Bin) *Stay {
	roots := make(map[int]bool)
	for _, i := range places {
		for _, j := range sr.guestsOf(i) {
			roots[sr.root(j)] = true
		}
	}
	if len(roots) == 0 {
		return nil
	}
	nodes, made := slices.Clone(chosen), slices.Clone(bins)
	for i := range sr.deals {
		if d := &sr.deals[i]; roots[sr.root(d.places[0])] {
			nodes, made = append(nodes, sr.chosen(d.places)...), append(made, d.Bins...)
		}
	}
	_, stay := riders(sr.set, nodes, made, byNode(nodes), demand{choice: true})
	return stay
}

// crowdPerLeftOver is of how many pods one finds no room in the end, as measured with kube-scheduler.
const crowdPerLeftOver = 32

// leftOver is what the pods may cost that find no room in the end. Pods of several nodes that are packed anew into several need not go
// where they were put here: kube-scheduler spreads them as they come. What saves less than nodes for those that are left over is
// undone again and again. A single new node has room for all of them, in whatever order they come.
func leftOver(chosen []Candidate, bins []schedule.Bin) float64 {
	if len(bins) <= 1 || len(chosen) == 1 {
		return 0
	}
	least, crowd := math.Inf(1), 0
	for i := range bins {
		least = min(least, bins[i].Price)
	}
	for i := range chosen {
		crowd += len(chosen[i].Pods)
	}
	return least * max(1, float64(crowd)/crowdPerLeftOver)
}

// note remembers of a node that was tried alone why it stays: of what was tried, what would save the most.
func (sr *searcher) note(places []int, stay Stay) {
	if len(places) != 1 {
		return
	}
	c := &sr.all[places[0]]
	if c.noted && stay.Saving < c.stay.Saving {
		return
	}
	stay.Claim, stay.Node = c.Claim.Name, c.Node.Name
	c.stay, c.noted = stay, true
}

// inCheapestZones keeps each new node to the zone in which its cheapest offering is.
func inCheapestZones(bins []schedule.Bin) []schedule.Bin {
	out := slices.Clone(bins)
	for i := range out {
		if o := cheapest(&out[i]); o != nil && o.Zone != "" {
			out[i].Requirements = out[i].Requirements.Replace(cluster.ZoneLabel, require.Only(o.Zone))
		}
	}
	return out
}

// cheapest is the offering that a new node would best become.
func cheapest(b *schedule.Bin) *cluster.Offering {
	catalog := b.Pool.Catalog
	rows := catalog.Available()
	for _, e := range b.Requirements {
		if catalog.Index().Knows(e.Key) {
			rows = rows.And(catalog.Index().Match(e.Key, e.Values))
		}
	}
	best := -1
	for i := range rows.All {
		if best < 0 || catalog.Offerings[i].Price < catalog.Offerings[best].Price {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return &catalog.Offerings[best]
}
