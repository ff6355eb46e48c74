package state

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// unusedFamilies are gauges about nodes that are of no use to the pods that they were made for.
type unusedFamilies struct{ nodes, price, static, workloads *series.Family }

func newUnusedFamilies() unusedFamilies {
	return unusedFamilies{
		nodes: series.NewFamily("tenon_nodes_in_vain",
			"Unused nodes: created for pods that cannot run on them, and without any other workload, by the cause.",
			"nodepool", "cause"),
		price: series.NewFamily("tenon_nodes_in_vain_price_per_hour", "Price of the unused nodes, in dollars per hour.",
			"nodepool"),
		static: series.NewFamily("tenon_static_nodes_end_too_soon",
			"Nodes of static NodePools that ended within 10 minutes more than once in a row, so that new ones are "+
				"created "+
				"less and less often.", "nodepool"),
		workloads: series.NewFamily("tenon_workloads_held",
			"Workloads whose pods cannot run on the nodes created for them, so that they get one new node at a time, "+
				"less and less often; by the cause.", "cause"),
	}
}

func (f *unusedFamilies) all() []*series.Family {
	return []*series.Family{f.nodes, f.price, f.static, f.workloads}
}

func (c *scrape) unusedGauges(f *unusedFamilies) {
	type place struct{ pool, cause string }
	nodes, price, held := make(map[place]int), make(map[string]float64), make(map[string]int)
	standing, _ := c.UnusedNodes()
	for name, b := range standing {
		if claim := c.Claim(name); claim != nil {
			nodes[place{claim.Pool, causeOf(b, name)}]++
			price[claim.Pool] += claim.Price
		}
	}
	for _, b := range c.WorkloadTries {
		if b.HoldsPods() {
			held[causeOf(b, "")]++
		}
	}
	for at, n := range nodes {
		c.send(f.nodes, float64(n), c.Shared("nodepool", at.pool), c.Shared("cause", at.cause))
	}
	for _, pool := range slices.Sorted(maps.Keys(price)) {
		c.send(f.price, price[pool], c.Shared("nodepool", pool))
	}
	for _, p := range c.Pools {
		if lost := len(p.ShortLivedSlots()); p.Static && lost > 0 {
			c.send(f.static, float64(lost), c.Shared("nodepool", p.Name))
		}
	}
	for cause, n := range held {
		c.send(f.workloads, float64(n), c.Shared("cause", cause))
	}
}

// causeOf is what keeps pods of an owner off a claim's node or, if that is not known any more, off the newest.
func causeOf(b *cluster.WorkloadTries, claim string) string {
	if len(b.Failures) == 0 {
		return ""
	}
	i := slices.IndexFunc(b.Failures, func(f cluster.UnusedNode) bool { return f.Claim == claim })
	return string(b.Failures[max(i, 0)].Cause.Kind)
}
