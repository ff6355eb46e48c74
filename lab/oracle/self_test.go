package oracle

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The oracle must notice when a placement is wrong: each of these answers is, or is right, on purpose.

// smallWorld has one node with room for one of its two pods, and a pool that could make more.
func smallWorld() *world {
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: name},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: amount("1500m")}}}}},
		}
	}
	one, two := pod("one"), pod("two")
	one.UID, two.UID = "1", "2"
	room := corev1.ResourceList{corev1.ResourceCPU: amount("2"), corev1.ResourceMemory: amount("4Gi"),
		corev1.ResourcePods: amount("10")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelHostname: "n1",
			corev1.LabelTopologyZone: "z1"}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
	pool := &nodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool-1"}}
	pool.Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: amount("2")}
	return &world{
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "blue"}}},
		Nodes:      []*corev1.Node{node}, Pods: []*corev1.Pod{one, two}, Pools: []*nodePool{pool},
		Types: []*instanceType{{Name: "m2", Capacity: room, Offerings: []typeOffering{{
			Labels: map[string]string{corev1.LabelTopologyZone: "z1", capacityTypeLabel: "spot"}, Price: 1,
			Available: true}}}},
	}
}

func newBin(pods ...string) bin {
	return bin{Pool: "pool-1", Pods: pods, Labels: map[string]string{},
		Offerings: []offering{{Type: "m2", Labels: map[string]string{corev1.LabelTopologyZone: "z1"}}}}
}

func TestOracleNoticesWrongPlacements(t *testing.T) {
	profile, err := profile()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		p     placement
		kinds string
	}{
		"right": {placement{Assigned: map[string]string{"blue/one": "n1"},
			Bins: []bin{newBin("blue/two")}}, ""},
		"two on a full node": {placement{Assigned: map[string]string{"blue/one": "n1", "blue/two": "n1"}}, refused},
		"two on a new node": {placement{Assigned: map[string]string{}, Bins: []bin{newBin("blue/one", "blue/two")}},
			accepted},
		"an empty node": {placement{Assigned: map[string]string{}, Unplaced: map[string]string{"blue/one": "",
			"blue/two": ""}}, accepted},
		"one more would do": {placement{Assigned: map[string]string{"blue/one": "n1"},
			Unplaced: map[string]string{"blue/two": ""}}, missed},
		"a pod without answer": {placement{Assigned: map[string]string{"blue/one": "n1"}}, broken},
		"two answers": {placement{Assigned: map[string]string{"blue/one": "n1", "blue/two": "n1"},
			Bins: []bin{newBin("blue/two")}}, broken},
		"a node that is not": {placement{Assigned: map[string]string{"blue/one": "n9"},
			Bins: []bin{newBin("blue/two")}}, broken},
		"beyond the limit": {placement{Assigned: map[string]string{}, Bins: []bin{newBin("blue/one"),
			newBin("blue/two")}}, overshot},
		"a node nobody can buy": {placement{Assigned: map[string]string{"blue/one": "n1"},
			Bins: []bin{{Pool: "pool-1", Pods: []string{"blue/two"}}}}, broken},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			c := cases[name]
			found, err := (&replay{profile: profile, w: smallWorld(), p: &c.p, seed: 1}).run()
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, d := range found {
				kinds = append(kinds, d.kind)
			}
			slices.Sort(kinds)
			if got := strings.Join(slices.Compact(kinds), " "); got != c.kinds {
				t.Errorf("found %q, want %q: %v", got, c.kinds, found)
			}
		})
	}
}

func TestOracleNoticesPodsThatDontFitTheirNewNode(t *testing.T) {
	profile, err := profile()
	if err != nil {
		t.Fatal(err)
	}
	w := smallWorld()
	w.Nodes = nil
	p := &placement{Bins: []bin{newBin("blue/one", "blue/two")}}
	found, err := (&replay{profile: profile, w: w, p: p, seed: 1}).run()
	if err != nil || len(found) == 0 || found[0].kind != unfit || !strings.Contains(found[0].text, "NodeResourcesFit") {
		t.Errorf("two pods on a new node with room for one: %v, %v", found, err)
	}
}

func TestSameSeedSameCluster(t *testing.T) {
	profile, err := profile()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range 20 {
		a, errA := generate(profile, seed)
		b, errB := generate(profile, seed)
		if errA != nil || errB != nil || a.text() != b.text() {
			t.Fatalf("seed %d gives two clusters (%v, %v)", seed, errA, errB)
		}
	}
}

func TestShrinkKeepsOnlyWhatFails(t *testing.T) {
	profile, err := profile()
	if err != nil {
		t.Fatal(err)
	}
	w, err := generate(profile, 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.pending()) == 0 {
		t.Fatal("the cluster has no waiting pod")
	}
	keep := w.pending()[0].UID
	small := shrink(w, func(w *world) bool {
		return slices.ContainsFunc(w.Pods, func(p *corev1.Pod) bool { return p.UID == keep })
	})
	if len(small.Pods) != 1 || len(small.Nodes)+len(small.Pools)+len(small.Types)+len(small.DaemonSets)+
		len(small.Volumes) > 0 {
		t.Errorf("more than the one pod is left:\n%s", small.text())
	}
}
