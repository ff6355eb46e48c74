package drift

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// How long replacements of drifted nodes are watched, and why none can be made in a static pool.
func TestDriftOfPoolsIsToldApart(t *testing.T) {
	s := rolling(1, 0, 0)
	for _, c := range []struct{ own, set, want time.Duration }{{time.Hour, time.Minute, time.Hour},
		{0, time.Minute, time.Minute}, {0, 0, 10 * time.Minute}} {
		s.Pools[0].Overrides.CanaryWatch = c.own
		if got := NewRollouts(s, disrupt.Settings{DriftWatch: c.set}).canaryWatch(s.Pools[0]); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	for _, c := range []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   bool
	}{
		{"the limit leaves no room", func(f *disrupttest.Fleet) {}, true},
		{"the limit leaves room", func(f *disrupttest.Fleet) { f.Pool.Limits.Nodes = 4 }, false},
		{"the pool is not static", func(f *disrupttest.Fleet) { f.Pool.Static = false }, false},
		{"the pool can't be read", func(f *disrupttest.Fleet) { f.Pool.Problems = []cluster.Problem{{}} }, false},
		{"the class is not ready", func(f *disrupttest.Fleet) { f.Pool.NodeClass.Ready = false }, false},
		{"the catalog is not known", func(f *disrupttest.Fleet) { f.Pool.Catalog = nil }, false},
		{"nothing has drifted", func(f *disrupttest.Fleet) {
			c := f.Claim("n1")
			c.Conditions = c.Conditions[:3]
		}, false},
		{"what has drifted goes", func(f *disrupttest.Fleet) { f.Claim("n1").Deleting = f.Now }, false},
		{"one is under way", func(f *disrupttest.Fleet) { f.Fenced(command.Drifted, "n2") }, false},
		{"another move is under way", func(f *disrupttest.Fleet) { f.Fenced(command.Unhealthy, "n2") }, true},
		{"one is being fenced", func(f *disrupttest.Fleet) { f.S.InFlight["fence/n1"] = true }, false},
	} {
		f := disrupttest.StaticFleet(3)
		f.Pool.Limits = cluster.Limits{HasNodes: true, Nodes: 3}
		f.Drifted("n1")
		c.change(f)
		if got := NewRollouts(f.S.Seal(), f.Set).DriftCondition(f.Pool); strings.HasPrefix(got.Reason,
			"NoRoom") != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
