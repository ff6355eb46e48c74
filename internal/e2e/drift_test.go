package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// TestDriftRollsAllNodes changes a label of the pool's template: every node is replaced, never more of them at a time
// than the budget says, and each pod leaves only when there is room for it elsewhere.
func TestDriftRollsAllNodes(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", onDemand("16"), budgets("3")))
	w.create(w.deployment("web", 6, "9")) // each fills a node
	w.run()
	w.eventually(w.allRunning(6))
	w.eventually(w.initialized(6))
	e := w.record()
	e.begin(6)
	w.change("default", func(p *v1.NodePool) { p.Spec.Template.Labels = map[string]string{"edition": "second"} })
	w.eventually(w.edition("second", 6))
	w.eventually(w.allRunning(6))
	w.eventually(w.tally)
	e.held(3, 3)
	if !e.gave("Drifted") {
		t.Error("no node said that it went because it had drifted")
	}
	if gone := e.departures(); len(gone) != 6 {
		t.Errorf("%d pods had to leave; each should once", len(gone))
	}
	for _, c := range w.claims() {
		if meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionTypeDrifted) {
			t.Errorf("the new claim %s says that it has drifted", c.Name)
		}
	}
}

// TestDriftOfRequirements narrows what the pool's nodes may be: those that are something else are replaced, and no
// other.
func TestDriftOfRequirements(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", onDemand("16")))
	w.create(w.deployment("web", 2, "9"))
	w.run()
	w.eventually(w.allRunning(2))
	w.eventually(w.initialized(2))
	family := w.nodes()[0].Labels[kwokv1alpha1.InstanceFamilyLabelKey]
	other := map[string]string{"c6i": "m6i", "m6i": "c6i"}[family]
	w.change("default", func(p *v1.NodePool) { p.Spec.Template.Spec.Requirements[0].Values = []string{other} })
	w.eventually(func() string {
		nodes := w.nodes()
		for _, n := range nodes {
			if n.Labels[kwokv1alpha1.InstanceFamilyLabelKey] != other {
				return fmt.Sprintf("node %s is of family %s", n.Name, n.Labels[kwokv1alpha1.InstanceFamilyLabelKey])
			}
		}
		if len(nodes) != 2 {
			return fmt.Sprintf("%d nodes are there", len(nodes))
		}
		return ""
	})
	w.eventually(w.allRunning(2))
	w.eventually(w.tally)
}

// edition says what is missing to n nodes that carry the label and no others.
func (w *world) edition(value string, n int) func() string {
	return func() string {
		nodes, have := w.nodes(), 0
		for i := range nodes {
			if nodes[i].Labels["edition"] == value {
				have++
			}
		}
		if have != n || len(nodes) != n {
			return fmt.Sprintf("%d of %d nodes are of the %s edition, want %d", have, len(nodes), value, n)
		}
		return ""
	}
}
