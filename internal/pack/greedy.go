package pack

import (
	"cmp"
	"container/heap"
	"slices"
)

// packingRun is one way to an answer.
type packingRun struct {
	m         *model
	unplaced  []int
	supply    remainingSupply
	bins      []Bin
	scratch   []int // by item, all zero between uses
	work      int   // steps of the plain way
	truncated bool  // there was more to look at than a run may
}

func newPackingRun(m *model) *packingRun {
	r := &packingRun{m: m, unplaced: make([]int, len(m.p.Items)), scratch: make([]int, len(m.p.Items)),
		supply: newRemainingSupply(m.p)}
	for s := range m.p.Items {
		r.unplaced[s] = max(m.p.Items[s].Count, 0)
	}
	return r
}

// bid is what an option has to offer, when it was last worked out.
type bid struct {
	option int
	tier   int32   // of the pods that come first; less goes first
	score  float64 // price for a unit of worth: the less the better
}

type bids []bid

func (b bids) Len() int      { return len(b) }
func (b bids) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b bids) Less(i, j int) bool {
	x, y := &b[i], &b[j]
	return cmp.Or(cmp.Compare(x.tier, y.tier), cmp.Compare(x.score, y.score), cmp.Compare(x.option, y.option)) < 0
}
func (b *bids) Push(x any) { *b = append(*b, x.(bid)) }
func (b *bids) Pop() any {
	old := *b
	x := old[len(old)-1]
	*b = old[:len(old)-1]
	return x
}

// greedy buys again and again the option that asks the least for the worth it carries away. An option's bid only gets
// worse as pods go, so an old bid is worked out again only when it is at the head. What a node of an option costs is
// the caller's to say: its price, or what it takes off something scarce.
func (r *packingRun) greedy(f *binFiller, options []int, cost []float64) {
	queue := make(bids, 0, len(options))
	for _, k := range options {
		queue = append(queue, bid{option: k})
	}
	most := f.work + r.m.p.steps()
	for len(queue) > 0 {
		if f.work > most {
			r.finishCheaply()
			return
		}
		head := &queue[0]
		binType := r.m.options[head.option]
		if r.supply.allows(binType, 1) == 0 {
			heap.Pop(&queue)
			continue
		}
		f.fill(head.option, r.unplaced)
		f.removeUntilSuits(head.option, r.unplaced)
		if len(f.parts) == 0 {
			heap.Pop(&queue)
			continue
		}
		head.tier = f.firstTier()
		head.score = (cost[head.option] + 1e-12) / (f.worthWithPreferences(head.option) + 1e-12)
		if queue.firstIsBest() {
			r.buy(f, binType)
		} else {
			heap.Fix(&queue, 0)
		}
	}
}

// steps is how many pods a run may look at.
func (p *Problem) steps() int {
	if p.Steps > 0 {
		return p.Steps
	}
	return mostWork
}

// finishCheaply ends a run that has taken too long: each item that is left gets the cheapest nodes that hold its pods,
// by themselves. The answer is dearer, and as valid as any.
func (r *packingRun) finishCheaply() {
	r.truncated = true
	for s := range r.unplaced {
		for k := range r.m.options {
			if r.unplaced[s] == 0 {
				break
			}
			if r.m.IsIn(k, r.m.SetOf[s]) && fits(r.m.NeedOf(s), r.m.RoomOf(k)) {
				r.buyAlone(s, r.m.options[k])
			}
		}
	}
}

// firstIsBest reports whether no bid is better than the first by more than the tolerance.
func (b bids) firstIsBest() bool {
	for i := 1; i <= 2 && i < len(b); i++ {
		if b[i].tier < b[0].tier || b[i].tier == b[0].tier && b[i].score*(1+bidTolerance) < b[0].score {
			return false
		}
	}
	return true
}

// bidTolerance is by how much a purchase may be dearer than an old bid promises: most old bids have become worse.
const bidTolerance = 0.005

// buy takes as many nodes with the content as pods and supply allow.
func (r *packingRun) buy(f *binFiller, binType int) {
	n := 1 << 30
	for _, p := range f.parts {
		n = min(n, r.unplaced[p.Item]/p.Count)
	}
	n = r.supply.allows(binType, n)
	for _, p := range f.parts {
		r.unplaced[p.Item] -= n * p.Count
	}
	r.supply.buy(binType, n)
	r.bins = append(r.bins, Bin{BinType: binType, Parts: slices.Clone(f.parts), Times: n})
}
