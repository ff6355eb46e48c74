package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
)

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
func (bl *balancer) balanceOf(l *linkedMoves, nodes []disrupt.Candidate) (t saving.BalanceSheet, known bool) {
	leaving := leavingOf(l)
	sunk := slices.ContainsFunc(l.replacements, bl.isSunkCost)
	if !sunk {
		nodes = slices.Concat(nodes, leaving)
	}
	t = saving.SheetOf(nodes)
	known = t.Pay(bl.s, slices.DeleteFunc(slices.Clone(l.replacements), func(c *cluster.Claim) bool {
		return bl.isSunkCost(c) || len(leaving) > 0 && !bl.usesReplacement(l, c)
	}))
	return t, known
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
func (bl *balancer) fullBalance(l *linkedMoves, nodes []disrupt.Candidate) (t saving.BalanceSheet, known bool) {
	t = saving.SheetOf(slices.Concat(nodes, leavingOf(l)))
	known = t.Pay(bl.s, l.replacements)
	return t, known
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

// isUnbalanced reports whether some pool finds the disturbance too much for what is saved. Once some nodes of a move
// are on their way out that is decided.
func (bl *balancer) isUnbalanced(nodes []disrupt.Candidate, saved float64) bool {
	balances := func(c disrupt.Candidate) bool { return c.Pool.Policy == cluster.Balanced }
	if !slices.ContainsFunc(nodes, balances) {
		return false
	}
	if bl.totals == nil {
		bl.totals = disrupt.NewPoolTotals(bl.s)
	}
	return bl.totals.Approves(bl.set, nodes, saved) != nil
}
