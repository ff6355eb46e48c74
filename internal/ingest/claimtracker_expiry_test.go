package ingest

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// A node that expires before pods have run there says nothing about the next one, unless the pool lets nodes live for
// minutes only: then the next one goes in the same way.
func TestExpiryIsAFailureWhereNodesLiveShortly(t *testing.T) {
	for _, x := range []struct {
		life, early time.Duration
		want        string
	}{
		{time.Second, 0, "1 tries, 0 coming, standing [n1], NodeDeleted"},
		{cluster.ShortLife - time.Second, 0, "1 tries, 0 coming, standing [n1], NodeDeleted"},
		{cluster.ShortLife, 0, "none"},
		{2 * time.Minute, time.Second, "1 tries, 0 coming, standing [n1], NodeDeleted"}, // tenon.sh/soft-expiry
		{2 * time.Minute, 100 * time.Second, "1 tries, 0 coming, standing [n1], NodeDeleted"},
		{cluster.ShortLife, time.Minute, "none"},
	} {
		t.Run(fmt.Sprintf("%s, %s early", x.life, x.early), func(t *testing.T) {
			l := newLab(t)
			l.waits("p1", "rs")
			made := l.c.now()
			expires := func(c *v1.NodeClaim) {
				c.Spec.ExpireAfter, c.CreationTimestamp = v1.DurationOf(x.life), metav1.NewTime(made)
			}
			l.made("n1", "p1", 1, expires)
			l.b.Snapshot()
			l.c.tick(x.life - x.early)
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
