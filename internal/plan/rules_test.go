package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Whatever the cloud makes of the new nodes, kube-scheduler lets every pod in where the plan wants it, and at the end
// all rules hold between all pods.
func TestRulesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.drawLeaving(t)
		s := w.snapshot(nil)
		p := plan.Make(s, defaultPolicy(), nil, nil)
		seed := rapid.Int64().Draw(t, "seed")
		for i := range int64(3) {
			st, no := played(s, &p, seed+i)
			if no != "" {
				t.Fatalf("kube-scheduler refuses %s\n%s", no, w.describe(&p))
			}
			if no := st.settled(); no != "" {
				t.Fatalf("at the end %s\n%s", no, w.describe(&p))
			}
		}
	})
}

// Where nothing is scarce, a pod that is left over would find no place on any node of the plan, nor on one more node.
// Left aside are pools that want to choose among types (what they can buy depends on what else is on the node), pods
// that are tied to other classes (who comes first then matters), pods whose rules contradict each other, and ports that
// daemons may want, too.
func TestNobodyIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.drawLeaving(t)
		w.freely()
		s := w.snapshot(nil)
		p := plan.Make(s, defaultPolicy(), nil, nil)
		seed := rapid.Int64().Draw(t, "seed")
		helped := make(map[string]int)
		const plays = 4
		for i := range int64(plays) {
			st, no := played(s, &p, seed+i)
			if no != "" {
				return // another property's matter
			}
			for i := range p.Placement.Unplaced {
				u := &p.Placement.Unplaced[i]
				if st.entangled(u.Pod) || torn(u.Pod) || len(u.Pod.Class.Ports) > 0 && len(s.Daemons) > 0 {
					continue
				}
				if where := st.welcome(copyOf(u.Pod)); where != "" {
					helped[u.Pod.Name]++
					if helped[u.Pod.Name] == plays {
						t.Fatalf("%s is refused (%s), but %s would take it\n%s", u.Pod.Name, render.Unplaced(u), where,
							w.describe(&p))
					}
				}
			}
		}
	})
}

// freely lifts what pools insist on: limits, and a choice of types.
func (w *world) freely() {
	for _, pool := range w.pools {
		pool.Template.Requirements = pool.Template.Requirements.Without(cluster.InstanceTypeLabel)
		pool.Limits = cluster.Limits{}
	}
}

// entangled reports whether rules tie the pod to planned pods of other classes.
func (st *playback) entangled(p *cluster.Pod) bool {
	for q := range st.planned {
		if q.Class == p.Class && q.Namespace == p.Namespace {
			continue
		}
		for _, r := range q.Class.Rules {
			if st.selects(r, p) {
				return true
			}
		}
		for _, r := range p.Class.Rules {
			if st.selects(r, q) {
				return true
			}
		}
	}
	return false
}

// torn reports whether the pod wants to be with others and to be spread over the same domains.
func torn(p *cluster.Pod) bool {
	for _, a := range p.Class.Rules {
		for _, b := range p.Class.Rules {
			if a.Kind != cluster.Spread && b.Kind == cluster.Spread && a.TopologyKey == b.TopologyKey {
				return true
			}
		}
	}
	return false
}

// welcome finds a node that would take the pod, among those that are there and those that one more claim could become.
func (st *playback) welcome(p *cluster.Pod) string {
	for _, n := range st.nodes {
		if !st.open[n.Name] && st.objection(p, n) == "" {
			return n.Name
		}
	}
	nodes, pods := len(st.nodes), len(st.pods)
	for _, pool := range st.s.Pools {
		if !pool.IsUsable() {
			continue
		}
		for _, f := range st.buyable(pool) {
			n := st.add("one-more", f, pool.Template.Taints)
			no := st.objection(p, n)
			st.nodes, st.pods = st.nodes[:nodes], st.pods[:pods]
			if no == "" {
				return fmt.Sprintf("a new node of %s (%v)", pool.Name, f.labels)
			}
		}
	}
	return ""
}

