package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestChaosFrozenPastItsLease stops the elected replica in the midst of its work, lets the other one take over, and
// wakes the first while the second is at work: it must notice that its time is over and end, and what it still had in
// hand must do no harm.
func TestChaosFrozenPastItsLease(t *testing.T) {
	c := newChaos(t)
	first := c.run(leased()...)
	c.settle(c.elected(""))
	leader := c.holder()
	c.keep() // the second

	c.workloads(120)
	c.settle(func() string {
		if b, err := c.countIDs(); err != nil || len(b.claims) == 0 {
			return "no claim has been made"
		}
		return ""
	})
	c.await(700 * time.Millisecond)
	c.must(first.cmd.Process.Signal(syscall.SIGSTOP))
	c.scale("free", 180)
	c.settle(c.elected(leader))
	c.say("the second replica has the lease")

	c.scale("free", 240)
	c.drain(3)
	c.await(700 * time.Millisecond)
	before, plans := strings.Count(first.log.String(), acted), strings.Count(first.log.String(), planning)
	c.must(first.cmd.Process.Signal(syscall.SIGCONT))
	c.say("the first replica is awake")
	c.settle(func() string {
		select {
		case <-first.done:
			return ""
		default:
			return "the replica that lost its lease still runs"
		}
	})
	c.say("the first replica has ended")
	// What it had in hand when it was frozen comes to its end; nothing new may be begun.
	did := strings.Count(first.log.String(), acted) - before
	if n := strings.Count(first.log.String(), planning) - plans; n > 0 || did > 64 {
		c.Errorf("it planned nodes %d times and did %d things after it woke", n, did)
	}
	c.Logf("it did %d things after it woke", did)
	c.settle(c.keptLogged(creation))
	c.settle(c.calm(guardedPods + 240))
	c.say("all pods run")
	c.finish()
}

// acted is in every line that a replica writes of something it did to a claim.
const acted = `"NodeClaim":`

// holder names the replica that has the lease, or nobody.
func (c *chaos) holder() string {
	var lease coordinationv1.Lease
	err := c.c.Get(c.ctx, client.ObjectKey{Namespace: "kube-system", Name: "karpenter-leader-election"}, &lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// elected waits for a holder of the lease other than the given one.
func (c *chaos) elected(not string) func() string {
	return func() string {
		if h := c.holder(); h == "" || h == not {
			return "the lease is held by " + h
		}
		return ""
	}
}
