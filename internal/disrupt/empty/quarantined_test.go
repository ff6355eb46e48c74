package empty

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Which fences come down because the planner fails.
func TestWhatIsWithdrawn(t *testing.T) {
	fails := func(f *disrupttest.Fleet) { f.S.Quarantine.Claims = map[string]cluster.Failure{"n1": {}} }
	opens := "unfence/n1: PlannerFails, rests; give up n1: PlannerFails"
	for _, c := range []struct {
		name     string
		change   func(f *disrupttest.Fleet)
		part     string
		whenever string // if it fails on everything
	}{
		{"a node in a move", func(f *disrupttest.Fleet) {}, opens, opens},
		{"the planner does not fail on it", func(f *disrupttest.Fleet) { f.S.Quarantine.Claims = nil }, "", opens},
		{"the planner fails on another of the move", func(f *disrupttest.Fleet) {
			f.Fenced(command.Drifted, "n1", "n2")
			f.Claim("n1").Conditions = f.Claim("n1").Conditions[:4]
		}, "unfence/n1: PlannerFails, rests; unfence/n2: PlannerFails, rests; give up n1+n2: PlannerFails",
			"unfence/n1: PlannerFails, rests; unfence/n2: PlannerFails, rests; give up n1+n2: PlannerFails"},
		{"nothing is left of the fence of its move", func(f *disrupttest.Fleet) {
			f.Host("n1").Taints = nil
			c := f.Claim("n1")
			c.Conditions = c.Conditions[:3]
		}, opens, opens},
		{"two moves", func(f *disrupttest.Fleet) { f.Fenced(command.Expired, "n2") }, opens,
			"unfence/n1: PlannerFails, rests; unfence/n2: PlannerFails, rests; give up n1: PlannerFails; give up n2: " +
				"PlannerFails"},
		{"a fence of no move", func(f *disrupttest.Fleet) {
			f.Claim("n1").Move = ""
		}, "unfence/n1: PlannerFails, rests", "unfence/n1: PlannerFails, rests"},
		{"only the reason is written", func(f *disrupttest.Fleet) {
			f.Claim("n1").Move, f.Host("n1").Taints = "", nil
		}, "unfence/n1: PlannerFails, rests", "unfence/n1: PlannerFails, rests"},
		{"a node that is not fenced", func(f *disrupttest.Fleet) {
			f.Claim("n1").Move, f.Host("n1").Taints = "", nil
			c := f.Claim("n1")
			c.Conditions = c.Conditions[:3]
		}, "", ""},
		{"a sick node", func(f *disrupttest.Fleet) { f.Claim("n1").Move = "unhealthy-x" }, "", ""},
		{"a node that is interrupted", func(f *disrupttest.Fleet) {
			f.Claim("n1").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, "", ""},
		{"a node that was advised to go", func(f *disrupttest.Fleet) { f.Claim("n1").Move = "interrupted-x" }, "", ""},
		{"a claim on its way out", func(f *disrupttest.Fleet) { f.Claim("n1").Deleting = f.Now }, "", ""},
		{"a node on its way out", func(f *disrupttest.Fleet) { f.Host("n1").Deleting = f.Now }, "", ""},
		{"a claim without a node", func(f *disrupttest.Fleet) { f.S.Nodes = f.S.Nodes[1:] }, "", ""},
		{"a node that is being opened", func(f *disrupttest.Fleet) { f.S.InFlight["unfence/n1"] = true }, "", ""},
	} {
		f := disrupttest.NewFleet()
		fails(f)
		f.Fenced(command.Drifted, "n1")
		c.change(f)
		part, all := ReopenQuarantined(f.S.Seal(), false), ReopenQuarantined(f.S, true)
		if got, whenever := disrupttest.Outcome(&part), disrupttest.Outcome(&all); got != c.part ||
			whenever != c.whenever {
			t.Errorf("%s: %q, and if all fails %q; want %q and %q", c.name, got, whenever, c.part, c.whenever)
		}
	}
}
