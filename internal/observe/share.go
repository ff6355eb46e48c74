package observe

import (
	"math"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// poolShare is a pool's part of a move.
type poolShare struct {
	pool          *cluster.Pool
	price, saving float64
	cost          float64
}

// poolShares splits a move between its pools: what it saves in proportion to what their nodes cost.
func poolShares(s *cluster.Snapshot, m *disrupt.Move) []poolShare {
	var out []poolShare
	before := 0.0
	for _, name := range m.Claims {
		c := s.Claim(name)
		if c == nil || s.Pool(c.Pool) == nil {
			continue
		}
		i := slices.IndexFunc(out, func(p poolShare) bool { return p.pool.Name == c.Pool })
		if i < 0 {
			i = len(out)
			out = append(out, poolShare{pool: s.Pool(c.Pool)})
		}
		out[i].price += c.Price
		before += c.Price
		if n := s.NodeOf(name); n != nil {
			out[i].cost += disrupt.CostOf(s.PodsOn(n.Name))
		}
	}
	for i := range out {
		out[i].saving = m.Before - m.After
		if len(out) > 1 && before > 0 {
			out[i].saving *= out[i].price / before
		}
	}
	slices.SortFunc(out, func(a, b poolShare) int { return strings.Compare(a.pool.Name, b.pool.Name) })
	return out
}

func rounded(dollars float64) float64 { return math.Round(dollars*100) / 100 }
