package disrupt

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Where nodes are not to be repaired none is to be replaced for its health.
func TestNobodyIsSickWithoutTheGate(t *testing.T) {
	f := newFleet()
	f.sicken(time.Hour, "n1")
	for _, enabled := range []bool{true, false} {
		f.o.Repair.Enabled = enabled
		if got := NewNodeHealth(f.s.Seal(), f.o.Repair).StillUnhealthy(f.claim("n1")); got != enabled {
			t.Errorf("the gate is on %t, and n1 is to be replaced %t", enabled, got)
		}
	}
}

// How long the pods of an unhealthy node have to leave: n1 has not been ready and has had no disk for ten minutes,
// which is as long as either is tolerated.
func TestGraceOfSickNodes(t *testing.T) {
	policies := func(ready, disk time.Duration) func(f *fleet) {
		return func(f *fleet) {
			policy := RepairPolicy{Status: "False", Toleration: 10 * time.Minute}
			f.o.Repair.Policies = []RepairPolicy{policy, policy}
			for i, grace := range []time.Duration{ready, disk} {
				p := &f.o.Repair.Policies[i]
				p.Type, p.HasGrace, p.Grace = []string{"Ready", "Disk"}[i], grace >= 0, grace
			}
		}
	}
	own := func(grace time.Duration) func(f *fleet) {
		return func(f *fleet) { f.claim("n1").HasTerminationGrace, f.claim("n1").TerminationGrace = true, grace }
	}
	const none = -1
	for _, c := range []struct {
		name    string
		changes []func(f *fleet)
		want    time.Duration
	}{
		{"nobody says anything", []func(f *fleet){policies(none, none)}, none},
		{"one policy does", []func(f *fleet){policies(time.Hour, none)}, time.Hour},
		{"the shorter of two", []func(f *fleet){policies(time.Hour, time.Minute)}, time.Minute},
		{"the shorter of two, which comes last", []func(f *fleet){policies(time.Minute, time.Hour)}, time.Minute},
		{"no time at all", []func(f *fleet){policies(0, time.Minute)}, 0},
		{"only the node itself", []func(f *fleet){policies(none, none), own(time.Hour)}, time.Hour},
		{"the node itself, and that is shorter", []func(f *fleet){policies(time.Hour, none), own(time.Minute)},
			time.Minute},
		{"a policy, and that is shorter", []func(f *fleet){policies(time.Minute, none), own(time.Hour)},
			time.Minute},
		{"the node itself, whose machine has no node", []func(f *fleet){policies(time.Minute, none), own(time.Hour),
			func(f *fleet) { f.s.Nodes = f.s.Nodes[1:] }}, time.Hour},
		{"it is well in that respect", []func(f *fleet){policies(time.Minute, none),
			func(f *fleet) { f.host("n1").Conditions[0].Status = "True" }}, none},
		{"it has not been sick for long enough", []func(f *fleet){policies(time.Minute, none),
			func(f *fleet) { f.host("n1").Conditions[0].Since = f.now.Add(-9 * time.Minute) }}, none},
	} {
		f := fleetOf("large: large:")
		f.sicken(10*time.Minute, "n1")
		n := f.host("n1")
		disk := cluster.NodeCondition{Type: "Disk", Status: "False", Since: n.Conditions[0].Since}
		n.Conditions = append(n.Conditions, disk)
		for _, change := range c.changes {
			change(f)
		}
		grace, has := NewNodeHealth(f.s.Seal(), f.o.Repair).Grace(f.claim("n1"))
		if !has {
			grace = none
		}
		if grace != c.want {
			t.Errorf("%s: %s, want %s", c.name, grace, c.want)
		}
	}
}
