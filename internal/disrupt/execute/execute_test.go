package execute

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
)

// Names of claims come back; the moves of two claims are different ones all the same.
func TestMovesOfNamesakesDiffer(t *testing.T) {
	a, b := &cluster.Claim{Name: "n", UID: "1", Pool: "default"}, &cluster.Claim{Name: "n", UID: "2", Pool: "default"}
	if drift.MoveID(a) == drift.MoveID(b) {
		t.Errorf("two claims of one name drift in one move: %s", drift.MoveID(a))
	}
	var ids []string
	for _, c := range []*cluster.Claim{a, b} {
		s := disrupttest.Quiet(1)
		c.ProviderID, c.Conditions = s.Claims[0].ProviderID, s.Claims[0].Conditions
		s.Claims[0] = c
		s.Nodes[0].Name = "n"
		x := newExecutor(s.Seal(), disrupt.Settings{}, Input{})
		x.queueRequired(disrupt.Candidate{Claim: c, Node: s.Nodes[0], Pool: s.Pools[0]}, command.Expired)
		x.queueRepair(c, s.Nodes[0], s.Pools[0])
		for _, m := range x.Moves {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) != 4 || ids[0] == ids[2] || ids[1] == ids[3] {
		t.Errorf("the moves of two claims of one name are %v", ids)
	}
}

// So does that of a move.
func TestGivingUpAMoveSaysWhyItsNodesStay(t *testing.T) {
	s := disrupttest.Quiet(1)
	disrupttest.Taint(s, 0)
	disrupttest.Mark(s, 0, command.Underutilized)
	s.Claims[0].Move = disrupt.MoveID(command.Underutilized, []string{"n0"})
	s.Pools[0].Overrides.DryRun = true
	result, _ := Moves(s.Seal(), disrupt.Settings{}, Input{})
	if len(result.Commands) != 1 {
		t.Fatalf("commands %v", result.Commands)
	}
	if c, ok := result.Commands[0].(command.Unfence); !ok || c.BlockReason != string(disrupt.DryRun) {
		t.Errorf("%+v", result.Commands[0])
	}
}
