package e2e

import (
	"testing"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestNodesExpire lets nodes live for little more than a minute: each is replaced, and the pods run on. They have to
// run for a minute: nodes that live more shortly are made with growing pauses.
func TestNodesExpire(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", func(p *v1.NodePool) {
		p.Spec.Template.Spec.ExpireAfter = v1.DurationOf(75 * time.Second)
	}))
	c := w.run()
	w.create(w.deployment("web", 3, "2"))
	w.eventually(w.allRunning(3))
	old := w.nodes()[0]
	w.eventually(func() string {
		for _, n := range w.nodes() {
			if n.UID == old.UID {
				return "node " + n.Name + " is still there"
			}
		}
		return ""
	})
	w.eventually(c.logged("Expired"))
	w.eventually(w.allRunning(3))
}
