package disrupt

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// goodSwapShare is the part of what could be saved at best from which on a node is exchanged for another by itself: if
// less is saved so, others may be found with which more is.
const goodSwapShare = 0.85

// findSwaps finds nodes that can be exchanged for one that is cheaper, the most wasteful for the disturbance first. Of
// what could be saved at best they must save a part.
func (sr *searcher) findSwaps(part float64) {
	alone := func(places []int, chosen []Candidate, before, needed float64) (Appraisal, bool) {
		asked := max(needed, part*(before-sr.whatIf.WorthWithoutRoom()))
		bins, price, reason := sr.whatIf.BuyOne(before - asked)
		if reason != "" {
			if saving := before - price; asked == needed || saving < needed { // else it is tried again, for less
				sr.noteBlocked(places, noSwapReason(reason, saving, needed))
			}
			return Appraisal{}, false
		}
		return sr.appraise(places, chosen, bins)
	}
	for _, i := range sr.sortByWaste() {
		if !sr.mayStillGo(i) {
			continue
		}
		if a, ok := sr.try([]int{i}, alone); ok {
			sr.acceptStep([]int{i}, a)
		} else {
			sr.whatIf.Undo()
		}
	}
}

// savingMargin is by how much more than the least saving is asked, for the pods that are evicted, where nodes have to
// be bought: packing anew disturbs everybody for a part of the price, and what has just been moved should not be moved
// again for little.
const savingMargin = 2.5

// priceAndNeeded is what nodes cost, and what must be saved if they go and others have to be bought. Pods of other
// nodes that were to go there are evicted in any case.
func (sr *searcher) priceAndNeeded(places []int, chosen []Candidate) (before, needed float64) {
	own := 0.0
	for _, i := range places {
		before, own = before+sr.candidates[i].Price, own+sr.candidates[i].ownWorth
	}
	needed = NeededSaving(sr.set, chosen)
	return before, max(needed, savingMargin*needed*own/max(before, leastSaving))
}

// noSwapReason says why a node stays in whose place no single other one can be bought; saving is what the cheapest with
// room would save.
func noSwapReason(reason schedule.NoSwapReason, saving, needed float64) BlockedNode {
	switch {
	case reason == schedule.FewValues:
		return BlockedNode{Reason: MinValuesTooDear, Saving: saving, NeededSaving: needed}
	case reason == schedule.NotAlone:
		return BlockedNode{Reason: PodsStranded, Saving: saving, NeededSaving: needed}
	case math.IsInf(saving, -1):
		return BlockedNode{Reason: NothingCheaper, NeededSaving: needed}
	}
	return savesTooLittle(saving, needed)
}

// savesTooLittle says why a node stays whose pods could be had for so much less, which is not what is needed.
func savesTooLittle(saving, needed float64) BlockedNode {
	reason := SavesTooLittle
	if saving <= 0 {
		reason = NothingCheaper
	}
	return BlockedNode{Reason: reason, Saving: saving, CertainSaving: saving, NeededSaving: needed}
}

// buyFunc buys what is needed for those who have found no room; ok is false if it does not pay.
type buyFunc func(places []int, chosen []Candidate, before, needed float64) (a Appraisal, ok bool)

// try lets the nodes go on the what-if and buys what their pods need; ok is false if it does not pay.
func (sr *searcher) try(places []int, buy buyFunc) (a Appraisal, ok bool) {
	chosen := sr.candidatesAt(places)
	if pod, until, bears := sr.evictionRates.Allow(chosen...); !bears {
		sr.noteBlocked(places, BlockedNode{Reason: WorkloadResting, Pod: pod.ID(), Until: until})
		return Appraisal{}, false
	}
	if !sr.mayUnion(places) {
		return Appraisal{}, false
	}
	before, needed := sr.priceAndNeeded(places, chosen)
	if sr.whatIf.Remove(places...) {
		return sr.appraise(places, chosen, nil)
	}
	if saving := before - sr.whatIf.WorthWithoutRoom(); saving < needed {
		sr.noteBlocked(places, BlockedNode{Reason: NothingCheaper, Saving: saving, CertainSaving: saving,
			NeededSaving: needed})
		return Appraisal{}, false
	}
	return buy(places, chosen, before, needed)
}

// AppraiseCheapestZones is Appraise for moves that were found and for nodes that need not be free to come up in any
// zone: where a move pays, but might not if the cloud chose another zone than the cheapest, the new nodes are kept to
// that.
//
// The pods of a move are placed once more when it begins, together with those of others, and all of them may come to
// share one new node that is like one of those that go. A search would keep that one instead, and look for something
// better. Here nobody looks, so that all that counts is whether it pays: what was refused would be found again and
// again.
func AppraiseCheapestZones(set Settings, candidates []Candidate, bins []schedule.Bin) (Appraisal, *BlockedNode) {
	a, blocked := appraiseCheapestZones(set, candidates, candidates, bins, true)
	if blocked != nil && replacesSeveral(candidates, bins) {
		a, blocked = appraiseCheapestZones(set, candidates, candidates, bins, false)
	}
	return a, blocked
}

