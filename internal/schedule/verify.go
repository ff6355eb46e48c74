package schedule

import (
	"maps"
	"slices"
	"strconv"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// copyTo makes out a copy of what has been counted, in the memory that out has; rules, pod sets and the numbers of
// domains are shared. It is for as long as the counts that it came from do not change. Rules and spreads that are not
// among those that are asked for stay empty; nil asks for all. Where only some are asked for, it is for nodes to come:
// what keeps pods off the nodes that are there is left out. A search makes thousands of copies: without the memory of
// the last one, most of what it allocates would be these.
func (tc *topologyCounts) copyTo(out *topologyCounts, rules, spreads []bool) *topologyCounts {
	old := *out
	*out = *tc
	out.volumes = tc.volumes.copyTo(old.volumes)
	out.keys = resize(old.keys, len(tc.keys))
	for i := range tc.keys {
		own := out.keys[i].ownNumbers
		if own == nil {
			own = make(map[string]int32)
		}
		clear(own)
		if tc.keys[i].isCopy {
			maps.Copy(own, tc.keys[i].ownNumbers)
		}
		out.keys[i] = tc.keys[i]
		out.keys[i].isCopy, out.keys[i].ownNumbers, out.keys[i].names = true, own, slices.Clip(tc.keys[i].names)
	}
	out.rules = resize(old.rules, len(tc.rules))
	for i := range tc.rules {
		t, match, carry, from := &tc.rules[i], out.rules[i].selected[:0], out.rules[i].declaring[:0],
			tc.rules[i].firstDomain
		switch {
		case rules == nil || rules[i] && !(t.rule.Kind == cluster.AntiAffinity && tc.keys[t.key].isHostname):
			match, carry = append(match, t.selected...), append(carry, t.declaring...)
		case rules[i]:
			from = int32(len(tc.keys[t.key].names))
		}
		out.rules[i] = *t
		out.rules[i].selected, out.rules[i].declaring, out.rules[i].firstDomain = match, carry, from
	}
	out.spreads = resize(old.spreads, len(tc.spreads))
	for i := range tc.spreads {
		s, match, levels := &tc.spreads[i], out.spreads[i].counts[:0], out.spreads[i].levels[:0]
		idle := spreads != nil && !spreads[i]
		if !idle {
			match, levels = append(match, s.counts...), append(levels, s.levels...)
		}
		out.spreads[i] = *s
		out.spreads[i].counts, out.spreads[i].levels, out.spreads[i].unused = match, levels, s.unused || idle
	}
	return out
}

// resize has n elements; what the list holds already, behind its end too, stays where it is.
func resize[E any](list []E, n int) []E {
	list = list[:cap(list)]
	if n > len(list) {
		list = append(list, make([]E, n-len(list))...)
	}
	return list[:n]
}

// verify lets the pods move into their new nodes one after the other, as kube-scheduler will, in any order in which the
// rules let them. Who never gets in is taken out again: a node must not be bought for a pod that can't use it. The
// topology counts then counts those who did.
func verify(t *topologyCounts, mk *market, bins []*openBin, first int) (kept []*openBin, dropped int) {
	defer func() {
		for _, b := range kept {
			for i := range b.contents {
				t.volumes.reserve(b.contents[i].podSet.exclusive)
			}
		}
	}()
	if len(t.rules) == 0 {
		return bins, 0
	}
	spots := make([]*position, len(bins))
	for i, b := range bins {
		if b.hostState != nil {
			spots[i] = b.hostState.position
			continue
		}
		h := b.asHost("new-" + strconv.Itoa(first+i))
		spots[i] = t.addNode(&h)
		t.addPossibleDomains(b, &h, spots[i])
		t.addDaemonsToBin(b, spots[i])
	}
	in := make([][]int, len(bins)) // by bin and load: how many pods have got in
	for i, b := range bins {
		in[i] = make([]int, len(b.contents))
	}
	// Whoever has no rule of his own may come first, then those who were assigned, in that order, then anybody.
	for _, strangers := range []bool{true, false} {
		if !strangers {
			t.placeInOrder(bins, spots, in)
		}
		for again := true; again; {
			again = false
			for i, b := range bins {
				for j := range b.contents {
					if ld := &b.contents[j]; !strangers || len(ld.podSet.declared) == 0 {
						again = t.placeContent(spots[i], ld, &in[i][j]) || again
					}
				}
			}
		}
	}
	for i, b := range bins {
		out := b.removeRejected(in[i])
		dropped += out
		if len(b.contents) > 0 {
			if kept = append(kept, b); out > 0 && b.hostState == nil {
				b.buyCheaper()
			}
			continue
		}
		if b.hostState != nil { // its room was kept in vain, which nobody else will miss in this placement
			continue
		}
		b.market.limits.charge(b.Capacity, -1)
		if id := b.market.pool.Catalog.Offerings[b.offering].Reservation; id != "" {
			mk.reservations[id]++
		}
	}
	return kept, dropped
}

// contentRef is a place that was bought for pods of a pod set.
type contentRef struct{ bin, content int }

// placeInOrder lets pods that are spread in in the order in which they were assigned: then each found its place
// allowed.
func (tc *topologyCounts) placeInOrder(bins []*openBin, spots []*position, in [][]int) {
	type dealt struct {
		kind *podSet
		site *feasibleSet
	}
	berths, seen := make(map[dealt][]contentRef), make(map[*podSet]bool)
	var podSets []*podSet
	for i, b := range bins {
		for j := range b.contents {
			p := b.contents[j].podSet
			if len(p.assignedSets) == 0 {
				continue
			}
			at := dealt{p, b.contents[j].feasible}
			berths[at] = append(berths[at], contentRef{i, j})
			if !seen[p] {
				seen[p], podSets = true, append(podSets, p)
			}
		}
	}
	slices.SortStableFunc(podSets, comparePodSets)
	for again := true; again; {
		again = false
		for _, p := range podSets {
			for len(p.assignedSets) > 0 {
				at := dealt{p, p.assignedSets[0]}
				for len(berths[at]) > 0 && isFull(bins, in, berths[at][0]) {
					berths[at] = berths[at][1:]
				}
				if len(berths[at]) > 0 {
					b := berths[at][0]
					if _, ok := tc.allows(spots[b.bin].domains, p); !ok {
						break
					}
					tc.addPods(spots[b.bin].domains, spots[b.bin].countsForSpread, p, 1)
					in[b.bin][b.content]++
					again = true
				}
				p.assignedSets = p.assignedSets[1:]
			}
		}
	}
}

func isFull(bins []*openBin, in [][]int, b contentRef) bool {
	return in[b.bin][b.content] == len(bins[b.bin].contents[b.content].pods)
}

// placeContent lets the load's pods in if the rules allow it: all at once if they have none, else as many as the rules
// allow, and one at a time where they are spread, so that none of the places is used up before the others.
func (tc *topologyCounts) placeContent(pos *position, ld *binContent, in *int) (progress bool) {
	for *in < len(ld.pods) {
		n := 1
		if ld.podSet.hasNoRules() {
			n = len(ld.pods)
		} else if _, ok := tc.allows(pos.domains, ld.podSet); !ok {
			break
		}
		tc.addPods(pos.domains, pos.countsForSpread, ld.podSet, n)
		*in += n
		if progress = true; len(ld.podSet.spreads) > 0 {
			break
		}
	}
	return progress
}

// removeRejected gives the pods back that are not in.
func (ob *openBin) removeRejected(in []int) (dropped int) {
	loads := ob.contents[:0]
	for j, ld := range ob.contents {
		out := ld.pods[in[j]:]
		dropped += len(out)
		ld.podSet.pods = append(ld.podSet.pods, out...)
		if ld.pods = ld.pods[:in[j]]; len(ld.pods) > 0 {
			loads = append(loads, ld)
		}
	}
	ob.contents = loads
	return dropped
}

// buyCheaper buys the cheapest node for what is left in the bin.
func (ob *openBin) buyCheaper() {
	var content resource.Vector
	var sets []*feasibleSet
	for _, ld := range ob.contents {
		content = content.Add(ld.podSet.class.Requests.Times(int64(len(ld.pods))))
		if !slices.Contains(sets, ld.feasible) {
			sets = append(sets, ld.feasible)
		}
	}
	slices.SortFunc(sets, func(x, y *feasibleSet) int { return x.number - y.number })
	rows, catalog := ob.market.forSale, ob.market.pool.Catalog
	for _, fs := range sets {
		rows = rows.And(fs.offerings[ob.market.number])
	}
	best, own := ob.offering, &catalog.Offerings[ob.offering]
	for i := range rows.All {
		o := &catalog.Offerings[i]
		if o.Reservation == own.Reservation && o.Price < catalog.Offerings[best].Price && ob.market.fits(i, &content) &&
			ob.market.withinCharge(&catalog.Types[o.Type].Capacity, &catalog.Types[own.Type].Capacity) {
			best = i
		}
	}
	co := newChosenOffering(ob.market, best, sets, content)
	b := co.toBin()
	if len(co.matches) < len(sets) || b.Relaxed && !ob.Relaxed {
		return // no single alternative does; what was bought still does
	}
	ob.market.limits.charge(ob.Capacity, -1)
	ob.market.limits.charge(b.Capacity, 1)
	ob.Bin, ob.offering, ob.offerings = b, best, co.offerings
}

// asHost is the node that the bin will become, as far as that is decided.
func (ob *openBin) asHost(name string) cluster.Host {
	labels := ob.Labels
	for _, e := range ob.Requirements {
		if values, finite := e.Values.Listed(); finite && len(values) == 1 && !e.Values.AllowsAbsent() {
			labels = labels.With(e.Key, values[0])
		}
	}
	return cluster.NewNodeHost(name, labels, ob.market.pool.Template.Taints, func(key string) (require.Values, bool) {
		_, decided := labels.Get(key)
		may, _ := ob.Requirements.Get(key)
		return may, !decided && ob.market.pool.Catalog.Index().Knows(key)
	})
}

// addPossibleDomains makes the domains count in which the node may turn out to be: a spread must hold whatever the
// launch decides.
func (tc *topologyCounts) addPossibleDomains(b *openBin, h *cluster.Host, pos *position) {
	for i := range tc.spreads {
		s := &tc.spreads[i]
		if s.unused || pos.domains[s.key] != undecidedDomain {
			continue
		}
		rule := tc.rules[s.rule].rule
		if !rule.AnyNode && !h.MayMeet(s.class.OwnOrAllTerms()) {
			continue
		}
		if _, tainted := cluster.Untolerated(s.class.Tolerations, h.Taints); tainted && rule.HonorTaints {
			continue
		}
		asked, _ := b.Requirements.Get(tc.keys[s.key].label)
		listed, finite := asked.Listed()
		if !finite {
			continue
		}
		for _, value := range listed {
			s.addDomain(tc.domainIndex(s.key, value))
		}
	}
}

// finish writes down who is in the bin.
func (ob *openBin) finish() Bin {
	b := ob.Bin
	counts := make(map[*cluster.PodClass]int, len(ob.contents))
	for _, ld := range ob.contents {
		b.Pods = append(b.Pods, ld.pods...)
		if n, seen := counts[ld.podSet.class]; seen {
			b.Seats[n].Count += len(ld.pods)
			continue
		}
		counts[ld.podSet.class] = len(b.Seats)
		b.Seats = append(b.Seats, cluster.Seat{Class: ld.podSet.class.Key, Count: len(ld.pods)})
	}
	return b
}

// lowerBound is a price that no choice of nodes for the bins' pods can undercut, whatever pool they come from.
func lowerBound(mk *market, bins []*openBin) float64 {
	if len(bins) == 0 {
		return 0
	}
	mk.refreshWithoutLimits()
	counts := make(map[itemKey]*packItem)
	var items []*packItem
	for _, b := range bins {
		for _, ld := range b.contents {
			fs := mk.feasibleSet([]*cluster.PodClass{ld.podSet.class}, nil)
			key := itemKey{need: ld.podSet.class.Requests, feasible: fs}
			s := counts[key]
			if s == nil {
				s = &packItem{feasible: fs, anyDomain: fs, Item: pack.Item{Need: ld.podSet.class.Requests}}
				counts[key] = s
				items = append(items, s)
			}
			s.Count += len(ld.pods)
		}
	}
	return pack.Bound(&newTierPacker(mk, mk.markets, items, newPreferenceScores(nil, false)).problem)
}

// refreshWithoutLimits forgets limits: they never make anything cheaper.
func (mk *market) refreshWithoutLimits() {
	for _, pm := range mk.markets {
		pm.buyable = pm.forSale
	}
	mk.forgetSets()
}
