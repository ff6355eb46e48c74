package observe

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
)

// metrics holds what is counted and measured as it happens: the contract's metrics (prefix karpenter_) and our own
// (prefix tenon_). What can be told from a snapshot is in state.
type metrics struct {
	claimMetrics
	nodeMetrics
	podMetrics
	disruptionMetrics
	orphans, heldOrphans              prometheus.Gauge
	scheduling, planning              prometheus.Observer
	unschedulable, ignored            prometheus.Gauge
	placedPrice, boundPrice, deferred prometheus.Gauge
	cut                               prometheus.Counter
	commands                          *prometheus.CounterVec
	breakdowns                        failureMetrics
}

// claimMetrics are about NodeClaims.
type claimMetrics struct {
	claimsCreated, claimsTerminated, claimsDisrupted, claimsUnhealthy *prometheus.CounterVec
	claimEnd, instanceEnd                                             *prometheus.HistogramVec
}

// nodeMetrics are about nodes.
type nodeMetrics struct {
	nodesCreated, nodesTerminated, nodesDrained *prometheus.CounterVec
	nodeEnd                                     *prometheus.SummaryVec
	nodeLifetime                                *prometheus.HistogramVec
}

// podMetrics are about pods that are made to move.
type podMetrics struct {
	podsDisrupted, podsDrained, evictions *prometheus.CounterVec
}

// disruptionMetrics are about disruptions and the search for them.
type disruptionMetrics struct {
	decisions, decisionsByPool, decisionsFailed, invalid *prometheus.CounterVec
	evaluation, score                                    *prometheus.HistogramVec
	considered, moves, saved, savingEvictions            *prometheus.CounterVec
	searching                                            prometheus.Observer
	searchCut                                            prometheus.Counter
}

// lifetimes are the bounds for the age of nodes: a quarter of an hour to thirty days.
func lifetimes() []float64 {
	var out []float64
	for _, minutes := range []float64{15, 30, 45} {
		out = append(out, minutes*60)
	}
	for _, hours := range []float64{1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 48, 72, 120, 240, 360, 480, 600, 720} {
		out = append(out, hours*3600)
	}
	return out
}

func newMetrics(mk maker) *metrics {
	m := &metrics{
		scheduling: mk.histogram("karpenter_scheduler_scheduling_duration_seconds", "Time to find places for the "+
			"pending pods.", durations(), "controller").WithLabelValues(planner),
		planning: mk.histogram("tenon_plan_duration_seconds", "Time to make a plan.",
			prometheus.ExponentialBuckets(0.0005, 2, 18)).WithLabelValues(),
		unschedulable: mk.gauge("karpenter_scheduler_unschedulable_pods_count", "Pods for which no place could be "+
			"found.", "controller").
			WithLabelValues(planner),
		ignored: mk.gauge("karpenter_scheduler_ignored_pods_count", "Pods that ask for what can't be planned for.").
			WithLabelValues(),
		placedPrice: mk.gauge("tenon_placement_price_per_hour", "Price of the new nodes of the last placement that "+
			"had some, in dollars per hour.").WithLabelValues(),
		boundPrice: mk.gauge("tenon_placement_bound_per_hour", "A price that no choice of nodes for that placement "+
			"could undercut, in dollars per hour.").WithLabelValues(),
		orphans: mk.gauge("tenon_orphan_instances", "Instances that no NodeClaim accounts for.").WithLabelValues(),
		heldOrphans: mk.gauge("tenon_orphan_instances_held", "Those of them that are left alone until a person "+
			"confirms that they may be ended.").WithLabelValues(),
		deferred: mk.gauge("tenon_placement_deferred_pods", "Pods that the last placement left to the next one, "+
			"because there were more rules between pods than one takes on.").WithLabelValues(),
		cut: mk.counter("tenon_placement_cut_total", "Placements whose search for cheap nodes was brought to "+
			"an end by its budget of steps.").WithLabelValues(),
		commands: mk.counter("tenon_commands_total", "Commands carried out, by kind and result.",
			"command", "result"),
	}
	m.breakdowns = newFailureMetrics(mk)
	m.addClaims(mk)
	m.addNodes(mk)
	m.addPods(mk)
	m.addDisruption(mk)
	return m
}

func (m *metrics) addClaims(mk maker) {
	m.claimsCreated = mk.counter("karpenter_nodeclaims_created_total", "NodeClaims created.", "reason", "nodepool",
		"min_values_relaxed")
	m.claimsTerminated = mk.counter("karpenter_nodeclaims_terminated_total", "NodeClaims that are gone.", "nodepool",
		"capacity_type", "zone")
	m.claimsDisrupted = mk.counter("karpenter_nodeclaims_disrupted_total", "NodeClaims that were deleted for a "+
		"reason of ours.", disruptedLabels()...)
	m.claimsUnhealthy = mk.counter("karpenter_nodeclaims_unhealthy_disrupted_total", "NodeClaims that were deleted "+
		"because their node was beyond repair, by the condition that said so.",
		"condition", "nodepool", "capacity_type", "image_id", "termination_mode")
	m.claimEnd = mk.histogram("karpenter_nodeclaims_termination_duration_seconds", "Time from the deletion of a "+
		"NodeClaim until it was gone.", prometheus.ExponentialBuckets(1, 2, 12), "nodepool")
	m.instanceEnd = mk.histogram("karpenter_nodeclaims_instance_termination_duration_seconds", "Time that the cloud "+
		"took to end an instance.", prometheus.ExponentialBuckets(1, 2, 11), "nodepool")
}

