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
		holds := func(b *PDB) bool { return b.NeverAllows() && b.Allowed <= 0 }
		if got, want := s.isHeldByPDB(p), slices.ContainsFunc(want, holds); got != want {
			t.Fatalf("pod %s %v is held: %v, want %v", p.Namespace, labels, got, want)
		}
		found += len(want)
	}
	if found < 1000 {
		t.Errorf("only %d budgets counted a pod", found)
	}
}

// A budget that wants all the pods that there should be holds them, unless there are more just now: then so many may
// go, and need other places.
func TestWhichPodsAreHeld(t *testing.T) {
	for _, c := range []struct {
		wanted, expected, allowed int
		never                     bool
		move                      string // those of the three pods of each node that need another place
	}{
		{2, 2, 0, true, ""}, {3, 2, 0, true, ""}, {2, 2, -1, true, ""},
		{2, 2, 1, true, "bx"}, {2, 2, 2, true, "bdxy"}, {2, 2, 3, true, "bdexyz"}, {2, 3, 1, false, "bdexyz"},
		{2, 3, 0, false, "bdexyz"}, {0, 0, 0, false, "bdexyz"},
	} {
		pdb := &PDB{Namespace: "ns", DesiredHealthy: c.wanted, Expected: c.expected, Allowed: c.allowed}
		pdb.Selector.Namespaces = []string{"ns"}
		pdb.Selector.Labels = pdb.Selector.Labels.With("app", require.Only("web"))
		web, other := LabelsOf(map[string]string{"app": "web"}), LabelsOf(map[string]string{"app": "other"})
		pod := func(uid, node string, labels Labels) *Pod {
			return &Pod{UID: uid, Namespace: "ns", Owner: "web", Node: node, Labels: labels, Class: &PodClass{}}
		}
		stays, stuck, free := pod("c", "n", web), pod("a", "n", web), pod("a2", "n", other)
		stays.StaysThroughDrain, stuck.DoNotDisrupt = true, true
		s := &Snapshot{PDBs: []*PDB{pdb}, Pods: []*Pod{stuck, free, pod("b", "n", web), stays,
			pod("d", "n", web), pod("e", "n", web), pod("x", "m", web), pod("y", "m", web), pod("z", "m", web)}}
		s.Seal()
		move := ""
		for _, p := range s.Pods {
			if s.NeedsNewPlace(p) && p != stays && p != free {
				move += p.UID
			}
		}
		others := s.NeedsNewPlace(stays) && s.NeedsNewPlace(free) && !s.NeedsNewPlace(stuck)
		if pdb.NeverAllows() != c.never || move != c.move || !others {
			t.Errorf("%+v: never %v, those that move are %q", c, pdb.NeverAllows(), move)
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
