package disrupt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// staticFleet has the fleet's pool ask for so many nodes. It has three.
func staticFleet(replicas int64) *fleet {
	f := newFleet()
	f.pool.Static, f.pool.Replicas = true, replicas
	return f
}

// static tells what is done to keep the number of nodes.
func (f *fleet) static() string {
	r := Static(f.s.Seal(), f.set.Schedule)
	var out []string
	created := 0
	for _, c := range r.Commands {
		switch c := c.(type) {
		case command.CreateClaim:
			created++
		case command.DeleteClaim:
			out = append(out, "delete "+c.Claim+" on "+c.Node)
		}
	}
	if created > 0 {
		out = append(out, fmt.Sprint("create ", created))
	}
	for _, n := range r.Notes {
		out = append(out, fmt.Sprintf("%s (%t)", n.Message, n.Warning))
	}
	return strings.Join(out, "; ")
}

func TestStaticPoolsKeepTheirNumber(t *testing.T) {
	cases := []struct {
		name   string
		asks   int64
		change func(f *fleet)
		want   string
	}{
		{"as many as there are", 3, func(f *fleet) {}, ""},
		{"two more", 5, func(f *fleet) {}, "create 2"},
		{"one less: the youngest of those with the fewest pods", 2, func(f *fleet) {
			f.claim("n2").Created = f.now
		}, "delete n2 on n2"},
		{"one less: by name if they are equally old", 2, func(f *fleet) {}, "delete n1 on n1"},
		{"a pool that is not static", 5, func(f *fleet) { f.pool.Static = false }, ""},
		{"a pool that is being deleted", 5, func(f *fleet) { f.pool.Deleting = true }, ""},
		{"one is on its way out", 3, func(f *fleet) { f.claim("n1").Deleting = f.now }, "create 1"},
		{"one is being deleted", 3, func(f *fleet) { f.s.InFlight["delete/n1"] = true }, "create 1"},
		{"one was made to replace another that is there", 2, func(f *fleet) {
			f.claim("n3").Replaces = f.fenced(command.Drifted, "n1")
		}, ""},
		{"one was made to replace another that is being deleted", 2, func(f *fleet) {
			f.claim("n3").Replaces = f.fenced(command.Drifted, "n1")
			f.s.InFlight["delete/n1"] = true
		}, ""},
		{"one was made to replace another that is being deleted, and that is one too many", 1, func(f *fleet) {
			f.claim("n3").Replaces = f.fenced(command.Drifted, "n1")
			f.s.InFlight["delete/n1"] = true
		}, "delete n2 on n2"},

		// What keeps a pool from growing.
		{"nothing is missing, and the pool can't be read", 3, func(f *fleet) {
			f.pool.Problems = []cluster.Problem{{Field: "spec.limits", Text: "odd"}}
		}, ""},
		{"the pool can't be read", 4, func(f *fleet) {
			f.pool.Problems = []cluster.Problem{{Field: "spec.limits", Text: "odd"}}
		}, "1 of 4 nodes are missing: spec.limits: odd (true)"},
		{"the class is not ready", 4, func(f *fleet) {
			f.pool.NodeClass = cluster.NodeClassState{Message: "no subnet"}
		}, "1 of 4 nodes are missing: no subnet (true)"},
		{"the catalog can't be read", 4, func(f *fleet) {
			f.pool.Catalog, f.pool.CatalogError = nil, "denied"
		}, "1 of 4 nodes are missing: denied (true)"},
		{"the catalog could not be read lately", 4, func(f *fleet) { f.pool.CatalogError = "denied" }, "create 1"},
		{"the catalog is not known yet", 4, func(f *fleet) { f.pool.Catalog = nil }, ""},
		{"the cloud refuses", 4, func(f *fleet) {
			f.pool.InBackoff, f.pool.BackoffCause = true, "quota"
		}, "1 of 4 nodes are missing: the cloud has refused the pool's launches: quota (true)"},
		{"on trial one finds out", 6, func(f *fleet) { f.pool.Probing = true }, "create 1"},
		{"on trial one finds out already", 6, func(f *fleet) {
			f.pool.Probing = true
			f.claim("n1").Conditions = nil
		}, ""},
		{"the limit leaves room for one", 6, func(f *fleet) {
			f.pool.Limits = cluster.Limits{HasNodes: true, Nodes: 4}
		},
			"create 1; 2 of 6 nodes are missing: spec.limits.nodes is 4 (true)"},

		// Who goes first.
		{"what is only asked for goes once it is there", 2, func(f *fleet) { f.claim("n3").Expected = true }, ""},
		{"what is only asked for goes before any that runs", 1, func(f *fleet) {
			f.claim("n3").Expected = true
		}, "delete n1 on n1"},
		{"what is only asked for is not deleted, though nothing has come of it", 1, func(f *fleet) {
			c := f.claim("n3")
			c.Expected, c.Conditions, f.s.Nodes = true, nil, f.s.Nodes[:2]
		}, "delete n1 on n1"},
		{"what is not launched before what has no node", 2, func(f *fleet) {
			f.claim("n3").Conditions, f.s.Nodes = nil, f.s.Nodes[:1]
		}, "delete n3 on "},
		{"what has no node before an empty one", 2, func(f *fleet) {
			f.s.Nodes, f.s.Pods = f.s.Nodes[:2], nil
		}, "delete n3 on "},
		{"an empty one before one with a pod", 2, func(f *fleet) {
			f.s.Pods = append(f.s.Pods[:1], f.s.Pods[2])
		}, "delete n2 on n2"},
		{"one with a daemon counts as empty", 2, func(f *fleet) { f.pod("p3").Daemon = true }, "delete n3 on n3"},
		{"fewer pods before more", 2, func(f *fleet) {
			f.run("more", "n1", 1)
			f.run("most", "n2", 1)
		}, "delete n3 on n3"},
		{"a node that people keep comes last", 2, func(f *fleet) {
			f.host("n1").DoNotDisrupt = true
			f.s.Pods = f.s.Pods[1:]
		}, "delete n2 on n2"},
		{"a claim that people keep comes last", 2, func(f *fleet) {
			f.claim("n1").DoNotDisrupt = true
			f.s.Pods = f.s.Pods[1:]
		}, "delete n2 on n2"},
		{"one whose pod says no comes last", 2, func(f *fleet) {
			f.pod("p1").DoNotDisrupt = true
			f.run("more", "n2", 1)
		}, "delete n3 on n3"},
	}
	for _, c := range cases {
		f := staticFleet(c.asks)
		c.change(f)
		if got := f.static(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A slot whose claim is on its way out gets its next claim under another name; one that is taken gets none.
func TestSlotsOfStaticPools(t *testing.T) {
	f := staticFleet(9)
	names := func(n int) (out []string) {
		for _, at := range newStaticSlots(f.s.Seal(), f.pool).takeSlots(n) {
			out = append(out, at.name)
		}
		return out
	}
	first := names(3)
	if len(first) != 3 || first[0] == first[1] || first[1] == first[2] {
		t.Fatalf("the names are %v", first)
	}
	f.s.Claims = append(f.s.Claims, &cluster.Claim{Name: first[1], Pool: "default"})
	if got := names(3); got[0] != first[0] || got[1] != first[2] || got[2] == first[1] {
		t.Errorf("with slot 1 taken: %v, want %s and %s first", got, first[0], first[2])
	}
	f.s.Claims[3].Deleting = f.now
	again := names(3)
	if again[0] != first[0] || again[1] == first[1] || again[2] != first[2] {
		t.Errorf("with slot 1 on its way out: %v, want another name for it", again)
	}
	// A second claim of the slot that stays takes it, whatever the first does.
	f.s.Claims = append(f.s.Claims, &cluster.Claim{Name: again[1], Pool: "default"})
	if got := names(2); got[0] != first[0] || got[1] != first[2] {
		t.Errorf("with the second claim of slot 1 there: %v, want %s and %s", got, first[0], first[2])
	}
}

// What becomes of a drifted node of a static pool that is fenced: it goes when the one in its place is up.
func TestWhatBecomesOfAStaticMove(t *testing.T) {
	made := func(f *fleet) *cluster.Claim { return f.replaced(f.claim("n1").Move, "new", "large") }
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"nothing is there in its place", func(f *fleet) {}, "want $1"},
		{"too late", func(f *fleet) {
			f.begins(10 * time.Minute)
		}, "unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"},
		{"one is on its way", func(f *fleet) { notUp(made(f)) }, ""},
		{"one is on its way for too long", func(f *fleet) {
			notUp(made(f))
			f.begins(10 * time.Minute)
		}, "unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"},
		{"one is on its way for too long for a first try", func(f *fleet) {
			notUp(made(f))
			f.begins(10 * time.Minute)
			f.rested(false, 0)
			f.pool.NodeClass.Ready = false // there is no other place for its pods
		}, ""},
		{"one is on its way for too long for any try", func(f *fleet) {
			notUp(made(f))
			f.begins(20 * time.Minute)
			f.rested(false, 0)
		},
			"unfence/n1: ReplacementsLate, rests; give up n1: ReplacementsLate"},
		{"one is up", func(f *fleet) { made(f) }, "delete/n1"},
		{"one is up and on its way out", func(f *fleet) { made(f).Deleting = f.now }, "want $1"},
		{"one is up from an earlier try", func(f *fleet) { made(f).Created = f.now.Add(-time.Hour) }, "want $1"},
		{"one is up in place of another", func(f *fleet) { made(f).Replaces = "drifted-other" }, "want $1"},
		{"one is up, and the fence is being put up again", func(f *fleet) {
			made(f)
			f.s.InFlight["fence/n1"] = true
		}, ""},
		{"one is up, and the fence has been put up for too long", func(f *fleet) {
			made(f)
			f.begins(10 * time.Minute)
			f.s.InFlight["fence/n1"] = true
		}, "give up n1: ReplacementsLate"},
		{"it is as it should be again", func(f *fleet) {
			made(f)
			f.claim("n1").DriftedFrom = ""
		}, "unfence/n1: NoLongerDue; give up n1: NoLongerDue"},
		{"the gate is off", func(f *fleet) {
			made(f)
			f.o.Static = false
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the pool can't be read", func(f *fleet) {
			f.pool.Problems = []cluster.Problem{{}}
		}, "unfence/n1: PoolUnknown; give up n1: PoolUnknown"},
		{"the class is not ready", func(f *fleet) { f.pool.NodeClass.Ready = false }, ""},
		{"the catalog is not known", func(f *fleet) { f.pool.Catalog = nil }, ""},
		{"the cloud refuses", func(f *fleet) { f.pool.InBackoff = true }, ""},
		{"the limit leaves no room", func(f *fleet) { f.pool.Limits = cluster.Limits{HasNodes: true, Nodes: 3} }, ""},
	}
	for _, c := range cases {
		f := staticFleet(3)
		f.o.Static = true
		f.drifted("n1")
		f.fenced(command.Drifted, "n1")
		c.change(f)
		if got := f.carry(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// As many drifted nodes of a static pool are fenced as nodes can be made in their place.
func TestHowManyDriftedStaticNodesBegin(t *testing.T) {
	limit := func(n int64) func(f *fleet) {
		return func(f *fleet) { f.pool.Limits = cluster.Limits{HasNodes: true, Nodes: n} }
	}
	cases := []struct {
		name   string
		change func(f *fleet)
		want   int
	}{
		{"no limit", func(f *fleet) {}, 3},
		{"room for two", limit(5), 2},
		{"room for none", limit(3), 0},
		{"room for two of which one is being fenced", func(f *fleet) {
			limit(5)(f)
			f.s.InFlight["fence/n3"] = true
		}, 1},
		{"room for two of which one is for a fenced node", func(f *fleet) {
			limit(5)(f)
			f.fenced(command.Drifted, "n3")
		}, 1},
		{"room for two beside one that is there", func(f *fleet) {
			limit(6)(f)
			f.replaced(f.fenced(command.Drifted, "n3"), "new", "large")
		}, 2},
		{"a budget of one", func(f *fleet) { f.pool.Budgets[0] = cluster.Budget{Nodes: 1, Active: true} }, 1},
		{"a move that is given up takes none", func(f *fleet) {
			limit(5)(f)
			f.fenced(command.Drifted, "n3")
			f.claim("n3").DriftedFrom = ""
		}, 2},
		{"a move of another static pool takes none", func(f *fleet) {
			limit(5)(f)
			other := *f.pool
			other.Name, other.Limits = "other", cluster.Limits{HasNodes: true, Nodes: 1}
			f.s.Pools = append(f.s.Pools, &other)
			f.node("n4", "large").Pool = "other"
			f.drifted("n4")
			f.fenced(command.Drifted, "n4")
		}, 2},
		{"a pool that is not static does not count", func(f *fleet) {
			limit(5)(f)
			other := *f.pool
			other.Name, other.Static, other.Limits = "other", false, cluster.Limits{}
			f.s.Pools = append(f.s.Pools, &other)
			f.claim("n3").Pool = "other"
			f.fenced(command.Drifted, "n3")
		}, 2},
		{"the pool can't be read", func(f *fleet) { f.pool.Problems = []cluster.Problem{{}} }, 0},
		{"the class is not ready", func(f *fleet) { f.pool.NodeClass.Ready = false }, 0},
		{"the catalog is not known", func(f *fleet) { f.pool.Catalog = nil }, 0},
		{"the cloud refuses", func(f *fleet) { f.pool.InBackoff = true }, 0},
		{"on trial", func(f *fleet) { f.pool.Probing = true }, 0},
		{"the gate is off", func(f *fleet) { f.o.Static = false }, 0},
		{"the pool is being deleted", func(f *fleet) { f.pool.Deleting = true }, 0},
	}
	for _, c := range cases {
		f := staticFleet(3)
		f.o.Static = true
		f.drifted("n1", "n2", "n3")
		c.change(f)
		r, _ := Execute(f.s.Seal(), f.set, f.o)
		if got := len(r.Begun); got != c.want {
			t.Errorf("%s: %d begin, want %d: %s", c.name, got, c.want, outcome(&r))
		}
	}
}
