package workload

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func makeKind(t *testing.T, k Kind) *Workload {
	t.Helper()
	w, err := k.Make()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSameEachTime(t *testing.T) {
	for _, k := range Kinds() {
		if k.Pods > 5000 {
			continue
		}
		if a, b := makeKind(t, k), makeKind(t, k); !reflect.DeepEqual(a, b) {
			t.Errorf("%s differs from one making to the next", k.Name)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, k := range Kinds() {
		w := makeKind(t, k)
		want := 1309
		if k.few {
			want = fewTypes
		}
		if len(w.Pods) != k.Pods || len(w.Types) != want {
			t.Errorf("%s: %d pods and %d types; want %d and %d", k.Name, len(w.Pods), len(w.Types), k.Pods, want)
		}
		seen := make(map[string]bool)
		for _, p := range slices.Concat(w.Pods, w.Running) {
			if seen[string(p.UID)] {
				t.Fatalf("%s has %s twice", k.Name, p.UID)
			}
			seen[string(p.UID)] = true
		}
	}
}

func TestDiverseIsAFifthOfEach(t *testing.T) {
	k, err := Find("diverse-1000")
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for _, p := range makeKind(t, k).Pods {
		s := &p.Spec
		switch {
		case len(s.TopologySpreadConstraints) > 0:
			count["spread "+s.TopologySpreadConstraints[0].TopologyKey]++
		case s.Affinity != nil && s.Affinity.PodAffinity != nil:
			count["together"]++
		case s.Affinity != nil && s.Affinity.PodAntiAffinity != nil:
			count["apart"]++
		default:
			count["plain"]++
		}
	}
	want := map[string]int{"spread " + corev1.LabelTopologyZone: 200, "spread " + corev1.LabelHostname: 200,
		"together": 200, "apart": 200, "plain": 200}
	if !reflect.DeepEqual(count, want) {
		t.Errorf("got %v, want %v", count, want)
	}
}

func TestFleetHasHundredsOfDeploymentsOfUnequalSize(t *testing.T) {
	k, err := Find("fleet-20000")
	if err != nil {
		t.Fatal(err)
	}
	replicas := make(map[string]int)
	for _, p := range makeKind(t, k).Pods {
		replicas[p.Labels[appLabel]]++
	}
	sizes := slices.Sorted(func(yield func(int) bool) {
		for _, n := range replicas {
			if !yield(n) {
				return
			}
		}
	})
	median, largest := sizes[len(sizes)/2], sizes[len(sizes)-1]
	if len(sizes) < 200 || largest < 100*median || largest > 2000 {
		t.Errorf("%d deployments, the middle one with %d pods and the largest with %d", len(sizes), median, largest)
	}
}

func TestExistingClusterIsFullButNotBeyond(t *testing.T) {
	k, err := Find("existing-2000")
	if err != nil {
		t.Fatal(err)
	}
	w := makeKind(t, k)
	if len(w.Nodes) != 2000 || len(w.Running) != 40000 {
		t.Fatalf("%d nodes and %d running pods", len(w.Nodes), len(w.Running))
	}
	used := make(map[string]int64)
	for _, p := range w.Running {
		used[p.Spec.NodeName] += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	var free, wanted int64
	for _, n := range w.Nodes {
		left := n.Status.Allocatable.Cpu().MilliValue() - used[n.Name]
		if left < 0 {
			t.Fatalf("%s runs more than it can", n.Name)
		}
		free += left
	}
	for _, p := range w.Pods {
		wanted += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	if free < wanted/5 || free > wanted {
		t.Errorf("%d thousandths of cores are free and %d are wanted: some pods should find room and some not",
			free, wanted)
	}
}

func TestSelect(t *testing.T) {
	kinds, err := Select("^fleet-2")
	if err != nil || len(kinds) != 2 {
		t.Errorf("got %d kinds, %v", len(kinds), err)
	}
	for _, pattern := range []string{"[", "nothing"} {
		if _, err := Select(pattern); err == nil {
			t.Errorf("%q selects something", pattern)
		}
	}
}
