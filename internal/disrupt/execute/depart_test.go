package execute

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
)

// Where pods say something about each other, nodes wait for each other if a place is free only once the other's pods
// have gone.
func TestNodesWaitForEachOther(t *testing.T) {
	for _, c := range []struct {
		name   string
		rack   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"the place is free whoever stays", "c", func(f *disrupttest.Fleet) {}, "delete/n1"},
		{"the place is free once n2 has gone", "b", func(f *disrupttest.Fleet) {}, ""},
		{"the pods don't mind each other", "b", func(f *disrupttest.Fleet) {
			f.Pod("p1").Class.Rules = nil
		}, "delete/n1; delete/n2"},
		{"n2 is not to go after all", "b", func(f *disrupttest.Fleet) { f.Claim("n2").DoNotDisrupt = true },
			"give up n2: NodeDoNotDisrupt; unfence/n2: NodeDoNotDisrupt"},
		{"a third node can go whoever stays", "b", func(f *disrupttest.Fleet) {
			f.Node("n5", "large")
			f.Run("p5", "n5", 3).Labels = cluster.LabelsOf(map[string]string{"app": "db"})
			f.Drifted("n5")
			f.Fenced(command.Drifted, "n5")
		}, "delete/n5"},
		{"the place of a third is free once n1 has gone", "b", func(f *disrupttest.Fleet) {
			p1 := f.Pod("p1")
			small := *p1.Class
			small.Key = "small"
			p1.Class.Requests[0] = 4000
			f.Node("n5", "large")
			f.Run("p5", "n5", 1).Class = &small
			f.Node("n6", "small")
			for name, rack := range map[string]string{"n4": "e", "n5": "e", "n6": "a"} {
				f.Host(name).Labels = f.Host(name).Labels.With("rack", rack)
			}
			f.Drifted("n5")
			f.Fenced(command.Drifted, "n5")
		}, ""},
		{"the place is free once n2 has gone, and it was found that its node could go", "b",
			func(f *disrupttest.Fleet) {
				f.Found("n3", "n4")
			}, "pass n3: PodsExpected"},
		{"a static pool replaces node by node", "b", func(f *disrupttest.Fleet) {
			f.Pool.Static, f.Pool.Replicas, f.O.Static = true, 4, true
			f.Replaced(f.Claim("n1").Move, "new", "large")
			f.Host("new").Labels = f.Host("new").Labels.With("rack", "b")
		}, "delete/n1; want $1"},
		{"both are ready", "b", func(f *disrupttest.Fleet) {
			f.Claim("n4").Conditions = f.Claim("n3").Conditions
		}, "delete/n1; delete/n2"},
	} {
		f := disrupttest.ShyFleet(c.rack)
		c.change(f)
		f.S.DemandRev, f.S.SupplyRev = 7, 7
		first, memo := Moves(f.S.Seal(), f.Set, input(f))
		if got := sorted(disrupttest.Outcome(&first)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		again, _ := Moves(f.S, f.Set, inputAfter(f, memo))
		if got := sorted(disrupttest.Outcome(&again)); got != c.want {
			t.Errorf("%s, asked again: %q, want %q", c.name, got, c.want)
		}
	}
}

// A node waits for the pods of another that was to go and stays after all, even if nobody else says anything about
// other pods.
func TestNodesWaitForThoseThatStay(t *testing.T) {
	f := disrupttest.FleetOf("large:2 small:1 large: large:")
	f.MakePod(f.Pod("p2"), "apart", "")
	f.Pod("p2").Class.Rules[0].TopologyKey = "rack"
	for name, rack := range map[string]string{"n1": "a", "n2": "b", "n3": "c", "n4": "b"} {
		f.Host(name).Labels = f.Host(name).Labels.With("rack", rack)
	}
	f.Fenced(command.Underutilized, "n1")
	f.Fenced(command.Underutilized, "n2", "n3")
	if got, want := sorted(carry(f)), "give up n2: NothingCheaper; unfence/n2: NothingCheaper, rests"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whether moves may go without others is asked again if other nodes are gone than last time: nodes become empty by the
// clock alone.
func TestTheMemoryOfDeparturesKnowsWhoIsGone(t *testing.T) {
	s := disrupttest.Quiet(4)
	s.DemandRev, s.SupplyRev = 7, 7
	apart := &cluster.PodClass{Key: "shy", Rules: []*cluster.Rule{{}}}
	s.Pods = []*cluster.Pod{{UID: "p", Node: "n0", Class: apart, Owner: "rs"}}
	s.Seal()
	ask := func(gone string) string {
		x := newExecutor(s, disrupt.Settings{}, Input{})
		x.RemovedNodes[gone] = true
		m := &destination.Move{ID: "underutilized-a", Nodes: []disrupt.Candidate{{Claim: s.Claims[0], Node: s.Nodes[0],
			Pool: s.Pools[0]}}}
		x.Moves = []*destination.Move{m, {ID: "underutilized-b", Nodes: []disrupt.Candidate{{Claim: s.Claims[1],
			Node: s.Nodes[1],
			Pool: s.Pools[0]}}}}
		x.departures, x.memo = []departure{{moves: []*destination.Move{m}}}, &destination.Memo{}
		x.departable()
		return x.memo.Departures.Query.Key
	}
	if a, b := ask("n2"), ask("n3"); a == "" || a == b {
		t.Errorf("with n2 gone the question is %q, with n3 gone %q", a, b)
	}
}
