package state

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/resource"
)

// clusterFamilies are gauges about the cluster as a whole.
type clusterFamilies struct {
	nodes, synced, unsynced, utilization, queue, unfinished, zones *series.Family
}

func newClusterFamilies() clusterFamilies {
	return clusterFamilies{
		nodes: series.NewFamily("karpenter_cluster_state_node_count", "Nodes that are known."),
		synced: series.NewFamily("karpenter_cluster_state_synced", "1 while the picture of the cluster is up to "+
			"date, 0 while it is not."),
		unsynced: series.NewFamily("karpenter_cluster_state_unsynced_time_seconds", "For how long the picture of "+
			"the cluster has not been up to date."),
		utilization: series.NewFamily("karpenter_cluster_utilization_percent", "Share of what all nodes offer that "+
			"pods have asked for.", "resource_type"),
		queue: series.NewFamily("karpenter_scheduler_queue_depth", "Pods that wait for a place.", "controller",
			"scheduling_id"),
		unfinished: series.NewFamily("karpenter_scheduler_unfinished_work_seconds", "For how long the plan that is "+
			"being made has been in the making; 0 while none is.", "controller", "scheduling_id"),
		zones: series.NewFamily("karpenter_scheduler_pending_pods_by_effective_zone_count",
			"Pods that wait for a place, by the one zone that they may go to; flexible for several, none for no zone "+
				"at all.", "controller", "zone"),
	}
}

func (f *clusterFamilies) all() []*series.Family {
	return []*series.Family{f.nodes, f.synced, f.unsynced, f.utilization, f.queue, f.unfinished, f.zones}
}

func (c *scrape) cluster(f *clusterFamilies, st *Collector, looked time.Time) {
	c.send(f.nodes, float64(len(c.Nodes)))
	age, synced := c.now.Sub(looked), 1.0
	if age <= staleAfter {
		age = 0
	} else {
		synced = 0
	}
	c.send(f.synced, synced)
	c.send(f.unsynced, age.Seconds())
	planner, none := c.Shared("controller", series.Planner), c.Shared("scheduling_id", "")
	c.send(f.queue, float64(len(c.Pending())), planner, none)
	busy := 0.0
	if began := st.Planning.Load(); began != nil {
		busy = c.since(*began)
	}
	c.send(f.unfinished, busy, planner, none)
	for zone, pods := range c.byZone() {
		c.send(f.zones, float64(pods), planner, c.Shared("zone", zone))
	}
	c.utilization(f.utilization)
}

func (c *scrape) utilization(f *series.Family) {
	var offered, asked resource.Vector
	for _, n := range c.Nodes {
		offered = offered.Add(n.Allocatable)
		for _, p := range c.PodsOn(n.Name) {
			asked = asked.Add(p.Class.Requests)
		}
	}
	for _, d := range c.dimensions() {
		if offered[d.index] > 0 {
			c.send(f, 100*float64(asked[d.index])/float64(offered[d.index]), d.kind)
		}
	}
}

// byZone counts the pods that wait by the zone that they may go to. Pods of a class agree about that.
func (c *scrape) byZone() map[string]int {
	out, known := make(map[string]int), make(map[*cluster.PodClass]string)
	for _, p := range c.Pending() {
		zone, ok := known[p.Class]
		if !ok {
			zone = effectiveZone(p.Class)
			known[p.Class] = zone
		}
		out[zone]++
	}
	return out
}

// effectiveZone is the one zone that a class may go to, by its selectors and its volumes; "flexible" if there are
// several and "none" if they leave nothing.
func effectiveZone(class *cluster.PodClass) string {
	var zones []string
	for _, term := range class.Terms {
		values, asked := term.Get(cluster.ZoneLabel)
		list, finite := values.Listed()
		if !asked || !finite {
			return "flexible"
		}
		zones = append(zones, list...)
	}
	slices.Sort(zones)
	switch zones = slices.Compact(zones); len(zones) {
	case 0:
		return "none"
	case 1:
		return zones[0]
	}
	return "flexible"
}

// empty counts the nodes that carry nothing which would keep them.
func (c *scrape) empty() int {
	count := 0
	for _, p := range c.Pools {
		if p.Static || p.Deleting || p.ConsolidateAfter.Never {
			continue
		}
		for _, claim := range c.ClaimsOf(p.Name) {
			n := c.NodeOf(claim.Name)
			if n != nil && claim.Deleting.IsZero() && n.Deleting.IsZero() && claim.Is(cluster.Initialized) &&
				disrupt.IsEmpty(c.Snapshot, claim, n) {
				count++
			}
		}
	}
	return count
}

// poolFamilies are gauges about each pool.
type poolFamilies struct{ limit, usage, cost, allowed, consuming *series.Family }

func newPoolFamilies() poolFamilies {
	return poolFamilies{
		limit: series.NewFamily("karpenter_nodepools_limit", "Limits of a NodePool.", "nodepool", "resource_type"),
		usage: series.NewFamily("karpenter_nodepools_usage", "Resources that the nodes of a NodePool have.",
			"nodepool", "resource_type"),
		cost: series.NewFamily("karpenter_nodepools_cost_total", "Price of the nodes of a NodePool, in dollars "+
			"per hour.", "nodepool"),
		allowed: series.NewFamily("karpenter_nodepools_allowed_disruptions", "Nodes of a NodePool that its budgets "+
			"let go at the same time, by reason.", "nodepool", "reason"),
		consuming: series.NewFamily("karpenter_nodepools_nodes_consuming_budgets", "Nodes of a NodePool that are out "+
			"already and count against its budgets, by reason.", "nodepool", "reason"),
	}
}

func (f *poolFamilies) all() []*series.Family {
	return []*series.Family{f.limit, f.usage, f.cost, f.allowed, f.consuming}
}

func (c *scrape) poolGauges(f *poolFamilies) {
	dimensions := c.dimensions()
	for _, p := range c.Pools {
		name := series.Pair("nodepool", p.Name)
		var used resource.Vector
		cost := 0.0
		for _, claim := range c.ClaimsOf(p.Name) {
			used, cost = used.Add(market.ChargeOf(c.Snapshot, p, claim)), cost+claim.Price
		}
		c.send(f.cost, cost, name)
		for _, d := range dimensions {
			c.send(f.usage, series.InUnits(d.index, used[d.index]), name, d.kind)
			if p.Limits.Set[d.index] {
				c.send(f.limit, series.InUnits(d.index, p.Limits.Amount[d.index]), name, d.kind)
			}
		}
		nodes := c.Shared("resource_type", "nodes")
		c.send(f.usage, float64(len(c.ClaimsOf(p.Name))), name, nodes)
		if p.Limits.HasNodes {
			c.send(f.limit, float64(p.Limits.Nodes), name, nodes)
		}
		for _, reason := range disrupt.BudgetReasons() {
			allowed, out := disrupt.AllowedAndUnavailable(c.Snapshot, p, string(reason))
			kind := c.Shared("reason", series.ReasonLabel(reason))
			c.send(f.allowed, float64(allowed), name, kind)
			c.send(f.consuming, float64(out), name, kind)
		}
	}
}
