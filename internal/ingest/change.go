package ingest

import (
	"reflect"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// change says what a change may mean to a placement.
type change uint8

const (
	// demand: pods that need a place have come, gone or changed.
	demand change = 1 << iota
	// supply: something else that a placement depends on has changed.
	supply
	// help: the change may give room to a pod that found none.
	help
	// stakes: no placement depends on it, but which nodes may go does.
	stakes

	nothing change = 0
	room           = supply | help
)

// touch notes a change and wakes whoever waits for one. The lock is held.
func (b *Book) touch(c change) {
	b.note(c)
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// note notes a change that nobody has to be woken for. The lock is held.
func (b *Book) note(c change) {
	b.rev++
	if c&demand != 0 {
		b.revs.demand = b.rev
	}
	if c&supply != 0 {
		b.revs.supply = b.rev
	}
	if c&help != 0 {
		b.revs.help = b.rev
	}
	if c&stakes != 0 {
		b.revs.stakes = b.rev
	}
}

// podChange says what it means that a pod has come (no old), gone (no now) or changed.
func podChange(old, now *cluster.Pod) change {
	c := nothing
	if old != nil && now != nil && placedAlike(old, now) {
		if old.EvictionCost != now.EvictionCost {
			return stakes
		}
		return nothing
	}
	if needy(old) || needy(now) {
		c |= demand
	}
	before, after := old != nil && old.Holds(), now != nil && now.Holds()
	switch {
	case !before && after:
		c |= supply // it takes room and gives none
	case before:
		c |= room
	}
	return c
}

// placedAlike reports whether the pod has not changed in anything that a placement depends on.
func placedAlike(old, now *cluster.Pod) bool {
	x, y := *old, *now
	for _, p := range []*cluster.Pod{&x, &y} {
		p.Nominated = "" // whether that leaves the pod to us shows in Unschedulable
		p.Ready, p.Started, p.DoNotDisruptUntil, p.Phase, p.Limits = false, time.Time{}, time.Time{}, "", nil
		p.EvictionCost = 0
	}
	return reflect.DeepEqual(&x, &y)
}

// quiet changes of a pod are those of which no plan comes out differently unless its node is on its way out.
func quiet(old, now *cluster.Pod) bool {
	return old != nil && old.Nominated == now.Nominated && placedAlike(old, now)
}

// needy pods look for a place, or will once kube-scheduler has given up on one of their kind.
func needy(p *cluster.Pod) bool { return p != nil && (p.Pending() || p.Waiting()) }
