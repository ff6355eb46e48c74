package karpenter

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tenon-sh/tenon/bench/internal/contest"
	"github.com/tenon-sh/tenon/bench/internal/outcome"
	"github.com/tenon-sh/tenon/bench/internal/workload"
)

func prepare(t *testing.T, name string, cut func(*workload.Workload)) (*workload.Workload, contest.Run) {
	t.Helper()
	k, err := workload.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := k.Make()
	if err != nil {
		t.Fatal(err)
	}
	if cut != nil {
		cut(w)
	}
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Prepare(w, contest.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return w, r
}

func TestPeerGivesAValidAnswer(t *testing.T) {
	// Zone affinity is left out: the peer may begin a group in two zones at once, by chance.
	w, r := prepare(t, "diverse-100", func(w *workload.Workload) {
		w.Pods = slices.DeleteFunc(w.Pods, func(p *corev1.Pod) bool {
			return p.Spec.Affinity != nil && p.Spec.Affinity.PodAffinity != nil
		})
	})
	if err := r.Solve(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := r.Outcome()
	if a := outcome.Audit(w, &o, false); !a.Valid() || a.Placed != 80 || a.Nodes == 0 || a.Cost <= 0 {
		t.Errorf("got %+v", a)
	}
}

func TestPeerUsesNodesThatAreThere(t *testing.T) {
	w, r := prepare(t, "existing-2000", func(w *workload.Workload) {
		w.Nodes, w.Running, w.Pods = w.Nodes[:40], w.Running[:800], w.Pods[:50]
	})
	if err := r.Solve(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := r.Outcome()
	a := outcome.Audit(w, &o, false)
	if !a.Valid() || len(o.Hosts) == 0 {
		t.Errorf("%d nodes that are there are used: %+v", len(o.Hosts), a)
	}
}

func TestPeerIsCutOff(t *testing.T) {
	w, r := prepare(t, "fleet-2000", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := r.Solve(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	o := r.Outcome()
	if a := outcome.Audit(w, &o, true); !a.Valid() || a.Placed == len(w.Pods) {
		t.Errorf("got %+v", a)
	}
}

func TestSharedObjectsStayAsTheyWere(t *testing.T) {
	w, r := prepare(t, "diverse-100", nil)
	before := make([]*corev1.Pod, len(w.Pods))
	for i, p := range w.Pods {
		before[i] = p.DeepCopy()
	}
	if err := r.Solve(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, p := range w.Pods {
		if !equality.Semantic.DeepEqual(p, before[i]) {
			t.Fatalf("the peer has changed %s", p.Name)
		}
	}
}
