package measure

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/plan"
)

// Metrics holds what is counted and measured as it happens: the contract's metrics (prefix karpenter_) and our own
// (prefix tenon_). What can be told from a snapshot is in state.
type Metrics struct {
	claimMetrics
	nodeMetrics
	podMetrics
	disruptionMetrics
	orphans, HeldOrphans              prometheus.Gauge
	scheduling, planning              prometheus.Observer
	unschedulable, ignored            prometheus.Gauge
	placedPrice, boundPrice, deferred prometheus.Gauge
	cut                               prometheus.Counter
	commands                          *prometheus.CounterVec
	Breakdowns                        failureMetrics
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
	decisions, decisionsByPool, DecisionsFailed, invalid *prometheus.CounterVec
	evaluation, score                                    *prometheus.HistogramVec
	considered, Moves, saved, savingEvictions            *prometheus.CounterVec
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

// New registers the metrics.
func New(mk series.Maker) *Metrics {
	m := &Metrics{
		scheduling: mk.Histogram("karpenter_scheduler_scheduling_duration_seconds", "Time to find places for the "+
			"pending pods.", series.Durations(), "controller").WithLabelValues(series.Planner),
		planning: mk.Histogram("tenon_plan_duration_seconds", "Time to make a plan.",
			prometheus.ExponentialBuckets(0.0005, 2, 18)).WithLabelValues(),
		unschedulable: mk.Gauge("karpenter_scheduler_unschedulable_pods_count", "Pods for which no place could be "+
			"found.", "controller").
			WithLabelValues(series.Planner),
		ignored: mk.Gauge("karpenter_scheduler_ignored_pods_count", "Pods that ask for what can't be planned for.").
			WithLabelValues(),
		placedPrice: mk.Gauge("tenon_placement_price_per_hour", "Price of the new nodes of the last placement that "+
			"had some, in dollars per hour.").WithLabelValues(),
		boundPrice: mk.Gauge("tenon_placement_bound_per_hour", "A price that no choice of nodes for that placement "+
			"could undercut, in dollars per hour.").WithLabelValues(),
		orphans: mk.Gauge("tenon_orphan_instances", "Instances that no NodeClaim accounts for.").WithLabelValues(),
		HeldOrphans: mk.Gauge("tenon_orphan_instances_held", "Those of them that are left alone until a person "+
			"confirms that they may be ended.").WithLabelValues(),
		deferred: mk.Gauge("tenon_placement_deferred_pods", "Pods that the last placement left to the next one, "+
			"because there were more rules between pods than one takes on.").WithLabelValues(),
		cut: mk.Counter("tenon_placement_cut_total", "Placements whose search for cheap nodes was brought to "+
			"an end by its budget of steps.").WithLabelValues(),
		commands: mk.Counter("tenon_commands_total", "Commands carried out, by kind and result.",
			"command", "result"),
	}
	m.Breakdowns = newFailureMetrics(mk)
	m.addClaims(mk)
	m.addNodes(mk)
	m.addPods(mk)
	m.addDisruption(mk)
	return m
}

func (m *Metrics) addClaims(mk series.Maker) {
	m.claimsCreated = mk.Counter("karpenter_nodeclaims_created_total", "NodeClaims created.", "reason", "nodepool",
		"min_values_relaxed")
	m.claimsTerminated = mk.Counter("karpenter_nodeclaims_terminated_total", "NodeClaims that are gone.", "nodepool",
		"capacity_type", "zone")
	m.claimsDisrupted = mk.Counter("karpenter_nodeclaims_disrupted_total", "NodeClaims that were deleted for a "+
		"reason of ours.", disruptedLabels()...)
	m.claimsUnhealthy = mk.Counter("karpenter_nodeclaims_unhealthy_disrupted_total", "NodeClaims that were deleted "+
		"because their node was beyond repair, by the condition that said so.",
		"condition", "nodepool", "capacity_type", "image_id", "termination_mode")
	m.claimEnd = mk.Histogram("karpenter_nodeclaims_termination_duration_seconds", "Time from the deletion of a "+
		"NodeClaim until it was gone.", prometheus.ExponentialBuckets(1, 2, 12), "nodepool")
	m.instanceEnd = mk.Histogram("karpenter_nodeclaims_instance_termination_duration_seconds", "Time that the cloud "+
		"took to end an instance.", prometheus.ExponentialBuckets(1, 2, 11), "nodepool")
}

func (m *Metrics) addNodes(mk series.Maker) {
	m.nodesCreated = mk.Counter("karpenter_nodes_created_total", "Nodes that joined.", "nodepool", "zone")
	m.nodesTerminated = mk.Counter("karpenter_nodes_terminated_total", "Nodes that are gone.", "nodepool", "zone")
	m.nodesDrained = mk.Counter("karpenter_nodes_drained_total", "Nodes that all pods have left before their end.",
		"nodepool")
	m.nodeEnd = mk.Summary("karpenter_nodes_termination_duration_seconds", "Time from the deletion of a Node until "+
		"it was gone.", "nodepool")
	m.nodeLifetime = mk.Histogram("karpenter_nodes_lifetime_duration_seconds", "Age that Nodes reached.", lifetimes(),
		"nodepool")
}

func (m *Metrics) addPods(mk series.Maker) {
	m.evictions = mk.Counter("karpenter_pods_eviction_requests_total", "Evictions asked for, by the status of the "+
		"API server's answer.", "code")
	m.podsDrained = mk.Counter("karpenter_pods_drained_total", "Pods that were made to leave a node, by the reason "+
		"for its end.", "reason")
	m.podsDisrupted = mk.Counter("karpenter_pods_disruption_initiated_total", "Pods that need another place because "+
		"their NodeClaim was deleted for a reason of ours.", disruptedLabels()...)
}

func (m *Metrics) addDisruption(mk series.Maker) {
	kinds := []string{"decision", "reason", "consolidation_type"}
	m.decisions = mk.Counter("karpenter_voluntary_disruption_decisions_total", "Nodes that it was decided to disrupt.",
		kinds...)
	m.decisionsByPool = mk.Counter("karpenter_voluntary_disruption_decisions_by_nodepool_total",
		"Nodes of a NodePool that it was decided to disrupt.", append([]string{"nodepool"}, kinds...)...)
	m.DecisionsFailed = mk.Counter("karpenter_voluntary_disruption_queue_failures_total", "Tries to carry out such a "+
		"decision that failed.", kinds...)
	m.invalid = mk.Counter("karpenter_voluntary_disruption_failed_validations_total", "Nodes that were fenced and "+
		"opened again, because they were needed after all.", "consolidation_type")
	m.evaluation = mk.Histogram("karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
		"Time to look for nodes to disrupt.", series.Durations(), "reason", "consolidation_type")
	timeouts := mk.Counter("karpenter_voluntary_disruption_consolidation_timeouts_total", "Searches that were cut "+
		"short by their budget of steps.", "consolidation_type")
	for _, kind := range []string{"single", "multi"} {
		m.searchCut = timeouts.WithLabelValues(kind) // the last: a search looks at many nodes at once
	}
	balance := []string{"decision", "nodepool", "policy"}
	m.considered = mk.Counter("karpenter_consolidation_moves_total", "Moves that searches have found, or have "+
		"rejected because the policy Balanced forbids them.", balance...)
	m.score = mk.Histogram("karpenter_consolidation_score", "Score of moves of NodePools with the policy Balanced.",
		[]float64{0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10}, balance...)
	m.Moves = mk.Counter("tenon_disruption_moves_total", "Disruptions by reason and by what became of them.", "reason",
		"step", "why")
	m.saved = mk.Counter("tenon_consolidation_saving_per_hour_total", "What consolidation has made the cluster "+
		"cheaper, in dollars per hour, summed up over all nodes that have gone.", "nodepool", "reason")
	m.savingEvictions = mk.Counter("tenon_consolidation_evictions_total", "Pods that were evicted to save money.",
		"nodepool")
	m.searching = mk.Histogram("tenon_consolidation_search_duration_seconds", "Time to look at every node for a "+
		"cheaper way to run its pods.", prometheus.ExponentialBuckets(0.001, 2, 16)).WithLabelValues()
}

func disruptedLabels() []string {
	return []string{"reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"}
}

// AddBuild shows what was built, by whom and for what.
func AddBuild(mk series.Maker, version, commit string) {
	mk.Gauge("karpenter_build_info", "Always 1; its labels say what this program was built from.", "version",
		"goversion", "goarch", "commit").
		WithLabelValues(version, runtime.Version(), runtime.GOARCH, commit).Set(1)
}

// Planned measures a plan.
func (m *Metrics) Planned(s *cluster.Snapshot, p *plan.Plan, took time.Duration) {
	m.planning.Observe(took.Seconds())
	if p.OrphansChecked { // otherwise they are as they were
		m.orphans.Set(float64(p.Orphans.Orphans))
		m.HeldOrphans.Set(float64(p.Orphans.Held))
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
