package e2e

import (
	"fmt"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestStaticPoolIsScaled does what "kubectl scale nodepool" does: it writes the scale subresource.
func TestStaticPoolIsScaled(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("fixed", func(p *v1.NodePool) { p.Spec.Replicas = new(int64) }))
	c := w.run("--feature-gates", "StaticCapacity=true")
	for _, n := range []int{3, 5, 2} {
		w.scale("fixed", n)
		w.eventually(func() string { return w.stands("fixed", n) })
		w.eventually(w.tally)
	}
	// A crash in between makes no node more.
	w.scale("fixed", 6)
	w.eventually(func() string {
		if len(w.claims()) < 3 {
			return "no claim is there yet"
		}
		return ""
	})
	c.kill()
	w.run("--feature-gates", "StaticCapacity=true")
	w.eventually(func() string { return w.stands("fixed", 6) })
	w.must(w.c.Delete(w.ctx, nodePool("fixed")))
	w.eventually(w.nothingLeft)
}

func (w *world) scale(pool string, n int) {
	w.Helper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: int32(n)}}
	p := nodePool(pool)
	w.must(w.c.Get(w.ctx, client.ObjectKeyFromObject(p), p))
	w.must(w.c.SubResource("scale").Update(w.ctx, p, client.WithSubResourceBody(scale)))
}

// stands says what is missing to n initialized nodes and a status that says so.
func (w *world) stands(pool string, n int) string {
	ready := 0
	for _, c := range w.claims() {
		if c.DeletionTimestamp == nil && meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionTypeReady) {
			ready++
		}
	}
	var scale autoscalingv1.Scale
	w.must(w.c.SubResource("scale").Get(w.ctx, nodePool(pool), &scale))
	if claims := len(w.claims()); ready != n || claims != n || int(scale.Status.Replicas) != n {
		return fmt.Sprintf("%d of %d claims are ready, the scale says %d, it should be %d", ready, claims,
			scale.Status.Replicas, n)
	}
	return ""
}
