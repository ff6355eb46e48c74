package empty

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// emptied tells in short what is done about empty nodes.
func emptied(f *disrupttest.Fleet, needed ...string) string {
	hosts := make(map[string]bool)
	for _, name := range needed {
		hosts[name] = true
	}
	r := removeEmpty(f.S.Seal(), hosts, time.Minute)
	return disrupttest.Outcome(&r)
}

// Which empty nodes go: n1 carries nothing and has been quiet for an hour, and its pool waits for a minute.
func TestWhichEmptyNodesGo(t *testing.T) {
	ours := func(f *disrupttest.Fleet) {
		disrupttest.Taint(f.S, 0)
		f.Say("n1", cluster.DisruptionReason, string(command.Empty), f.Now)
	}
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"one", func(f *disrupttest.Fleet) {}, "fence/n1"},
		{"one that people keep", func(f *disrupttest.Fleet) { f.Host("n1").DoNotDisrupt = true }, ""},
		{"one whose claim people keep", func(f *disrupttest.Fleet) { f.Claim("n1").DoNotDisrupt = true }, ""},
		{"one with a daemon", func(f *disrupttest.Fleet) { f.Run("d", "n1", 1).Daemon = true }, "fence/n1"},
		{"one with a daemon that says no", func(f *disrupttest.Fleet) {
			f.Run("d", "n1", 1).Daemon = true
			f.Pod("d").DoNotDisrupt = true
		}, ""},
		{"one with a pod", func(f *disrupttest.Fleet) { f.Run("p", "n1", 1) }, ""},
		{"one in a move", func(f *disrupttest.Fleet) { f.Claim("n1").Move = "underutilized-x" }, ""},
		{"one that the cloud takes away", func(f *disrupttest.Fleet) {
			f.Claim("n1").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, ""},
		{"one whose claim is on its way out", func(f *disrupttest.Fleet) { f.Claim("n1").Deleting = f.Now }, ""},
		{"one whose node is on its way out", func(f *disrupttest.Fleet) { f.Host("n1").Deleting = f.Now }, ""},
		{"one that is not up", func(f *disrupttest.Fleet) { disrupttest.NotUp(f.Claim("n1")) }, ""},
		{"one that is being fenced", func(f *disrupttest.Fleet) { f.S.InFlight["fence/n1"] = true }, ""},
		{"one that is being opened", func(f *disrupttest.Fleet) { f.S.InFlight["unfence/n1"] = true }, ""},
		{"one that is being deleted", func(f *disrupttest.Fleet) { f.S.InFlight["delete/n1"] = true }, ""},
		{"one that somebody else fences", func(f *disrupttest.Fleet) { disrupttest.Taint(f.S, 0) }, ""},
		{"one that rests after pods came", func(f *disrupttest.Fleet) {
			f.Claim("n1").SavingRestUntil = f.Now.Add(time.Minute)
		}, ""},
		{"one that rests for long after a move", func(f *disrupttest.Fleet) {
			f.Claim("n1").SavingRestUntil = f.Now.Add(time.Hour)
		}, "fence/n1"},
		{"one that is not quiet", func(f *disrupttest.Fleet) { f.Claim("n1").LastPodEvent = f.Now }, ""},
		{"a pool that never consolidates", func(f *disrupttest.Fleet) { f.Pool.ConsolidateAfter.Never = true }, ""},
		{"a pool that is being deleted", func(f *disrupttest.Fleet) { f.Pool.Deleting = true }, ""},
		{"a static pool", func(f *disrupttest.Fleet) { f.Pool.Static = true }, ""},
		{"no budget", func(f *disrupttest.Fleet) { f.Pool.Budgets[0].Nodes = 0 }, ""},
		{"a dry run", func(f *disrupttest.Fleet) { f.Pool.Overrides.DryRun = true }, "would n1"},

		{"fenced: it goes", ours, "delete/n1"},
		{"fenced, and a pod has come", func(f *disrupttest.Fleet) {
			ours(f)
			f.Run("p", "n1", 1)
		}, "unfence/n1: , rests"},
		{"fenced, and the reason is written, but the fence is gone", func(f *disrupttest.Fleet) {
			ours(f)
			f.Host("n1").Taints = nil
		}, "fence/n1"},
		{"only the reason is written, and a pod has come", func(f *disrupttest.Fleet) {
			ours(f)
			f.Host("n1").Taints = nil
			f.Run("p", "n1", 1)
		}, "unfence/n1: "},

		// What was made for a move that was given up.
		{"a replacement whose move goes on", func(f *disrupttest.Fleet) {
			f.Claim("n1").Replaces = f.Fenced(command.Drifted, "n2")
		}, ""},
		{"a replacement of a pool that never consolidates", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.Never, f.Claim("n1").Replaces, f.Claim("n1").LastPodEvent = true, "drifted-x",
				time.Time{}
		}, "fence/n1"},
		{"a replacement of a pool that never consolidates, on which pods have run", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.Never, f.Claim("n1").Replaces = true, "drifted-x"
		}, ""},
		{"a new replacement that was to save money", func(f *disrupttest.Fleet) {
			stray(f, "underutilized-x", f.Now)
		}, "fence/n1"},
		{"a new replacement that was to save money, and a pod has been there just now", func(f *disrupttest.Fleet) {
			stray(f, "underutilized-x", f.Now)
			f.Claim("n1").LastPodEvent = f.Now.Add(-time.Second)
		}, ""},
		{"a new replacement of a node that has to go", func(f *disrupttest.Fleet) { stray(f, "drifted-x", f.Now) }, ""},
		{"a new node that is no replacement", func(f *disrupttest.Fleet) { stray(f, "", f.Now) }, ""},
		{"a new replacement, and a pod looks for a place", func(f *disrupttest.Fleet) {
			stray(f, "underutilized-x", f.Now)
			f.Run("p", "", 1)
		}, ""},
		{"a new replacement, and an owner wants more pods", func(f *disrupttest.Fleet) {
			stray(f, "underutilized-x", f.Now)
			f.S.Owners["web"] = cluster.Owner{UID: "web", Known: true, Desired: 9, Since: f.Now}
		}, ""},
		{"a new replacement, and a fence is going up", func(f *disrupttest.Fleet) {
			stray(f, "underutilized-x", f.Now)
			f.S.InFlight["fence/n2"] = true
		}, ""},
		{"a new replacement, and a fence is going up that is known", func(f *disrupttest.Fleet) {
			stray(f, "underutilized-x", f.Now)
			f.S.InFlight["fence/n2"], f.Claim("n2").Move = true, "drifted-y"
		}, "fence/n1"},
		{"a new replacement, and a fence is going up on a node that goes", func(f *disrupttest.Fleet) {
			stray(f, "underutilized-x", f.Now)
			f.S.InFlight["fence/n2"], f.Claim("n2").Deleting = true, f.Now
		}, "fence/n1"},
		{"a new replacement, and a fence is going up on a node of others", func(f *disrupttest.Fleet) {
			stray(f, "underutilized-x", f.Now)
			f.S.InFlight["fence/stranger"] = true
		}, "fence/n1"},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.S.Pods = f.S.Pods[1:]
		f.Pool.ConsolidateAfter.For = time.Minute
		c.change(f)
		if got := emptied(f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// stray makes n1 a node that no pod has reached, made for a move.
func stray(f *disrupttest.Fleet, move string, up time.Time) {
	c := f.Claim("n1")
	c.Replaces, c.LastPodEvent, c.Conditions[2].Since = move, time.Time{}, up
}

// Which replacements go before they are up, because the move is given up that they were made for.
func TestWhichReplacementsGoBeforeTheyAreUp(t *testing.T) {
	late := 10 * time.Minute
	joined := func(change func(f *disrupttest.Fleet, n *cluster.Node)) func(f *disrupttest.Fleet, c *cluster.Claim) {
		return func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Created, c.ProviderID, c.NodeName = f.Now.Add(-late), "cloud://new", "new"
			n := &cluster.Node{Name: "new", UID: "node-new", ProviderID: c.ProviderID, Ours: true}
			f.S.Nodes = append(f.S.Nodes, n)
			change(f, n)
		}
	}
	cases := []struct {
		name   string
		move   string
		change func(f *disrupttest.Fleet, c *cluster.Claim)
		want   string
	}{
		{"to save money", "underutilized-x", func(f *disrupttest.Fleet, c *cluster.Claim) {}, "delete/new"},
		{"to save money, and a pod looks for a place", "underutilized-x", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.Run("p", "", 1)
		}, ""},
		{"to save money, and it has joined", "underutilized-x", func(f *disrupttest.Fleet, c *cluster.Claim) {
			disrupttest.NotUp(f.Node("new2", "small"))
			c.Conditions = f.Claim("new2").Conditions
		}, ""},
		{"in place of a drifted node", "drifted-x", func(f *disrupttest.Fleet, c *cluster.Claim) {}, ""},
		{"in place of a drifted node, too late", "drifted-x", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Created = f.Now.Add(-late)
		}, "delete/new"},
		{"in place of a drifted node, too late, and it shows that others would be, too", "drifted-x",
			func(f *disrupttest.Fleet, c *cluster.Claim) {
				c.Created = f.Now.Add(-late)
				f.Drifted("n2")
			}, ""},
		{"in place of a drifted node, too late, and one has come up since", "drifted-x",
			func(f *disrupttest.Fleet, c *cluster.Claim) {
				c.Created = f.Now.Add(-late)
				f.Drifted("n2")
				f.Claim("n3").Replaces, f.Claim("n3").Created = "drifted-y", f.Now.Add(-time.Minute)
			}, "delete/new"},
		{"in place of a drifted node, too late, and one came up before", "drifted-x", func(f *disrupttest.Fleet,
			c *cluster.Claim) {
			c.Created = f.Now.Add(-late)
			f.Drifted("n2")
			f.Claim("n3").Replaces = "drifted-y"
		}, ""},
		{"in place of a drifted node, too late, and another is on its way", "drifted-x",
			func(f *disrupttest.Fleet, c *cluster.Claim) {
				c.Created = f.Now.Add(-late)
				f.Drifted("n2")
				other := *c
				other.Name, other.Created = "other", f.Now
				f.S.Claims = append(f.S.Claims, &other)
			}, ""},
		{"in place of a drifted node, too late, and the last drifted one goes", "drifted-x",
			func(f *disrupttest.Fleet, c *cluster.Claim) {
				c.Created = f.Now.Add(-late)
				f.Drifted("n2")
				f.Claim("n2").Deleting = f.Now
			}, "delete/new"},
		{"in place of a drifted node, too late, and another has been on its way for a while", "drifted-x",
			func(f *disrupttest.Fleet, c *cluster.Claim) {
				c.Created = f.Now.Add(-late)
				f.Drifted("n2")
				other := *c
				other.Name, other.Created = "other", f.Now.Add(-4*time.Minute)
				f.S.Claims = append(f.S.Claims, &other)
			}, ""},
		{"in place of drifted nodes, two too late, of which the younger shows that others would be, too", "drifted-x",
			func(f *disrupttest.Fleet, c *cluster.Claim) {
				c.Created = f.Now.Add(-late - time.Minute)
				f.Drifted("n2")
				other := *c
				other.Name, other.Created = "other", f.Now.Add(-late)
				f.S.Claims = append(f.S.Claims, &other)
			}, "delete/new"},
		{"in place of a drifted node, too late, and one of another pool is on its way", "drifted-x",
			func(f *disrupttest.Fleet, c *cluster.Claim) {
				c.Created = f.Now.Add(-late)
				other := *c
				other.Name, other.Pool, other.Created = "other", f.PoolOf("b").Name, f.Now
				f.S.Claims = append(f.S.Claims, &other)
			}, "delete/new"},
		{"too late, and its node has joined", "drifted-x", joined(func(f *disrupttest.Fleet, n *cluster.Node) {}),
			"delete/new"},
		{"too late, and its node is on its way out", "drifted-x", joined(func(f *disrupttest.Fleet, n *cluster.Node) {
			n.Deleting = f.Now
		}), ""},
		{"too late, and its node is being fenced", "drifted-x", joined(func(f *disrupttest.Fleet, n *cluster.Node) {
			f.S.InFlight["fence/new"] = true
		}), ""},
		{"too late, and a pod is on its node", "drifted-x", joined(func(f *disrupttest.Fleet, n *cluster.Node) {
			f.Run("p", "new", 1)
		}), ""},
		{"its move goes on", "underutilized-x", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.Claim("n2").Move = c.Replaces
		}, ""},
		{"it is only expected", "underutilized-x", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Expected = true
		}, ""},
		{"it is on its way out", "underutilized-x", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Deleting = f.Now
		}, ""},
		{"it is being deleted", "underutilized-x", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.S.InFlight["delete/new"] = true
		}, ""},
		{"people keep it", "underutilized-x", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.DoNotDisrupt = true
		}, ""},
		{"the planner fails on it", "underutilized-x", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.S.Quarantine.Claims = map[string]cluster.Failure{"new": {}}
		}, ""},
		{"it was not made for a move", "", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Created = f.Now.Add(-late)
		}, ""},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		claim := &cluster.Claim{Name: "new", UID: "uid-new", Pool: "default", Replaces: c.move,
			Created:    f.Now.Add(-time.Minute),
			Conditions: []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}}}
		f.S.Claims = append(f.S.Claims, claim)
		c.change(f, claim)
		r := removeEmpty(f.S.Seal(), nil, time.Minute)
		if got := disrupttest.Outcome(&r); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		for _, cmd := range r.Commands {
			if d, ok := cmd.(command.DeleteClaim); ok && d.Node != claim.NodeName {
				t.Errorf("%s: the node is %q, want %q", c.name, d.Node, claim.NodeName)
			}
		}
		if got := emptied(f, "new"); got != "" {
			t.Errorf("%s, and a pod is to go there: %q", c.name, got)
		}
	}
}
