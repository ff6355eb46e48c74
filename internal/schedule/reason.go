package schedule

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Unplaced is a pod that found no place, and why.
type Unplaced struct {
	Pod *cluster.Pod
	// Unsupported names what keeps the pod from being planned for; Pools is empty then.
	Unsupported []string
	// Failed says that the planner has failed on pods like this one, and what there is to know about it.
	Failed *cluster.Failure
	// Deferred says that the pod waits for the next placement.
	Deferred bool
	// Held says that nodes which were made for the pod's owner are of no use to it, so that no more are made for now.
	Held PodHold
	// TakenVolume is a volume that only one pod may use and another does.
	TakenVolume string
	Pools       []PoolMiss
	// OtherPools is how many NodePools belong to other controllers, of which nobody here knows whether they give the
	// pod a node.
	OtherPools int
}

// PoolMiss says why a pool could not give the pod a node. Each offering is counted once, under the first thing that
// ruled it out.
type PoolMiss struct {
	Pool string
	// NotUsable says that the pool takes no part at all, and why.
	NotUsable reason.Text
	// Taint that the pod does not tolerate.
	Taint *cluster.Taint
	// Label is the key that the pool itself rules out; Similar is one like it that the pool has, if it does not know
	// this one. Wanted is what the pod asks of Label, or of Key if that alone leaves no type; empty if it is nothing
	// that could be met.
	Label, Similar string
	Wanted         require.Values
	// Counts of instance types, by what ruled them out.
	Types, ByRequirement, ByResources, ByOffering, ByPort, ByLimit, ByTopology int
	// Key is the label key that ruled out the most types; empty if no single one rules out any, as each of the pod's
	// terms fails for a reason of its own. ByVolume says that only the pod's volumes ask something of it, or of Label;
	// Has are the values that the pool has of it. Resource, Need and Best tell the nearest miss of size.
	Key        string
	ByVolume   bool
	Has        []string
	Resource   string
	Need, Best string
	// Crowded says that DaemonSets alone take more of the resource than there is.
	Crowded bool
	// Limit names the limited resource that has nothing left.
	Limit string
	RuleMiss
	// Advice is what people could do about types that have no capacity, in the cloud's words.
	Advice []string
	// MinValues names the key of which too few values were left.
	MinValues string
}

// RuleMiss says how a rule between pods leaves no domain of a pool.
type RuleMiss struct {
	// Rule is the one that left none; Inverse says that it is another pod's.
	Rule    *cluster.Rule
	Inverse bool
	// Waits says that a node on its way has to be launched before the rule can be judged; Unlabelled that no node of
	// the pool has the label that the rule is about.
	Waits, Unlabelled bool
}

// shortage fills in the nearest miss of size.
func (m *PoolMiss) shortage(names *resource.Names, dim int, need, best int64) {
	m.Resource, m.Need, m.Best = names.Name(dim), resource.Format(dim, need), resource.Format(dim, best)
}

// Volume names the volume that rules out a pool, if one does: then the reason is the pod's own, and not its class's.
func (u *Unplaced) Volume() string {
	for i := range u.Pools {
		if place := u.VolumePlaceOf(&u.Pools[i]); place != nil {
			return place.Volume
		}
	}
	return ""
}

// VolumePlaceOf is where the volume is that rules out the pool; nil if none does, or it is not known which.
func (u *Unplaced) VolumePlaceOf(m *PoolMiss) *cluster.VolumePlace {
	if !m.ByVolume || u.Pod == nil {
		return nil
	}
	key := cmp.Or(m.Label, m.Key)
	for i := range u.Pod.VolumePlaces {
		if place := &u.Pod.VolumePlaces[i]; place.Key == key && !slices.ContainsFunc(place.Values, func(v string) bool {
			return slices.Contains(m.Has, v)
		}) {
			return place
		}
	}
	return nil
}
