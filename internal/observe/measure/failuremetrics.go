package measure

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/plan"
)

// failureMetrics counts what should never happen.
type failureMetrics struct {
	Panics, Faults *prometheus.CounterVec
	Left           *prometheus.GaugeVec
}

func newFailureMetrics(mk series.Maker) failureMetrics {
	out := failureMetrics{
		Panics: mk.Counter("tenon_planner_panics_total",
			"Failures that were contained, by the step that failed. Each is a mistake in Tenon or, for cloud, in the "+
				"provider.", "step"),
		Faults: mk.Counter("tenon_planner_faults_total",
			"Invariants of placements that were found violated. Each is a mistake in Tenon.", "invariant"),
		Left: mk.Gauge("tenon_planner_quarantined",
			"What plans leave out because the planner has failed on it, by kind: pod classes, claims, parts; "+
				"what only searches leave out.", "kind"),
	}
	// Prometheus sees no increase from a series that begins with 1.
	for _, step := range plan.Steps() {
		out.Panics.WithLabelValues(step)
	}
	return out
}

// LeftOut shows what a snapshot leaves out.
func (b *failureMetrics) LeftOut(q *cluster.Quarantine) {
	b.Left.WithLabelValues("class").Set(float64(len(q.Classes)))
	b.Left.WithLabelValues("claim").Set(float64(len(q.Claims)))
	b.Left.WithLabelValues("search-class").Set(float64(len(q.SearchClasses)))
	b.Left.WithLabelValues("search-claim").Set(float64(len(q.SearchClaims)))
	b.Left.WithLabelValues("part").Set(float64(len(q.Parts)))
}
