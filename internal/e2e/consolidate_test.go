package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestScaledDownClusterIsConsolidated takes most pods away. What is left ends up on as few nodes as it needs, and on
// the way the pool's budget and the PodDisruptionBudget hold at every moment.
func TestScaledDownClusterIsConsolidated(t *testing.T) {
	w := newWorld(t)
	// Until the pods are scaled down nothing may go, so that the test begins with a full cluster.
	w.create(nodeClass("default"), nodePool("default", onDemand("4"), budgets("0")))
	w.create(w.deployment("web", 12, "1500m")) // two fill a node of four cores
	w.pending(12)
	w.run()
	w.eventually(w.allRunning(12))
	w.eventually(w.initialized(6))
	w.replicas("web", 5)
	w.eventually(w.allRunning(5))
	least := intstr.FromInt32(4)
	w.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(), Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	before := w.price()
	e := w.record()
	e.begin(5)
	w.change("default", budgets("2"))
	w.eventually(func() string {
		if n := len(w.nodes()); n > 3 {
			return fmt.Sprintf("%d nodes are left", n)
		}
		return ""
	})
	w.eventually(func() string {
		if after := w.price(); after > before/2 { // more while a replacement is on its way
			return fmt.Sprintf("the nodes cost %.3f dollars an hour after %.3f, want at most half", after, before)
		}
		return ""
	})
	w.eventually(w.allRunning(5))
	w.eventually(w.tally)
	e.held(2, 4)
	if !e.gave("Underutilized") && !e.gave("Empty") {
		t.Error("no node says why it went")
	}
}

// TestReplacementIsReadyBeforeTheFirstEviction leaves a small pod on a large node: a smaller node comes, and the pod is
// not asked to leave before that can take it.
func TestReplacementIsReadyBeforeTheFirstEviction(t *testing.T) {
	w := newWorld(t)
	class := nodeClass("default")
	// whoever did not wait would be caught
	class.Spec.NodeRegistrationDelay = metav1.Duration{Duration: 3 * time.Second}
	w.create(class, nodePool("default", onDemand("16")))
	big := w.deployment("big", 1, "13")
	w.create(big, w.deployment("small", 1, "1"))
	w.pending(2)
	w.run()
	w.eventually(w.allRunning(2))
	w.eventually(w.initialized(1))
	old := w.claims()[0]
	e := w.record()
	e.begin(2)
	w.must(w.c.Delete(w.ctx, big, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.eventually(func() string {
		claims := w.claims()
		if len(claims) != 1 || claims[0].UID == old.UID {
			return fmt.Sprintf("%d claims are there; %s should go and another take its place", len(claims), old.Name)
		}
		return ""
	})
	w.eventually(w.allRunning(1))
	e.held(1, 0)
	replacement := w.claims()[0].Name
	gone := e.departures()
	if len(gone) != 2 {
		t.Fatalf("%d pods left, want the big and the small one", len(gone))
	}
	if !e.readyBy(replacement, gone[1].at) {
		t.Errorf("the small pod had to leave at %s, before %s was ready", gone[1].at, replacement)
	}
	if !e.gave("Underutilized") {
		t.Error("the node did not say that it went because it was underutilized")
	}
}

// TestDoNotDisruptKeepsItsNode has two nodes whose pods fit on one; the pod of one must not be disturbed.
func TestDoNotDisruptKeepsItsNode(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", onDemand("8"), budgets("0")))
	filler := w.deployment("filler", 2, "5")
	calm := w.deployment("calm", 1, "2")
	calm.Spec.Template.Annotations = map[string]string{v1.DoNotDisruptAnnotationKey: "true"}
	w.create(filler, calm)
	w.pending(3)
	w.run()
	w.eventually(w.allRunning(3))
	kept := w.nodeOf("calm")
	w.must(w.c.Delete(w.ctx, filler, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.eventually(w.allRunning(1))
	w.change("default", budgets("100%"))
	// What could go has gone, and the node that stays says why. It would go too if it might: it is far too large.
	w.eventually(func() string {
		if n := len(w.nodes()); n != 1 {
			return fmt.Sprintf("%d nodes are left", n)
		}
		return ""
	})
	w.eventually(w.hears("DisruptionBlocked", kept, w.podOf("calm").Name, "do-not-disrupt"))
	if w.nodeOf("calm") != kept {
		t.Errorf("the pod moved from %s to %s", kept, w.nodeOf("calm"))
	}
	// Once the pod may be disturbed the node goes.
	p := w.podOf("calm")
	w.must(w.c.Patch(w.ctx, &p, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null}}}`))))
	w.eventually(func() string {
		for _, n := range w.nodes() {
			if n.Name == kept {
				return "node " + kept + " is still there"
			}
		}
		return ""
	})
	w.eventually(w.allRunning(1))
}

// podOf is the only pod of a Deployment. A moment after an eviction there may be none.
func (w *world) podOf(app string) corev1.Pod {
	w.Helper()
	var out corev1.Pod
	w.eventually(func() string {
		for _, p := range w.pods() {
			if p.Labels["app"] == app && p.DeletionTimestamp == nil && p.Spec.NodeName != "" {
				out = p
				return ""
			}
		}
		return "there is no pod of " + app + " on a node"
	})
	return out
}

func (w *world) nodeOf(app string) string { w.Helper(); return w.podOf(app).Spec.NodeName }
