package search

import (
	"math"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// poolShare is a pool's part of a move.
type poolShare struct {
	Pool          *cluster.Pool
	price, Saving float64
	Cost          float64
}

// PoolShares splits a move between its pools: what it saves in proportion to what their nodes cost.
func PoolShares(s *cluster.Snapshot, m *disrupt.Move) []poolShare {
	var out []poolShare
	before := 0.0
	for _, name := range m.Claims {
		c := s.Claim(name)
		if c == nil || s.Pool(c.Pool) == nil {
			continue
		}
		i := slices.IndexFunc(out, func(p poolShare) bool { return p.Pool.Name == c.Pool })
		if i < 0 {
			i = len(out)
			out = append(out, poolShare{Pool: s.Pool(c.Pool)})
		}
		out[i].price += c.Price
		before += c.Price
		if n := s.NodeOf(name); n != nil {
			out[i].Cost += disrupt.CostOf(s.PodsOn(n.Name))
		}
	}
	for i := range out {
		out[i].Saving = m.Before - m.After
		if len(out) > 1 && before > 0 {
			out[i].Saving *= out[i].price / before
		}
	}
	slices.SortFunc(out, func(a, b poolShare) int { return strings.Compare(a.Pool.Name, b.Pool.Name) })
	return out
}

// Rounded is an amount in whole cents.
func Rounded(dollars float64) float64 { return math.Round(dollars*100) / 100 }
