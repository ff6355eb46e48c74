package e2e

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// sentry watches the pods of a disruption budget from outside, in the order in which the API server tells what happens to
// them.
type sentry struct {
	w  *world
	mu sync.Mutex
	// ready are the pods that count for the budget now; seen are all that ever did.
	ready, seen map[types.UID]bool
	// armed is set when all of them have been ready for the first time; lowest is the smallest number since. relieved is
	// set when the pods may go.
	armed, relieved bool
	lowest          int
	// below is since when fewer are ready than must be, and least how few. After a restart of the API server the watch begins
	// anew and tells what has happened meanwhile in any order: those who have gone before those who have come. Only what
	// lasts is so.
	below time.Time
	least int
}

// lasts is how long too few must have been ready for it to count. A pod that is evicted takes longer than that to be replaced.
const lasts = 500 * time.Millisecond

func newSentry(w *world, app string) *sentry {
	w.Helper()
	s := &sentry{w: w, ready: map[types.UID]bool{}, seen: map[types.UID]bool{}}
	c, err := kubernetes.NewForConfig(w.lab.Config())
	w.must(err)
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(w.lab.Namespace()),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app=" + app }))
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.saw,
		UpdateFunc: func(_, now any) { s.saw(now) },
		DeleteFunc: s.lost,
	})
	w.must(err)
	factory.Start(w.ctx.Done())
	return s
}

func (s *sentry) saw(object any) {
	p := object.(*corev1.Pod)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
			s.set(p.UID, true)
			return
		}
	}
	s.set(p.UID, false)
}

func (s *sentry) lost(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	s.set(object.(*corev1.Pod).UID, false)
}

func (s *sentry) set(uid types.UID, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ready {
		s.ready[uid], s.seen[uid] = true, true
	} else {
		delete(s.ready, uid)
	}
	switch {
	case s.relieved:
	case !s.armed && len(s.ready) == guardedPods:
		s.armed, s.lowest = true, guardedPods
	case s.armed:
		s.count(len(s.ready), time.Now())
	}
}

// count takes in how many are ready.
func (s *sentry) count(ready int, now time.Time) {
	switch {
	case ready >= guardedFloor:
		if !s.below.IsZero() && now.Sub(s.below) > lasts {
			s.lowest = min(s.lowest, s.least)
		}
		s.below = time.Time{}
		s.lowest = min(s.lowest, ready)
	case s.below.IsZero():
		s.below, s.least = now, ready
	default:
		s.least = min(s.least, ready)
	}
}

// replaced says why the chaos was not enough: no pod of the budget has been evicted.
func (s *sentry) replaced() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed || len(s.seen) == guardedPods {
		return fmt.Sprintf("%d pods of the budget have been ready, all at once: %v; none has been replaced", len(s.seen), s.armed)
	}
	return ""
}

// judge fails the test if the budget was overrun, and relieves the sentry: from here on the pods may go.
func (s *sentry) judge() {
	s.w.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.relieved {
		return
	}
	s.relieved = true
	if !s.below.IsZero() && time.Since(s.below) > lasts {
		s.lowest = min(s.lowest, s.least)
	}
	s.w.Logf("of %d pods with a budget at least %d were ready, %d must be; %d were evicted and replaced",
		guardedPods, s.lowest, guardedFloor, len(s.seen)-guardedPods)
	if !s.armed || s.lowest < guardedFloor {
		s.w.Errorf("the disruption budget was overrun, or its pods have never all been ready (%v): %d ready, %d must be", s.armed, s.lowest, guardedFloor)
	}
}
