package execute

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
)

// What begins of what has to be: n1 and n2 have drifted, n1 first. While pods are being counted only fences go up.
func TestWhichDriftedNodesBegin(t *testing.T) {
	since := func(f *disrupttest.Fleet, name string, ago time.Duration) {
		c := f.Claim(name)
		c.Conditions[len(c.Conditions)-1].Since = f.Now.Add(-ago)
	}
	both := "fence/n1; fence/n2; begin n1 $4; begin n2 $4"
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
		counts string // the same while pods are being counted; as above if it is empty
	}{
		{"both", func(f *disrupttest.Fleet) {}, both, ""},
		{"a static pool, and there is no room for pods", func(f *disrupttest.Fleet) {
			f.Static1()
			f.Run("x", "n2", 4)
			f.Run("y", "n3", 4)
		}, "fence/n1; fence/n2; begin n1 $4; begin n2 $4", ""},
		{"a static pool that has made another before, on which pods have no room", func(f *disrupttest.Fleet) {
			f.Static1()
			f.Replaced(drift.MoveID(f.Claim("n1")), "new", "small")
			for i, node := range []string{"n1", "n2", "n3", "new"} {
				f.Run(fmt.Sprint("q", i), node, []int{5, 4, 4, 2}[i])
			}
		}, "fence/n1; fence/n2; begin n1 $4; begin n2 $4", ""},
		{"another pool waits for a budget that allows none", func(f *disrupttest.Fleet) {
			f.Single()
			f.Host("n3").Ready = false
			b := f.PoolOf("b")
			b.Budgets = []cluster.Budget{{Active: true}}
			f.Claim("n2").Pool = "b"
		}, "eager", ""},
		{"one at a time, the first that drifted", func(f *disrupttest.Fleet) {
			f.Single()
			since(f, "n2", 2*time.Hour)
		}, "fence/n2; begin n2 $4; eager", ""},
		{"one at a time, by name", func(f *disrupttest.Fleet) { f.Single() }, "fence/n1; begin n1 $4; eager", ""},
		{"one at a time, one that carries nothing first", func(f *disrupttest.Fleet) {
			f.Single()
			f.S.Pods = append(f.S.Pods[:1], f.S.Pods[2])
		}, "fence/n2; begin n2 $4; eager", ""},
		{"none", func(f *disrupttest.Fleet) { f.Pool.Budgets[0].Nodes = 0 }, "", ""},
		{"another is out", func(f *disrupttest.Fleet) { f.Single(); f.Host("n3").Ready = false }, "eager", ""},
		{"one has not been told of its drift", func(f *disrupttest.Fleet) {
			f.Claim("n2").Conditions = f.Claim("n2").Conditions[:3]
		}, "fence/n1; begin n1 $4", ""},
		{"one is as it should be again", func(f *disrupttest.Fleet) {
			f.Claim("n2").DriftedFrom = ""
		}, "fence/n1; begin n1 $4", ""},
		{"one is fenced by another part of the plan", func(f *disrupttest.Fleet) {
			f.O.Commands = []command.Command{command.Fence{Node: "n2"}}
		}, "fence/n1; begin n1 $4", ""},
		{"the pool only wants to be told", func(f *disrupttest.Fleet) {
			f.Pool.Overrides.DryRun = true
		}, "would n1; would n2", "nothing"},
		{"the pool is being deleted", func(f *disrupttest.Fleet) { f.Pool.Deleting = true }, "", ""},
		{"pods have nowhere to go", func(f *disrupttest.Fleet) {
			f.Pool.NodeClass.Ready = false
			f.Run("new", "n3", 1)
		},
			"unfence/n2: PodsStranded, rests; fence/n1; begin n1 $4; give up n2: PodsStranded",
			"fence/n1; begin n1 $4"},
		{"one is under way", func(f *disrupttest.Fleet) {
			f.Fenced(command.Drifted, "n1")
		}, "fence/n2; begin n2 $4; want $1", "fence/n2; begin n2 $4"},
		{"one is under way, one at a time", func(f *disrupttest.Fleet) {
			f.Single()
			f.Fenced(command.Drifted, "n1")
		}, "delete/n1; eager", "eager"},
		{"one is under way that may not go", func(f *disrupttest.Fleet) {
			f.Single()
			f.Fenced(command.Drifted, "n1")
			f.Claim("n1").DoNotDisrupt = true
		},
			"unfence/n1: NodeDoNotDisrupt; fence/n2; begin n2 $4; give up n1: NodeDoNotDisrupt",
			"fence/n2; begin n2 $4"},
		{"two are under way where one may", func(f *disrupttest.Fleet) {
			f.Single()
			f.Fenced(command.Drifted, "n1")
			f.Begins(2 * time.Minute)
			f.Fenced(command.Drifted, "n2")
		},
			"delete/n1; unfence/n2: BudgetBlocks; give up n2: BudgetBlocks", "nothing"},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Drifted("n1", "n2")
		c.change(f)
		if got := sorted(carry(f)); got != sorted(c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if c.counts == "" {
			c.counts = c.want
		}
		r := StartRequired(f.S.Seal(), f.Set, input(f))
		if got := sorted(disrupttest.Outcome(&r)); got != sorted(strings.TrimPrefix(c.counts, "nothing")) {
			t.Errorf("%s, while pods are counted: %q, want %q", c.name, got, c.counts)
		}
	}
}

