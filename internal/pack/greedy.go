package pack

import (
	"cmp"
	"container/heap"
	"slices"
)

// run is one way to an answer.
type run struct {
	m      *model
	left   []int
	ledger ledger
	bins   []Bin
	spare  []int // by stack, all zero between uses
	work   int   // steps of the plain way
	cut    bool  // there was more to look at than a run may
}

func newRun(m *model) *run {
	r := &run{m: m, left: make([]int, len(m.p.Stacks)), spare: make([]int, len(m.p.Stacks)), ledger: newLedger(m.p)}
	for s := range m.p.Stacks {
		r.left[s] = max(m.p.Stacks[s].Count, 0)
	}
	return r
}

// bid is what a kind has to offer, when it was last worked out.
type bid struct {
	kind  int
	tier  int32   // of the pods that come first; less goes first
	score float64 // price for a unit of worth: the less the better
}

type bids []bid

func (b bids) Len() int      { return len(b) }
func (b bids) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b bids) Less(i, j int) bool {
	x, y := &b[i], &b[j]
	return cmp.Or(cmp.Compare(x.tier, y.tier), cmp.Compare(x.score, y.score), cmp.Compare(x.kind, y.kind)) < 0
}
func (b *bids) Push(x any) { *b = append(*b, x.(bid)) }
func (b *bids) Pop() any {
	old := *b
	x := old[len(old)-1]
	*b = old[:len(old)-1]
	return x
}

// greedy buys again and again the kind that asks the least for the worth it carries away. A kind's bid only gets worse
// as pods go, so an old bid is worked out again only when it is at the head. What a node of a kind costs is the caller's to
// say: its price, or what it takes off something scarce.
func (r *run) greedy(f *filling, kinds []int, cost []float64) {
	queue := make(bids, 0, len(kinds))
	for _, k := range kinds {
		queue = append(queue, bid{kind: k})
	}
	most := f.work + r.m.p.steps()
	for len(queue) > 0 {
		if f.work > most {
			r.hurry()
			return
		}
		head := &queue[0]
		offer := r.m.kinds[head.kind]
		if r.ledger.allows(offer, 1) == 0 {
			heap.Pop(&queue)
			continue
		}
		f.fill(head.kind, r.left)
		f.suit(head.kind, r.left)
		if len(f.parts) == 0 {
			heap.Pop(&queue)
			continue
		}
		head.tier = f.firstTier()
		head.score = (cost[head.kind] + 1e-12) / (f.liked(head.kind) + 1e-12)
		if queue.leads() {
			r.buy(f, offer)
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

// hurry ends a run that has taken too long: each stack that is left gets the cheapest nodes that hold its pods, by themselves. The
// answer is dearer, and as valid as any.
func (r *run) hurry() {
	r.cut = true
	for s := range r.left {
		for k := range r.m.kinds {
			if r.left[s] == 0 {
				break
			}
			if r.m.in(k, r.m.site[s]) && fits(r.m.needOf(s), r.m.roomOf(k)) {
				r.buyAlone(s, r.m.kinds[k])
			}
		}
	}
}

// leads reports whether no bid is better than the first by more than the tolerance.
func (b bids) leads() bool {
	for i := 1; i <= 2 && i < len(b); i++ {
		if b[i].tier < b[0].tier || b[i].tier == b[0].tier && b[i].score*(1+tolerance) < b[0].score {
			return false
		}
	}
	return true
}

// tolerance is by how much a purchase may be dearer than an old bid promises: most old bids have become worse.
const tolerance = 0.005

// buy takes as many nodes with the content as pods and ledger allow.
func (r *run) buy(f *filling, offer int) {
	n := 1 << 30
	for _, p := range f.parts {
		n = min(n, r.left[p.Stack]/p.Count)
	}
	n = r.ledger.allows(offer, n)
	for _, p := range f.parts {
		r.left[p.Stack] -= n * p.Count
	}
	r.ledger.buy(offer, n)
	r.bins = append(r.bins, Bin{Offer: offer, Parts: slices.Clone(f.parts), Times: n})
}
