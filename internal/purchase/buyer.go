package purchase

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/topology"
)

// MaxRounds bounds how often pods are assigned and packed: what a round could not place because of what it did itself,
// the next may.
const MaxRounds = 3

// Buyer buys nodes for pods that find no room on those that are there.
type Buyer struct {
	Market *market.Market
	// Counts are where pods are; they are told of those that get a place.
	Counts *topology.Counts
	// Hosts that are there are asked first where rules tell domains apart.
	Hosts          []*topology.Host
	UsePreferences bool
	// Brief asks for a good answer soon rather than for the best.
	Brief bool
	// Named is how many nodes were bought before, which all have a name.
	Named int
	// Truncated says that a search was brought to an end by its budget; Faults are the invariants that were found
	// violated on the way.
	Truncated bool
	Faults    []Fault
	// scratchCounts is the memory of the copies of topology counts on which pods are assigned; scratchOfferings and
	// scratchBinTypes that of the tables that tier packers write.
	scratchCounts    topology.Counts
	scratchOfferings []offering
	scratchBinTypes  []pack.BinType
}

// Buy buys nodes for the pod sets' pods in a few rounds. Who gets none is left in the pod sets.
func (b *Buyer) Buy(podSets []*topology.PodSet) []*OpenBin {
	var out []*OpenBin
	for round := range MaxRounds {
		if !AnyUnplaced(podSets) {
			break
		}
		bins, assigned := b.buyTiers(podSets, round > 0)
		kept, dropped := b.verify(bins, assigned)
		out = append(out, kept...)
		b.Named += len(kept)
		if !b.anotherRoundHelps(podSets, len(kept), dropped) {
			break
		}
		b.Market.Refresh()
	}
	return out
}

// AnyUnplaced reports whether some pod set still has pods without a place.
func AnyUnplaced(podSets []*topology.PodSet) bool {
	return slices.ContainsFunc(podSets, func(p *topology.PodSet) bool { return len(p.Pods) > 0 })
}

// anotherRoundHelps reports whether another round may place more: pods were turned away by what the round itself did,
// or pods that wanted group that could not be had are given up, so that the group can go without them.
func (b *Buyer) anotherRoundHelps(podSets []*topology.PodSet, bought, dropped int) bool {
	again := dropped > 0
	for _, p := range podSets {
		if len(p.Pods) == 0 || len(p.Declared) == 0 {
			continue
		}
		again = again || bought > 0
		if len(b.Counts.HostAffinities(p)) > 0 && !p.WithoutGroup {
			p.WithoutGroup, again = true, true
		}
	}
	return again
}

// buyTiers assigns pods to domains and packs each tier of pools, the heaviest first. assigned are the feasible sets to
// which pods were assigned whose order matters.
func (b *Buyer) buyTiers(podSets []*topology.PodSet, allDomains bool) (out []*OpenBin,
	assigned map[*topology.PodSet][]*market.FeasibleSet) {
	for _, p := range podSets {
		p.LastConflict = nil
	}
	draft := b.Counts.CopyTo(&b.scratchCounts, nil, nil)
	draft.ForNewNodes = true
	a := &domainAssigner{counts: draft, market: b.Market, hosts: b.Hosts, allDomains: allDomains,
		usePreferences: b.UsePreferences}
	portions := a.assign(b.keepConsistentGroups(makePodGroups(draft, b.Market, podSets)))
	ib := &itemBuilder{counts: draft, usePreferences: b.UsePreferences, avoidTaints: hasAvoidedTaints(b.Market)}
	items := ib.items(portions)
	preferences := newPreferenceScores(ib.preferenceList, ib.avoidTaints)
	out = a.hostBins
	for _, tier := range b.Market.Tiers {
		items = slices.DeleteFunc(items, func(it *packItem) bool { return it.remaining() == 0 })
		if len(items) == 0 {
			break
		}
		out = append(out, b.newTierPacker(tier, items, preferences).solve()...)
	}
	return out, a.assignedSets
}

// remaining counts what is left of an item.
func (it *packItem) remaining() int {
	it.Count = 0
	for _, p := range it.shares {
		it.Count += p.units
	}
	return it.Count
}

// hasAvoidedTaints reports whether some pool has taints that pods should rather avoid.
func hasAvoidedTaints(mk *market.Market) bool {
	return slices.ContainsFunc(mk.Pools, func(pm *market.Pool) bool {
		return prefersElsewhere(nil, pm.Spec.Template.Taints)
	})
}

// soloItems are pods as items, each by itself and wherever it may go: for prices that no rules between pods make
// lower.
type soloItems struct {
	market *market.Market
	items  []*packItem
	byKey  map[itemKey]int
}

// add adds n pods of a class, and returns the place of their item.
func (so *soloItems) add(class *cluster.PodClass, n int) int {
	fs := so.market.FeasibleSet([]*cluster.PodClass{class}, nil)
	key := itemKey{need: class.Requests, feasible: fs}
	at, known := so.byKey[key]
	if !known {
		at = len(so.items)
		so.byKey[key] = at
		so.items = append(so.items, &packItem{feasible: fs, anyDomain: fs, Item: pack.Item{Need: class.Requests}})
	}
	so.items[at].Count += n
	return at
}

// LowerBound is a price that no choice of nodes for the bins' pods can undercut, whatever pool they come from.
func (b *Buyer) LowerBound(bins []*OpenBin) float64 {
	if len(bins) == 0 {
		return 0
	}
	b.Market.RefreshWithoutLimits()
	solo := soloItems{market: b.Market, byKey: make(map[itemKey]int)}
	for _, bin := range bins {
		for _, ld := range bin.Contents {
			solo.add(ld.PodSet.Class, len(ld.Pods))
		}
	}
	return pack.Bound(&b.newTierPacker(b.Market.Pools, solo.items, newPreferenceScores(nil, false)).problem)
}

// WorthOf works out what a pod of each class is worth, if there are so many of each: what it has to pay at least,
// whatever nodes are bought.
func (b *Buyer) WorthOf(classes []*cluster.PodClass, counts []int) []float64 {
	out := make([]float64, len(classes))
	if len(classes) == 0 || len(b.Market.Pools) == 0 {
		return out
	}
	solo, at := soloItems{market: b.Market, byKey: make(map[itemKey]int)}, make([]int, len(classes))
	for i, c := range classes {
		at[i] = solo.add(c, counts[i])
	}
	t := b.newTierPacker(b.Market.Pools, solo.items, newPreferenceScores(nil, false))
	t.firstTierOnly()
	worth := pack.Worth(&t.problem)
	for i := range out {
		out[i] = worth[at[i]]
	}
	return out
}
