package disrupt

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// contractTypes is how many cheaper types the contract asks for before one spot node is replaced by another.
const contractTypes = 15

// spotTerms are what is asked of spot nodes that take the place of spot nodes. The cloud hands out the spot instance that it can
// best do without, not the cheapest: with few types to choose from, each replacement ends where it is taken away the soonest, and
// the next cheaper one is always in sight.
type spotTerms struct {
	// applies says that spot takes the place of spot.
	applies bool
	// types is how many of the cheapest types there must be, and no more are kept; 0 for any number.
	types int
	// risk, if it is above 0, is by how much more a node counts for each halving of its types below norm.
	risk float64
	norm int
}

// spotRule finds which terms hold for a new node of a move; why is set if it may not be. They hold as soon as one pod comes there
// from a spot node: that others come from on-demand nodes makes it no less a spot node in place of a spot node. origins are the
// nodes that pods of the move may come from.
func spotRule(set Settings, candidates, origins []Candidate, bin *schedule.Bin) (rule spotTerms, why Why) {
	if !allowsSpot(*bin) || !fromSpot(origins, bin) {
		return spotTerms{}, ""
	}
	if !set.SpotToSpot {
		return spotTerms{}, SpotToSpotOff
	}
	rule = spotTerms{applies: true, norm: set.SpotTypes, risk: set.SpotRisk}
	if rule.norm <= 0 {
		rule.norm = contractTypes
	}
	if len(candidates) == 1 && rule.risk <= 0 {
		rule.types = rule.norm
	}
	return rule, ""
}

// fromSpot reports whether some pod of the new node comes from a spot node; of one whose pods come from none of the nodes that is
// asked of all of them.
func fromSpot(origins []Candidate, bin *schedule.Bin) bool {
	known := false
	of := byNode(origins)
	for _, p := range bin.Pods {
		if i := of(p); i >= 0 {
			known = true
			if origins[i].CapacityType == spot {
				return true
			}
		}
	}
	return !known && slices.ContainsFunc(origins, func(c Candidate) bool { return c.CapacityType == spot })
}

func allowsSpot(b schedule.Bin) bool {
	terms, _ := b.Requirements.Get(cluster.CapacityTypeLabel)
	return terms.Matches(spot, true)
}

// factor is by how much more a node counts that may be launched as k types.
func (r spotTerms) factor(k int) float64 {
	if !r.applies || r.risk <= 0 || k >= r.norm {
		return 1
	}
	return 1 + r.risk*math.Log2(float64(r.norm)/float64(k))
}
