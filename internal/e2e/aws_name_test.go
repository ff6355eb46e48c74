package e2e

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestForgottenClusterName runs a controller that was not told that the cluster is at AWS. Its log and the pool say
// what to do.
func TestForgottenClusterName(t *testing.T) {
	w := newWorld(t)
	w.create(ec2Class("default"), ec2Pool("default"))
	c := w.run()
	w.eventually(c.logged("give the controller --cluster-name (CLUSTER_NAME), which selects aws"))
	w.eventually(c.logged("this NodePool belongs to another controller"))
	w.eventually(c.logged("the controller runs with --cloud-provider=kwok; give it --cluster-name (CLUSTER_NAME)"))
	var pool v1.NodePool
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: "default"}, &pool))
	if len(pool.Status.Conditions) > 0 {
		t.Errorf("something was written on it: %+v", pool.Status.Conditions)
	}
}
