package ingest

import (
	"reflect"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
)

// revisions count changes, and wake whoever waits for one.
type revisions struct {
	rev     uint64
	revs    struct{ demand, supply, room, disruption uint64 } // the rev of the last change of each kind
	changed chan struct{}
}

// Changed delivers a value after something has changed; several changes may share one.
func (b *revisions) Changed() <-chan struct{} { return b.changed }

// noteAndWake notes a change and wakes whoever waits for one. The lock is held.
func (b *revisions) noteAndWake(c change.Kind) {
	b.noteChange(c)
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// noteChange notes a change that nobody has to be woken for. The lock is held.
func (b *revisions) noteChange(c change.Kind) {
	b.rev++
	if c&change.Demand != 0 {
		b.revs.demand = b.rev
	}
	if c&change.Supply != 0 {
		b.revs.supply = b.rev
	}
	if c&change.GivesRoom != 0 {
		b.revs.room = b.rev
	}
	if c&change.Disruption != 0 {
		b.revs.disruption = b.rev
	}
}

// podChange says what it means that a pod has come (no old), gone (no now) or changed.
func podChange(old, now *cluster.Pod) change.Kind {
	c := change.None
	if old != nil && now != nil && samePlacement(old, now) {
		if old.EvictionCost != now.EvictionCost {
			return change.Disruption
		}
		return change.None
	}
	if needsPlace(old) || needsPlace(now) {
		c |= change.Demand
	}
	before, after := old != nil && old.UsesRoom(), now != nil && now.UsesRoom()
	switch {
	case !before && after:
		c |= change.Supply // it takes room and gives none
	case before:
		c |= change.Room
	}
	return c
}

// samePlacement reports whether the pod has not changed in anything that a placement depends on.
func samePlacement(old, now *cluster.Pod) bool {
	x, y := *old, *now
	for _, p := range []*cluster.Pod{&x, &y} {
		p.Nominated = "" // whether that leaves the pod to us shows in Unschedulable
		p.Ready, p.Started, p.DoNotDisruptUntil, p.Phase, p.Limits = false, time.Time{}, time.Time{}, "", nil
		p.EvictionCost = 0
	}
	return reflect.DeepEqual(&x, &y)
}

// isQuietChange changes of a pod are those of which no plan comes out differently unless its node is on its way out.
func isQuietChange(old, now *cluster.Pod) bool {
	return old != nil && old.Nominated == now.Nominated && samePlacement(old, now)
}

// needsPlace pods look for a place, or will once kube-scheduler has given up on one of their kind.
func needsPlace(p *cluster.Pod) bool { return p != nil && (p.IsPending() || p.AwaitsScheduler()) }
