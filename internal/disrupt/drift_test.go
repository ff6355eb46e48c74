package disrupt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// What begins of what has to be: n1 and n2 have drifted, n1 first. While pods are being counted only fences go up.
func TestWhichDriftedNodesBegin(t *testing.T) {
	since := func(f *fleet, name string, ago time.Duration) {
		c := f.claim(name)
		c.Conditions[len(c.Conditions)-1].Since = f.now.Add(-ago)
	}
	both := "fence/n1; fence/n2; begin n1 $4; begin n2 $4"
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
		counts string // the same while pods are being counted; as above if it is empty
	}{
		{"both", func(f *fleet) {}, both, ""},
		{"a static pool, and there is no room for pods", func(f *fleet) {
			f.static1()
			f.run("x", "n2", 4)
			f.run("y", "n3", 4)
		}, "fence/n1; fence/n2; begin n1 $4; begin n2 $4", ""},
		{"a static pool that has made another before, on which pods have no room", func(f *fleet) {
			f.static1()
			f.replaced(driftMoveID(f.claim("n1")), "new", "small")
			for i, node := range []string{"n1", "n2", "n3", "new"} {
				f.run(fmt.Sprint("q", i), node, []int{5, 4, 4, 2}[i])
			}
		}, "fence/n1; fence/n2; begin n1 $4; begin n2 $4", ""},
		{"another pool waits for a budget that allows none", func(f *fleet) {
			f.single()
			f.host("n3").Ready = false
			b := f.poolOf("b")
			b.Budgets = []cluster.Budget{{Active: true}}
			f.claim("n2").Pool = "b"
		}, "eager", ""},
		{"one at a time, the first that drifted", func(f *fleet) {
			f.single()
			since(f, "n2", 2*time.Hour)
		}, "fence/n2; begin n2 $4; eager", ""},
		{"one at a time, by name", func(f *fleet) { f.single() }, "fence/n1; begin n1 $4; eager", ""},
		{"one at a time, one that carries nothing first", func(f *fleet) {
			f.single()
			f.s.Pods = append(f.s.Pods[:1], f.s.Pods[2])
		}, "fence/n2; begin n2 $4; eager", ""},
		{"none", func(f *fleet) { f.pool.Budgets[0].Nodes = 0 }, "", ""},
		{"another is out", func(f *fleet) { f.single(); f.host("n3").Ready = false }, "eager", ""},
		{"one has not been told of its drift", func(f *fleet) {
			f.claim("n2").Conditions = f.claim("n2").Conditions[:3]
		}, "fence/n1; begin n1 $4", ""},
		{"one is as it should be again", func(f *fleet) {
			f.claim("n2").DriftedFrom = ""
		}, "fence/n1; begin n1 $4", ""},
		{"one is fenced by another part of the plan", func(f *fleet) {
			f.o.Commands = []command.Command{command.Fence{Node: "n2"}}
		}, "fence/n1; begin n1 $4", ""},
		{"the pool only wants to be told", func(f *fleet) {
			f.pool.Overrides.DryRun = true
		}, "would n1; would n2", "nothing"},
		{"the pool is being deleted", func(f *fleet) { f.pool.Deleting = true }, "", ""},
		{"pods have nowhere to go", func(f *fleet) { f.pool.NodeClass.Ready = false; f.run("new", "n3", 1) },
			"unfence/n2: PodsStranded, rests; fence/n1; begin n1 $4; give up n2: PodsStranded",
			"fence/n1; begin n1 $4"},
		{"one is under way", func(f *fleet) {
			f.fenced(command.Drifted, "n1")
		}, "fence/n2; begin n2 $4; want $1", "fence/n2; begin n2 $4"},
		{"one is under way, one at a time", func(f *fleet) {
			f.single()
			f.fenced(command.Drifted, "n1")
		}, "delete/n1; eager", "eager"},
		{"one is under way that may not go", func(f *fleet) {
			f.single()
			f.fenced(command.Drifted, "n1")
			f.claim("n1").DoNotDisrupt = true
		},
			"unfence/n1: NodeDoNotDisrupt; fence/n2; begin n2 $4; give up n1: NodeDoNotDisrupt",
			"fence/n2; begin n2 $4"},
		{"two are under way where one may", func(f *fleet) {
			f.single()
			f.fenced(command.Drifted, "n1")
			f.begins(2 * time.Minute)
			f.fenced(command.Drifted, "n2")
		},
			"delete/n1; unfence/n2: BudgetBlocks; give up n2: BudgetBlocks", "nothing"},
	}
	for _, c := range cases {
		f := newFleet()
		f.drifted("n1", "n2")
		c.change(f)
		if got := sorted(f.carry()); got != sorted(c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if c.counts == "" {
			c.counts = c.want
		}
		r := StartRequired(f.s.Seal(), f.set, f.o)
		if got := sorted(outcome(&r)); got != sorted(strings.TrimPrefix(c.counts, "nothing")) {
			t.Errorf("%s, while pods are counted: %q, want %q", c.name, got, c.counts)
		}
	}
}

