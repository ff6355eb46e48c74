package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
)

// disturbances is what people and clouds do to a cluster behind our back. Each takes one of the nodes that were there
// in the beginning, and does nothing where there is nothing left to do it to.
var disturbances = map[string]func(w *world, name string){
	"delete node": func(w *world, name string) {
		if w.nodes[name] != nil && w.nodes[name].Deleting.IsZero() {
			w.deleteNode(name)
		}
	},
	"delete claim": func(w *world, name string) {
		if c := w.claims[name]; c != nil && c.Deleting.IsZero() {
			c.Deleting = w.now
		}
	},
	"delete pool": func(w *world, name string) {
		c := w.claims[name]
		if c == nil || w.pools[c.Pool] == nil {
			return
		}
		delete(w.pools, c.Pool)
		for _, other := range w.claims { // Kubernetes' garbage collector follows the owner
			if other.Pool == c.Pool && other.Deleting.IsZero() {
				other.Deleting = w.now
			}
		}
	},
	"end instance": func(w *world, name string) {
		id := "model://" + name
		delete(w.instances, id)
		for _, n := range w.nodes {
			n.Ready = n.Ready && n.ProviderID != id
		}
	},
	"force claim away": func(w *world, name string) { delete(w.claims, name) },
	"force node away": func(w *world, name string) {
		if w.nodes[name] != nil {
			w.dropNode(name)
		}
	},
}

// Whoever deletes the node, the claim, the pool or the instance, in any order and by whatever force, everything else
// goes too: in the end every instance has a claim and a node, and the other way round.
func TestDisturbancesEndInACleanState(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(disturbances))
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for name, c := range w.claims {
			w.run(c)
			w.nodes[name].Ready = true
		}
		victims := slices.Sorted(maps.Keys(w.nodes))
		var story []string
		for range rapid.IntRange(1, 5).Draw(t, "blows") {
			if len(victims) == 0 {
				return
			}
			kind, name := rapid.SampledFrom(kinds).Draw(t, "blow"), rapid.SampledFrom(victims).Draw(t, "victim")
			story = append(story, kind+" "+name+"\n")
			disturbances[kind](w, name)
			for range rapid.IntRange(0, 4).Draw(t, "rounds between") {
				story = append(story, w.passTime())
			}
		}
		for range 24 {
			story = append(story, w.passTime())
		}
		if mess := w.mess(); mess != "" {
			t.Fatalf("%s\n%s", mess, strings.Join(story, "--\n"))
		}
	})
}

// passTime is a few seconds of life: a plan is made and carried out, and now and then the cloud is asked what it runs.
func (w *world) passTime() string {
	p := plan.Make(w.snapshot(nil), defaultPolicy(), nil, nil)
	nominated := w.printPlan(p, false)
	w.act(p, -1)
	w.now = w.now.Add(5 * time.Second)
	w.reap()
	if w.inventory == nil || w.now.Sub(w.inventory.At) > 10*time.Second {
		w.countPods()
	}
	w.rev++
	return nominated
}

// mess is what should not be there once all is settled.
func (w *world) mess() string {
	var out []string
	byUID := make(map[string]*cluster.Claim)
	for name, c := range w.claims {
		byUID[c.UID] = c
		if !c.Deleting.IsZero() {
			out = append(out, "claim "+name+" is still leaving")
		}
		if c.ProviderID != "" && w.instances[c.ProviderID] == nil {
			out = append(out, "claim "+name+" has no instance")
		}
	}
	for id, i := range w.instances {
		if byUID[i.ClaimUID] == nil {
			out = append(out, "instance "+id+" is nobody's")
		}
	}
	for name, n := range w.nodes {
		if c := w.claimOf(name); n.Ours && (c == nil || !n.Deleting.IsZero()) {
			out = append(out, fmt.Sprintf("node %s is left over", name))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
