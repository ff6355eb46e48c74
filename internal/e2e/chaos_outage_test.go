package e2e

import (
	"fmt"
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

// keep runs a controller, and another one whenever it ends, until the test does, as a kubelet would: a replica that
// can't renew its lease in time ends. That need not be the test's doing: an API server on a busy machine may not answer
// for ten seconds.
func (c *chaos) keep() {
	c.Helper()
	now := c.run(leased()...)
	c.note(now)
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
				c.note(now)
			}
		}
	}()
	c.Cleanup(func() { <-stopped })
}

func (c *chaos) note(kept *controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, kept)
}

// keptLogged asks whether the log of a controller that was kept running holds the words.
func (c *chaos) keptLogged(words string) func() string {
	return func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, kept := range c.kept {
			if kept.logged(words)() == "" {
				return ""
			}
		}
		return fmt.Sprintf("none of %d controllers has said %q", len(c.kept), words)
	}
}
