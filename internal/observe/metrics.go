package observe

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Registerer is where metrics are registered.
type Registerer = prometheus.Registerer

// metrics holds the contract's metrics (prefix karpenter_) and our own (prefix tenon_).
type metrics struct {
	claimsCreated, claimsTerminated, claimsDisrupted *prometheus.CounterVec
	nodesCreated, nodesTerminated                    *prometheus.CounterVec
	limit, usage, price                              *prometheus.GaugeVec
	scheduling, planning                             prometheus.Observer
	queue, unschedulable, ignored, nodes             prometheus.Gauge
	placed, bound                                    prometheus.Gauge
	evictions, commands                              *prometheus.CounterVec

	known map[string]bool // pools that have series; only the loop's own goroutine touches it
}

func newMetrics(r Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	gauge := func(name, help string, labels ...string) prometheus.Gauge {
		return gauges(name, help, labels...).WithLabelValues(values(labels)...)
	}
	histogram := func(name, help string, labels ...string) prometheus.Observer {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18)}, labels)
		r.MustRegister(h)
		return h.WithLabelValues(values(labels)...)
	}
	return &metrics{
		known:            make(map[string]bool),
		claimsCreated:    counter("karpenter_nodeclaims_created_total", "NodeClaims created.", "reason", "nodepool", "min_values_relaxed"),
		claimsTerminated: counter("karpenter_nodeclaims_terminated_total", "NodeClaims that are gone.", "nodepool", "capacity_type", "zone"),
		claimsDisrupted: counter("karpenter_nodeclaims_disrupted_total", "NodeClaims that were deleted for a reason of their pool's.",
			"reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"),
		nodesCreated:    counter("karpenter_nodes_created_total", "Nodes that joined.", "nodepool", "zone"),
		nodesTerminated: counter("karpenter_nodes_terminated_total", "Nodes that are gone.", "nodepool", "zone"),
		limit:           gauges("karpenter_nodepools_limit", "Limits of a NodePool.", "nodepool", "resource_type"),
		usage:           gauges("karpenter_nodepools_usage", "Resources that the nodes of a NodePool have.", "nodepool", "resource_type"),
		price:           gauges("tenon_nodepools_price_per_hour", "Price of the nodes of a NodePool, in dollars per hour.", "nodepool"),
		scheduling:      histogram("karpenter_scheduler_scheduling_duration_seconds", "Time to find places for the pending pods.", "controller"),
		planning:        histogram("tenon_plan_duration_seconds", "Time to make a plan."),
		queue:           gauge("karpenter_scheduler_queue_depth", "Pods that wait for a place.", "controller", "scheduling_id"),
		unschedulable:   gauge("karpenter_scheduler_unschedulable_pods_count", "Pods for which no place could be found.", "controller"),
		ignored:         gauge("karpenter_scheduler_ignored_pods_count", "Pods that ask for what can't be planned for."),
		placed:          gauge("tenon_placement_price_per_hour", "Price of the new nodes of the last placement that had some, in dollars per hour."),
		bound:           gauge("tenon_placement_bound_per_hour", "A price that no choice of nodes for that placement could undercut, in dollars per hour."),
		nodes:           gauge("karpenter_cluster_state_node_count", "Nodes that are known."),
		evictions:       counter("karpenter_pods_eviction_requests_total", "Evictions asked for, by the status of the API server's answer.", "code"),
		commands:        counter("tenon_commands_total", "Commands carried out, by kind and result.", "command", "result"),
	}
}

// values are what the labels of the metrics with one series say. There is one planner, under the name that the contract
// has for it; scheduling_id, which would make a new series for each plan, stays empty.
func values(labels []string) []string {
	out := make([]string, len(labels))
	for i, name := range labels {
		if name == "controller" {
			out[i] = "provisioner"
		}
	}
	return out
}

func (m *metrics) planned(s *cluster.Snapshot, p *plan.Plan, took time.Duration) {
	m.planning.Observe(took.Seconds())
	m.nodes.Set(float64(len(s.Nodes)))
	m.queue.Set(float64(len(s.Pending())))
	if p.Provisioned {
		m.scheduling.Observe(took.Seconds())
		if len(p.Placement.Bins) > 0 {
			m.placed.Set(p.Placement.Price)
			m.bound.Set(p.Placement.Bound)
		}
		ignored := 0
		for i := range p.Placement.Unplaced {
			if len(p.Placement.Unplaced[i].Unsupported) > 0 {
				ignored++
			}
		}
		m.ignored.Set(float64(ignored))
		m.unschedulable.Set(float64(len(p.Placement.Unplaced) - ignored))
	} else if len(s.Pending()) == 0 {
		m.ignored.Set(0)
		m.unschedulable.Set(0)
	}
	m.pools(s)
}

func (m *metrics) pools(s *cluster.Snapshot) {
	for name := range m.known {
		if s.Pool(name) == nil {
			m.forget(name)
		}
	}
	for _, p := range s.Pools {
		m.known[p.Name] = true
		var used resource.Vector
		price := 0.0
		for _, c := range s.ClaimsOf(p.Name) {
			used, price = used.Add(schedule.Charge(s, p, c)), price+c.Price
		}
		m.price.WithLabelValues(p.Name).Set(price)
		for dim := range s.Names.Len() {
			if s.Names.Attaches(dim) {
				continue
			}
			kind := resourceType(s.Names.Name(dim))
			m.usage.WithLabelValues(p.Name, kind).Set(inUnits(dim, used[dim]))
			m.setLimit(p.Name, kind, p.Limits.Set[dim], inUnits(dim, p.Limits.Amount[dim]))
		}
		m.usage.WithLabelValues(p.Name, "nodes").Set(float64(len(s.ClaimsOf(p.Name))))
		m.setLimit(p.Name, "nodes", p.Limits.HasNodes, float64(p.Limits.Nodes))
	}
}

// setLimit shows a limit, or stops showing one that was taken away.
func (m *metrics) setLimit(pool, kind string, set bool, amount float64) {
	if !set {
		m.limit.DeleteLabelValues(pool, kind)
		return
	}
	m.limit.WithLabelValues(pool, kind).Set(amount)
}

// resourceType is how the contract writes a resource in a label.
func resourceType(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// forget drops the series of a pool that is gone.
func (m *metrics) forget(pool string) {
	gone := prometheus.Labels{"nodepool": pool}
	for _, g := range []*prometheus.GaugeVec{m.limit, m.usage, m.price} {
		g.DeletePartialMatch(gone)
	}
	delete(m.known, pool)
}

func inUnits(dim int, amount int64) float64 {
	if dim == resource.CPU {
		return float64(amount) / 1000
	}
	return float64(amount)
}
