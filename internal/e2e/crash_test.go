package e2e

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"
)

// TestCrashAtAnyMomentOfALaunch kills the controller at moments spread over a launch and starts it again: in the end
// there are the nodes of an undisturbed run and no more, and every one of them is on the books.
func TestCrashAtAnyMomentOfALaunch(t *testing.T) {
	t.Parallel()
	const pods = 60
	undisturbed := 0
	// A test of its own, so that its controller has ended before the next one starts: they run without a lease.
	t.Run("undisturbed", func(t *testing.T) { undisturbed = launchWithCrashes(t, pods, nil) })
	r := rand.New(rand.NewSource(2))
	for round := range 4 {
		var moments []time.Duration
		for range 4 {
			moments = append(moments, time.Duration(r.Int63n(int64(700*time.Millisecond))))
		}
		t.Run(fmt.Sprintf("round-%d", round), func(t *testing.T) {
			if n := launchWithCrashes(t, pods, moments); n != undisturbed {
				t.Errorf("crashes after %v gave %d nodes, an undisturbed run %d", moments, n, undisturbed)
			}
		})
	}
}

// launchWithCrashes runs a scale-up during which the controller lives for each of the given times before it is killed;
// the last one lives on. It returns the number of nodes.
func launchWithCrashes(t *testing.T, pods int, lives []time.Duration) int {
	t.Helper()
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default"), w.deployment("inflate", int32(pods), "1"))
	w.pending(pods)
	for _, life := range lives {
		c := w.run()
		// The clock starts when this controller has filled its caches: before that there is nothing to interrupt.
		w.eventually(func() string {
			if !strings.Contains(c.log.String(), "Starting workers") {
				return "the controller has not begun"
			}
			return ""
		})
		<-time.After(life)
		c.kill()
	}
	w.run()
	w.eventually(w.allRunning(pods))
	w.eventually(w.tally)
	return len(w.nodes())
}
