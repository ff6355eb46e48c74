package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// emptied says which nodes have yet to go by themselves. To a workload whose nodes were drained before its pods had run
// there for a minute they are unused nodes (docs/concepts/bounds.md). One for each workload, which the pool tells of,
// stays for two more minutes after its pods: the test does not wait for that, and has it go with its pool.
func (c *chaos) emptied() string {
	var pool v1.NodePool
	if err := c.c.Get(c.ctx, client.ObjectKey{Name: "default"}, &pool); err != nil {
		return err.Error()
	}
	var workloads []string
	usable := meta.FindStatusCondition(pool.Status.Conditions, "tenon.sh/NodesUsable")
	if usable != nil && usable.Reason == "MadeInVain" {
		for _, name := range []string{"guarded", "free"} {
			var d appsv1.Deployment
			if err := c.c.Get(c.ctx, client.ObjectKey{Namespace: c.lab.Namespace(), Name: name}, &d); err != nil {
				return err.Error()
			}
			workloads = append(workloads, string(d.UID))
		}
	}
	var claims v1.NodeClaimList
	if err := c.c.List(c.ctx, &claims); err != nil {
		return err.Error()
	}
	if left := leftover(claims.Items, workloads); len(left) > 0 {
		return fmt.Sprintf("NodeClaims are left that are not kept for a workload: %s", strings.Join(left, ", "))
	}
	b, err := c.countIDs()
	if err != nil {
		return err.Error()
	}
	return b.trouble() // each node and each instance belongs to a claim
}

// leftover lists the claims that are not kept for one of the workloads. One that was made for a workload is kept for
// it.
func leftover(claims []v1.NodeClaim, workloads []string) []string {
	madeFor := func(claim *v1.NodeClaim) []string {
		list, err := cluster.ParseMadeFor(claim.Annotations[cluster.MadeForAnnotation])
		if err != nil || claim.DeletionTimestamp != nil {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(workloads), func(uid string) bool {
			return !slices.ContainsFunc(list, func(m cluster.MadeFor) bool {
				return strings.HasSuffix(m.Owner, "/"+uid)
			})
		})
	}
	claims = slices.Clone(claims)
	slices.SortStableFunc(claims, func(a, b v1.NodeClaim) int {
		// a claim for both workloads leaves the other claim its own
		return len(madeFor(&a)) - len(madeFor(&b))
	})
	var out, taken []string
	for i := range claims {
		of := madeFor(&claims[i])
		free := slices.IndexFunc(of, func(uid string) bool { return !slices.Contains(taken, uid) })
		if free < 0 {
			text := claims[i].Annotations[cluster.MadeForAnnotation]
			out = append(out, fmt.Sprintf("%s (made for %q)", claims[i].Name, text))
			continue
		}
		taken = append(taken, of[free])
	}
	return out
}

func TestLeftover(t *testing.T) {
	two := []string{"guarded", "free"}
	for _, c := range []struct {
		name      string
		madeFor   []string
		workloads []string
		want      int
	}{
		{"nothing", nil, two, 0},
		{"one for each", []string{"default/guarded=2", "default/free=3"}, two, 0},
		{"one for both and one for its own", []string{"default/free=1,default/guarded=1", "default/guarded=2"}, two, 0},
		{"two for the same", []string{"default/free=1", "default/free=2"}, two, 1},
		{"two for both and one more", []string{"default/free=1,default/guarded=1", "default/free=1,default/guarded=1",
			"default/free=2"}, two, 1},
		{"made for nobody", []string{""}, two, 1},
		{"made for another", []string{"default/another=1"}, two, 1},
		{"deleted", []string{"default/free=1 deleted"}, two, 1},
		{"the pool tells of none", []string{"default/free=1"}, nil, 1},
	} {
		var claims []v1.NodeClaim
		for i, text := range c.madeFor {
			text, deleted := strings.CutSuffix(text, " deleted")
			claim := v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("claim-", i)}}
			claim.Annotations = map[string]string{cluster.MadeForAnnotation: text}
			if deleted {
				claim.DeletionTimestamp = &metav1.Time{}
			}
			claims = append(claims, claim)
		}
		if got := leftover(claims, c.workloads); len(got) != c.want {
			t.Errorf("%s: left over %v, want %d", c.name, got, c.want)
		}
	}
}
