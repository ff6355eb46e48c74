package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// tally is what a bundle of moves takes away and what it has cost so far.
type tally struct {
	// nodes are those that go; before is what they cost, and after what has been made in their place.
	nodes         []Candidate
	before, after float64
}

// rounding is by how much two ways to add the same prices up may differ.
const rounding = 1e-9

func (t *tally) saving() float64 { return t.before - t.after }

// short says why it does not pay, if more has to be bought at the price.
func (t *tally) short(set Settings, more float64) Why {
	switch saving := t.saving() - more; {
	case saving < leastSaving-rounding:
		return NothingCheaper
	case saving < Needed(set, t.nodes)-rounding:
		return SavesTooLittle
	}
	return ""
}

// tally adds up what it is worth if these nodes of the bundle go and nothing more is bought; known is false if nobody can tell.
//
// Nodes of the same moves that are on their way out already have been replaced by the same nodes, so that they count. But if
// some of the replacements stay whatever happens now, what is left has to pay only for the others; and once some nodes are on
// their way out, not for replacements that none of its pods goes to: nobody needs those, and they go in any case.
func (d *desk) tally(b *bundle, nodes []Candidate) (t tally, known bool) {
	t.nodes = nodes
	sunk, leaving := false, leavingOf(b)
	for _, c := range b.made {
		if d.sunk(c) {
			sunk = true
			continue
		}
		if len(leaving) > 0 && !d.seats(b, c) {
			continue
		}
		price, ok := d.priceOf(c)
		if !ok {
			return t, false
		}
		t.after += price
	}
	if !sunk {
		t.nodes = slices.Concat(nodes, leaving)
	}
	for i := range t.nodes {
		t.before += t.nodes[i].Price
	}
	return t, true
}

// seats reports whether some pod of the bundle goes to the replacement.
func (d *desk) seats(b *bundle, c *cluster.Claim) bool {
	return slices.ContainsFunc(b.groups, func(g *group) bool {
		return slices.ContainsFunc(g.seats, func(st seat) bool { return d.claimOf(st) == c })
	})
}

// whole adds up what all of a bundle is worth if these nodes of it go: whoever buys more for it, or lets some of its nodes stay, must
// make up for everything that was bought before.
func (d *desk) whole(b *bundle, nodes []Candidate) (t tally, known bool) {
	t.nodes = slices.Concat(nodes, leavingOf(b))
	for i := range t.nodes {
		t.before += t.nodes[i].Price
	}
	for _, c := range b.made {
		price, ok := d.priceOf(c)
		if !ok {
			return t, false
		}
		t.after += price
	}
	return t, true
}

// leavingOf are the nodes of a bundle that are on their way out.
func leavingOf(b *bundle) []Candidate {
	var out []Candidate
	for _, g := range b.groups {
		out = append(out, g.leaving...)
	}
	return out
}

// sunk reports whether a replacement stays whatever becomes of the moves it was made for: somebody runs there, or is to who goes in
// none of them.
func (d *desk) sunk(c *cluster.Claim) bool {
	host := cluster.HostName(c, d.s.NodeOf(c.Name))
	return !d.unused(c) || d.needed[host] || d.sought[host]
}

// unused reports whether nobody runs on a replacement.
func (d *desk) unused(c *cluster.Claim) bool {
	n := d.s.NodeOf(c.Name)
	return n == nil || idle(d.s.PodsOn(n.Name))
}

// owed reports whether the move that a claim was made for has to pay for it: it was made for this try, or for an earlier one and
// nobody runs there. What is left of an earlier try and is in use is a node like any other.
func (d *desk) owed(c *cluster.Claim) bool {
	return c.Replaces != "" && (d.unused(c) || d.s.Replacing(c))
}

// priceOf is what a replacement costs or, while that is open, what it will cost at least; known is false if nobody sells what it
// is.
func (d *desk) priceOf(c *cluster.Claim) (price float64, known bool) {
	p := d.s.Pool(c.Pool)
	if c.Price > 0 || p == nil || p.Catalog == nil {
		return c.Price, c.Price > 0
	}
	n := d.s.NodeOf(c.Name)
	kind, terms := labelOf(c, n, cluster.InstanceTypeLabel), labelOf(c, n, cluster.CapacityTypeLabel)
	if kind != "" && terms != "" { // a node may say what it is before its claim does, but not on what terms
		return p.Catalog.Price(kind, labelOf(c, n, cluster.ZoneLabel), terms)
	}
	for i := range p.Catalog.Offerings {
		o := &p.Catalog.Offerings[i]
		if _, ok := c.Requirements.Miss(func(key string) (string, bool) {
			if value, known := o.Label(key); known {
				return value, true
			}
			return c.Labels.Get(key)
		}); ok && o.Available && (!known || o.Price < price) {
			price, known = o.Price, true
		}
	}
	return price, known
}

// unbalanced reports whether some pool finds the disturbance too much for what is saved. Once some nodes of a move are on their way
// out that is decided.
func (d *desk) unbalanced(nodes []Candidate, saving float64) bool {
	balances := func(c Candidate) bool { return c.Pool.Policy == cluster.Balanced }
	if !slices.ContainsFunc(nodes, balances) {
		return false
	}
	if d.totals == nil {
		d.totals = NewTotals(d.s)
	}
	return d.totals.Approves(d.set, nodes, saving) != nil
}
