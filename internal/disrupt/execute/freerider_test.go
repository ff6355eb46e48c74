package execute

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
)

// Who rides along in a move is told by the places that its pods were given, not by those that the placement had for
// pods like them.
func TestWhoRidesAlongInAMoveOfTwins(t *testing.T) {
	f := disrupttest.FleetOf("huge:2 small:2")
	m := &destination.Move{ID: f.Fenced(command.Underutilized, "n1", "n2"), Reason: command.Underutilized}
	bins := []market.Bin{disrupttest.BinOf(f.Pool, []string{disrupt.OnDemand}, "small"), disrupttest.BinOf(f.Pool,
		[]string{disrupt.OnDemand}, "small")}
	for i := range 2 {
		m.Nodes = append(m.Nodes, disrupt.Candidate{Claim: f.S.Claims[i], Node: f.S.Nodes[i], Pool: f.Pool,
			Price: f.S.Claims[i].Price, Evicted: 1})
		m.Destinations = append(m.Destinations, destination.Place{Pod: f.S.Pods[i], Distance: destination.AtNewNode,
			Bin: i})
		bins[i].Pods = []*cluster.Pod{f.S.Pods[1-i]}
	}
	freeRiders, reason := newExecutor(f.S.Seal(), f.Set,
		input(f)).freeRidersOf(&linkedMoves{moves: []*destination.Move{m},
		bins: []int{0, 1}}, m.Nodes, bins)
	if len(freeRiders) != 1 || freeRiders[0].candidate().Claim.Name != "n2" || reason != disrupt.NothingCheaper {
		t.Errorf("%d nodes ride along (%s), want n2, whose pod would get a node at the same price",
			len(freeRiders), reason)
	}
}
