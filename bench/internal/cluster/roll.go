package cluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenon-sh/tenon/bench/internal/report"
)

// phase is how far a node is on its way out.
type phase int

const (
	staying phase = iota
	going         // it has been chosen, or its claim deleted
	ending        // its machine is being ended, and it no longer counts against the budget
)

// roll follows a change of all nodes by their claims: which of the old ones have been chosen, which are gone, and how
// long nothing happened although it could have.
type roll struct {
	mu     sync.Mutex
	began  time.Time
	budget int
	// old has the claims that are to go.
	old map[string]phase
	// idle is since when the budget has room and no node was chosen; zero if it has none.
	idle    time.Time
	outcome report.Roll
	chosen  bool
}

func newRoll(began time.Time, budget int, claims []string) *roll {
	r := &roll{began: began, budget: budget, old: make(map[string]phase)}
	for _, claim := range claims {
		r.old[claim] = staying
	}
	return r
}

// saw notes how far a claim is.
func (r *roll) saw(claim string, now phase, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, ok := r.old[claim]
	if !ok || was == now {
		return
	}
	r.old[claim] = now
	if was == staying {
		r.choose(at)
	}
	r.look(at)
}

// choose ends a pause, if there was one. What comes before the first choice is no pause.
func (r *roll) choose(at time.Time) {
	if !r.chosen {
		r.chosen = true
		r.outcome.First = at.Sub(r.began).Seconds()
	}
	if !r.idle.IsZero() {
		r.outcome.Pause = max(r.outcome.Pause, at.Sub(r.idle).Seconds())
		r.idle = at
	}
}

// lost notes that a claim is gone.
func (r *roll) lost(claim string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.old, claim)
	r.look(at)
}

// look begins or ends the time in which a node could be chosen.
func (r *roll) look(at time.Time) {
	var count [ending + 1]int
	for _, p := range r.old {
		count[p]++
	}
	r.outcome.Most = max(r.outcome.Most, count[going])
	switch {
	case !r.chosen || count[going] >= r.budget || count[staying] == 0:
		r.idle = time.Time{}
	case r.idle.IsZero():
		r.idle = at
	}
}

// left counts the old claims that are there.
func (r *roll) left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.old)
}

func (r *roll) result() report.Roll {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcome
}

// phaseOf says how far a claim is.
func phaseOf(claim *unstructured.Unstructured) phase {
	switch {
	case isTrue(claim, "InstanceTerminating"):
		return ending
	case claim.GetDeletionTimestamp() != nil || isTrue(claim, "DisruptionReason"):
		return going
	}
	return staying
}
