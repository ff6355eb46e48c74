package execute

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// What becomes of a drifted node of a static pool that is fenced: it goes when the one in its place is up.
func TestWhatBecomesOfAStaticMove(t *testing.T) {
	made := func(f *disrupttest.Fleet) *cluster.Claim { return f.Replaced(f.Claim("n1").Move, "new", "large") }
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"nothing is there in its place", func(f *disrupttest.Fleet) {}, "want $1"},
		{"too late", func(f *disrupttest.Fleet) {
			f.Begins(10 * time.Minute)
		}, "unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"},
		{"one is on its way", func(f *disrupttest.Fleet) { disrupttest.NotUp(made(f)) }, ""},
		{"one is on its way for too long", func(f *disrupttest.Fleet) {
			disrupttest.NotUp(made(f))
			f.Begins(10 * time.Minute)
		}, "unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"},
		{"one is on its way for too long for a first try", func(f *disrupttest.Fleet) {
			disrupttest.NotUp(made(f))
			f.Begins(10 * time.Minute)
			rested(f, false, 0)
			f.Pool.NodeClass.Ready = false // there is no other place for its pods
		}, ""},
		{"one is on its way for too long for any try", func(f *disrupttest.Fleet) {
			disrupttest.NotUp(made(f))
			f.Begins(20 * time.Minute)
			rested(f, false, 0)
		},
			"unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"},
		{"one is up", func(f *disrupttest.Fleet) { made(f) }, "delete/n1"},
		{"one is up and on its way out", func(f *disrupttest.Fleet) { made(f).Deleting = f.Now }, "want $1"},
		{"one is up from an earlier try", func(f *disrupttest.Fleet) {
			made(f).Created = f.Now.Add(-time.Hour)
		}, "want $1"},
		{"one is up in place of another", func(f *disrupttest.Fleet) { made(f).Replaces = "drifted-other" }, "want $1"},
		{"one is up, and the fence is being put up again", func(f *disrupttest.Fleet) {
			made(f)
			f.S.InFlight["fence/n1"] = true
		}, ""},
		{"one is up, and the fence has been put up for too long", func(f *disrupttest.Fleet) {
			made(f)
			f.Begins(10 * time.Minute)
			f.S.InFlight["fence/n1"] = true
		}, "give up n1: ReplacementsLate"},
		{"it is as it should be again", func(f *disrupttest.Fleet) {
			made(f)
			f.Claim("n1").DriftedFrom = ""
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"the gate is off", func(f *disrupttest.Fleet) {
			made(f)
			f.O.Static = false
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the pool can't be read", func(f *disrupttest.Fleet) {
			f.Pool.Problems = []cluster.Problem{{}}
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the class is not ready", func(f *disrupttest.Fleet) { f.Pool.NodeClass.Ready = false }, ""},
		{"the catalog is not known", func(f *disrupttest.Fleet) { f.Pool.Catalog = nil }, ""},
		{"the cloud refuses", func(f *disrupttest.Fleet) { f.Pool.InBackoff = true }, ""},
		{"the limit leaves no room", func(f *disrupttest.Fleet) {
			f.Pool.Limits = cluster.Limits{HasNodes: true, Nodes: 3}
		}, ""},
	}
	for _, c := range cases {
		f := disrupttest.StaticFleet(3)
		f.O.Static = true
		f.Drifted("n1")
		f.Fenced(command.Drifted, "n1")
		c.change(f)
		if got := carry(f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// As many drifted nodes of a static pool are fenced as nodes can be made in their place.
func TestHowManyDriftedStaticNodesBegin(t *testing.T) {
	limit := func(n int64) func(f *disrupttest.Fleet) {
		return func(f *disrupttest.Fleet) { f.Pool.Limits = cluster.Limits{HasNodes: true, Nodes: n} }
	}
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   int
	}{
		{"no limit", func(f *disrupttest.Fleet) {}, 3},
		{"room for two", limit(5), 2},
		{"room for none", limit(3), 0},
		{"room for two of which one is being fenced", func(f *disrupttest.Fleet) {
			limit(5)(f)
			f.S.InFlight["fence/n3"] = true
		}, 1},
		{"room for two of which one is for a fenced node", func(f *disrupttest.Fleet) {
			limit(5)(f)
			f.Fenced(command.Drifted, "n3")
		}, 1},
		{"room for two beside one that is there", func(f *disrupttest.Fleet) {
			limit(6)(f)
			f.Replaced(f.Fenced(command.Drifted, "n3"), "new", "large")
		}, 2},
		{"a budget of one", func(f *disrupttest.Fleet) {
			f.Pool.Budgets[0] = cluster.Budget{Nodes: 1, Active: true}
		}, 1},
		{"a move that is given up takes none", func(f *disrupttest.Fleet) {
			limit(5)(f)
			f.Fenced(command.Drifted, "n3")
			f.Claim("n3").DriftedFrom = ""
		}, 2},
		{"a move of another static pool takes none", func(f *disrupttest.Fleet) {
			limit(5)(f)
			other := *f.Pool
			other.Name, other.Limits = "other", cluster.Limits{HasNodes: true, Nodes: 1}
			f.S.Pools = append(f.S.Pools, &other)
			f.Node("n4", "large").Pool = "other"
			f.Drifted("n4")
			f.Fenced(command.Drifted, "n4")
		}, 2},
		{"a pool that is not static does not count", func(f *disrupttest.Fleet) {
			limit(5)(f)
			other := *f.Pool
			other.Name, other.Static, other.Limits = "other", false, cluster.Limits{}
			f.S.Pools = append(f.S.Pools, &other)
			f.Claim("n3").Pool = "other"
			f.Fenced(command.Drifted, "n3")
		}, 2},
		{"the pool can't be read", func(f *disrupttest.Fleet) { f.Pool.Problems = []cluster.Problem{{}} }, 0},
		{"the class is not ready", func(f *disrupttest.Fleet) { f.Pool.NodeClass.Ready = false }, 0},
		{"the catalog is not known", func(f *disrupttest.Fleet) { f.Pool.Catalog = nil }, 0},
		{"the cloud refuses", func(f *disrupttest.Fleet) { f.Pool.InBackoff = true }, 0},
		{"on trial", func(f *disrupttest.Fleet) { f.Pool.Probing = true }, 0},
		{"the gate is off", func(f *disrupttest.Fleet) { f.O.Static = false }, 0},
		{"the pool is being deleted", func(f *disrupttest.Fleet) { f.Pool.Deleting = true }, 0},
	}
	for _, c := range cases {
		f := disrupttest.StaticFleet(3)
		f.O.Static = true
		f.Drifted("n1", "n2", "n3")
		c.change(f)
		r, _ := Moves(f.S.Seal(), f.Set, input(f))
		if got := len(r.Begun); got != c.want {
			t.Errorf("%s: %d begin, want %d: %s", c.name, got, c.want, disrupttest.Outcome(&r))
		}
	}
}
