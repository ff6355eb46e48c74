package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
)

// balanceSheet is what linked moves take away and what it has cost so far.
type balanceSheet struct {
	// removed are those that go; removedPrice is what they cost, and addedPrice what has been made in their place.
	removed                  []disrupt.Candidate
	removedPrice, addedPrice float64
}

// rounding is by how much two ways to add the same prices up may differ.
const rounding = 1e-9

func (b *balanceSheet) saving() float64 { return b.removedPrice - b.addedPrice }

// shortfall says why it does not pay, if more has to be bought at the price.
func (b *balanceSheet) shortfall(set disrupt.Settings, more float64) disrupt.BlockReason {
	switch saved := b.saving() - more; {
	case saved < saving.Least-rounding:
		return disrupt.NothingCheaper
	case saved < saving.Needed(set, b.removed)-rounding:
		return disrupt.SavesTooLittle
	}
	return ""
}

// balancer works out what linked moves are worth.
type balancer struct {
	*frame
	// totals are what balances are measured against, once somebody asks.
	totals disrupt.PoolTotals
}

// balanceOf adds up what it is worth if these nodes of the linked moves go and nothing more is bought; known is false
// if nobody can tell.
//
// Nodes of the same moves that are on their way out already have been replaced by the same nodes, so that they count.
// But if some of the replacements stay whatever happens now, what is left has to pay only for the others; and once some
// nodes are on their way out, not for replacements that none of its pods goes to: nobody needs those, and they go in
// any case.
func (bl *balancer) balanceOf(l *linkedMoves, nodes []disrupt.Candidate) (t balanceSheet, known bool) {
	t.removed = nodes
	sunk, leaving := false, leavingOf(l)
	for _, c := range l.replacements {
		if bl.isSunkCost(c) {
			sunk = true
			continue
		}
		if len(leaving) > 0 && !bl.usesReplacement(l, c) {
			continue
		}
		price, ok := replacementPrice(bl.s, c)
		if !ok {
			return t, false
		}
		t.addedPrice += price
	}
	if !sunk {
		t.removed = slices.Concat(nodes, leaving)
	}
	for i := range t.removed {
		t.removedPrice += t.removed[i].Price
	}
	return t, true
}

// usesReplacement reports whether some pod of the linked moves goes to the replacement.
func (bl *balancer) usesReplacement(l *linkedMoves, c *cluster.Claim) bool {
	return slices.ContainsFunc(l.moves, func(m *destination.Move) bool {
		return slices.ContainsFunc(m.Destinations, func(dest destination.Place) bool {
			return bl.ClaimAt(dest) == c
		})
	})
}

// fullBalance adds up what all of linked moves is worth if these nodes of it go: whoever buys more for it, or lets some
// of its nodes stay, must make up for everything that was bought before.
func (bl *balancer) fullBalance(l *linkedMoves, nodes []disrupt.Candidate) (t balanceSheet, known bool) {
	t.removed = slices.Concat(nodes, leavingOf(l))
	for i := range t.removed {
		t.removedPrice += t.removed[i].Price
	}
	for _, c := range l.replacements {
		price, ok := replacementPrice(bl.s, c)
		if !ok {
			return t, false
		}
		t.addedPrice += price
	}
	return t, true
}

// leavingOf are the nodes of linked moves that are on their way out.
func leavingOf(l *linkedMoves) []disrupt.Candidate {
	var out []disrupt.Candidate
	for _, m := range l.moves {
		out = append(out, m.Leaving...)
	}
	return out
}

// isSunkCost reports whether a replacement stays whatever becomes of the moves it was made for: somebody runs there, or
// is to who goes in none of them.
func (bl *balancer) isSunkCost(c *cluster.Claim) bool {
	host := cluster.HostName(c, bl.s.NodeOf(c.Name))
	return !bl.isUnusedReplacement(c) || bl.neededHosts[host] || bl.OtherPodsHosts[host]
}

// isUnusedReplacement reports whether nobody runs on a replacement.
func (bl *balancer) isUnusedReplacement(c *cluster.Claim) bool {
	n := bl.s.NodeOf(c.Name)
	return n == nil || disrupt.NoWorkload(bl.s.PodsOn(n.Name))
}

// isChargedToMove reports whether the move that a claim was made for has to pay for it: it was made for this try, or
// for an earlier one and nobody runs there. What is left of an earlier try and is in use is a node like any other.
func (bl *balancer) isChargedToMove(c *cluster.Claim) bool {
	return c.Replaces != "" && (bl.isUnusedReplacement(c) || bl.s.IsReplacement(c))
}

// replacementPrice is what a replacement costs or, while that is open, what it will cost at least; known is false if
// nobody sells what it is.
func replacementPrice(s *cluster.Snapshot, c *cluster.Claim) (price float64, known bool) {
	p := s.Pool(c.Pool)
	if c.Price > 0 || p == nil || p.Catalog == nil {
		return c.Price, c.Price > 0
	}
	n := s.NodeOf(c.Name)
	kind, terms := disrupt.LabelOf(c, n, cluster.InstanceTypeLabel), disrupt.LabelOf(c, n, cluster.CapacityTypeLabel)
	if kind != "" && terms != "" { // a node may say what it is before its claim does, but not on what terms
		return p.Catalog.Price(kind, disrupt.LabelOf(c, n, cluster.ZoneLabel), terms)
	}
	for i := range p.Catalog.Offerings {
		o := &p.Catalog.Offerings[i]
		if _, ok := c.Requirements.FirstMiss(func(key string) (string, bool) {
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

// isUnbalanced reports whether some pool finds the disturbance too much for what is saved. Once some nodes of a move
// are on their way out that is decided.
func (bl *balancer) isUnbalanced(nodes []disrupt.Candidate, saving float64) bool {
	balances := func(c disrupt.Candidate) bool { return c.Pool.Policy == cluster.Balanced }
	if !slices.ContainsFunc(nodes, balances) {
		return false
	}
	if bl.totals == nil {
		bl.totals = disrupt.NewPoolTotals(bl.s)
	}
	return bl.totals.Approves(bl.set, nodes, saving) != nil
}
