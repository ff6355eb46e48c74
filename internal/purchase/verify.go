package purchase

import (
	"slices"
	"strconv"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// verify lets the pods move into their new nodes one after the other, as kube-scheduler will, in any order in which the
// rules let them. Who never gets in is taken out again: a node must not be bought for a pod that can't use it. The
// topology counts then count those who did.
func (b *Buyer) verify(bins []*OpenBin, assigned map[*topology.PodSet][]*market.FeasibleSet) (kept []*OpenBin,
	dropped int) {
	if kept = bins; len(b.Counts.Rules) > 0 {
		v := b.openNodes(bins)
		// Whoever has no rule of his own may come first, then those who were assigned, in that order, then anybody.
		v.letIn(func(p *topology.PodSet) bool { return len(p.Declared) == 0 })
		v.placeInOrder(assigned)
		v.letIn(func(*topology.PodSet) bool { return true })
		kept, dropped = b.takeOutRejected(bins, v.in)
	}
	for _, bin := range kept {
		for i := range bin.Contents {
			b.Counts.Volumes.Reserve(bin.Contents[i].PodSet.Exclusive)
		}
	}
	return kept, dropped
}

// verification is pods on their way into new nodes.
type verification struct {
	counts *topology.Counts
	bins   []*OpenBin
	places []*topology.Position // by bin
	in     [][]int              // by bin and content: how many pods have got in
}

// openNodes takes the bins' nodes into the topology counts, without their pods.
func (b *Buyer) openNodes(bins []*OpenBin) *verification {
	v := &verification{counts: b.Counts, bins: bins, places: make([]*topology.Position, len(bins)),
		in: make([][]int, len(bins))}
	for i, bin := range bins {
		v.in[i] = make([]int, len(bin.Contents))
		if bin.Host != nil {
			v.places[i] = bin.Host.Position
			continue
		}
		v.places[i] = bin.AddNodeTo(b.Counts, b.Named+i)
	}
	return v
}

// AddNodeTo takes the bin's node into the topology counts, without its pods. number tells it from other new nodes.
func (ob *OpenBin) AddNodeTo(counts *topology.Counts, number int) *topology.Position {
	h := ob.asHost("new-" + strconv.Itoa(number))
	pos := counts.AddNode(&h)
	counts.AddPossibleDomains(ob.Requirements, &h, pos)
	counts.AddDaemons(pos, func(d *cluster.Daemon) bool {
		return slices.ContainsFunc(ob.Pool.Daemons, func(landing market.DaemonOfferings) bool {
			return landing.Daemon == d && !ob.offerings.AndNot(landing.Offerings).Any()
		})
	})
	return pos
}

// letIn lets pods of some pod sets in, in any order in which the rules let them.
func (v *verification) letIn(who func(*topology.PodSet) bool) {
	for again := true; again; {
		again = false
		for i, b := range v.bins {
			for j := range b.Contents {
				if ld := &b.Contents[j]; who(ld.PodSet) {
					again = v.letContentIn(i, j, ld) || again
				}
			}
		}
	}
}

// letContentIn lets the content's pods in if the rules allow it: all at once if they have none, else as many as the
// rules allow, and one at a time where they are spread, so that none of the places is used up before the others.
func (v *verification) letContentIn(bin, content int, ld *Content) (progress bool) {
	pos, in := v.places[bin], &v.in[bin][content]
	for *in < len(ld.Pods) {
		n := 1
		if ld.PodSet.HasNoRules() {
			n = len(ld.Pods)
		} else if _, ok := v.counts.Allows(pos.Domains, ld.PodSet); !ok {
			break
		}
		v.counts.AddPods(pos, ld.PodSet, n)
		*in += n
		if progress = true; len(ld.PodSet.Spreads) > 0 {
			break
		}
	}
	return progress
}

// contentRef is a place that was bought for pods of a pod set.
type contentRef struct{ bin, content int }

// placeInOrder lets pods that are spread in in the order in which they were assigned: then each found its place
// allowed.
func (v *verification) placeInOrder(assigned map[*topology.PodSet][]*market.FeasibleSet) {
	type where struct {
		podSet   *topology.PodSet
		feasible *market.FeasibleSet
	}
	places, seen := make(map[where][]contentRef), make(map[*topology.PodSet]bool)
	var podSets []*topology.PodSet
	for i, b := range v.bins {
		for j := range b.Contents {
			p := b.Contents[j].PodSet
			if len(assigned[p]) == 0 {
				continue
			}
			at := where{p, b.Contents[j].feasible}
			places[at] = append(places[at], contentRef{i, j})
			if !seen[p] {
				seen[p], podSets = true, append(podSets, p)
			}
		}
	}
	slices.SortStableFunc(podSets, topology.ComparePodSets)
	for again := true; again; {
		again = false
		for _, p := range podSets {
			for len(assigned[p]) > 0 {
				at := where{p, assigned[p][0]}
				for len(places[at]) > 0 && v.isFull(places[at][0]) {
					places[at] = places[at][1:]
				}
				if len(places[at]) > 0 {
					to := places[at][0]
					if _, ok := v.counts.Allows(v.places[to.bin].Domains, p); !ok {
						break
					}
					v.counts.AddPods(v.places[to.bin], p, 1)
					v.in[to.bin][to.content]++
					again = true
				}
				assigned[p] = assigned[p][1:]
			}
		}
	}
}

func (v *verification) isFull(at contentRef) bool {
	return v.in[at.bin][at.content] == len(v.bins[at.bin].Contents[at.content].Pods)
}

// takeOutRejected takes the pods out of the bins that are not in, and the bins that are empty then.
func (b *Buyer) takeOutRejected(bins []*OpenBin, in [][]int) (kept []*OpenBin, dropped int) {
	for i, bin := range bins {
		out := bin.removeRejected(in[i])
		dropped += out
		if len(bin.Contents) > 0 {
			if kept = append(kept, bin); out > 0 && bin.Host == nil {
				bin.buyCheaper()
			}
			continue
		}
		if bin.Host != nil { // its room was kept in vain, which nobody else will miss in this placement
			continue
		}
		bin.Pool.Headroom.Charge(bin.Capacity, -1)
		if id := bin.Pool.Spec.Catalog.Offerings[bin.offering].Reservation; id != "" {
			b.Market.Reservations[id]++
		}
	}
	return kept, dropped
}

// removeRejected gives the pods back that are not in.
func (ob *OpenBin) removeRejected(in []int) (dropped int) {
	loads := ob.Contents[:0]
	for j, ld := range ob.Contents {
		out := ld.Pods[in[j]:]
		dropped += len(out)
		ld.PodSet.Pods = append(ld.PodSet.Pods, out...)
		if ld.Pods = ld.Pods[:in[j]]; len(ld.Pods) > 0 {
			loads = append(loads, ld)
		}
	}
	ob.Contents = loads
	return dropped
}

// buyCheaper buys the cheapest node for what is left in the bin.
func (ob *OpenBin) buyCheaper() {
	var content resource.Vector
	var sets []*market.FeasibleSet
	for _, ld := range ob.Contents {
		content = content.Add(ld.PodSet.Class.Requests.Times(int64(len(ld.Pods))))
		if !slices.Contains(sets, ld.feasible) {
			sets = append(sets, ld.feasible)
		}
	}
	slices.SortFunc(sets, func(x, y *market.FeasibleSet) int { return x.Number - y.Number })
	rows, catalog := ob.Pool.ForSale, ob.Pool.Spec.Catalog
	for _, fs := range sets {
		rows = rows.And(fs.Offerings[ob.Pool.Number])
	}
	best, own := ob.offering, &catalog.Offerings[ob.offering]
	for i := range rows.All {
		o := &catalog.Offerings[i]
		if o.Reservation == own.Reservation && o.Price < catalog.Offerings[best].Price && ob.Pool.Fits(i, &content) &&
			ob.Pool.WithinCharge(&catalog.Types[o.Type].Capacity, &catalog.Types[own.Type].Capacity) {
			best = i
		}
	}
	co := market.NewChoice(ob.Pool, best, sets, content)
	b := co.ToBin()
	if len(co.Matches) < len(sets) || b.Relaxed && !ob.Relaxed {
		return // no single alternative does; what was bought still does
	}
	ob.Pool.Headroom.Charge(ob.Capacity, -1)
	ob.Pool.Headroom.Charge(b.Capacity, 1)
	ob.Bin, ob.offering, ob.offerings = b, best, co.Offerings
}

// asHost is the node that the bin will become, as far as that is decided.
func (ob *OpenBin) asHost(name string) cluster.Host {
	labels := ob.Labels
	for _, e := range ob.Requirements {
		if values, finite := e.Values.Listed(); finite && len(values) == 1 && !e.Values.AllowsAbsent() {
			labels = labels.With(e.Key, values[0])
		}
	}
	return cluster.NewNodeHost(name, labels, ob.Pool.Spec.Template.Taints, func(key string) (require.Values, bool) {
		_, decided := labels.Get(key)
		may, _ := ob.Requirements.Get(key)
		return may, !decided && ob.Pool.Spec.Catalog.Index().Knows(key)
	})
}

// Finish writes down who is in the bin.
func (ob *OpenBin) Finish() market.Bin {
	b := ob.Bin
	counts := make(map[*cluster.PodClass]int, len(ob.Contents))
	for _, ld := range ob.Contents {
		b.Pods = append(b.Pods, ld.Pods...)
		if n, seen := counts[ld.PodSet.Class]; seen {
			b.Seats[n].Count += len(ld.Pods)
			continue
		}
		counts[ld.PodSet.Class] = len(b.Seats)
		b.Seats = append(b.Seats, cluster.Seat{Class: ld.PodSet.Class.Key, Count: len(ld.Pods)})
	}
	return b
}
