package state

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/reason"
)

// PodStarts follows pods from their creation until they are ready. It remembers only those that are not, and the list
// of the last snapshot: snapshots share the pods that have not changed, so that what has changed is found by comparing
// pointers.
type PodStarts struct {
	now func() time.Time
	// What is measured of a pod.
	startup, bound, provisioningStartup, provisioningBound, decision prometheus.Observer

	mu      sync.Mutex
	began   time.Time // when pods were first looked at; zero before
	last    []*cluster.Pod
	waiting map[string]*startingPod // by UID
}

// startingPod is a pod that is not ready yet.
type startingPod struct {
	pod *cluster.Pod
	// decided is when it was first planned for; placed is when a place was first found.
	decided, placed time.Time
}

// NewPodStarts registers what is measured of pods that start.
func NewPodStarts(mk series.Maker, now func() time.Time) *PodStarts {
	return &PodStarts{now: now, waiting: make(map[string]*startingPod),
		startup: mk.Summary("karpenter_pods_startup_duration_seconds", "Time from the creation of a pod until it was "+
			"ready.").WithLabelValues(),
		bound: mk.Histogram("karpenter_pods_bound_duration_seconds", "Time from the creation of a pod until it was "+
			"bound.", series.Durations(), "dynamic_resources").WithLabelValues("false"),
		provisioningStartup: mk.Histogram("karpenter_pods_provisioning_startup_duration_seconds",
			"Time from when a place was found for a pod until it was ready.", series.Durations()).WithLabelValues(),
		provisioningBound: mk.Histogram("karpenter_pods_provisioning_bound_duration_seconds", "Time from when a place "+
			"was found for a pod until it was bound.", series.Durations(),
			"dynamic_resources").WithLabelValues("false"),
		decision: mk.Histogram("karpenter_pods_scheduling_decision_duration_seconds", "Time from when a pod was seen "+
			"to need a place until it was first planned for.", series.Durations()).WithLabelValues(),
	}
}

// Observe takes in a snapshot and the plan that was made from it. It returns what pods should be told.
func (t *PodStarts) Observe(s *cluster.Snapshot, p *plan.Plan) (notes []cluster.Note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	first := t.began.IsZero()
	if first {
		t.began = now
	}
	changedPairs(t.last, s.Pods, func(p *cluster.Pod) string { return p.UID }, func(old, pod *cluster.Pod) {
		switch {
		case pod == nil:
			t.forget(old.UID)
		case !pod.Mirror:
			// What was there before us has begun at a time that we don't know.
			fresh := old == nil && !first && !pod.Created.Before(t.began.Truncate(time.Second))
			t.observePod(old, pod, fresh, now)
			if !first {
				notes = append(notes, protectionNotes(old, pod)...)
			}
		}
	})
	t.last = s.Pods
	if p.Provisioned {
		t.planned(s, p, now)
	}
	return notes
}

// protectionNotes tells a pod that it keeps its node from being disrupted for a while, and when that is over.
func protectionNotes(old, pod *cluster.Pod) []cluster.Note {
	if pod.DoNotDisruptUntil.IsZero() {
		return nil
	}
	until := pod.DoNotDisruptUntil.UTC().Format(time.RFC3339)
	was := old != nil && old.DoNotDisrupt
	switch {
	case pod.DoNotDisrupt && (!was || !old.DoNotDisruptUntil.Equal(pod.DoNotDisruptUntil)):
		return []cluster.Note{pod.Note("DoNotDisruptUntil", reason.Said("The pod's node is not disrupted "+
			"before "+until))}
	case was && !pod.DoNotDisrupt:
		return []cluster.Note{pod.Note("DoNotDisruptGracePeriodElapsed", reason.Said("The pod no longer keeps its "+
			"node from being disrupted: its time was over at "+until))}
	}
	return nil
}

// observePod takes in a pod that is new or has changed. fresh says that it was created under our eyes.
func (t *PodStarts) observePod(old, pod *cluster.Pod, fresh bool, now time.Time) {
	w := t.waiting[pod.UID]
	if w == nil && (fresh || pod.Node == "") && !pod.Finished {
		w = &startingPod{}
		t.waiting[pod.UID] = w
	}
	if w == nil {
		return
	}
	w.pod = pod
	if pod.Node != "" && (fresh || old != nil && old.Node == "") {
		t.bound.Observe(series.Elapsed(pod.Created, now))
		if !w.placed.IsZero() {
			t.provisioningBound.Observe(series.Elapsed(w.placed, now))
		}
	}
	if pod.Ready {
		t.startup.Observe(series.Elapsed(pod.Created, now))
		if !w.placed.IsZero() {
			t.provisioningStartup.Observe(series.Elapsed(w.placed, now))
		}
	}
	if pod.Ready || pod.Finished {
		t.forget(pod.UID)
	}
}

// planned notes which pods have been thought about for the first time, and for which a place was found.
func (t *PodStarts) planned(s *cluster.Snapshot, p *plan.Plan, now time.Time) {
	var unplaced map[string]bool
	for _, pod := range s.Pending() {
		w := t.waiting[pod.UID]
		if w == nil || !w.placed.IsZero() || !p.Now.IsZero() && pod.PendingSince().After(p.Now) {
			continue // it came after the snapshot that the plan was made from
		}
		if w.decided.IsZero() {
			w.decided = now
			t.decision.Observe(series.Elapsed(pod.PendingSince(), now))
		}
		if unplaced == nil {
			unplaced = make(map[string]bool, len(p.Placement.Unplaced))
			for i := range p.Placement.Unplaced {
				unplaced[p.Placement.Unplaced[i].Pod.UID] = true
			}
		}
		if !unplaced[pod.UID] {
			w.placed = now
		}
	}
}

// forget drops a pod. A map keeps the room of all that it ever held, so that it is given up with the last one.
func (t *PodStarts) forget(uid string) {
	delete(t.waiting, uid)
	if len(t.waiting) == 0 {
		t.waiting = make(map[string]*startingPod)
	}
}

// each shows the pods that are waiting.
func (t *PodStarts) each(show func(startingPod)) {
	t.mu.Lock()
	list := make([]startingPod, 0, len(t.waiting))
	for _, w := range t.waiting {
		list = append(list, *w)
	}
	t.mu.Unlock() // whoever reads a scrape may be slow
	for _, w := range list {
		show(w)
	}
}

// changedPairs goes through two lists that are sorted by id, and shows what is not the same in both: old is nil for
// what is new, and now is nil for what is gone.
func changedPairs[T any](olds, nows []*T, id func(*T) string, show func(old, now *T)) {
	for len(olds) > 0 || len(nows) > 0 {
		order := 0
		switch {
		case len(olds) == 0:
			order = 1
		case len(nows) == 0:
			order = -1
		case olds[0] != nows[0]:
			order = strings.Compare(id(olds[0]), id(nows[0]))
		}
		switch {
		case order < 0:
			show(olds[0], nil)
			olds = olds[1:]
		case order > 0:
			show(nil, nows[0])
			nows = nows[1:]
		default:
			if olds[0] != nows[0] {
				show(olds[0], nows[0])
			}
			olds, nows = olds[1:], nows[1:]
		}
	}
}
