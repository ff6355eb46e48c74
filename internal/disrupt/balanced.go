package disrupt

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// karpenterK is the k of the contract.
const karpenterK = 2

// PoolTotals are what all nodes of each pool cost, and what disturbing all of them would: what the policy Balanced
// measures a move against.
type PoolTotals map[string]PoolTotal

// PoolTotal is that of one pool.
type PoolTotal struct{ Price, Cost float64 }

// NewPoolTotals adds up every node of every pool, whether it may go or not.
func NewPoolTotals(s *cluster.Snapshot) PoolTotals {
	t := make(PoolTotals, len(s.Pools))
	for _, p := range s.Pools {
		var sum PoolTotal
		for _, c := range s.ClaimsOf(p.Name) {
			sum.Price += c.Price
			if n := s.NodeOf(c.Name); n != nil {
				sum.Cost += CostOf(s.PodsOn(n.Name))
			}
		}
		t[p.Name] = sum
	}
	return t
}

// Score is the part of the pool's price that is saved, divided by the part of the pool that is disturbed.
func (t PoolTotal) Score(saving, cost float64) float64 {
	if t.Price <= 0 || t.Cost <= 0 || saving <= 0 || cost <= 0 {
		return 0
	}
	return (saving / t.Price) / (cost / t.Cost)
}

// minScore is the score that a move must have at least.
func (s Settings) minScore() float64 {
	if s.BalancedK <= 0 {
		return 1.0 / karpenterK
	}
	return 1 / s.BalancedK
}

// Approves asks every pool with the policy Balanced that takes part in a move whether what it saves is worth the
// disturbance. The saving is split between the pools by what their nodes cost. stay is the first no, by the pool's
// name.
func (t PoolTotals) Approves(set Settings, candidates []Candidate, saving float64) (blocked *BlockedNode) {
	parts, before := make(map[string]PoolTotal), 0.0
	var pools []string
	for i := range candidates {
		c := &candidates[i]
		before += c.Price
		part, known := parts[c.Pool.Name]
		if !known && c.Pool.Policy == cluster.Balanced {
			pools = append(pools, c.Pool.Name)
		}
		parts[c.Pool.Name] = PoolTotal{part.Price + c.Price, part.Cost + c.Cost}
	}
	slices.Sort(pools)
	for _, name := range pools {
		part, whole := parts[name], t[name]
		own := saving
		if len(parts) > 1 && before > 0 {
			own = saving * part.Price / before
		}
		if whole.Score(own, part.Cost) >= set.minScore() {
			continue
		}
		i := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Pool.Name == name })
		return &BlockedNode{Claim: candidates[i].Claim.Name, Node: candidates[i].Node.Name, Reason: NotBalanced,
			Saving:       own,
			NeededSaving: set.minScore() * part.Cost / whole.Cost * whole.Price} // no node is free to disturb
	}
	return nil
}
