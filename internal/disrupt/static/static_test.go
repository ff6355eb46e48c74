package static

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/render"
)

// keeps tells what is done to keep the number of nodes.
func keeps(f *disrupttest.Fleet) string {
	r := KeepReplicas(f.S.Seal(), f.Set.Schedule)
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
		out = append(out, fmt.Sprintf("%s (%t)", render.Text(n.Text), n.Warning))
	}
	return strings.Join(out, "; ")
}

func TestStaticPoolsKeepTheirNumber(t *testing.T) {
	cases := []struct {
		name   string
		asks   int64
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"as many as there are", 3, func(f *disrupttest.Fleet) {}, ""},
		{"two more", 5, func(f *disrupttest.Fleet) {}, "create 2"},
		{"one less: the youngest of those with the fewest pods", 2, func(f *disrupttest.Fleet) {
			f.Claim("n2").Created = f.Now
		}, "delete n2 on n2"},
		{"one less: by name if they are equally old", 2, func(f *disrupttest.Fleet) {}, "delete n1 on n1"},
		{"a pool that is not static", 5, func(f *disrupttest.Fleet) { f.Pool.Static = false }, ""},
		{"a pool that is being deleted", 5, func(f *disrupttest.Fleet) { f.Pool.Deleting = true }, ""},
		{"one is on its way out", 3, func(f *disrupttest.Fleet) { f.Claim("n1").Deleting = f.Now }, "create 1"},
		{"one is being deleted", 3, func(f *disrupttest.Fleet) { f.S.InFlight["delete/n1"] = true }, "create 1"},
		{"one was made to replace another that is there", 2, func(f *disrupttest.Fleet) {
			f.Claim("n3").Replaces = f.Fenced(command.Drifted, "n1")
		}, ""},
		{"one was made to replace another that is being deleted", 2, func(f *disrupttest.Fleet) {
			f.Claim("n3").Replaces = f.Fenced(command.Drifted, "n1")
			f.S.InFlight["delete/n1"] = true
		}, ""},
		{"one was made to replace another that is being deleted, and that is one too many", 1,
			func(f *disrupttest.Fleet) {
				f.Claim("n3").Replaces = f.Fenced(command.Drifted, "n1")
				f.S.InFlight["delete/n1"] = true
			}, "delete n2 on n2"},

		// What keeps a pool from growing.
		{"nothing is missing, and the pool can't be read", 3, func(f *disrupttest.Fleet) {
			f.Pool.Problems = []cluster.Problem{{Field: "spec.limits", Text: "odd"}}
		}, ""},
		{"the pool can't be read", 4, func(f *disrupttest.Fleet) {
			f.Pool.Problems = []cluster.Problem{{Field: "spec.limits", Text: "odd"}}
		}, "1 of 4 nodes are missing: spec.limits: odd (true)"},
		{"the class is not ready", 4, func(f *disrupttest.Fleet) {
			f.Pool.NodeClass = cluster.NodeClassState{Message: "no subnet"}
		}, "1 of 4 nodes are missing: no subnet (true)"},
		{"the catalog can't be read", 4, func(f *disrupttest.Fleet) {
			f.Pool.Catalog, f.Pool.CatalogError = nil, "denied"
		}, "1 of 4 nodes are missing: denied (true)"},
		{"the catalog could not be read lately", 4, func(f *disrupttest.Fleet) {
			f.Pool.CatalogError = "denied"
		}, "create 1"},
		{"the catalog is not known yet", 4, func(f *disrupttest.Fleet) { f.Pool.Catalog = nil }, ""},
		{"the cloud refuses", 4, func(f *disrupttest.Fleet) {
			f.Pool.InBackoff, f.Pool.BackoffCause = true, "quota"
		}, "1 of 4 nodes are missing: the cloud has refused the pool's launches: quota (true)"},
		{"on trial one finds out", 6, func(f *disrupttest.Fleet) { f.Pool.Probing = true }, "create 1"},
		{"on trial one finds out already", 6, func(f *disrupttest.Fleet) {
			f.Pool.Probing = true
			f.Claim("n1").Conditions = nil
		}, ""},
		{"the limit leaves room for one", 6, func(f *disrupttest.Fleet) {
			f.Pool.Limits = cluster.Limits{HasNodes: true, Nodes: 4}
		},
			"create 1; 2 of 6 nodes are missing: spec.limits.nodes is 4 (true)"},

		// Who goes first.
		{"what is only asked for goes once it is there", 2, func(f *disrupttest.Fleet) {
			f.Claim("n3").Expected = true
		}, ""},
		{"what is only asked for goes before any that runs", 1, func(f *disrupttest.Fleet) {
			f.Claim("n3").Expected = true
		}, "delete n1 on n1"},
		{"what is only asked for is not deleted, though nothing has come of it", 1, func(f *disrupttest.Fleet) {
			c := f.Claim("n3")
			c.Expected, c.Conditions, f.S.Nodes = true, nil, f.S.Nodes[:2]
		}, "delete n1 on n1"},
		{"what is not launched before what has no node", 2, func(f *disrupttest.Fleet) {
			f.Claim("n3").Conditions, f.S.Nodes = nil, f.S.Nodes[:1]
		}, "delete n3 on "},
		{"what has no node before an empty one", 2, func(f *disrupttest.Fleet) {
			f.S.Nodes, f.S.Pods = f.S.Nodes[:2], nil
		}, "delete n3 on "},
		{"an empty one before one with a pod", 2, func(f *disrupttest.Fleet) {
			f.S.Pods = append(f.S.Pods[:1], f.S.Pods[2])
		}, "delete n2 on n2"},
		{"one with a daemon counts as empty", 2, func(f *disrupttest.Fleet) {
			f.Pod("p3").Daemon = true
		}, "delete n3 on n3"},
		{"fewer pods before more", 2, func(f *disrupttest.Fleet) {
			f.Run("more", "n1", 1)
			f.Run("most", "n2", 1)
		}, "delete n3 on n3"},
		{"a node that people keep comes last", 2, func(f *disrupttest.Fleet) {
			f.Host("n1").DoNotDisrupt = true
			f.S.Pods = f.S.Pods[1:]
		}, "delete n2 on n2"},
		{"a claim that people keep comes last", 2, func(f *disrupttest.Fleet) {
			f.Claim("n1").DoNotDisrupt = true
			f.S.Pods = f.S.Pods[1:]
		}, "delete n2 on n2"},
		{"one whose pod says no comes last", 2, func(f *disrupttest.Fleet) {
			f.Pod("p1").DoNotDisrupt = true
			f.Run("more", "n2", 1)
		}, "delete n3 on n3"},
	}
	for _, c := range cases {
		f := disrupttest.StaticFleet(c.asks)
		c.change(f)
		if got := keeps(f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A slot whose claim is on its way out gets its next claim under another name; one that is taken gets none.
func TestSlotsOfStaticPools(t *testing.T) {
	f := disrupttest.StaticFleet(9)
	names := func(n int) (out []string) {
		for _, at := range SlotsOf(f.S.Seal(), f.Pool).takeSlots(n) {
			out = append(out, at.Name)
		}
		return out
	}
	first := names(3)
	if len(first) != 3 || first[0] == first[1] || first[1] == first[2] {
		t.Fatalf("the names are %v", first)
	}
	f.S.Claims = append(f.S.Claims, &cluster.Claim{Name: first[1], Pool: "default"})
	if got := names(3); got[0] != first[0] || got[1] != first[2] || got[2] == first[1] {
		t.Errorf("with slot 1 taken: %v, want %s and %s first", got, first[0], first[2])
	}
	f.S.Claims[3].Deleting = f.Now
	again := names(3)
	if again[0] != first[0] || again[1] == first[1] || again[2] != first[2] {
		t.Errorf("with slot 1 on its way out: %v, want another name for it", again)
	}
	// A second claim of the slot that stays takes it, whatever the first does.
	f.S.Claims = append(f.S.Claims, &cluster.Claim{Name: again[1], Pool: "default"})
	if got := names(2); got[0] != first[0] || got[1] != first[2] {
		t.Errorf("with the second claim of slot 1 there: %v, want %s and %s", got, first[0], first[2])
	}
}