// single leaves one node at a time to the pool's budget.
func (f *fleet) single() { f.pool.Budgets[0] = cluster.Budget{Nodes: 1, Active: true} }

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
		change func(f *fleet)
		want   bool
	}{
		"nothing":                        {func(f *fleet) {}, false},
		"sick nodes are replaced":        {func(f *fleet) { f.o.Repair.Enabled = true }, true},
		"a pool has soft expiry":         {func(f *fleet) { f.pool.Overrides.SoftExpiry = time.Hour }, true},
		"a node has drifted":             {func(f *fleet) { f.drifted("n1") }, true},
		"a drifted node goes already":    {func(f *fleet) { f.drifted("n1"); f.fenced(command.Drifted, "n1") }, false},
		"a drifted node is being ended":  {func(f *fleet) { f.drifted("n1"); f.claim("n1").Deleting = f.now }, false},
		"another node is in a move":      {func(f *fleet) { f.fenced(command.Underutilized, "n1") }, false},
		"another node is on its way out": {func(f *fleet) { f.claim("n1").Deleting = f.now }, false},
	} {
		f := newFleet()
		c.change(f)
		if got := anyRequired(f.s.Seal(), f.o); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// After replacements have failed the node is tried again that has failed most often: the others rest for less.
func TestWhoHasFailedMostIsTriedAgain(t *testing.T) {
	f := newFleet()
	f.drifted("n1", "n2", "n3")
	f.claim("n1").Rests, f.claim("n2").Rests, f.claim("n3").Rests = 1, 3, 2
	late := f.replaced(driftMoveID(f.claim("n1")), "late", "small") // it has not come up
	notUp(late)
	late.Created = f.now.Add(-20 * time.Minute)
	if got, want := f.carry(), "fence/n2; begin n2 $4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		f.claim(name).Rests = 0
	}
	if got, want := f.carry(), "fence/n1; begin n1 $4"; got != want {
		t.Errorf("all alike: %q, want %q", got, want)
	}
}

// Who waits for a budget is looked at again when that changes.
func TestDriftWakesWhenABudgetChanges(t *testing.T) {
	f := newFleet()
	f.drifted("n1")
	f.pool.Budgets[0] = cluster.Budget{Active: true, ChangesAt: f.now.Add(time.Hour)}
	if r, _ := Execute(f.s.Seal(), f.set, f.o); !r.WakeAt.Equal(f.now.Add(time.Hour)) {
		t.Errorf("wakes at %s", r.WakeAt)
	}
}

// Hashes of templates are written where there are none that can be compared.
func TestWhatIsStamped(t *testing.T) {
	pool := "stamp-pool/default"
	cases := []struct {
		name   string
		change func(h *house)
		want   string
	}{
		{"all is written", func(h *house) {}, ""},
		{"the pool has another hash", func(h *house) { h.pool.WrittenHash.Hash = "1" }, pool},
		{"the pool has another version", func(h *house) { h.pool.WrittenHash.Version = "v2" }, pool},
		{"the pool is being deleted", func(h *house) {
			h.pool.Deleting, h.pool.WrittenHash.Hash, h.claim.Hash = true, "1", ""
		}, ""},
		{"the template can't be read", func(h *house) { h.pool.Hash, h.claim.Hash = "", "" }, ""},
		{"a claim has another hash", func(h *house) { h.claim.Hash = "1" }, ""},
		{"a claim has none", func(h *house) { h.claim.Hash = "" }, "c=2"},
		{"a claim has none, but a reason to drift", func(h *house) {
			h.claim.Hash = ""
			h.say(cluster.Drifted, PoolDrifted)
		}, "c=2"},
		{"a claim has one of another version", func(h *house) { h.claim.Hash, h.claim.HashVersion = "1", "v2" }, "c=2"},
		{"a claim of another version that has drifted from the template", func(h *house) {
			h.claim.Hash, h.claim.HashVersion = "1", "v2"
			h.say(cluster.Drifted, PoolDrifted)
		}, "c=1"},
		{"a claim of another version that has drifted otherwise", func(h *house) {
			h.claim.Hash, h.claim.HashVersion = "1", "v2"
			h.say(cluster.Drifted, "AMIDrift")
		}, "c=2"},
		{"a claim of another version that is no longer drifted", func(h *house) {
			h.claim.Hash, h.claim.HashVersion = "1", "v2"
			h.claim.Conditions = append(h.claim.Conditions, cluster.Condition{Type: cluster.Drifted,
				Status: cluster.False, Reason: PoolDrifted})
		}, "c=2"},
		{"a claim that is only expected", func(h *house) { h.claim.Hash, h.claim.Expected = "", true }, ""},
		{"a claim on its way out", func(h *house) { h.claim.Hash, h.claim.Deleting = "", h.s.Now }, ""},
	}
	for _, c := range cases {
		h := newHouse()
		h.pool.Hash, h.pool.HashVersion, h.claim.Hash, h.claim.HashVersion = "2", "v3", "2", "v3"
		h.pool.WrittenHash = cluster.TemplateHash{Hash: "2", Version: "v3"}
		c.change(h)
		got := ""
		for _, cmd := range TemplateHashes(h.s.Seal()) {
			switch cmd := cmd.(type) {
			case command.WritePoolHash:
				got += cmd.Key()
			case command.WriteClaimHash:
				got += fmt.Sprintf("%s=%s", cmd.Claim, cmd.Hash)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
