package cluster

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/bench/internal/report"
)

// The steps from a Deployment to Running pods, in their usual order.
const (
	podCreated       = "pod-created"
	podUnschedulable = "pod-unschedulable"
	claimCreated     = "claim-created"
	claimLaunched    = "claim-launched"
	nodeCreated      = "node-created"
	nodeReady        = "node-ready"
	claimRegistered  = "claim-registered"
	nodeAdmitted     = "node-admitted"
	nodeOpen         = "node-open"
	claimInitialized = "claim-initialized"
	podBound         = "pod-bound"
	podRunning       = "pod-running"
)

// Steps lists the steps in their usual order.
func Steps() []string {
	return []string{podCreated, podUnschedulable, claimCreated, claimLaunched, nodeCreated, nodeReady, claimRegistered,
		nodeAdmitted, nodeOpen,
		claimInitialized, podBound, podRunning}
}

// timeline remembers when each object first took each step, and which objects are where now.
type timeline struct {
	mu      sync.Mutex
	begin   time.Time
	taken   map[string][]float64       // step -> when objects took it, in seconds, in order
	reached map[string]map[string]bool // step -> objects that took it and are not gone
	changed chan struct{}
	// last is when an object last took a step or went; least is the smallest number of Running pods since the
	// beginning.
	last  time.Time
	least int
}

func newTimeline() *timeline {
	return &timeline{
		begin:   time.Now(),
		taken:   make(map[string][]float64),
		reached: make(map[string]map[string]bool),
		changed: make(chan struct{}, 1),
	}
}

// restart sets the zero of the clock.
func (t *timeline) restart(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin, t.last = at, at
	t.taken = make(map[string][]float64)
	t.least = len(t.reached[podRunning])
}

// step notes that an object has taken steps. Only the first time counts.
func (t *timeline) step(object string, at time.Time, steps ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range steps {
		if t.reached[s] == nil {
			t.reached[s] = make(map[string]bool)
		}
		if t.reached[s][object] {
			continue
		}
		t.reached[s][object] = true
		t.last = at
		t.taken[s] = append(t.taken[s], at.Sub(t.begin).Seconds())
	}
	t.wake()
}

// gone forgets an object.
func (t *timeline) gone(object string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, objects := range t.reached {
		delete(objects, object)
	}
	t.last = at
	t.least = min(t.least, len(t.reached[podRunning]))
	t.wake()
}

// still is when something last changed, and the smallest number of Running pods since the beginning.
func (t *timeline) still() (since time.Time, least int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.least
}

// objects lists those that have taken a step and are not gone.
func (t *timeline) objects(step string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.reached[step]))
}

// wake tells the one who waits to look again; one signal is enough for many changes.
func (t *timeline) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// now counts the objects that have taken a step and are not gone.
func (t *timeline) now(step string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.reached[step])
}

// stages copies what was noted so far.
func (t *timeline) stages() map[string]report.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]report.Span, len(t.taken))
	for step, at := range t.taken {
		n := len(at)
		out[step] = report.Span{First: at[0], Half: at[(n-1)/2], Most: at[(n-1)*9/10], Last: at[n-1], Count: n}
	}
	return out
}
