package outcome

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/internal/workload"
	"github.com/tenon-sh/tenon/cloudprovider"
)

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse(memory)}
}

// world is a workload with two types, two zones, a node and four pods of a core each, a to d, of one app.
func world(rules func(*corev1.PodSpec)) *workload.Workload {
	w := &workload.Workload{Name: "test", Pools: []*v1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}}
	for i, name := range []string{"small", "large"} {
		t := &cloudprovider.InstanceType{Name: name, Labels: map[string][]string{corev1.LabelArchStable: {"amd64"}},
			Capacity: list(fmt.Sprint(2<<i), "8Gi")}
		t.Capacity[corev1.ResourcePods] = resource.MustParse("3")
		for z, zone := range []string{"z1", "z2"} {
			t.Offerings = append(t.Offerings, cloudprovider.Offering{Price: float64(1+i) + float64(z)/10,
				Available: true,
				Labels:    map[string]string{corev1.LabelTopologyZone: zone, v1.CapacityTypeLabelKey: "spot"}})
		}
		w.Types = append(w.Types, t)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n",
		corev1.LabelTopologyZone: "z1"}}}
	node.Status.Allocatable = list("2", "8Gi")
	node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("9")
	w.Nodes = append(w.Nodes, node)
	for _, name := range []string{"a", "b", "c", "d"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Labels: map[string]string{"app": "x"}}}
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("1", "1Gi")}}}
		if rules != nil {
			rules(&p.Spec)
		}
		w.Pods = append(w.Pods, p)
	}
	return w
}

func node(kind, zones, pods string) Node {
	return Node{Pool: "default", Types: []string{kind}, Zones: strings.Fields(zones), Terms: []string{"spot"},
		Pods: strings.Fields(pods)}
}

func TestBill(t *testing.T) {
	n := node("small", "z2", "a b")
	n.Types = []string{"large", "small"}
	a := Audit(world(nil), &Outcome{New: []Node{n, node("small", "z1 z2", "c")},
		Hosts: map[string][]string{"n": {"d"}}}, false)
	if !a.Valid() || a.Nodes != 2 || a.Placed != 4 || a.Unplaced != 0 || a.PlacedMilli != 4000 ||
		math.Abs(a.Cost-2.1) > 1e-9 {
		t.Errorf("got %+v", a)
	}
}

func TestCutOffIsNoExcuseForWrongPlaces(t *testing.T) {
	o := Outcome{New: []Node{node("small", "z1", "a b")}}
	if a := Audit(world(nil), &o, true); !a.Valid() || a.Unplaced != 2 {
		t.Errorf("cut off after two pods: %+v", a)
	}
	if a := Audit(world(nil), &o, false); a.Valid() {
		t.Error("two pods were forgotten and nobody noticed")
	}
}

func apply(edits ...func(*corev1.PodSpec)) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		for _, edit := range edits {
			edit(s)
		}
	}
}

func spread(key string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector()}}
	}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
}

func terms(key string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: selector()}}
}

func together(s *corev1.PodSpec) {
	s.Affinity = &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: terms(corev1.LabelTopologyZone),
		},
	}
}

func apart(s *corev1.PodSpec) {
	s.Affinity = &corev1.Affinity{
		PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: terms(corev1.LabelHostname),
		},
	}
}

