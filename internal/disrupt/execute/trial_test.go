package execute

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Whoever tries one move alone has the nodes of the others stay, and forgets what was found out when all of them went.
func TestMovesAreTriedAlone(t *testing.T) {
	f := disrupttest.FleetOf("large:1 large:2 large:3")
	x := newExecutor(f.S.Seal(), f.Set, input(f))
	trial := &uncertainMoves{}
	for _, name := range []string{"n1", "n2", "n3"} {
		trial.active = append(trial.active, &destination.Move{Nodes: []disrupt.Candidate{{Node: f.Host(name)}}})
	}
	x.OtherPodsHosts["n9"] = true
	for only, m := range trial.active {
		x.letOnly(trial, m)
		for i, name := range []string{"n1", "n2", "n3"} {
			if x.RemovedNodes[name] != (i == only) {
				t.Errorf("move %d alone: %s goes: %t", only+1, name, x.RemovedNodes[name])
			}
		}
		if len(x.OtherPodsHosts) > 0 {
			t.Errorf("move %d alone: %v are still sought", only+1, x.OtherPodsHosts)
		}
	}
}
