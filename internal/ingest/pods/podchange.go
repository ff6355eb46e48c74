package pods

import (
	"reflect"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
)

// PodChange says what it means that a pod has come (no old), gone (no now) or changed.
func PodChange(old, now *cluster.Pod) change.Kind {
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

// IsQuietChange changes of a pod are those of which no plan comes out differently unless its node is on its way out.
func IsQuietChange(old, now *cluster.Pod) bool {
	return old != nil && old.Nominated == now.Nominated && samePlacement(old, now)
}

// needsPlace pods look for a place, or will once kube-scheduler has given up on one of their kind.
func needsPlace(p *cluster.Pod) bool { return p != nil && (p.IsPending() || p.AwaitsScheduler()) }
