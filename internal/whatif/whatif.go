package whatif

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/purchase"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
	"github.com/tenon-sh/tenon/internal/topology"
)

// RemovableNode is a node that may go, with the pods that would have to move.
type RemovableNode struct {
	Host string
	Pods []*cluster.Pod
}

// WhatIf is a cluster that was taken in once, so that many what-ifs about nodes that go can be played on it: each costs
// what it touches, not what the cluster has. Pods move by the same rules as in a placement.
//
// A what-if begins with Remove, may go on with Buy, and ends with Commit, after which the next one builds on it, or
// Undo.
type WhatIf struct {
	targets
	market    *market.Market
	buyer     *purchase.Buyer
	departing []*departingNode
	// promisedHosts are the hosts that pods of the overlay have been sent to.
	promisedHosts map[string]bool

	withoutRoom   []movingBatch       // of the what-if: who has found no room yet
	newBins       []*purchase.OpenBin // what was bought for them
	supplyBefore  *market.Supply      // what was for sale before
	binsNamed     int                 // new nodes so far
	scratchCounts topology.Counts     // memory of the copies on which chosen offerings are tried
}

// departingNode is a departure as the what-if sees it.
type departingNode struct {
	node *targetNode
	pods []movingBatch
	// stuckPod is a pod that can't be moved at all.
	stuckPod *cluster.Pod
}

// movingPods is a kind of pods on the what-if.
type movingPods struct {
	*topology.PodSet
	need       []int64
	worth      float64
	tree       *targetTree
	placeOrder int // the important and the large come first
	// noRoom says that no node has room for a pod of the pod set; if one has, none has before searchFrom in the tree:
	// rooms only ever shrink, what-ifs aside.
	noRoom     bool
	searchFrom int
}

// movingBatch is some pods of one pod set.
type movingBatch struct {
	*movingPods
	pods []*cluster.Pod
}

// New takes the cluster in. Pods of the overlay that look for a place are given one before anybody moves, where
// there is one. open says which hosts may be given pods that move.
func New(o *cluster.Overlay, settings schedule.Settings, departures []RemovableNode,
	open func(*cluster.Host) bool) *WhatIf {
	pending := o.Pending()
	all := pending[:len(pending):len(pending)]
	for i := range departures {
		all = append(all, departures[i].Pods...)
	}
	w := &WhatIf{market: market.New(o.Base, settings.RelaxMinValues), promisedHosts: make(map[string]bool),
		targets: targets{counts: topology.NewCounts(o.Base, all, !settings.IgnorePreferences),
			trees: make(map[string]*targetTree)}}
	w.buyer = &purchase.Buyer{Market: w.market, UsePreferences: !settings.IgnorePreferences}
	sorter := topology.NewPodSetBuilder(w.counts)
	for _, p := range pending {
		set := sorter.PodSetOf(p)
		set.Pods = append(set.Pods, p)
	}
	waiting := slices.Clone(sorter.PodSets)
	slices.SortStableFunc(waiting, topology.ComparePodSets)
	w.sortPods(sorter, departures)
	hosts := o.Hosts()
	houses := w.counts.AddHosts(hosts)
	w.counts.AddHosts(o.LeavingHosts())
	w.counts.MarkDaemonFollowers(sorter.PodSets)
	w.market.NoteDaemonFollowers(sorter.PodSets)
	for _, a := range schedule.FillHosts(w.counts, w.market, houses, waiting) {
		w.promisedHosts[a.Host] = true
	}
	for _, p := range sorter.PodSets {
		p.Pods = nil
	}
	w.findTargets(houses, departures, open)
	w.computeWorth()
	return w
}

