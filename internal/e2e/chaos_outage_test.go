package e2e

import (
	"testing"
	"time"
)

// TestChaosControlPlaneRestarts takes the API server and etcd away at random moments of a scale-up, of drains and of a
// scale-down. The controller has a lease and may lose it; it is started again then, as a kubelet would.
func TestChaosControlPlaneRestarts(t *testing.T) {
	c := newChaos(t)
	c.keep()
	c.workloads(40)
	for i, parts := range [][]string{{"kube-apiserver"}, {"etcd"}, {"etcd", "kube-apiserver"}} {
		c.scale("free", int32(80+40*i))
		c.await(1500 * time.Millisecond)
		c.must(c.lab.Restart(parts...))
	}
	c.say("the last restart of the scale-up is over")
	c.settle(c.calm(guardedPods + 160))
	c.say("all pods run")

	c.drain(8)
	c.await(time.Second)
	c.must(c.lab.Restart("kube-apiserver"))
	c.settle(c.sentry.replaced)
	c.settle(c.calm(guardedPods + 160))
	c.say("all drains are over")

	c.sentry.judge()
	c.scale("free", 0)
	c.await(time.Second)
	c.must(c.lab.Restart("etcd"))
	c.finish()
}

// keep runs a controller, and another one whenever it ends, until the test does.
func (c *chaos) keep() {
	c.Helper()
	now := c.run(leased()...)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-c.ctx.Done(): // the test is over, and ends its controllers
				return
			case <-now.done:
			}
			if c.ctx.Err() == nil {
				now.quiet = true
				now = c.run(leased()...)
			}
		}
	}()
	c.Cleanup(func() { <-stopped })
}
