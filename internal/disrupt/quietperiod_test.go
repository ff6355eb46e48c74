package disrupt_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Which nodes carry nothing for long enough, so that only budgets or a dry run hold them back: n1 has been empty for an
// hour.
func TestWhichNodesAreSpare(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   bool
	}{
		{"empty for an hour", func(f *disrupttest.Fleet) {}, true},
		{"its pool wants that long", func(f *disrupttest.Fleet) { f.Pool.ConsolidateAfter.For = time.Hour }, true},
		{"its pool wants longer", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.For = time.Hour + time.Second
		}, false},
		{"its pool never consolidates", func(f *disrupttest.Fleet) { f.Pool.ConsolidateAfter.Never = true }, false},
		{"its pool waits longer for empty nodes", func(f *disrupttest.Fleet) {
			f.Pool.Overrides.QuietPeriods = map[string]cluster.NillableDuration{string(
				command.Empty): {For: 2 * time.Hour}}
		}, false},
		{"its pool is static", func(f *disrupttest.Fleet) { f.Pool.Static = true }, false},
		{"its pool is being deleted", func(f *disrupttest.Fleet) { f.Pool.Deleting = true }, false},
		{"its pool is gone", func(f *disrupttest.Fleet) { f.Claim("n1").Pool = "gone" }, false},
		{"it has no node", func(f *disrupttest.Fleet) { f.S.Nodes = f.S.Nodes[1:] }, false},
		{"it goes in a move", func(f *disrupttest.Fleet) { f.Claim("n1").Move = "empty-x" }, false},
		{"it is not up", func(f *disrupttest.Fleet) { disrupttest.NotUp(f.Claim("n1")) }, false},
		{"its claim is being deleted", func(f *disrupttest.Fleet) { f.Claim("n1").Deleting = f.Now }, false},
		{"its node is being deleted", func(f *disrupttest.Fleet) { f.Host("n1").Deleting = f.Now }, false},
		{"it is fenced", func(f *disrupttest.Fleet) { disrupttest.Taint(f.S, 0) }, false},
		{"it carries a pod", func(f *disrupttest.Fleet) { f.Run("p", "n1", 1) }, false},
		{"it carries the pod of a daemon", func(f *disrupttest.Fleet) { f.Run("p", "n1", 1).Daemon = true }, true},
	} {
		f := disrupttest.FleetOf("large: large:1")
		c.change(f)
		if got := disrupt.IsRemovableEmpty(f.S.Seal(), f.Claim("n1")); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

// Nodes of pools that never consolidate, or are gone, take pods of others at once; other nodes when they are quiet.
func TestWhichNodesAreSettled(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   bool
	}{
		{"quiet for an hour", func(f *disrupttest.Fleet) { f.Pool.ConsolidateAfter.For = time.Hour }, true},
		{"not for long enough", func(f *disrupttest.Fleet) { f.Pool.ConsolidateAfter.For = time.Hour + 1 }, false},
		{"its pool never consolidates", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter = cluster.NillableDuration{Never: true, For: 2 * time.Hour}
		}, true},
		{"its pool is gone", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.For = 2 * time.Hour
			f.Claim("n1").Pool = "gone"
		}, true},
	} {
		f := disrupttest.FleetOf("large:1")
		c.change(f)
		if got := disrupt.IsQuietTarget(f.S.Seal(), f.Set, f.Claim("n1")); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