func TestBrokenAnswersAreFound(t *testing.T) {
	selects := func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"} }
	zone, host := spread(corev1.LabelTopologyZone), spread(corev1.LabelHostname)
	good := []Node{node("large", "z1", "a b"), node("large", "z2", "c d")}
	ones := []Node{node("small", "z1", "a"), node("small", "z1", "b"), node("small", "z1", "c"),
		node("small", "z1", "d")}
	cases := []struct {
		name  string
		rules func(*corev1.PodSpec)
		nodes []Node
		hosts map[string][]string
		limit string
		taint bool
		want  string // empty if all is well
	}{
		{name: "all is well", nodes: good},
		{name: "too many pods", nodes: []Node{node("large", "z1", "a b c d")}, want: "too much for a large: pods"},
		{name: "too much for one of the types", nodes: []Node{{Pool: "default", Types: []string{"large", "small"},
			Zones: []string{"z1"}, Terms: []string{"spot"}, Pods: []string{"a", "b", "c"}}, node("small", "z1", "d")},
			want: "too much for a small: cpu"},
		{name: "host is full", nodes: []Node{node("small", "z1", "d")},
			hosts: map[string][]string{"n": {"a", "b", "c"}}, want: "n has not enough cpu"},
		{name: "no such host", nodes: good[:1], hosts: map[string][]string{"m": {"c", "d"}}, want: "which is no node"},
		{name: "twice", nodes: append(slices.Clone(good), node("small", "z1", "a")), want: "a is answered for 2 times"},
		{name: "stranger", nodes: append(slices.Clone(good), node("small", "z1", "e")), want: "is no pending pod"},
		{name: "no such type", nodes: append(slices.Clone(good), node("huge", "z1", "")),
			want: `there is no type "huge"`},
		{name: "not sold there", nodes: append(slices.Clone(good), node("small", "z3", "")), want: "can't be bought"},
		{name: "wrong architecture", rules: selects, nodes: good, want: "selects kubernetes.io/arch=arm64"},
		{name: "taint", taint: true, nodes: good, want: "does not tolerate team"},
		{name: "limit", limit: "7", nodes: good, want: "its limit is 7"},
		{name: "limit kept", limit: "8", nodes: good},
		{name: "zone spread", rules: zone, nodes: good},
		{name: "zone spread is uneven", rules: zone, nodes: []Node{node("large", "z1", "a b c"),
			node("small", "z2", "d")}, want: "spread of app=x: 3 in z1 and 1 in the emptiest"},
		{name: "zone is open", rules: zone, nodes: []Node{node("large", "z1 z2", "a b"), node("large", "z2", "c d")},
			want: "zone is open"},
		{name: "host spread leaves the node that is there empty", rules: host, nodes: good, want: "2 in new-"},
		{name: "host spread", rules: host, nodes: ones},
		{name: "together", rules: together, nodes: []Node{node("large", "z2", "a b"), node("large", "z2", "c d")}},
		{name: "not together", rules: together, nodes: good, want: "affinity of app=x: pods came to 2 domains"},
		{name: "apart", rules: apart, nodes: ones},
		{name: "not apart", rules: apart, nodes: good, want: "anti-affinity of app=x: 2 in"},
		{name: "both rules", rules: apply(zone, apart), nodes: ones, want: ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := world(c.rules)
			if c.limit != "" {
				w.Pools[0].Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(c.limit)}
			}
			if c.taint {
				w.Pools[0].Spec.Template.Spec.Taints = []v1.Taint{{Key: "team", Value: "y",
					Effect: corev1.TaintEffectNoSchedule}}
			}
			a := Audit(w, &Outcome{New: c.nodes, Hosts: c.hosts}, false)
			found := slices.ContainsFunc(a.Problems, func(p string) bool {
				return c.want != "" && strings.Contains(p, c.want)
			})
			if c.want == "" && !a.Valid() || c.want != "" && !found {
				t.Errorf("got %q, want %q", a.Problems, c.want)
			}
		})
	}
}

func TestAffinityFollowsPodsThatRun(t *testing.T) {
	w := world(together)
	running := w.Pods[0].DeepCopy()
	running.UID, running.Name, running.Spec.NodeName = "r", "r", "n"
	w.Running = []*corev1.Pod{running}
	if a := Audit(w, &Outcome{New: []Node{node("large", "z1", "a b"), node("large", "z1", "c d")}}, false); !a.Valid() {
		t.Errorf("pods joined their kind: %v", a.Problems)
	}
	if a := Audit(w, &Outcome{New: []Node{node("large", "z2", "a b"), node("large", "z2", "c d")}}, false); a.Valid() {
		t.Error("pods are together where none of their kind was, and nobody noticed")
	}
}
