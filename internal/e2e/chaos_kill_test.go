package e2e

import (
	"testing"
	"time"
)

// TestChaosKilledAtRandom kills the controller again and again while 300 pods come, while nodes are drained and while
// the pods go, and starts it anew each time. In the end there is what an undisturbed controller would have left.
func TestChaosKilledAtRandom(t *testing.T) {
	const free = 240
	c := newChaos(t)
	each := max(1, *chaosKills/3)

	c.workloads(0)
	for i := range each {
		c.scale("free", int32(free*(i+1)/each))
		c.shortLife()
	}
	c.scale("free", free)
	survivor := c.run(quick()...)
	c.say("all pods are there")
	c.settle(c.calm(guardedPods + free))
	c.say("all pods run")

	survivor.dieQuietly()
	for range each {
		c.drain(2)
		c.shortLife()
		c.forgive()
	}
	survivor = c.run(quick()...)
	c.say("all drains have begun")
	c.settle(c.budget.replaced)
	c.settle(c.calm(guardedPods + free))
	c.say("all drains are over")
	c.budget.judge()

	survivor.dieQuietly()
	rest := max(0, *chaosKills-2*each-2) // two survivors were killed too
	for i := range rest {
		c.scale("free", int32(free*(rest-i-1)/rest))
		c.scale("guarded", int32(guardedPods*(rest-i-1)/rest))
		c.shortLife()
	}
	c.run(quick()...)
	c.say("all pods are gone")
	c.finish()
}

// shortLife runs a controller for a random time and kills it: half of them before they have filled their caches, half
// in the midst of their work.
func (c *chaos) shortLife() {
	c.Helper()
	ctl := c.run(quick()...)
	if c.random.Intn(2) == 0 {
		c.settle(ctl.logged("Starting workers"))
	}
	select {
	case <-ctl.done:
		c.Fatal("a controller ended by itself")
	case <-time.After(c.moment(1200 * time.Millisecond)):
	}
	ctl.dieQuietly()
}

// dieQuietly kills a controller whose log is of no interest.
func (c *controller) dieQuietly() {
	c.quiet = true
	c.kill()
}
