package cluster

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/require"
)

// drawGuard is a budget with a selector of any kind.
func drawGuard(r *rand.Rand, i int) *PDB {
	pdb := &PDB{Namespace: fmt.Sprint("ns", r.Intn(2)), Name: fmt.Sprintf("g%03d", i), DesiredHealthy: r.Intn(3),
		Expected: r.Intn(3), Allowed: r.Intn(2)}
	pdb.Selector.Namespaces = []string{pdb.Namespace}
	for range r.Intn(3) {
		key := fmt.Sprint("k", r.Intn(4))
		values := make([]string, 1+r.Intn(3))
		for n := range values {
			values[n] = fmt.Sprint("v", r.Intn(4))
		}
		if r.Intn(10) == 0 {
			for n := range mostLabelValues + 1 {
				values = append(values, fmt.Sprint("more", n))
			}
		}
		demand := valuesOf(require.In, values...)
		switch r.Intn(4) {
		case 0:
			demand = valuesOf(require.NotIn, values...)
		case 1:
			demand = valuesOf(require.Exists)
		case 2:
			demand = valuesOf(require.DoesNotExist)
		}
		pdb.Selector.Labels = pdb.Selector.Labels.With(key, demand)
	}
	return pdb
}

// The budgets of a pod are found among those that can be about it: they are the same, in the same order, as if it were
// compared with all.
func TestGuardsOfAPodAreAllThatSelectIt(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	found := 0
	for range 2000 {
		s := &Snapshot{}
		for i := range r.Intn(12) {
			s.PDBs = append(s.PDBs, drawGuard(r, i))
		}
		s.Seal()
		labels := map[string]string{}
		for range r.Intn(4) {
			labels[fmt.Sprint("k", r.Intn(4))] = fmt.Sprint("v", r.Intn(4))
		}
		p := &Pod{Namespace: fmt.Sprint("ns", r.Intn(2)), Labels: LabelsOf(labels)}
		var want []*PDB
		for _, pdb := range s.PDBs {
			if pdb.Selects(p) {
				want = append(want, pdb)
			}
		}
		if got := s.PDBsOf(p); !slices.Equal(got, want) {
			t.Fatalf("pod %s %v is counted by %d budgets, want %d", p.Namespace, labels, len(got), len(want))
		}
		if got, want := s.isHeldByPDB(p), slices.ContainsFunc(want, (*PDB).HoldsPods); got != want {
			t.Fatalf("pod %s %v is held: %v, want %v", p.Namespace, labels, got, want)
		}
		found += len(want)
	}
	if found < 1000 {
		t.Errorf("only %d budgets counted a pod", found)
	}
}

// A budget that wants all the pods that there should be holds them, unless there are more just now: then some may go,
// and need other places.
func TestWhichPodsAreHeld(t *testing.T) {
	for _, c := range []struct {
		wanted, expected, allowed int
		never, holds              bool
	}{
		{2, 2, 0, true, true}, {3, 2, 0, true, true}, {2, 2, 1, true, false}, {2, 3, 1, false, false},
		{2, 3, 0, false, false}, {0, 0, 0, false, false},
	} {
		pdb := &PDB{Namespace: "ns", DesiredHealthy: c.wanted, Expected: c.expected, Allowed: c.allowed}
		pdb.Selector.Namespaces = []string{"ns"}
		s := &Snapshot{PDBs: []*PDB{pdb}}
		s.Seal()
		p := &Pod{Namespace: "ns", Owner: "web", Node: "n", Class: &PodClass{}}
		if pdb.NeverAllows() != c.never || pdb.HoldsPods() != c.holds || s.NeedsNewPlace(p) == c.holds {
			t.Errorf("%+v: never %v, holds %v, its pods move %v", c, pdb.NeverAllows(), pdb.HoldsPods(),
				s.NeedsNewPlace(p))
		}
	}
}

// With thousands of budgets each pod is compared with those of its label only.
func TestFewGuardsAreCandidates(t *testing.T) {
	s := &Snapshot{}
	for i := range 2000 {
		pdb := &PDB{Namespace: "ns", Name: fmt.Sprint(i)}
		pdb.Selector.Namespaces = []string{"ns"}
		pdb.Selector.Labels = pdb.Selector.Labels.With("app", valuesOf(require.In, fmt.Sprint(i)))
		s.PDBs = append(s.PDBs, pdb)
	}
	s.Seal()
	for i := range 2000 {
		if n := len(s.lookups.pdbs["ns"].candidates(LabelsOf(map[string]string{"app": fmt.Sprint(i),
			"tier": "web"}))); n != 1 {
			t.Fatalf("pod %d is compared with %d budgets", i, n)
		}
	}
}

func valuesOf(op require.Operator, values ...string) require.Values {
	v, _ := require.Make(op, values)
	return v
}
