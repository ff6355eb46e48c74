package ingest

import (
	"reflect"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// change says what a change may mean to a placement.
type change uint8

const (
	// changesDemand: pods that need a place have come, gone or changed.
	changesDemand change = 1 << iota
	// changesSupply: something else that a placement depends on has changed.
	changesSupply
	// givesRoom: the change may give room to a pod that found none.
	givesRoom
	// changesDisruption: no placement depends on it, but which nodes may go does.
	changesDisruption

	noChange    change = 0
	changesRoom        = changesSupply | givesRoom
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
func (b *revisions) noteAndWake(c change) {
	b.noteChange(c)
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// noteChange notes a change that nobody has to be woken for. The lock is held.
func (b *revisions) noteChange(c change) {
	b.rev++
	if c&changesDemand != 0 {
		b.revs.demand = b.rev
	}
	if c&changesSupply != 0 {
		b.revs.supply = b.rev
	}
	if c&givesRoom != 0 {
		b.revs.room = b.rev
	}
	if c&changesDisruption != 0 {
		b.revs.disruption = b.rev
	}
}

// podChange says what it means that a pod has come (no old), gone (no now) or changed.
func podChange(old, now *cluster.Pod) change {
	c := noChange
	if old != nil && now != nil && samePlacement(old, now) {
		if old.EvictionCost != now.EvictionCost {
			return changesDisruption
		}
		return noChange
	}
	if needsPlace(old) || needsPlace(now) {
		c |= changesDemand
	}
	before, after := old != nil && old.UsesRoom(), now != nil && now.UsesRoom()
	switch {
	case !before && after:
		c |= changesSupply // it takes room and gives none
	case before:
		c |= changesRoom
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
