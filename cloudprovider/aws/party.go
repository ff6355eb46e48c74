package aws

import (
	"cmp"
	"slices"
	"strings"
)

// party is a number of claims that one call launches instances for. Every instance that the call may launch serves each of
// them, so it does not matter who gets which.
type party struct {
	order  *order
	buyers []*buyer

	// most is how many lines the member with most has.
	most int
}

// offered is what of a line matters to whoever gets the instance.
type offered struct{ template, kind, zone string }

func (l *line) offer() offered { return offered{l.Template, l.Type, l.Zone} }

// parties divides claims with the same order key into as few parties as can be. What is asked for a party is what its
// members have in common. Nobody loses much by it: the cheapest type stays the cheapest, and each keeps half of its choice
// at least. What was tried is left out; a claim that has nothing else is in no party.
func parties(buyers []*buyer, tried map[offered]bool) (out []*party, done []*buyer) {
	type wish struct {
		of    *buyer
		order *order
	}
	var wishes []wish
	for _, b := range buyers {
		if o := b.order.without(tried); o != nil {
			wishes = append(wishes, wish{b, o})
		} else {
			done = append(done, b)
		}
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return cmp.Compare(len(b.order.Lines), len(a.order.Lines)) })
	for _, w := range wishes {
		if !slices.ContainsFunc(out, func(p *party) bool { return p.take(w.of, w.order) }) {
			out = append(out, &party{order: w.order, buyers: []*buyer{w.of}, most: len(w.order.Lines)})
		}
	}
	for _, p := range out {
		slices.SortFunc(p.buyers, byMark)
	}
	return out, done
}

// byMark is the one order in which claims are served. It is the order of the marks that instances carry, so that whoever
// finds them later comes to the same result.
func byMark(a, b *buyer) int {
	return strings.Compare(mark(string(a.claim.UID)), mark(string(b.claim.UID)))
}

// take has the claim join if that does neither it nor the others harm.
func (p *party) take(b *buyer, o *order) bool {
	common := p.order.and(o)
	if common == nil || 2*len(common.Lines) < max(p.most, len(o.Lines)) {
		return false
	}
	first := common.Lines[common.cheapest()].Type
	if first != o.Lines[o.cheapest()].Type || first != p.order.Lines[p.order.cheapest()].Type {
		return false
	}
	p.order, p.buyers = common, append(p.buyers, b)
	return true
}

// without is the order but for some lines; nil if nothing is left.
func (o *order) without(lines map[offered]bool) *order {
	if len(lines) == 0 {
		return o
	}
	return o.only(func(l *line) bool { return !lines[l.offer()] })
}

// and is what both orders have; nil if that is nothing.
func (o *order) and(other *order) *order {
	if o == other {
		return o
	}
	have := make(map[offered]bool, len(other.Lines))
	for i := range other.Lines {
		have[other.Lines[i].offer()] = true
	}
	return o.only(func(l *line) bool { return have[l.offer()] })
}

// only is the order with the lines that are kept; nil if there are none.
func (o *order) only(keep func(*line) bool) *order {
	kept := make([]line, 0, len(o.Lines))
	for i := range o.Lines {
		if keep(&o.Lines[i]) {
			kept = append(kept, o.Lines[i])
		}
	}
	switch len(kept) {
	case 0:
		return nil
	case len(o.Lines):
		return o
	}
	out := *o
	out.Lines, out.templates = kept, map[string]*template{}
	for i := range kept {
		out.templates[kept[i].Template] = o.templates[kept[i].Template]
	}
	return &out
}
