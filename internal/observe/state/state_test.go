package state

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/require"
)

func TestEffectiveZone(t *testing.T) {
	in := func(zones ...string) require.Set {
		return require.Set{}.With(cluster.ZoneLabel, require.Only(zones...))
	}
	for want, terms := range map[string][]require.Set{
		"z1": {in("z1"), in("z1")}, "flexible": {in("z1"), in("z2")},
		"none": {in("z1").With(cluster.ZoneLabel, require.Only("z2"))},
	} {
		if got := effectiveZone(&cluster.PodClass{Terms: terms}); got != want {
			t.Errorf("%v: %s, want %s", terms, got, want)
		}
	}
	if got := effectiveZone(&cluster.PodClass{Terms: []require.Set{in("z1"), nil}}); got != "flexible" {
		t.Errorf("a pod that may go anywhere: %s", got)
	}
}

// Of pods that are gone nothing is remembered.
func TestPodsAreForgotten(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	starts := NewPodStarts(series.Maker{Registry: prometheus.NewRegistry()}, func() time.Time { return now })
	s := &cluster.Snapshot{Pods: []*cluster.Pod{{UID: "a", Created: now}, {UID: "b", Created: now, Node: "n"}}}
	starts.Observe(s.Seal(), &plan.Plan{})
	if len(starts.waiting) != 1 {
		t.Errorf("%d pods are waited for, want the one without a node", len(starts.waiting))
	}
	starts.Observe((&cluster.Snapshot{}).Seal(), &plan.Plan{})
	if len(starts.waiting) != 0 || len(starts.last) != 0 {
		t.Errorf("%d pods are remembered", len(starts.waiting))
	}
}
