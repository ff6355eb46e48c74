package e2e

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestForgottenClusterName runs a controller that was not told that the cluster is at AWS. Its log and the pool say what to do.
func TestForgottenClusterName(t *testing.T) {
	w := newWorld(t)
	w.create(ec2Class("default"), ec2Pool("default"))
	c := w.run()
	w.eventually(c.logged("give the controller --cluster-name (CLUSTER_NAME), which selects aws"))
	w.eventually(func() string {
		var pool v1.NodePool
		w.must(w.c.Get(w.ctx, client.ObjectKey{Name: "default"}, &pool))
		ready := meta.FindStatusCondition(pool.Status.Conditions, v1.ConditionTypeReady)
		if ready == nil || ready.Status != "False" || !containsAll(ready.Message, []string{"--cloud-provider=kwok", "--cluster-name (CLUSTER_NAME)"}) {
			return fmt.Sprintf("the pool does not tell of the cluster's name: %+v", pool.Status.Conditions)
		}
		return ""
	})
}