func appraiseCheapestZones(set Settings, candidates, origins []Candidate, bins []schedule.Bin, choice bool) (Appraisal,
	*BlockedNode) {
	a, blocked := appraise(set, candidates, origins, bins, choice)
	if blocked != nil && len(bins) > 0 && blocked.Saving >= blocked.NeededSaving {
		a, blocked = appraise(set, candidates, origins, inCheapestZones(bins), choice)
	}
	return a, blocked
}

// appraise says what a move is worth.
func (sr *searcher) appraise(places []int, chosen []Candidate, bins []schedule.Bin) (Appraisal, bool) {
	a, blocked := appraiseCheapestZones(sr.set, chosen, sr.originsOf(places, chosen), bins, true)
	if spare := leftOverPrice(chosen, a.Bins); blocked == nil && a.Saving() < a.NeededSaving+spare {
		blocked = &BlockedNode{Reason: SavesTooLittle, Saving: a.Saving(), CertainSaving: a.Saving(),
			NeededSaving: a.NeededSaving + spare}
	}
	if blocked == nil {
		blocked = sr.totals.Approves(sr.set, chosen, a.Saving())
	}
	if blocked == nil && len(bins) > 0 {
		blocked = sr.needlesslyMoved(places, chosen, a.Bins)
	}
	if blocked != nil {
		sr.noteBlocked(places, *blocked)
		return Appraisal{}, false
	}
	return a, true
}

// originsOf are the nodes that pods come from if the candidates go: their own, and those of pods that were to go there.
func (sr *searcher) originsOf(places []int, chosen []Candidate) []Candidate {
	out := chosen[:len(chosen):len(chosen)]
	for _, i := range places {
		out = append(out, sr.candidatesAt(sr.podSourcesOf(i))...)
	}
	return out
}

// needlesslyMoved says why nodes stay to which pods of others were to go, if that would have some of those go for
// nothing: their pods had room there, and would need new nodes that cost no less than theirs.
func (sr *searcher) needlesslyMoved(places []int, chosen []Candidate, bins []schedule.Bin) *BlockedNode {
	roots := make(map[int]bool)
	for _, i := range places {
		for _, j := range sr.podSourcesOf(i) {
			roots[sr.root(j)] = true
		}
	}
	if len(roots) == 0 {
		return nil
	}
	nodes, made := slices.Clone(chosen), slices.Clone(bins)
	for i := range sr.searchSteps {
		if step := &sr.searchSteps[i]; roots[sr.root(step.indices[0])] {
			nodes, made = append(nodes, sr.candidatesAt(step.indices)...), append(made, step.Bins...)
		}
	}
	_, blocked := freeRiders(sr.set, nodes, made, candidateByNode(nodes), partDemand{needsChoice: true})
	return blocked
}

// podsPerLeftOver is of how many pods one finds no room in the end, as measured with kube-scheduler.
const podsPerLeftOver = 32

// leftOverPrice is what the pods may cost that find no room in the end. Pods of several nodes that are packed anew into
// several need not go where they were put here: kube-scheduler spreads them as they come. What saves less than nodes
// for those that are left over is undone again and again. A single new node has room for all of them, in whatever order
// they come.
func leftOverPrice(chosen []Candidate, bins []schedule.Bin) float64 {
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
	return least * max(1, float64(crowd)/podsPerLeftOver)
}

// noteBlocked remembers of a node that was tried alone why it stays: of what was tried, what would save the most.
func (sr *searcher) noteBlocked(places []int, blocked BlockedNode) {
	if len(places) != 1 {
		return
	}
	c := &sr.candidates[places[0]]
	if c.hasBlockReason && blocked.Saving < c.blocked.Saving {
		return
	}
	blocked.Claim, blocked.Node = c.Claim.Name, c.Node.Name
	c.blocked, c.hasBlockReason = blocked, true
}

// inCheapestZones keeps each new node to the zone in which its cheapest offering is.
func inCheapestZones(bins []schedule.Bin) []schedule.Bin {
	out := slices.Clone(bins)
	for i := range out {
		if o := cheapestOffering(&out[i]); o != nil && o.Zone != "" {
			out[i].Requirements = out[i].Requirements.Replace(cluster.ZoneLabel, require.Only(o.Zone))
		}
	}
	return out
}

// cheapestOffering is the offering that a new node would best become.
func cheapestOffering(b *schedule.Bin) *cluster.Offering {
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
