package e2e

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/kwok"
)

// known are the nodes that are there, by UID.
func (w *world) known() map[string]bool {
	out := make(map[string]bool)
	for _, n := range w.nodes() {
		out[string(n.UID)] = true
	}
	return out
}

// stamps says what is missing: every claim of the pool default carries the pool's hash, in the version of the contract.
func (w *world) stamps() string {
	var pool v1.NodePool
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: "default"}, &pool))
	hash := pool.Annotations[v1.NodePoolHashAnnotationKey]
	if hash == "" || pool.Annotations[v1.NodePoolHashVersionAnnotationKey] != v1.NodePoolHashVersion {
		return fmt.Sprintf("the pool's annotations are %v", pool.Annotations)
	}
	for _, c := range w.claims() {
		if c.Annotations[v1.NodePoolHashAnnotationKey] != hash ||
			c.Annotations[v1.NodePoolHashVersionAnnotationKey] != v1.NodePoolHashVersion {
			return fmt.Sprintf("claim %s has %v, the pool %s", c.Name, c.Annotations, hash)
		}
	}
	return ""
}

// TestHashesOfAnotherVersionAreWrittenAnew is what an upgrade meets: hashes that were computed in another way, and
// claims without one. They are written anew, and no node goes.
func TestHashesOfAnotherVersionAreWrittenAnew(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", onDemand("16")))
	w.create(w.deployment("web", 3, "9"))
	c := w.run()
	w.eventually(w.allRunning(3))
	w.eventually(w.initialized(3))
	w.eventually(w.stamps)
	c.kill()
	before := w.known()
	w.change("default", func(p *v1.NodePool) {
		p.Annotations[v1.NodePoolHashAnnotationKey], p.Annotations[v1.NodePoolHashVersionAnnotationKey] = "17", "v2"
	})
	for i, claim := range w.claims() {
		old := claim.DeepCopy()
		claim.Annotations[v1.NodePoolHashAnnotationKey], claim.Annotations[v1.NodePoolHashVersionAnnotationKey] = "17",
			"v2"
		if i == 0 {
			delete(claim.Annotations, v1.NodePoolHashAnnotationKey)
			delete(claim.Annotations, v1.NodePoolHashVersionAnnotationKey)
		}
		w.must(w.c.Patch(w.ctx, &claim, client.MergeFrom(old)))
	}
	w.run()
	w.eventually(w.stamps)
	w.create(w.deployment("more", 1, "9")) // whoever has made a node for it has had the time to do something else, too
	w.eventually(w.allRunning(4))
	after := w.known()
	for uid := range before {
		if !after[uid] {
			t.Errorf("a node went although its template is what it was")
		}
	}
}

// TestDriftOfTheCloud has the simulated cloud say that instances are not what their NodeClass asks for: they are
// replaced, and what replaces them stays.
func TestDriftOfTheCloud(t *testing.T) {
	w := newWorld(t)
	class := nodeClass("default")
	w.create(class, nodePool("default", onDemand("16"), budgets("100%")))
	w.create(w.deployment("web", 3, "9"))
	c := w.run()
	w.eventually(w.allRunning(3))
	w.eventually(w.initialized(3))
	before := w.known()
	w.must(w.c.Get(w.ctx, client.ObjectKeyFromObject(class), class))
	old := class.DeepCopy()
	class.Annotations = map[string]string{kwok.FaultDrift: "ImageDrift"}
	w.must(w.c.Patch(w.ctx, class, client.MergeFrom(old)))
	w.slowly(func() string {
		for uid := range w.known() {
			if before[uid] {
				return "a node that has drifted is still there"
			}
		}
		return ""
	})
	w.eventually(w.allRunning(3))
	w.eventually(w.tally)
	w.eventually(c.logged("ImageDrift"))
}
