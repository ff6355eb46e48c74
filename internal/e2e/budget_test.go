package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestBudgetsAreTold has a budget that forbids consolidation in a window, which is open all year, in a time zone: the
// pool's status says what its budgets allow, a node that is empty goes, and one that is underutilized stays until the
// window is taken away.
func TestBudgetsAreTold(t *testing.T) {
	w := newWorld(t)
	always := "CRON_TZ=Europe/Berlin 0 0 * * *"
	w.create(nodeClass("default"), nodePool("default", onDemand("16"), func(p *v1.NodePool) {
		p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}, {
			Nodes: "0", Reasons: []v1.DisruptionReason{v1.DisruptionReasonUnderutilized}, Schedule: &always,
			Duration: &metav1.Duration{Duration: 48 * time.Hour}}}
	}))
	big, alone := w.deployment("big", 1, "12"), w.deployment("alone", 1, "14")
	w.create(big, alone, w.deployment("small", 1, "1"))
	w.pending(3)
	w.run()
	w.eventually(w.allRunning(3))
	w.eventually(w.initialized(2))
	w.eventually(func() string {
		return w.allows("SomeReasonsBlocked", "of 2 nodes", "Empty", "up to 2 (budgets[0], 100%)",
			"Underutilized: none (budgets[1], 0)")
	})
	kept := w.nodeOf("small")
	// The small pod is alone on a large node then, and nothing may be done about it. The other node is empty.
	for _, d := range []client.Object{big, alone} {
		w.must(w.c.Delete(w.ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	w.eventually(func() string {
		if n := len(w.nodes()); n != 1 {
			return fmt.Sprintf("%d nodes are left; all but one are empty", n)
		}
		return ""
	})
	w.eventually(func() string {
		return w.allows("SomeReasonsBlocked", "of 1 nodes", "Underutilized: none (budgets[1], 0)")
	})
	if got := w.nodeOf("small"); got != kept {
		t.Errorf("the small pod moved from %s to %s, which the budget forbids", kept, got)
	}
	e := w.record()
	w.change("default", budgets("100%"))
	w.eventually(func() string { return w.allows("BudgetsAllow", "up to 1 (budgets[0], 100%)") })
	w.eventually(func() string {
		if w.nodeOf("small") == kept {
			return "the small pod is still on its large node"
		}
		return ""
	})
	w.eventually(w.allRunning(1))
	e.held(1, 0)
}

// allows says what is missing: the condition of the pool default that tells what its budgets allow has the reason and
// says all the words.
func (w *world) allows(reason string, words ...string) string {
	var p v1.NodePool
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: "default"}, &p))
	c := meta.FindStatusCondition(p.Status.Conditions, "tenon.sh/BudgetsAllow")
	if c == nil || c.Reason != reason {
		return fmt.Sprintf("the pool's condition is %+v, want %s", c, reason)
	}
	for _, word := range words {
		if !strings.Contains(c.Message, word) {
			return fmt.Sprintf("the pool's budgets are told as %q, which does not say %q", c.Message, word)
		}
	}
	return ""
}
