package disrupt

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Which nodes carry nothing for long enough, so that only budgets or a dry run hold them back: n1 has been empty for an
// hour.
func TestWhichNodesAreSpare(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *fleet)
		want   bool
	}{
		{"empty for an hour", func(f *fleet) {}, true},
		{"its pool wants that long", func(f *fleet) { f.pool.ConsolidateAfter.For = time.Hour }, true},
		{"its pool wants longer", func(f *fleet) { f.pool.ConsolidateAfter.For = time.Hour + time.Second }, false},
		{"its pool never consolidates", func(f *fleet) { f.pool.ConsolidateAfter.Never = true }, false},
		{"its pool waits longer for empty nodes", func(f *fleet) {
			f.pool.Overrides.QuietPeriods = map[string]cluster.NillableDuration{string(
				command.Empty): {For: 2 * time.Hour}}
		}, false},
		{"its pool is static", func(f *fleet) { f.pool.Static = true }, false},
		{"its pool is being deleted", func(f *fleet) { f.pool.Deleting = true }, false},
		{"its pool is gone", func(f *fleet) { f.claim("n1").Pool = "gone" }, false},
		{"it has no node", func(f *fleet) { f.s.Nodes = f.s.Nodes[1:] }, false},
		{"it goes in a move", func(f *fleet) { f.claim("n1").Move = "empty-x" }, false},
		{"it is not up", func(f *fleet) { notUp(f.claim("n1")) }, false},
		{"its claim is being deleted", func(f *fleet) { f.claim("n1").Deleting = f.now }, false},
		{"its node is being deleted", func(f *fleet) { f.host("n1").Deleting = f.now }, false},
		{"it is fenced", func(f *fleet) { taint(f.s, 0) }, false},
		{"it carries a pod", func(f *fleet) { f.run("p", "n1", 1) }, false},
		{"it carries the pod of a daemon", func(f *fleet) { f.run("p", "n1", 1).Daemon = true }, true},
	} {
		f := fleetOf("large: large:1")
		c.change(f)
		if got := IsRemovableEmpty(f.s.Seal(), f.claim("n1")); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// Which nodes are replaced because they come to their end, and when the plan looks again: n1 is to go in the last hour
// of its life, of which half an hour is left.
func TestWhichNodesComeToTheirEnd(t *testing.T) {
	begins := "fence/n1; begin n1 $4"
	for _, c := range []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"it has come", func(f *fleet) {}, begins},
		{"its pool wants no soft end", func(f *fleet) { f.pool.Overrides.SoftExpiry = 0 }, ""},
		{"its pool is being deleted", func(f *fleet) { f.pool.Deleting = true }, ""},
		{"its pool is static", func(f *fleet) { f.pool.Static, f.pool.Replicas, f.o.Static = true, 2, true }, ""},
		{"it never ends", func(f *fleet) { f.claim("n1").ExpireAfter.Never = true }, ""},
		{"it is being deleted", func(f *fleet) { f.claim("n1").Deleting = f.now }, ""},
		{"it has two hours more, and is being deleted", func(f *fleet) {
			f.claim("n1").ExpireAfter.For += 2 * time.Hour
			f.claim("n1").Deleting = f.now
		}, ""},
		{"it has two hours more", func(f *fleet) { f.claim("n1").ExpireAfter.For += 2 * time.Hour },
			"look again in 1h45m18s"},
		{"people keep it", func(f *fleet) { f.host("n1").DoNotDisrupt = true }, ""},
		{"it rests", func(f *fleet) { f.claim("n1").RestUntil = f.now.Add(7 * time.Minute) }, "look again in 7m0s"},
		{"the plan deletes it", func(f *fleet) {
			f.o.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, ""},
		{"the budget allows none", func(f *fleet) { f.pool.Budgets = []cluster.Budget{{Active: true}} }, ""},
		{"the budget allows one, and n2 ends before it", func(f *fleet) {
			f.single()
			f.claim("n2").UID = f.claim("n1").UID
			f.claim("n2").ExpireAfter.For = f.claim("n1").ExpireAfter.For - 10*time.Minute
		}, "fence/n2; begin n2 $2; eager"},
		{"the budget allows one, and n2 ends after it", func(f *fleet) {
			f.single()
			f.claim("n2").UID = f.claim("n1").UID
			f.claim("n2").ExpireAfter.For = f.claim("n1").ExpireAfter.For + 10*time.Minute
		}, begins + "; eager"},
	} {
		f := fleetOf("large: medium:; n1 stirred 2h")
		f.pool.Overrides.SoftExpiry = time.Hour
		f.claim("n1").ExpireAfter = cluster.NillableDuration{For: 3*time.Hour + 30*time.Minute}
		c.change(f)
		if got := f.told("start"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The time for going softly is never longer than a life, and there is none where the pool wants none.
func TestSoftEndsAreWithinALife(t *testing.T) {
	born := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	c := &cluster.Claim{UID: "uid", Created: born, ExpireAfter: cluster.NillableDuration{For: time.Hour}}
	at, soft := softExpiryTime(&cluster.Pool{Overrides: cluster.DisruptionOverrides{SoftExpiry: 48 * time.Hour}}, c)
	if !soft || at.Before(born) || at.After(born.Add(time.Hour)) {
		t.Errorf("a node that may live for an hour ends %s after it was born, softly %t", at.Sub(born), soft)
	}
	if _, soft := softExpiryTime(&cluster.Pool{}, c); soft {
		t.Error("a node ends softly whose pool does not want that")
	}
}

// Nodes of pools that never consolidate, or are gone, take pods of others at once; other nodes when they are quiet.
func TestWhichNodesAreSettled(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *fleet)
		want   bool
	}{
		{"quiet for an hour", func(f *fleet) { f.pool.ConsolidateAfter.For = time.Hour }, true},
		{"not for long enough", func(f *fleet) { f.pool.ConsolidateAfter.For = time.Hour + 1 }, false},
		{"its pool never consolidates", func(f *fleet) {
			f.pool.ConsolidateAfter = cluster.NillableDuration{Never: true, For: 2 * time.Hour}
		}, true},
		{"its pool is gone", func(f *fleet) {
			f.pool.ConsolidateAfter.For = 2 * time.Hour
			f.claim("n1").Pool = "gone"
		}, true},
	} {
		f := fleetOf("large:1")
		c.change(f)
		if got := IsQuietTarget(f.s.Seal(), f.set, f.claim("n1")); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
