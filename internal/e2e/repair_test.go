package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestSickNodeIsReplaced breaks a node: after the time that is tolerated it is replaced, and then it goes, whoever is
// on it. Its pods run elsewhere. One that is not to be repaired stays.
func TestSickNodeIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", func(p *v1.NodePool) {
		// less than the policy gives
		p.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 5 * time.Second}
	}))
	c := w.run("--feature-gates", "NodeRepair=true", "--node-repair-toleration", "KWOKUnhealthy=True:2s")
	d := w.deployment("web", 4, "9") // each fills a node, and nobody may disturb it
	d.Spec.Template.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	w.create(d)
	w.eventually(w.allRunning(4))
	nodes := w.nodes()
	w.annotate(&nodes[1], "karpenter.sh/do-not-repair", "true")
	w.sicken(nodes[0].Name)
	w.eventually(func() string {
		for _, claim := range w.claims() {
			if claim.Status.NodeName == nodes[0].Name && claim.DeletionTimestamp == nil {
				return "the sick node " + nodes[0].Name + " is still to be replaced"
			}
		}
		return ""
	})
	if trouble := w.initialized(4)(); trouble != "" {
		t.Errorf("the sick node goes, and its replacement is not up: %s", trouble)
	}
	w.eventually(func() string {
		for _, n := range w.nodes() {
			if n.UID == nodes[0].UID {
				return "the sick node " + n.Name + " is still there"
			}
		}
		return ""
	})
	w.eventually(c.logged("Unhealthy"))
	w.endPodsOf(nodes[0].Name)
	w.eventually(w.initialized(4))
	w.eventually(w.allRunning(4))
	w.sicken(nodes[1].Name)
	w.sicken(nodes[2].Name)
	// Two of four are more than a fifth: nothing is done, and the node says so.
	w.eventually(func() string {
		words := w.messages("NodeRepairBlocked", nodes[2].Name)
		if !slices.ContainsFunc(words, func(s string) bool { return strings.Contains(s, "2 of the 4") }) {
			return fmt.Sprintf("node %s says %q", nodes[2].Name, words)
		}
		return ""
	})
	if n := len(w.nodes()); n != 4 {
		t.Errorf("%d nodes are left of 4", n)
	}
}

// initialized says what is missing to n nodes that are ready for pods.
func (w *world) initialized(n int) func() string {
	return func() string {
		ready := 0
		for _, c := range w.claims() {
			if c.DeletionTimestamp == nil && meta.IsStatusConditionTrue(c.Status.Conditions,
				v1.ConditionTypeInitialized) {
				ready++
			}
		}
		if ready != n {
			return fmt.Sprintf("%d of %d nodes are ready for pods", ready, n)
		}
		return ""
	}
}

// allInitialized says which claim's node is not ready for pods.
func (w *world) allInitialized() string {
	claims := w.claims()
	for _, c := range claims {
		if c.DeletionTimestamp == nil && !meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionTypeInitialized) {
			return "the node of claim " + c.Name + " is not ready for pods"
		}
	}
	if len(claims) == 0 {
		return "there is no claim"
	}
	return ""
}

func (w *world) annotate(n *corev1.Node, key, value string) {
	w.Helper()
	w.must(w.c.Patch(w.ctx, n, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value))))
}

// sicken lets a node say that something is broken of which the simulated kubelet knows nothing.
func (w *world) sicken(name string) {
	w.Helper()
	n := &corev1.Node{}
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: name}, n))
	broken := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"KWOKUnhealthy","status":"True",`+
		`"reason":"E2ERepair","lastTransitionTime":%q}]}}`,
		time.Now().UTC().Format(time.RFC3339))
	w.must(w.c.Status().Patch(w.ctx, n, client.RawPatch(types.StrategicMergePatchType, broken)))
}
