package saving

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
)

// karpenterSpotTypes is how many cheaper types the contract asks for before one spot node is replaced by another.
const karpenterSpotTypes = 15

// spotTerms are what is asked of spot nodes that take the place of spot nodes. The cloud hands out the spot instance
// that it can best do without, not the cheapest: with few types to choose from, each replacement ends where it is taken
// away the soonest, and the next cheaper one is always in sight.
type spotTerms struct {
	// applies says that spot takes the place of spot.
	applies bool
	// minTypes is how many of the cheapest types there must be, and no more are kept; 0 for any number.
	minTypes int
	// riskPerHalving, if it is above 0, is by how much more a node counts for each halving of its types below
	// normTypes.
	riskPerHalving float64
	normTypes      int
}

// spotTermsFor finds which terms hold for a new node of a move; why is set if it may not be. They hold as soon as one
// pod comes there from a spot node: that others come from on-demand nodes makes it no less a spot node in place of a
// spot node. origins are the nodes that pods of the move may come from.
func spotTermsFor(set disrupt.Settings, candidates, origins []disrupt.Candidate, bin *market.Bin) (rule spotTerms,
	reason disrupt.BlockReason) {
	if !allowsSpot(*bin) || !anyFromSpot(origins, bin) {
		return spotTerms{}, ""
	}
	if !set.SpotToSpot {
		return spotTerms{}, disrupt.SpotToSpotOff
	}
	rule = spotTerms{applies: true, normTypes: set.SpotTypes, riskPerHalving: set.SpotRisk}
	if rule.normTypes <= 0 {
		rule.normTypes = karpenterSpotTypes
	}
	if len(candidates) == 1 && rule.riskPerHalving <= 0 {
		rule.minTypes = rule.normTypes
	}
	return rule, ""
}

// anyFromSpot reports whether some pod of the new node comes from a spot node; of one whose pods come from none of the
// nodes that is asked of all of them.
func anyFromSpot(origins []disrupt.Candidate, bin *market.Bin) bool {
	known := false
	of := CandidateByNode(origins)
	for _, p := range bin.Pods {
		if i := of(p); i >= 0 {
			known = true
			if origins[i].CapacityType == disrupt.Spot {
				return true
			}
		}
	}
	return !known && slices.ContainsFunc(origins, func(c disrupt.Candidate) bool {
		return c.CapacityType == disrupt.Spot
	})
}

func allowsSpot(b market.Bin) bool {
	terms, _ := b.Requirements.Get(cluster.CapacityTypeLabel)
	return terms.Matches(disrupt.Spot, true)
}

// factor is by how much more a node counts that may be launched as k types.
func (r spotTerms) factor(k int) float64 {
	if !r.applies || r.riskPerHalving <= 0 || k >= r.normTypes {
		return 1
	}
	return 1 + r.riskPerHalving*math.Log2(float64(r.normTypes)/float64(k))
}
