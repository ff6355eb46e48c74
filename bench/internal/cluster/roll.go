package cluster

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/bench/internal/report"
)

// disrupted is the taint of a node that is about to go.
const disrupted = "karpenter.sh/disrupted"

// roll follows a change of all nodes: which of the old ones have been chosen, which are gone, and how long nothing
// happened although it could have.
type roll struct {
	mu     sync.Mutex
	began  time.Time
	budget int
	// old has the nodes that are to go; true for those on their way out.
	old map[string]bool
	// idle is since when the budget has room and no node was chosen; zero if it has none.
	idle    time.Time
	outcome report.Roll
	chosen  bool
}

func newRoll(began time.Time, budget int, nodes []string) *roll {
	r := &roll{began: began, budget: budget, old: make(map[string]bool)}
	for _, node := range nodes {
		r.old[node] = false
	}
	return r
}

// saw notes whether a node is on its way out.
func (r *roll) saw(node string, going bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, ok := r.old[node]
	if !ok || was == going {
		return
	}
	r.old[node] = going
	if going {
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

// lost notes that a node is gone.
func (r *roll) lost(node string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.old, node)
	r.look(at)
}

// look begins or ends the time in which a node could be chosen.
func (r *roll) look(at time.Time) {
	going, fresh := 0, 0
	for _, g := range r.old {
		if g {
			going++
		} else {
			fresh++
		}
	}
	r.outcome.Most = max(r.outcome.Most, going)
	switch {
	case !r.chosen || going >= r.budget || fresh == 0:
		r.idle = time.Time{}
	case r.idle.IsZero():
		r.idle = at
	}
}

// left counts the old nodes that are there.
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

// leaves tells whether a node is on its way out.
func leaves(node *corev1.Node) bool {
	if node.DeletionTimestamp != nil {
		return true
	}
	for _, t := range node.Spec.Taints {
		if t.Key == disrupted {
			return true
		}
	}
	return false
}
