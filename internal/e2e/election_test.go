package e2e

import (
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestSecondReplicaTakesOver runs two replicas with the contract's lease: one works, the other waits, and takes over
// when the first is told to stop.
func TestSecondReplicaTakesOver(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default"))
	holder := func() string {
		var lease coordinationv1.Lease
		err := w.c.Get(w.ctx, client.ObjectKey{Namespace: "kube-system", Name: "karpenter-leader-election"}, &lease)
		if err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	elected := func(not string) func() string {
		return func() string {
			if h := holder(); h == "" || h == not {
				return "the lease is held by " + h
			}
			return ""
		}
	}
	first := w.run("--disable-leader-election=false")
	w.eventually(elected(""))
	leader := holder()
	second := w.run("--disable-leader-election=false")
	w.create(w.deployment("one", 4, "1"))
	w.eventually(w.allRunning(4))
	if second.logged(creation)() == "" {
		t.Error("a replica that was not elected created nodes")
	}
	w.must(first.cmd.Process.Signal(syscall.SIGTERM))
	<-first.done
	w.eventually(elected(leader))
	w.create(w.deployment("two", 40, "1"))
	w.eventually(w.allRunning(44))
	w.eventually(w.tally)
	w.eventually(second.logged(creation))
}

// creation is what a replica writes of a claim it created.
const creation = "created nodeclaim"
