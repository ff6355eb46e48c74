package ingest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// A node that expires before pods have run there says nothing about the next one, unless the pool lets nodes live for
// minutes only: then the next one goes in the same way.
func TestExpiryIsAFailureWhereNodesLiveShortly(t *testing.T) {
	for _, x := range []struct {
		life time.Duration
		want string
	}{
		{time.Second, "1 tries, 0 coming, standing [n1], NodeDeleted"},
		{shortLife - time.Second, "1 tries, 0 coming, standing [n1], NodeDeleted"},
		{shortLife, "none"},
	} {
		t.Run(x.life.String(), func(t *testing.T) {
			l := newLab(t)
			l.waits("p1", "rs")
			made := l.c.now()
			expires := func(c *v1.NodeClaim) {
				c.Spec.ExpireAfter, c.CreationTimestamp = v1.DurationOf(x.life), metav1.NewTime(made)
			}
			l.made("n1", "p1", 1, expires)
			l.b.Snapshot()
			l.c.tick(x.life)
			l.made("n1", "p1", 1, expires, func(c *v1.NodeClaim) {
				now := metav1.NewTime(l.c.now())
				c.DeletionTimestamp = &now
				c.Status.Conditions = append(c.Status.Conditions, disruptedAs("Expired"))
			})
			b := l.expect("it expires", x.want)
			if b == nil {
				return
			}
			if by := b.Failures[0].Cause.By; by != "an expireAfter of "+x.life.String() {
				t.Errorf("the node was ended by %q", by)
			}
		})
	}
}
