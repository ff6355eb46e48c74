package schedule

import (
	"slices"
	"strconv"
)

// mostRankings bounds how many rankings of types are kept from one what-if to the next.
const mostRankings = 64

// Buy finds the cheapest new nodes for those who have found no room; ok is false if some can't be had any. A brief look takes a
// fraction of the time and may miss the cheapest by a few percent.
func (st *Stage) Buy(brief bool) (bins []Bin, ok bool) {
	st.shop.brief = brief
	var kinds []*kind
	for _, b := range st.rest {
		b.kind.pods, b.kind.lone = slices.Clone(b.pods), false
		kinds = append(kinds, b.kind)
	}
	defer func() {
		for _, k := range kinds {
			k.pods, k.order, k.why = nil, nil, nil
		}
	}()
	for _, m := range st.shop.markets {
		if len(m.rankings) > mostRankings {
			m.rankings = nil
		}
	}
	if st.crates = nil; st.stock == nil {
		st.stock = st.shop.stock()
	} else {
		st.stock.putBack(st.shop)
	}
	st.steps += costOf(st.l, kinds, rounds)
	trial := st.l.lens(&st.trial, kinds)
	hosts := &settler{l: trial, shop: st.shop, kinds: kinds, wishes: st.wishes}
	for round := range rounds {
		more := buy(trial, st.shop, kinds, hosts, round > 0)
		kept, dropped := referee(trial, st.shop, more, st.named+len(st.crates))
		st.crates = append(st.crates, kept...)
		if !remain(kinds) || !worthwhile(trial, kinds, len(kept), dropped) {
			break
		}
		if st.stock.bounded {
			st.shop.restock()
		}
	}
	for _, c := range st.crates {
		bins = append(bins, c.seal())
	}
	return bins, !remain(kinds)
}

// costOf is about how many steps it takes to copy what the ledger knows of the kinds, and to put their pods on new nodes so often.
func costOf(l *ledger, kinds []*kind, times int) int {
	sum := len(l.rules) / ruleCopies
	for _, k := range kinds {
		sum += times * k.looks() * max(1, len(k.pods))
	}
	return sum
}

// ruleCopies is how many rules can be copied in the time in which one is looked at.
const ruleCopies = 4

// remain reports whether some kind still has pods without a place.
func remain(kinds []*kind) bool {
	return slices.ContainsFunc(kinds, func(k *kind) bool { return len(k.pods) > 0 })
}

// build takes a new node and its pods into the ledger.
func (st *Stage) build(c *crate) {
	h := c.host("new-" + strconv.Itoa(st.named))
	st.named++
	if len(st.l.rules) > 0 {
		sp := st.l.open(&h)
		st.l.mayOpen(c, &h, sp)
		st.l.staffCrate(c, sp)
		for _, ld := range c.loads {
			st.l.add(sp.at, sp.counts, ld.kind, len(ld.pods))
		}
	}
	for _, ld := range c.loads {
		st.l.volumes.claim(ld.kind.exclusive)
	}
}

// lens makes out a copy of the ledger in which only those rules are counted on that have to do with the kinds: the others are not
// copied, because nobody asks for them.
func (l *ledger) lens(out *ledger, kinds []*kind) *ledger {
	rules, spreads := make([]bool, len(l.rules)), make([]bool, len(l.spreads))
	mark := func(ids []int32) {
		for _, id := range ids {
			rules[id] = true
			for _, n := range l.rules[id].spreads {
				spreads[n] = true
			}
		}
	}
	mark(l.staffed)
	for _, k := range kinds {
		mark(k.carries)
		mark(k.counted)
		mark(k.wishes)
	}
	return l.copyTo(out, rules, spreads)
}
