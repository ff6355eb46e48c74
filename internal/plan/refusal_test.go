package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// minTypes is how many types the pool wants to choose from.
func minTypes(p *cluster.Pool) int {
	for _, e := range p.Template.Requirements {
		if e.Key == cluster.InstanceTypeLabel {
			return e.MinValues
		}
	}
	return 0
}

// A pod is refused only if no offering could have hosted it alone within what the limits leave, or not as many types as
// the pool wants to choose from.
func TestRefusalsAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		s := w.snapshot(nil)
		p := plan.Make(s, defaultPolicy(), nil, nil)
		used, count, _ := usage(s, &p)
		for i := range p.Placement.Unplaced {
			u := &p.Placement.Unplaced[i]
			if ruled(u) {
				continue
			}
			for _, pool := range s.Pools {
				if !pool.IsUsable() || pool.Limits.HasNodes && count[pool.Name] >= pool.Limits.Nodes {
					continue
				}
				// Where daemons make an offering of a type too small, types that host the pod one by one may not do so
				// in every combination with the others' zones and capacity types, and a claim must list such.
				if minTypes(pool) > 1 && len(s.Daemons) > 0 {
					continue
				}
				for _, term := range u.Pod.Class.Terms {
					class := *u.Pod.Class
					class.Terms = []require.Set{term}
					if hosts := hostTypes(s, pool, used[pool.Name], &class); len(hosts) >= max(minTypes(pool), 1) {
						t.Fatalf("%s is refused (%s), but %v could host it\n%s", u.Pod.Name, render.Unplaced(u), hosts,
							w.describe(&p))
					}
				}
			}
		}
	})
}

// ruled reports whether rules between pods, ports or volumes had a say in the refusal: TestNobodyIsForgotten looks into
// that.
func ruled(u *schedule.Unplaced) bool {
	return len(u.Pod.Class.Rules) > 0 || u.TakenVolume != "" ||
		slices.ContainsFunc(u.Pools, func(m schedule.PoolMiss) bool { return m.ByTopology > 0 || m.ByPort > 0 })
}

// hostTypes are the types that could host a pod of the class alone.
func hostTypes(s *cluster.Snapshot, pool *cluster.Pool, used resource.Vector, class *cluster.PodClass) map[string]bool {
	out := make(map[string]bool)
	left := pool.Limits.Amount.Sub(used)
	for i := range pool.Catalog.Offerings {
		o := &pool.Catalog.Offerings[i]
		kind := &pool.Catalog.Types[o.Type]
		if pool.Limits.Set[resource.CPU] && kind.Capacity[resource.CPU] > left[resource.CPU] {
			continue
		}
		if o.Available && couldHost(s, pool, o, kind, class) {
			out[kind.Name] = true
		}
	}
	return out
}

// couldHost tries each value that the pool leaves open.
func couldHost(s *cluster.Snapshot, pool *cluster.Pool, o *cluster.Offering, kind *cluster.Type,
	class *cluster.PodClass) bool {
	fixed := pool.Template.Labels.With(cluster.PoolLabel, pool.Name).With(cluster.RegisteredLabel,
		"true").With(cluster.InitializedLabel, "true")
	for _, l := range fixed {
		if value, known := o.Labels.Get(l.Key); known && value != l.Value {
			return false
		}
	}
	tries := []cluster.Labels{o.Labels.Merge(fixed)}
	for _, e := range pool.Template.Requirements {
		value, known := tries[0].Get(e.Key)
		if known && !e.Values.Matches(value, true) {
			return false
		}
		if list, _ := e.Values.Listed(); !known {
			tries = openLabels(tries[0], e.Key, list)
		}
	}
	return slices.ContainsFunc(tries, func(labels cluster.Labels) bool {
		room := kind.Allocatable
		for _, d := range s.Daemons {
			if openLands(d.Class, tries, pool.Template.Taints) {
				room = room.Sub(d.Class.Requests)
			}
		}
		return cluster.MayRunOn(class, labels, pool.Template.Taints) && class.Requests.Fits(room) &&
			resource.Vector{}.Within(room)
	})
}

func openLabels(labels cluster.Labels, key string, values []string) []cluster.Labels {
	var out []cluster.Labels
	for _, value := range values {
		out = append(out, labels.With(key, value))
	}
	return out
}

// openLands counts a daemon that comes with any value of the open label, as the planner does.
func openLands(class *cluster.PodClass, tries []cluster.Labels, taints []cluster.Taint) bool {
	return slices.ContainsFunc(tries, func(l cluster.Labels) bool { return cluster.MayRunOn(class, l, taints) })
}
