package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
	"github.com/tenon-sh/tenon/internal/whatif"
)

// settled is a cluster that diverse pods were placed on, of which a part is gone again.
func settled(r *rand.Rand, catalog *cluster.Catalog, n int) (*cluster.Snapshot, []whatif.RemovableNode) {
	pool := &cluster.Pool{Name: "pool", NodeClass: cluster.NodeClassState{Ready: true}, Catalog: catalog}
	s := &cluster.Snapshot{Names: &resource.Names{}, Pods: diversePods(n), Pools: []*cluster.Pool{pool}}
	placed := schedule.Place(s.Seal().SchedulerView(), schedule.Settings{})
	out := &cluster.Snapshot{Names: s.Names, Pools: s.Pools}
	var departures []whatif.RemovableNode
	for i := range placed.Bins {
		b, name := &placed.Bins[i], fmt.Sprintf("node-%03d", i)
		kind, _ := catalog.Type(b.Types[0])
		zones, _ := b.Requirements.Get(cluster.ZoneLabel)
		zone, _ := zones.Pick()
		out.Nodes = append(out.Nodes, &cluster.Node{Name: name, Ready: true, Allocatable: kind.Allocatable,
			Labels: cluster.LabelsOf(map[string]string{cluster.ZoneLabel: zone, cluster.HostnameLabel: name})})
		d := whatif.RemovableNode{Host: name}
		for _, p := range b.Pods {
			if q := *p; r.IntN(2) == 0 {
				q.Unschedulable, q.Node, q.Owner = false, name, "owner"
				d.Pods = append(d.Pods, &q)
			}
		}
		out.Pods, departures = append(out.Pods, d.Pods...), append(departures, d)
	}
	return out.Seal(), departures
}

// play tries what happens if a departure goes: what its pods without room are worth, and what new nodes cost.
func play(w *whatif.WhatIf, i int) string {
	whole := w.Remove(i)
	out := fmt.Sprint(whole, w.WorthWithoutRoom())
	if !whole {
		bins, ok := w.Buy(true)
		for _, b := range bins {
			out += fmt.Sprint(" ", ok, b.Types, b.Price, b.Seats)
		}
	}
	return out
}

// What was tried and undone leaves no trace.
func TestStageForgetsWhatIsUndone(t *testing.T) {
	catalog := largeCatalog()
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 3))
		s, departures := settled(r, catalog, 300)
		fresh := func() *whatif.WhatIf {
			w := whatif.New(s.SchedulerView(), schedule.Settings{}, departures, func(*cluster.Host) bool {
				return true
			})
			order := make([]int, len(departures))
			for i := range order {
				order[i] = i
			}
			w.SetOrder(order)
			return w
		}
		used := fresh()
		for _, i := range r.Perm(len(departures)) {
			play(used, i)
			used.Undo()
		}
		for range 8 {
			i := r.IntN(len(departures))
			got, want := play(used, i), play(fresh(), i)
			if got != want {
				t.Fatalf("seed %d: %s after many others:\n%s\nat first:\n%s", seed, departures[i].Host, got, want)
			}
			used.Undo()
		}
	}
}

func guests(w *whatif.WhatIf, i int) (n int) {
	for range w.PodsFromOthers(i) {
		n++
	}
	return n
}

// Departures that are kept one after the other leave every pod on one node, and no node with more than it holds.
func TestStageKeepsCount(t *testing.T) {
	s, departures := settled(rand.New(rand.NewPCG(1, 4)), largeCatalog(), 400)
	w := whatif.New(s.SchedulerView(), schedule.Settings{}, departures, func(*cluster.Host) bool {
		return true
	})
	order := make([]int, len(departures))
	for i := range order {
		order[i] = i
	}
	w.SetOrder(order)
	load, gone := make(map[string]resource.Vector), make(map[string]bool)
	for _, p := range s.Pods {
		load[p.Node] = load[p.Node].Add(p.Class.Requests)
	}
	left := 0
	for i := range departures {
		if guests(w, i) > 0 || !w.RemoveFully(i) {
			w.Undo()
			continue
		}
		moved := w.Commit()
		if len(moved) != len(departures[i].Pods) {
			t.Errorf("%s has %d pods and %d of them get a place", departures[i].Host, len(departures[i].Pods),
				len(moved))
		}
		gone[departures[i].Host] = true
		left++
		for _, a := range moved {
			load[a.Host] = load[a.Host].Add(a.Pod.Class.Requests)
			if !slices.Contains(departures[i].Pods, a.Pod) || gone[a.Host] {
				t.Errorf("%s goes to %s", a.Pod.Name, a.Host)
			}
		}
	}
	for _, n := range s.Nodes {
		if !gone[n.Name] && !load[n.Name].Fits(n.Allocatable) {
			t.Errorf("%s holds %v and has %v", n.Name, load[n.Name], n.Allocatable)
		}
	}
	if left == 0 {
		t.Error("nobody could leave a cluster of which half the pods are gone")
	}
}
