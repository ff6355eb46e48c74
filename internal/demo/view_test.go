package demo

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

func claim(name string, conditions ...string) v1.NodeClaim {
	c := v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{v1.NodePoolLabelKey: "default"}}}
	for _, kind := range conditions {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
	}
	return c
}

func node(name, price string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		v1.NodePoolLabelKey: "default", corev1.LabelInstanceTypeStable: "c7i.large",
		corev1.LabelTopologyZone: "us-west-2a",
		v1.CapacityTypeLabelKey:  "spot", kwokv1alpha1.InstancePriceLabelKey: price,
	}}}
}

func pod(on string, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{Spec: corev1.PodSpec{NodeName: on}, Status: corev1.PodStatus{Phase: phase}}
}

func TestViewJoinsClaimsNodesAndPods(t *testing.T) {
	fenced := node("d", "0.5")
	fenced.Spec.Taints = []corev1.Taint{{Key: v1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	foreign := node("other", "9")
	delete(foreign.Labels, v1.NodePoolLabelKey)
	leavingPod := pod("c", corev1.PodRunning)
	leavingPod.DeletionTimestamp = &metav1.Time{}
	price, err := kwokSky{}.prices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := makeView(
		[]v1.NodeClaim{
			claim("d", v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized),
			claim("c", v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized),
			claim("b", v1.ConditionTypeLaunched, v1.ConditionTypeRegistered),
			claim("a"),
		},
		[]corev1.Node{node("b", "0.25"), node("c", "0.25"), fenced, foreign, node("e", "1")},
		[]corev1.Pod{pod("c", corev1.PodRunning), pod("c", corev1.PodPending), leavingPod, pod("", corev1.PodPending)},
		price,
	)
	want := []row{
		{Name: "a", Status: launching},
		{Name: "b", Type: "c7i.large", Zone: "us-west-2a", Terms: "spot", Price: 0.25, Status: starting},
		{Name: "c", Type: "c7i.large", Zone: "us-west-2a", Terms: "spot", Price: 0.25, Status: ready, Pods: 3},
		{Name: "d", Type: "c7i.large", Zone: "us-west-2a", Terms: "spot", Price: 0.5, Status: leaving},
		{Name: "e", Type: "c7i.large", Zone: "us-west-2a", Terms: "spot", Price: 1, Status: leaving},
	}
	if len(v.Rows) != len(want) {
		t.Fatalf("%d rows, want %d: %+v", len(v.Rows), len(want), v.Rows)
	}
	for i := range want {
		if v.Rows[i] != want[i] {
			t.Errorf("row %d is %+v, want %+v", i, v.Rows[i], want[i])
		}
	}
	if v.Pods != 4 || v.Running != 1 || v.Nodes() != 5 || v.Price() != 2 {
		t.Errorf("%d pods, %d running, %d nodes, $%g", v.Pods, v.Running, v.Nodes(), v.Price())
	}
}

func TestTheBusiestSpotInstance(t *testing.T) {
	v := view{Rows: []row{
		{Name: "a", Terms: "spot", Instance: "i-1", Pods: 3, Status: ready}, {Name: "b", Terms: "on-demand",
			Instance: "i-2", Pods: 9, Status: ready},
		{Name: "c", Terms: "spot", Instance: "i-3", Pods: 5, Status: ready}, {Name: "d", Terms: "spot", Pods: 7,
			Status: launching},
	}}
	if id, ok := v.busiestSpot(); id != "i-3" || !ok || !v.has("i-3") || v.has("i-4") || v.settled() {
		t.Errorf("it is %q (%v); has i-3 %v, i-4 %v; settled %v", id, ok, v.has("i-3"), v.has("i-4"), v.settled())
	}
	v.Rows = v.Rows[1:2]
	if id, ok := v.busiestSpot(); ok || !v.settled() {
		t.Errorf("without spot it is %q; settled %v", id, v.settled())
	}
}

// A node of another cloud has a name of its own, and may be seen before its claim knows it.
func TestNodesAreFoundByProviderID(t *testing.T) {
	c, n := claim("default-1", v1.ConditionTypeLaunched), node("ip-10-0-0-4", "")
	c.Status.ProviderID, n.Spec.ProviderID = "aws:///us-west-2a/i-1", "aws:///us-west-2a/i-1"
	v := makeView([]v1.NodeClaim{c}, []corev1.Node{n}, []corev1.Pod{pod("ip-10-0-0-4", corev1.PodRunning)},
		func(*v1.NodeClaim, *corev1.Node) float64 { return 0.5 })
	want := row{Name: "default-1", Type: "c7i.large", Zone: "us-west-2a", Terms: "spot", Instance: "i-1", Price: 0.5,
		Pods: 1, Status: joining}
	if len(v.Rows) != 1 || v.Rows[0] != want {
		t.Errorf("rows %+v, want %+v", v.Rows, want)
	}
}
