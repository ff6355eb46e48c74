package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// budgetWatch looks at the pods of a disruption budget from outside, again and again. Each look is one consistent list:
// a watch that begins anew after a restart of the API server would tell what has happened meanwhile in any order.
type budgetWatch struct {
	w  *world
	mu sync.Mutex
	// seen are all pods that were ever ready.
	seen map[types.UID]bool
	// armed is set when all of them have been ready for the first time; lowest is the smallest number since. relieved
	// is set when the pods may go.
	armed, relieved bool
	lowest          int
}

const (
	// glance is the time between two looks. A pod that is evicted takes longer than that to be replaced.
	glance = 100 * time.Millisecond
	// stare is how long a look may take: there may be nobody to answer.
	stare = 5 * time.Second
)

func newBudgetWatch(w *world, app string) *budgetWatch {
	w.Helper()
	s := &budgetWatch{w: w, seen: map[types.UID]bool{}}
	c, err := kubernetes.NewForConfig(w.lab.Config())
	w.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for w.ctx.Err() == nil {
			s.look(c.CoreV1().Pods(w.lab.Namespace()), app)
			time.Sleep(glance) // asking the API server again, not waiting for time to pass
		}
	}()
	w.Cleanup(func() { <-done })
	return s
}

// look counts once. Nobody may answer: the control plane is being restarted.
func (s *budgetWatch) look(pods corev1client.PodInterface, app string) {
	ctx, cancel := context.WithTimeout(s.w.ctx, stare)
	defer cancel()
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := 0
	for i := range list.Items {
		if p := &list.Items[i]; isReady(p) {
			ready++
			s.seen[p.UID] = true
		}
	}
	switch {
	case s.relieved:
	case !s.armed && ready == guardedPods:
		s.armed, s.lowest = true, guardedPods
	case s.armed:
		s.lowest = min(s.lowest, ready)
	}
}

// isReady reports whether the pod counts for its budget.
func isReady(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// replaced says why the chaos was not enough: no pod of the budget has been evicted.
func (s *budgetWatch) replaced() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed || len(s.seen) == guardedPods {
		return fmt.Sprintf("%d pods of the budget have been ready, all at once: %v; none has been replaced",
			len(s.seen), s.armed)
	}
	return ""
}

// ready says what is missing until all pods of the budget have been ready at once. Pods run before they are ready, and
// the watch looks only now and then, so a test that saw them run waits for this before it judges.
func (s *budgetWatch) ready() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed {
		return fmt.Sprintf("%d pods of the budget have been ready, but never all %d at once", len(s.seen), guardedPods)
	}
	return ""
}

// judge fails the test if the budget was overrun, and ends the watch: from here on the pods may go.
func (s *budgetWatch) judge() {
	s.w.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.relieved {
		return
	}
	s.relieved = true
	s.w.Logf("of %d pods with a budget at least %d were ready, %d must be; %d were evicted and replaced",
		guardedPods, s.lowest, guardedFloor, len(s.seen)-guardedPods)
	if !s.armed || s.lowest < guardedFloor {
		s.w.Errorf("the disruption budget was overrun, or its pods have never all been ready (%v): "+
			"%d ready, %d must be", s.armed, s.lowest, guardedFloor)
	}
}