// sorted puts the parts of an outcome into order where that says nothing.
func sorted(text string) string {
	parts := strings.Split(text, "; ")
	for i := range parts {
		for j := i; j > 0 && parts[j] < parts[j-1]; j-- {
			parts[j], parts[j-1] = parts[j-1], parts[j]
		}
	}
	return strings.Join(parts, "; ")
}

// While pods are being counted nothing is looked at unless some node may have to go.
func TestWhetherAnythingIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *disrupttest.Fleet)
		want   bool
	}{
		"nothing":                 {func(f *disrupttest.Fleet) {}, false},
		"sick nodes are replaced": {func(f *disrupttest.Fleet) { f.O.Repair.Enabled = true }, true},
		"a pool has soft expiry": {func(f *disrupttest.Fleet) {
			f.Pool.Overrides.SoftExpiry = time.Hour
		}, true},
		"a node has drifted": {func(f *disrupttest.Fleet) { f.Drifted("n1") }, true},
		"a drifted node goes already": {func(f *disrupttest.Fleet) {
			f.Drifted("n1")
			f.Fenced(command.Drifted, "n1")
		}, false},
		"a drifted node is being ended": {func(f *disrupttest.Fleet) {
			f.Drifted("n1")
			f.Claim("n1").Deleting = f.Now
		}, false},
		"another node is in a move":      {func(f *disrupttest.Fleet) { f.Fenced(command.Underutilized, "n1") }, false},
		"another node is on its way out": {func(f *disrupttest.Fleet) { f.Claim("n1").Deleting = f.Now }, false},
	} {
		f := disrupttest.NewFleet()
		c.change(f)
		if got := anyRequired(f.S.Seal(), input(f)); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// After replacements have failed the node is tried again that has failed most often: the others rest for less.
func TestWhoHasFailedMostIsTriedAgain(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Drifted("n1", "n2", "n3")
	f.Claim("n1").Rests, f.Claim("n2").Rests, f.Claim("n3").Rests = 1, 3, 2
	late := f.Replaced(drift.MoveID(f.Claim("n1")), "late", "small") // it has not come up
	disrupttest.NotUp(late)
	late.Created = f.Now.Add(-20 * time.Minute)
	if got, want := carry(f), "fence/n2; begin n2 $4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		f.Claim(name).Rests = 0
	}
	if got, want := carry(f), "fence/n1; begin n1 $4"; got != want {
		t.Errorf("all alike: %q, want %q", got, want)
	}
}

// Who waits for a budget is looked at again when that changes.
func TestDriftWakesWhenABudgetChanges(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Drifted("n1")
	f.Pool.Budgets[0] = cluster.Budget{Active: true, ChangesAt: f.Now.Add(time.Hour)}
	if r, _ := Moves(f.S.Seal(), f.Set, input(f)); !r.WakeAt.Equal(f.Now.Add(time.Hour)) {
		t.Errorf("wakes at %s", r.WakeAt)
	}
}