// sortPods sorts the departures' pods into pod sets.
func (w *WhatIf) sortPods(sorter *topology.PodSetBuilder, departures []RemovableNode) {
	moving := make(map[*topology.PodSet]*movingPods)
	for i := range departures {
		d := &departingNode{}
		for _, p := range departures[i].Pods {
			set := sorter.PodSetOf(p)
			if len(set.Class.Unsupported) > 0 || len(w.counts.VolumeRules(p)) > 0 {
				d.stuckPod = p
			}
			m := moving[set]
			if m == nil {
				m = &movingPods{PodSet: set}
				moving[set] = m
			}
			d.pods = addToBatch(d.pods, m, p)
		}
		w.departing = append(w.departing, d)
	}
	slices.SortStableFunc(sorter.PodSets, topology.ComparePodSets)
	for rank, p := range sorter.PodSets {
		if m := moving[p]; m != nil {
			m.placeOrder = rank
		}
	}
	var used [resource.Size]bool
	for _, m := range moving {
		for dim, x := range m.Class.Requests {
			used[dim] = used[dim] || x > 0
		}
	}
	for dim, u := range used {
		if u {
			w.dims = append(w.dims, dim)
		}
	}
	for _, m := range moving {
		for _, dim := range w.dims {
			m.need = append(m.need, m.Class.Requests[dim])
		}
	}
}

// addToBatch adds pods to the batch of their kind.
func addToBatch(list []movingBatch, m *movingPods, pods ...*cluster.Pod) []movingBatch {
	for i := range list {
		if list[i].movingPods == m {
			list[i].pods = append(list[i].pods, pods...)
			return list
		}
	}
	return append(list, movingBatch{m, slices.Clone(pods)})
}

// computeWorth works out what pods of each pod set are worth: what they have to pay at least, whatever nodes are
// bought.
func (w *WhatIf) computeWorth() {
	var classes []*cluster.PodClass
	var counts []int
	at := make(map[*movingPods]int)
	for _, d := range w.departing {
		for _, b := range d.pods {
			i, known := at[b.movingPods]
			if !known {
				i = len(classes)
				at[b.movingPods], classes, counts = i, append(classes, b.Class), append(counts, 0)
			}
			counts[i] += len(b.pods)
		}
	}
	worth := w.buyer.WorthOf(classes, counts)
	for m, i := range at {
		m.worth = worth[i]
	}
}

// Faults are the invariants that were found violated so far.
func (w *WhatIf) Faults() []purchase.Fault { return w.buyer.Faults }

// Steps is about how often rules between pods have been looked at so far: most of the work where there are many.
func (w *WhatIf) Steps() int { return w.steps }

// manyRules is from how many rules on that concern a pod its rules count as work. Ordinary pods have a few.
const manyRules = 64

// RuleSteps is how many rules are looked at when the departure's pods with very many rules are put somewhere, once
// each.
func (w *WhatIf) RuleSteps(i int) int {
	sum := 0
	for _, b := range w.departing[i].pods {
		if looks := b.RuleSteps(); looks > manyRules {
			sum += looks * len(b.pods)
		}
	}
	return sum
}

// Worth is what a departure's pods are worth, moved-in pods included: what it costs at least to run them elsewhere.
func (w *WhatIf) Worth(i int) float64 { return worthOf(w.departing[i].allPods()) }

// allPods are the pods that have to move if the departure goes: its own, and those who have been given a place there.
func (d *departingNode) allPods() []movingBatch {
	if d.node == nil || len(d.node.moved) == 0 {
		return d.pods
	}
	return slices.Concat(d.pods, d.node.moved)
}

func worthOf(list []movingBatch) float64 {
	sum := 0.0
	for _, b := range list {
		sum += b.worth * float64(len(b.pods))
	}
	return sum
}

// StuckPod is a pod of the departure that can't be moved at all, or nil.
func (w *WhatIf) StuckPod(i int) *cluster.Pod { return w.departing[i].stuckPod }

// IsPromised reports whether pods that look for a place were given one on the departure's node: they are not among
// those that it takes along, and would be left with nowhere to go.
func (w *WhatIf) IsPromised(i int) bool {
	return w.departing[i].node != nil && w.promisedHosts[w.departing[i].node.Name]
}

// IsRemoved reports whether the departure has left.
func (w *WhatIf) IsRemoved(i int) bool {
	return w.departing[i].node == nil || w.departing[i].node.removed
}

// PodsFromOthers yields the pods of other departures that have been given a place on this one's node.
func (w *WhatIf) PodsFromOthers(i int) func(yield func(*cluster.Pod) bool) {
	return func(yield func(*cluster.Pod) bool) {
		for _, b := range w.departing[i].node.moved {
			for _, p := range b.pods {
				if !yield(p) {
					return
				}
			}
		}
	}
}
