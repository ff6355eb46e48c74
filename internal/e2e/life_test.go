package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

func TestNodesComeForPodsAndGoWithThem(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", func(p *v1.NodePool) {
		p.Spec.Template.Labels = map[string]string{"team": "blue"}
		p.Spec.Template.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "blue",
			Effect: corev1.TaintEffectNoSchedule}}
	}))
	d := w.deployment("inflate", 40, "1")
	d.Spec.Template.Spec.NodeSelector = map[string]string{"team": "blue"}
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	w.create(d)
	w.pending(40) // planned together, they leave nothing to consolidate, and so no taint of that
	w.run()
	w.eventually(w.allRunning(40))
	w.eventually(w.tally)
	w.eventually(func() string {
		for _, c := range w.claims() {
			if !meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionTypeReady) {
				return c.Name + " is not Ready"
			}
		}
		return ""
	})
	for _, n := range w.nodes() {
		checkNode(t, &n)
	}
	w.eventually(func() string {
		var p v1.NodePool
		w.must(w.c.Get(w.ctx, client.ObjectKey{Name: "default"}, &p))
		cpu := p.Status.Resources[corev1.ResourceCPU]
		if int(p.Status.Nodes) != len(w.nodes()) || cpu.Value() < 40 || !meta.IsStatusConditionTrue(p.Status.Conditions,
			v1.ConditionTypeReady) {
			return fmt.Sprintf("the pool's status is %+v", p.Status)
		}
		return ""
	})
	w.must(w.c.Delete(w.ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.eventually(w.nothingLeft)
}

// checkNode tests what the contract says about a node that has joined.
func checkNode(t *testing.T, n *corev1.Node) {
	t.Helper()
	for key, want := range map[string]string{
		v1.NodePoolLabelKey: "default", v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true",
		"team":                        "blue",
		kwokv1alpha1.KwokNodeLabelKey: kwokv1alpha1.KwokNodeLabelValue, "karpenter.kwok.sh/kwoknodeclass": "default",
	} {
		if n.Labels[key] != want {
			t.Errorf("node %s has %s=%q, want %q", n.Name, key, n.Labels[key], want)
		}
	}
	for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, v1.CapacityTypeLabelKey,
		kwokv1alpha1.InstancePriceLabelKey} {
		if n.Labels[key] == "" {
			t.Errorf("node %s has no label %s", n.Name, key)
		}
	}
	if !strings.HasPrefix(n.Spec.ProviderID, "kwok://") {
		t.Errorf("node %s has providerID %q", n.Name, n.Spec.ProviderID)
	}
	if !slices.Contains(n.Finalizers, v1.TerminationFinalizer) {
		t.Errorf("node %s has no termination finalizer", n.Name)
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "dedicated" {
		t.Errorf("node %s has taints %v, want the pool's and no other", n.Name, n.Spec.Taints)
	}
}

func TestDeletedNodeIsDrainedAndReplaced(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default"))
	w.run()
	w.create(w.deployment("web", 6, "2"))
	w.eventually(w.allRunning(6))
	least := intstr.FromInt32(5)
	w.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(), Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	w.eventually(func() string {
		var b policyv1.PodDisruptionBudget
		w.must(w.c.Get(w.ctx, client.ObjectKey{Namespace: w.lab.Namespace(), Name: "web"}, &b))
		if b.Status.CurrentHealthy != 6 {
			return fmt.Sprintf("the budget sees %d healthy pods", b.Status.CurrentHealthy)
		}
		return ""
	})
	old := w.nodes()
	for i := range old {
		w.must(client.IgnoreNotFound(w.c.Delete(w.ctx, &old[i]))) // it may have been consolidated meanwhile
	}
	// The budget lets one pod go at a time, so at no moment are fewer than five there.
	w.eventually(func() string {
		healthy := 0
		for _, p := range w.pods() {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				healthy++
			}
		}
		if healthy < 5 {
			w.Fatalf("only %d pods run: the disruption budget was overrun", healthy)
		}
		for _, n := range w.nodes() {
			if slices.ContainsFunc(old, func(o corev1.Node) bool { return o.UID == n.UID }) {
				return "node " + n.Name + " is still there"
			}
		}
		return ""
	})
	w.eventually(w.allRunning(6))
	w.eventually(w.tally)
}

func TestDeletedClaimTakesItsInstanceAlong(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default"))
	c := w.run()
	w.create(w.pod("alone", "1"))
	w.eventually(w.allRunning(1))
	// The pod has no owner: nothing brings it back, so everything goes.
	claim := w.claims()[0]
	w.must(w.c.Delete(w.ctx, &claim))
	w.eventually(w.nothingLeft)
	// The claim is gone a moment before the controller writes so.
	w.eventually(c.logged("released node"))
}

func TestNoCapacityFallsBackToTheNextPool(t *testing.T) {
	w := newWorld(t)
	class := nodeClass("default")
	class.Annotations = map[string]string{"tenon.sh/fault-no-capacity": "*:*:spot"}
	terms := func(weight int32, capacityType string) func(*v1.NodePool) {
		return func(p *v1.NodePool) {
			p.Spec.Weight = &weight
			p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
				v1.NodeSelectorRequirementWithMinValues{
					Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{capacityType}})
		}
	}
	w.create(class, nodePool("first", terms(10, "spot")), nodePool("second", terms(1, "on-demand")))
	c := w.run()
	w.create(w.deployment("web", 5, "1"))
	w.eventually(w.allRunning(5))
	for _, n := range w.nodes() {
		if n.Labels[v1.NodePoolLabelKey] != "second" {
			t.Errorf("node %s is of pool %s although that has no capacity", n.Name, n.Labels[v1.NodePoolLabelKey])
		}
	}
	w.eventually(c.logged("the cloud refused to launch"))
	w.eventually(w.tally)
}
