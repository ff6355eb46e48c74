package disrupt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// nodeCost is what disturbing a node costs before any of its pods is counted: no node is free to disturb.
const nodeCost = 1

// podCost is what a pod adds to the cost of disturbing its node. One that would rather go than stay takes nothing off.
func podCost(p *cluster.Pod) float64 { return max(0, p.EvictionCost) }

// CostOf is what disturbing a node costs that carries the pods.
func CostOf(pods []*cluster.Pod) float64 {
	cost := float64(nodeCost)
	for _, p := range pods {
		if p.IsWorkload() {
			cost += podCost(p)
		}
	}
	return cost
}

// NoWorkload reports whether none of the pods is a reason to keep their node.
func NoWorkload(pods []*cluster.Pod) bool {
	return !slices.ContainsFunc(pods, (*cluster.Pod).IsWorkload)
}

// Ratio is what a candidate costs per hour for each unit of disturbance: the more, the sooner it should go.
func (c *Candidate) Ratio() float64 { return c.Price / max(c.Cost, nodeCost) }

// Compare orders candidates by how soon they should go: idle nodes first; then by price for each unit of disturbance,
// the most first; then those that evict fewer pods, then the older ones, then by name, so that no two are equal.
func Compare(a, b *Candidate) int {
	return cmp.Or(TrueFirst(a.Empty, b.Empty), cmp.Compare(b.Ratio(), a.Ratio()), cmp.Compare(a.Evicted, b.Evicted),
		a.Claim.Created.Compare(b.Claim.Created), strings.Compare(a.Claim.Name, b.Claim.Name))
}

// TrueFirst orders what is so before what is not.
func TrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Sort puts candidates into the order of Compare.
func Sort(candidates []Candidate) {
	slices.SortFunc(candidates, func(a, b Candidate) int { return Compare(&a, &b) })
}

// FillEstimates fills in what is known of a node that may not go now, or is forced to.
func FillEstimates(s *cluster.Snapshot, c *Candidate) {
	c.Price, c.Evicted = c.Claim.Price, 0
	for _, p := range s.PodsOn(c.Node.Name) {
		if p.IsWorkload() && !p.StaysThroughDrain {
			c.Evicted++
		}
	}
}
