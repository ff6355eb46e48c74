package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
)

// failureMetrics counts what should never happen.
type failureMetrics struct {
	panics, faults *prometheus.CounterVec
	left           *prometheus.GaugeVec
}

func newFailureMetrics(mk maker) failureMetrics {
	out := failureMetrics{
		panics: mk.counter("tenon_planner_panics_total",
			"Failures that were contained, by the step that failed. Each is a mistake in Tenon or, for cloud, in the "+
				"provider.", "step"),
		faults: mk.counter("tenon_planner_faults_total",
			"Invariants of placements that were found violated. Each is a mistake in Tenon.", "invariant"),
		left: mk.gauge("tenon_planner_quarantined",
			"What plans leave out because the planner has failed on it, by kind: pod classes, claims, parts; "+
				"what only searches leave out.", "kind"),
	}
	// Prometheus sees no increase from a series that begins with 1.
	for _, step := range plan.Steps() {
		out.panics.WithLabelValues(step)
	}
	return out
}

// leftOut shows what a snapshot leaves out.
func (b *failureMetrics) leftOut(q *cluster.Quarantine) {
	b.left.WithLabelValues("class").Set(float64(len(q.Classes)))
	b.left.WithLabelValues("claim").Set(float64(len(q.Claims)))
	b.left.WithLabelValues("search-class").Set(float64(len(q.SearchClasses)))
	b.left.WithLabelValues("search-claim").Set(float64(len(q.SearchClaims)))
	b.left.WithLabelValues("part").Set(float64(len(q.Parts)))
}
