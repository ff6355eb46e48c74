package e2e

import (
	"fmt"
	"slices"
	"strings"
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
	c.settle(c.budget.replaced)
	c.settle(c.calm(guardedPods + 160))
	c.say("all drains are over")

	c.budget.judge()
	c.scale("free", 0)
	c.await(time.Second)
	c.must(c.lab.Restart("etcd"))
	c.finish()
}

// keep runs a controller, and another one when it has lost its lease, until the test ends, as a kubelet would: a
// replica that can't renew its lease in time ends. That need not be the test's doing: an API server on a busy machine
// may not answer for ten seconds. A controller that ends for anything else fails the test.
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
			if c.ctx.Err() != nil {
				return
			}
			if log := now.log.String(); !endedForLease(log) {
				c.Errorf("a controller ended, and not because it lost its lease:\n%s", tail(log, 40))
				return
			}
			now.quiet = true
			now = c.run(leased()...)
			c.note(now)
		}
	}()
	c.Cleanup(func() { <-stopped })
}

// endedForLease reports whether a controller ended because it lost its lease. One that takes its place may find no API
// server: then it ends before it has started, or before it has seen what there is, and that is forgiven too.
func endedForLease(log string) bool {
	log = "\n" + log
	at := strings.LastIndex(log, "\nerror: ") // what the program says when it ends by itself
	if at < 0 || strings.Contains(log, "\npanic: ") || strings.Contains(log, "\nfatal error: ") {
		return false
	}
	why, started := log[at:], strings.Contains(log, `"message":"starting"`)
	if !started {
		return true
	}
	return slices.ContainsFunc([]string{"leader election lost", "another replica holds the lease", "caches to sync",
		"cache to be synced",
		"connection refused"}, func(text string) bool { return strings.Contains(why, text) })
}

func TestEndsForLostLeases(t *testing.T) {
	const started = `{"level":"INFO","message":"starting","version":"dev"}` + "\n"
	for log, want := range map[string]bool{
		started + "error: running the controller: leader election lost\n":                             true,
		started + "error: running the controller: another replica holds the lease\n":                  true,
		started + "error: running the controller: [leader election lost, a runnable has not ended]\n": true,
		started + "error: running the controller: failed to wait for node caches to sync\n":           true,
		started + "error: running the controller: the planner has hung for 40s\n":                     false,
		started + "panic: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n":                false,
		started + `{"level":"ERROR","message":"leader election lost"}` +
			"\npanic: x\n\ngoroutine 1 [running]:\n": false,
		started: false,
		"error: asking for the kinds: dial tcp 127.0.0.1:6443: connect: connection refused\n": true,
		"panic: no cluster\n\ngoroutine 1 [running]:\nmain.main()\n":                          false,
		"": false,
	} {
		if got := endedForLease(log); got != want {
			t.Errorf("taken as a lost lease: %v, want %v:\n%s", got, want, log)
		}
	}
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
