package ours

import (
	"reflect"
	"testing"

	"github.com/tenon-sh/tenon/bench/internal/contest"
	"github.com/tenon-sh/tenon/bench/internal/outcome"
	"github.com/tenon-sh/tenon/bench/internal/workload"
)

func solve(t *testing.T, name string) (*workload.Workload, outcome.Outcome) {
	t.Helper()
	k, err := workload.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := k.Make()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Solver{}.Prepare(w, contest.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Solve(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Core() <= 0 {
		t.Error("the placement took no time")
	}
	return w, r.Outcome()
}

func TestPlacementIsValid(t *testing.T) {
	for _, name := range []string{"diverse-100", "cpu-heavy", "gpu-mix", "limits-bound"} {
		w, o := solve(t, name)
		a := outcome.Audit(w, &o, false)
		if !a.Valid() || a.Nodes == 0 || a.Cost <= 0 {
			t.Errorf("%s: %d nodes for $%.2f: %v", name, a.Nodes, a.Cost, a.Problems)
		}
		if fits := name != "limits-bound"; fits && a.Unplaced > 0 || !fits && (a.Unplaced < len(w.Pods)/4 ||
			a.Unplaced > 3*len(w.Pods)/4) {
			t.Errorf("%s: %d of %d pods are unplaced", name, a.Unplaced, len(w.Pods))
		}
	}
}

func TestSameWorkSameAnswer(t *testing.T) {
	_, first := solve(t, "diverse-100")
	_, second := solve(t, "diverse-100")
	if !reflect.DeepEqual(first, second) {
		t.Error("the same workload was answered in two ways")
	}
}
