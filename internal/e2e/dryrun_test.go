package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const dryRun = "tenon.sh/dry-run"

// TestDryRunOnlyTells has a node that is far too large and one that has drifted, in a pool that only wants to be told:
// the nodes say what would be done, and nothing is. Without the wish the same is done.
func TestDryRunOnlyTells(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", onDemand("16"), func(p *v1.NodePool) {
		p.Annotations = map[string]string{dryRun: "true"}
	}))
	big := w.deployment("big", 1, "13")
	w.create(big, w.deployment("small", 1, "1"))
	w.pending(2)
	w.run()
	w.eventually(w.allRunning(2))
	w.eventually(w.initialized(1))
	kept := w.claims()[0]
	e := w.record()
	e.begin(2)
	w.must(w.c.Delete(w.ctx, big, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.eventually(w.hears("DryRun", kept.Status.NodeName, "Underutilized", "a month", "1 pods would move"))
	w.eventually(w.hears("DryRun", kept.Name, "Underutilized"))
	w.change("default", func(p *v1.NodePool) { p.Spec.Template.Labels = map[string]string{"edition": "second"} })
	w.eventually(w.hears("DryRun", kept.Status.NodeName, "Drifted"))
	e.held(0, 1)
	if claims := w.claims(); len(claims) != 1 || claims[0].UID != kept.UID ||
		w.nodeOf("small") != kept.Status.NodeName {
		t.Errorf("something was done in a dry run: %d claims are there, the pod is on %s", len(claims),
			w.nodeOf("small"))
	}
	w.change("default", func(p *v1.NodePool) { delete(p.Annotations, dryRun) })
	w.eventually(func() string {
		claims := w.claims()
		if len(claims) != 1 || claims[0].UID == kept.UID {
			return fmt.Sprintf("%d claims are there; %s should go and a smaller one take its place",
				len(claims), kept.Name)
		}
		return ""
	})
	w.eventually(w.edition("second", 1))
	w.eventually(w.allRunning(1))
}
