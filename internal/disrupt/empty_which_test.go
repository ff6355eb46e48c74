package disrupt

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// empty tells in short what is done about empty nodes.
func (f *fleet) empty(needed ...string) string {
	r := Empty(f.s.Seal(), setOf(needed), time.Minute)
	return outcome(&r)
}

// Which empty nodes go: n1 carries nothing and has been quiet for an hour, and its pool waits for a minute.
func TestWhichEmptyNodesGo(t *testing.T) {
	ours := func(f *fleet) { taint(f.s, 0); f.say("n1", cluster.DisruptionReason, string(command.Empty), f.now) }
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"one", func(f *fleet) {}, "fence/n1"},
		{"one that people keep", func(f *fleet) { f.host("n1").DoNotDisrupt = true }, ""},
		{"one whose claim people keep", func(f *fleet) { f.claim("n1").DoNotDisrupt = true }, ""},
		{"one with a daemon", func(f *fleet) { f.run("d", "n1", 1).Daemon = true }, "fence/n1"},
		{"one with a daemon that says no", func(f *fleet) {
			f.run("d", "n1", 1).Daemon = true
			f.pod("d").DoNotDisrupt = true
		}, ""},
		{"one with a pod", func(f *fleet) { f.run("p", "n1", 1) }, ""},
		{"one in a move", func(f *fleet) { f.claim("n1").Move = "underutilized-x" }, ""},
		{"one that the cloud takes away", func(f *fleet) {
			f.claim("n1").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, ""},
		{"one whose claim is on its way out", func(f *fleet) { f.claim("n1").Deleting = f.now }, ""},
		{"one whose node is on its way out", func(f *fleet) { f.host("n1").Deleting = f.now }, ""},
		{"one that is not up", func(f *fleet) { notUp(f.claim("n1")) }, ""},
		{"one that is being fenced", func(f *fleet) { f.s.InFlight["fence/n1"] = true }, ""},
		{"one that is being opened", func(f *fleet) { f.s.InFlight["unfence/n1"] = true }, ""},
		{"one that is being deleted", func(f *fleet) { f.s.InFlight["delete/n1"] = true }, ""},
		{"one that somebody else fences", func(f *fleet) { taint(f.s, 0) }, ""},
		{"one that rests after pods came", func(f *fleet) {
			f.claim("n1").SavingRestUntil = f.now.Add(time.Minute)
		}, ""},
		{"one that rests for long after a move", func(f *fleet) {
			f.claim("n1").SavingRestUntil = f.now.Add(time.Hour)
		}, "fence/n1"},
		{"one that is not quiet", func(f *fleet) { f.claim("n1").LastPodEvent = f.now }, ""},
		{"a pool that never consolidates", func(f *fleet) { f.pool.ConsolidateAfter.Never = true }, ""},
		{"a pool that is being deleted", func(f *fleet) { f.pool.Deleting = true }, ""},
		{"a static pool", func(f *fleet) { f.pool.Static = true }, ""},
		{"no budget", func(f *fleet) { f.pool.Budgets[0].Nodes = 0 }, ""},
		{"a dry run", func(f *fleet) { f.pool.Overrides.DryRun = true }, "would n1"},

		{"fenced: it goes", ours, "delete/n1"},
		{"fenced, and a pod has come", func(f *fleet) { ours(f); f.run("p", "n1", 1) }, "unfence/n1: , rests"},
		{"fenced, and the reason is written, but the fence is gone", func(f *fleet) {
			ours(f)
			f.host("n1").Taints = nil
		}, "fence/n1"},
		{"only the reason is written, and a pod has come", func(f *fleet) {
			ours(f)
			f.host("n1").Taints = nil
			f.run("p", "n1", 1)
		}, "unfence/n1: "},

		// What was made for a move that was given up.
		{"a replacement whose move goes on", func(f *fleet) {
			f.claim("n1").Replaces = f.fenced(command.Drifted, "n2")
		}, ""},
		{"a replacement of a pool that never consolidates", func(f *fleet) {
			f.pool.ConsolidateAfter.Never, f.claim("n1").Replaces, f.claim("n1").LastPodEvent = true, "drifted-x",
				time.Time{}
		}, "fence/n1"},
		{"a replacement of a pool that never consolidates, on which pods have run", func(f *fleet) {
			f.pool.ConsolidateAfter.Never, f.claim("n1").Replaces = true, "drifted-x"
		}, ""},
		{"a new replacement that was to save money", func(f *fleet) {
			f.stray("underutilized-x", f.now)
		}, "fence/n1"},
		{"a new replacement that was to save money, and a pod has been there just now", func(f *fleet) {
			f.stray("underutilized-x", f.now)
			f.claim("n1").LastPodEvent = f.now.Add(-time.Second)
		}, ""},
		{"a new replacement of a node that has to go", func(f *fleet) { f.stray("drifted-x", f.now) }, ""},
		{"a new node that is no replacement", func(f *fleet) { f.stray("", f.now) }, ""},
		{"a new replacement, and a pod looks for a place", func(f *fleet) {
			f.stray("underutilized-x", f.now)
			f.run("p", "", 1)
		}, ""},
		{"a new replacement, and an owner wants more pods", func(f *fleet) {
			f.stray("underutilized-x", f.now)
			f.s.Owners["web"] = cluster.Owner{UID: "web", Known: true, Desired: 9, Since: f.now}
		}, ""},
		{"a new replacement, and a fence is going up", func(f *fleet) {
			f.stray("underutilized-x", f.now)
			f.s.InFlight["fence/n2"] = true
		}, ""},
		{"a new replacement, and a fence is going up that is known", func(f *fleet) {
			f.stray("underutilized-x", f.now)
			f.s.InFlight["fence/n2"], f.claim("n2").Move = true, "drifted-y"
		}, "fence/n1"},
		{"a new replacement, and a fence is going up on a node that goes", func(f *fleet) {
			f.stray("underutilized-x", f.now)
			f.s.InFlight["fence/n2"], f.claim("n2").Deleting = true, f.now
		}, "fence/n1"},
		{"a new replacement, and a fence is going up on a node of others", func(f *fleet) {
			f.stray("underutilized-x", f.now)
			f.s.InFlight["fence/stranger"] = true
		}, "fence/n1"},
	}
	for _, c := range cases {
		f := newFleet()
		f.s.Pods = f.s.Pods[1:]
		f.pool.ConsolidateAfter.For = time.Minute
		c.change(f)
		if got := f.empty(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// stray makes n1 a node that no pod has reached, made for a move.
func (f *fleet) stray(move string, up time.Time) {
	c := f.claim("n1")
	c.Replaces, c.LastPodEvent, c.Conditions[2].Since = move, time.Time{}, up
}

// Which replacements go before they are up, because the move is given up that they were made for.
func TestWhichReplacementsGoBeforeTheyAreUp(t *testing.T) {
	late := 10 * time.Minute
	joined := func(change func(f *fleet, n *cluster.Node)) func(f *fleet, c *cluster.Claim) {
		return func(f *fleet, c *cluster.Claim) {
			c.Created, c.ProviderID, c.NodeName = f.now.Add(-late), "cloud://new", "new"
			n := &cluster.Node{Name: "new", UID: "node-new", ProviderID: c.ProviderID, Ours: true}
			f.s.Nodes = append(f.s.Nodes, n)
			change(f, n)
		}
	}
	cases := []struct {
		name   string
		move   string
		change func(f *fleet, c *cluster.Claim)
		want   string
	}{
		{"to save money", "underutilized-x", func(f *fleet, c *cluster.Claim) {}, "delete/new"},
		{"to save money, and a pod looks for a place", "underutilized-x", func(f *fleet, c *cluster.Claim) {
			f.run("p", "", 1)
		}, ""},
		{"to save money, and it has joined", "underutilized-x", func(f *fleet, c *cluster.Claim) {
			notUp(f.node("new2", "small"))
			c.Conditions = f.claim("new2").Conditions
		}, ""},
		{"in place of a drifted node", "drifted-x", func(f *fleet, c *cluster.Claim) {}, ""},
		{"in place of a drifted node, too late", "drifted-x", func(f *fleet, c *cluster.Claim) {
			c.Created = f.now.Add(-late)
		}, "delete/new"},
		{"in place of a drifted node, too late, and it shows that others would be, too", "drifted-x",
			func(f *fleet, c *cluster.Claim) {
				c.Created = f.now.Add(-late)
				f.drifted("n2")
			}, ""},
		{"in place of a drifted node, too late, and one has come up since", "drifted-x",
			func(f *fleet, c *cluster.Claim) {
				c.Created = f.now.Add(-late)
				f.drifted("n2")
				f.claim("n3").Replaces, f.claim("n3").Created = "drifted-y", f.now.Add(-time.Minute)
			}, "delete/new"},
		{"in place of a drifted node, too late, and one came up before", "drifted-x", func(f *fleet, c *cluster.Claim) {
			c.Created = f.now.Add(-late)
			f.drifted("n2")
			f.claim("n3").Replaces = "drifted-y"
		}, ""},
		{"in place of a drifted node, too late, and another is on its way", "drifted-x",
			func(f *fleet, c *cluster.Claim) {
				c.Created = f.now.Add(-late)
				f.drifted("n2")
				other := *c
				other.Name, other.Created = "other", f.now
				f.s.Claims = append(f.s.Claims, &other)
			}, ""},
		{"in place of a drifted node, too late, and the last drifted one goes", "drifted-x",
			func(f *fleet, c *cluster.Claim) {
				c.Created = f.now.Add(-late)
				f.drifted("n2")
				f.claim("n2").Deleting = f.now
			}, "delete/new"},
		{"in place of a drifted node, too late, and another has been on its way for a while", "drifted-x",
			func(f *fleet, c *cluster.Claim) {
				c.Created = f.now.Add(-late)
				f.drifted("n2")
				other := *c
				other.Name, other.Created = "other", f.now.Add(-4*time.Minute)
				f.s.Claims = append(f.s.Claims, &other)
			}, ""},
		{"in place of drifted nodes, two too late, of which the younger shows that others would be, too", "drifted-x",
			func(f *fleet, c *cluster.Claim) {
				c.Created = f.now.Add(-late - time.Minute)
				f.drifted("n2")
				other := *c
				other.Name, other.Created = "other", f.now.Add(-late)
				f.s.Claims = append(f.s.Claims, &other)
			}, "delete/new"},
		{"in place of a drifted node, too late, and one of another pool is on its way", "drifted-x",
			func(f *fleet, c *cluster.Claim) {
				c.Created = f.now.Add(-late)
				other := *c
				other.Name, other.Pool, other.Created = "other", f.poolOf("b").Name, f.now
				f.s.Claims = append(f.s.Claims, &other)
			}, "delete/new"},
		{"too late, and its node has joined", "drifted-x", joined(func(f *fleet, n *cluster.Node) {}), "delete/new"},
		{"too late, and its node is on its way out", "drifted-x", joined(func(f *fleet, n *cluster.Node) {
			n.Deleting = f.now
		}), ""},
		{"too late, and its node is being fenced", "drifted-x", joined(func(f *fleet, n *cluster.Node) {
			f.s.InFlight["fence/new"] = true
		}), ""},
		{"too late, and a pod is on its node", "drifted-x", joined(func(f *fleet, n *cluster.Node) {
			f.run("p", "new", 1)
		}), ""},
		{"its move goes on", "underutilized-x", func(f *fleet, c *cluster.Claim) {
			f.claim("n2").Move = c.Replaces
		}, ""},
		{"it is only expected", "underutilized-x", func(f *fleet, c *cluster.Claim) { c.Expected = true }, ""},
		{"it is on its way out", "underutilized-x", func(f *fleet, c *cluster.Claim) { c.Deleting = f.now }, ""},
		{"it is being deleted", "underutilized-x", func(f *fleet, c *cluster.Claim) {
			f.s.InFlight["delete/new"] = true
		}, ""},
		{"people keep it", "underutilized-x", func(f *fleet, c *cluster.Claim) { c.DoNotDisrupt = true }, ""},
		{"the planner fails on it", "underutilized-x", func(f *fleet, c *cluster.Claim) {
			f.s.Quarantine.Claims = map[string]cluster.Failure{"new": {}}
		}, ""},
		{"it was not made for a move", "", func(f *fleet, c *cluster.Claim) { c.Created = f.now.Add(-late) }, ""},
	}
	for _, c := range cases {
		f := newFleet()
		claim := &cluster.Claim{Name: "new", UID: "uid-new", Pool: "default", Replaces: c.move,
			Created:    f.now.Add(-time.Minute),
			Conditions: []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}}}
		f.s.Claims = append(f.s.Claims, claim)
		c.change(f, claim)
		r := Empty(f.s.Seal(), nil, time.Minute)
		if got := outcome(&r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		for _, cmd := range r.Commands {
			if d, ok := cmd.(command.DeleteClaim); ok && d.Node != claim.NodeName {
				t.Errorf("%s: the node is %q, want %q", c.name, d.Node, claim.NodeName)
			}
		}
		if got := f.empty("new"); got != "" {
			t.Errorf("%s, and a pod is to go there: %q", c.name, got)
		}
	}
}