func (m *metrics) addNodes(mk maker) {
	m.nodesCreated = mk.counter("karpenter_nodes_created_total", "Nodes that joined.", "nodepool", "zone")
	m.nodesTerminated = mk.counter("karpenter_nodes_terminated_total", "Nodes that are gone.", "nodepool", "zone")
	m.nodesDrained = mk.counter("karpenter_nodes_drained_total", "Nodes that all pods have left before their end.",
		"nodepool")
	m.nodeEnd = mk.summary("karpenter_nodes_termination_duration_seconds", "Time from the deletion of a Node until "+
		"it was gone.", "nodepool")
	m.nodeLifetime = mk.histogram("karpenter_nodes_lifetime_duration_seconds", "Age that Nodes reached.", lifetimes(),
		"nodepool")
}

func (m *metrics) addPods(mk maker) {
	m.evictions = mk.counter("karpenter_pods_eviction_requests_total", "Evictions asked for, by the status of the "+
		"API server's answer.", "code")
	m.podsDrained = mk.counter("karpenter_pods_drained_total", "Pods that were made to leave a node, by the reason "+
		"for its end.", "reason")
	m.podsDisrupted = mk.counter("karpenter_pods_disruption_initiated_total", "Pods that need another place because "+
		"their NodeClaim was deleted for a reason of ours.", disruptedLabels()...)
}

func (m *metrics) addDisruption(mk maker) {
	kinds := []string{"decision", "reason", "consolidation_type"}
	m.decisions = mk.counter("karpenter_voluntary_disruption_decisions_total", "Nodes that it was decided to disrupt.",
		kinds...)
	m.decisionsByPool = mk.counter("karpenter_voluntary_disruption_decisions_by_nodepool_total",
		"Nodes of a NodePool that it was decided to disrupt.", append([]string{"nodepool"}, kinds...)...)
	m.decisionsFailed = mk.counter("karpenter_voluntary_disruption_queue_failures_total", "Tries to carry out such a "+
		"decision that failed.", kinds...)
	m.invalid = mk.counter("karpenter_voluntary_disruption_failed_validations_total", "Nodes that were fenced and "+
		"opened again, because they were needed after all.", "consolidation_type")
	m.evaluation = mk.histogram("karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
		"Time to look for nodes to disrupt.", durations(), "reason", "consolidation_type")
	timeouts := mk.counter("karpenter_voluntary_disruption_consolidation_timeouts_total", "Searches that were cut "+
		"short by their budget of steps.", "consolidation_type")
	for _, kind := range []string{"single", "multi"} {
		m.searchCut = timeouts.WithLabelValues(kind) // the last: a search looks at many nodes at once
	}
	balance := []string{"decision", "nodepool", "policy"}
	m.considered = mk.counter("karpenter_consolidation_moves_total", "Moves that searches have found, or have "+
		"rejected because the policy Balanced forbids them.", balance...)
	m.score = mk.histogram("karpenter_consolidation_score", "Score of moves of NodePools with the policy Balanced.",
		[]float64{0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10}, balance...)
	m.moves = mk.counter("tenon_disruption_moves_total", "Disruptions by reason and by what became of them.", "reason",
		"step", "why")
	m.saved = mk.counter("tenon_consolidation_saving_per_hour_total", "What consolidation has made the cluster "+
		"cheaper, in dollars per hour, summed up over all nodes that have gone.", "nodepool", "reason")
	m.savingEvictions = mk.counter("tenon_consolidation_evictions_total", "Pods that were evicted to save money.",
		"nodepool")
	m.searching = mk.histogram("tenon_consolidation_search_duration_seconds", "Time to look at every node for a "+
		"cheaper way to run its pods.", prometheus.ExponentialBuckets(0.001, 2, 16)).WithLabelValues()
}

func disruptedLabels() []string {
	return []string{"reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"}
}

// addBuild shows what was built, by whom and for what.
func addBuild(mk maker, version, commit string) {
	mk.gauge("karpenter_build_info", "Always 1; its labels say what this program was built from.", "version",
		"goversion", "goarch", "commit").
		WithLabelValues(version, runtime.Version(), runtime.GOARCH, commit).Set(1)
}

func (m *metrics) planned(s *cluster.Snapshot, p *plan.Plan, took time.Duration) {
	m.planning.Observe(took.Seconds())
	if p.OrphansChecked { // otherwise they are as they were
		m.orphans.Set(float64(p.Orphans.Orphans))
		m.heldOrphans.Set(float64(p.Orphans.Held))
	}
	if p.Provisioned {
		m.scheduling.Observe(took.Seconds())
		if len(p.Placement.Bins) > 0 {
			m.placedPrice.Set(p.Placement.Price)
			m.boundPrice.Set(p.Placement.Bound)
		}
		ignored := 0
		for i := range p.Placement.Unplaced {
			if len(p.Placement.Unplaced[i].Unsupported) > 0 {
				ignored++
			}
		}
		m.deferred.Set(float64(p.Placement.Deferred))
		if p.Placement.Truncated {
			m.cut.Inc()
		}
		m.ignored.Set(float64(ignored))
		m.unschedulable.Set(float64(len(p.Placement.Unplaced) - ignored))
	} else if len(s.Pending()) == 0 {
		m.ignored.Set(0)
		m.deferred.Set(0)
		m.unschedulable.Set(0)
	}
}