// buyable are the nodes that the pool could buy.
func (st *playback) buyable(pool *cluster.Pool) []future {
	var out []future
	fixed := pool.Template.Labels.With(cluster.PoolLabel, pool.Name).With(cluster.RegisteredLabel,
		"true").With(cluster.InitializedLabel, "true")
	for i := range pool.Catalog.Offerings {
		o := &pool.Catalog.Offerings[i]
		kind := &pool.Catalog.Types[o.Type]
		tries, ok := []cluster.Labels{o.Labels.Merge(fixed)}, o.Available
		for _, l := range fixed {
			value, known := o.Labels.Get(l.Key)
			ok = ok && (!known || value == l.Value)
		}
		for _, e := range pool.Template.Requirements {
			value, known := tries[0].Get(e.Key)
			ok = ok && (!known || e.Values.Matches(value, true))
			if list, _ := e.Values.Listed(); !known {
				tries = openLabels(tries[0], e.Key, list)
			}
		}
		for _, labels := range tries {
			f := future{labels: labels, kind: kind, daemons: st.daemonsOnAny(tries, pool)}
			if ok && st.bears(f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// daemonsOnAny are those that come with some value of an open label.
func (st *playback) daemonsOnAny(tries []cluster.Labels, pool *cluster.Pool) []*cluster.Daemon {
	var out []*cluster.Daemon
	for _, d := range st.s.Daemons {
		if openLands(d.Class, tries, pool.Template.Taints) {
			out = append(out, d)
		}
	}
	return out
}

// bears reports whether a node is large enough for its daemons.
func (st *playback) bears(f future) bool {
	room := f.kind.Allocatable
	for _, d := range f.daemons {
		room = room.Sub(d.Class.Requests)
	}
	return resource.Vector{}.Within(room)
}

// crossed reports whether pods that have rules are counted by rules of other classes: then it depends on who is bound
// first whether all get in, and only the next plan can tell.
func crossed(s *cluster.Snapshot) bool {
	j := judge{namespaces: s.Namespaces}
	for _, p := range s.Pending() {
		for _, q := range s.Pending() {
			if p.Class == q.Class && p.Namespace == q.Namespace || len(q.Class.Rules) == 0 {
				continue
			}
			if slices.ContainsFunc(p.Class.Rules, func(r *cluster.Rule) bool { return j.selects(r, q) }) {
				return true
			}
		}
	}
	return false
}

// Preferences choose among near-equal answers: they never make the nodes dearer to speak of, and nobody loses a place
// to them, as long as nothing is scarce. The price is never below what was proven to be the least.
func TestPreferencesCostLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.freely()
		s := w.snapshot(nil)
		respect, ignore := defaultPolicy(), defaultPolicy()
		ignore.Schedule.IgnorePreferences = true
		a, b := plan.Make(s, respect, nil, nil), plan.Make(s, ignore, nil, nil)
		for _, p := range []*plan.Plan{&a, &b} {
			if p.Placement.Bound > p.Placement.Price+1e-9 {
				t.Fatalf("price %f is below the bound %f\n%s", p.Placement.Price, p.Placement.Bound, w.describe(p))
			}
		}
		if len(a.Placement.Unplaced) < len(b.Placement.Unplaced) {
			return
		}
		if len(a.Placement.Unplaced) > len(b.Placement.Unplaced) {
			t.Fatalf("%d pods wait with preferences, %d without\n%s\n%s", len(a.Placement.Unplaced),
				len(b.Placement.Unplaced), w.describe(&a), w.describe(&b))
		}
		if a.Placement.Price > 1.1*b.Placement.Price+1e-9 {
			t.Fatalf("preferences cost $%.3f instead of $%.3f\n%s\n%s", a.Placement.Price, b.Placement.Price,
				w.describe(&a), w.describe(&b))
		}
	})
}
