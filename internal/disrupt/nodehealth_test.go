package disrupt_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Where nodes are not to be repaired none is to be replaced for its health.
func TestNobodyIsSickWithoutTheGate(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Sicken(time.Hour, "n1")
	for _, enabled := range []bool{true, false} {
		f.O.Repair.Enabled = enabled
		if got := disrupt.NewNodeHealth(f.S.Seal(), f.O.Repair).StillUnhealthy(f.Claim("n1")); got != enabled {
			t.Errorf("the gate is on %t, and n1 is to be replaced %t", enabled, got)
		}
	}
}

// How long the pods of an unhealthy node have to leave: n1 has not been ready and has had no disk for ten minutes,
// which is as long as either is tolerated.
func TestGraceOfSickNodes(t *testing.T) {
	policies := func(ready, disk time.Duration) func(f *disrupttest.Fleet) {
		return func(f *disrupttest.Fleet) {
			policy := disrupt.RepairPolicy{Status: "False", Toleration: 10 * time.Minute}
			f.O.Repair.Policies = []disrupt.RepairPolicy{policy, policy}
			for i, grace := range []time.Duration{ready, disk} {
				p := &f.O.Repair.Policies[i]
				p.Type, p.HasGrace, p.Grace = []string{"Ready", "Disk"}[i], grace >= 0, grace
			}
		}
	}
	own := func(grace time.Duration) func(f *disrupttest.Fleet) {
		return func(f *disrupttest.Fleet) {
			f.Claim("n1").HasTerminationGrace, f.Claim("n1").TerminationGrace = true, grace
		}
	}
	const none = -1
	for _, c := range []struct {
		name    string
		changes []func(f *disrupttest.Fleet)
		want    time.Duration
	}{
		{"nobody says anything", []func(f *disrupttest.Fleet){policies(none, none)}, none},
		{"one policy does", []func(f *disrupttest.Fleet){policies(time.Hour, none)}, time.Hour},
		{"the shorter of two", []func(f *disrupttest.Fleet){policies(time.Hour, time.Minute)}, time.Minute},
		{"the shorter of two, which comes last", []func(f *disrupttest.Fleet){policies(time.Minute, time.Hour)},
			time.Minute},
		{"no time at all", []func(f *disrupttest.Fleet){policies(0, time.Minute)}, 0},
		{"only the node itself", []func(f *disrupttest.Fleet){policies(none, none), own(time.Hour)}, time.Hour},
		{"the node itself, and that is shorter", []func(f *disrupttest.Fleet){policies(time.Hour, none),
			own(time.Minute)},
			time.Minute},
		{"a policy, and that is shorter", []func(f *disrupttest.Fleet){policies(time.Minute, none), own(time.Hour)},
			time.Minute},
		{"the node itself, whose machine has no node", []func(f *disrupttest.Fleet){policies(time.Minute, none),
			own(time.Hour),
			func(f *disrupttest.Fleet) { f.S.Nodes = f.S.Nodes[1:] }}, time.Hour},
		{"it is well in that respect", []func(f *disrupttest.Fleet){policies(time.Minute, none),
			func(f *disrupttest.Fleet) { f.Host("n1").Conditions[0].Status = "True" }}, none},
		{"it has not been sick for long enough", []func(f *disrupttest.Fleet){policies(time.Minute, none),
			func(f *disrupttest.Fleet) { f.Host("n1").Conditions[0].Since = f.Now.Add(-9 * time.Minute) }}, none},
	} {
		f := disrupttest.FleetOf("large: large:")
		f.Sicken(10*time.Minute, "n1")
		n := f.Host("n1")
		disk := cluster.NodeCondition{Type: "Disk", Status: "False", Since: n.Conditions[0].Since}
		n.Conditions = append(n.Conditions, disk)
		for _, change := range c.changes {
			change(f)
		}
		grace, has := disrupt.NewNodeHealth(f.S.Seal(), f.O.Repair).Grace(f.Claim("n1"))
		if !has {
			grace = none
		}
		if grace != c.want {
			t.Errorf("%s: %s, want %s", c.name, grace, c.want)
		}
	}
}
