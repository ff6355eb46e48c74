package disrupt

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
)

// shyFleet has two drifted nodes, n1 in rack a and n2 in rack b, each with a pod that shares its rack with no other
// such pod. There is room on n3, and on n4, which is not up yet; so n1 is ready to go, and n2 is not.
func shyFleet(rackOfRoom string) *fleet {
	f := newFleet()
	f.s.Pods = nil
	class := &cluster.PodClass{Key: "shy", Terms: []require.Set{nil}, Requests: f.run("x", "n1", 2).Class.Requests,
		Rules: []*cluster.Rule{{Key: "shy", Kind: cluster.AntiAffinity,
			TopologyKey: "rack", Selectors: []cluster.Selector{{Namespaces: []string{"shop"},
				Labels: require.Set{}.With("app", require.Only("web"))}}}}}
	f.s.Pods = nil
	f.run("p1", "n1", 2).Class = class
	f.run("p2", "n2", 2).Class = class
	notUp(f.node("n4", "large"))
	for name, rack := range map[string]string{"n1": "a", "n2": "b", "n3": rackOfRoom, "n4": "a"} {
		f.host(name).Labels = f.host(name).Labels.With("rack", rack)
	}
	f.drifted("n1", "n2")
	f.fenced(command.Drifted, "n1")
	f.begins(90e9)
	f.fenced(command.Drifted, "n2")
	return f
}

// Where pods say something about each other, nodes wait for each other if a place is free only once the other's pods
// have gone.
func TestNodesWaitForEachOther(t *testing.T) {
	for _, c := range []struct {
		name   string
		rack   string
		change func(f *fleet)
		want   string
	}{
		{"the place is free whoever stays", "c", func(f *fleet) {}, "delete/n1"},
		{"the place is free once n2 has gone", "b", func(f *fleet) {}, ""},
		{"the pods don't mind each other", "b", func(f *fleet) {
			f.pod("p1").Class.Rules = nil
		}, "delete/n1; delete/n2"},
		{"n2 is not to go after all", "b", func(f *fleet) { f.claim("n2").DoNotDisrupt = true },
			"give up n2: NodeDoNotDisrupt; unfence/n2: NodeDoNotDisrupt"},
		{"a third node can go whoever stays", "b", func(f *fleet) {
			f.node("n5", "large")
			f.run("p5", "n5", 3).Labels = cluster.LabelsOf(map[string]string{"app": "db"})
			f.drifted("n5")
			f.fenced(command.Drifted, "n5")
		}, "delete/n5"},
		{"the place of a third is free once n1 has gone", "b", func(f *fleet) {
			p1 := f.pod("p1")
			small := *p1.Class
			small.Key = "small"
			p1.Class.Requests[0] = 4000
			f.node("n5", "large")
			f.run("p5", "n5", 1).Class = &small
			f.node("n6", "small")
			for name, rack := range map[string]string{"n4": "e", "n5": "e", "n6": "a"} {
				f.host(name).Labels = f.host(name).Labels.With("rack", rack)
			}
			f.drifted("n5")
			f.fenced(command.Drifted, "n5")
		}, ""},
		{"the place is free once n2 has gone, and it was found that its node could go", "b", func(f *fleet) {
			f.found("n3", "n4")
		}, "pass n3: PodsExpected"},
		{"a static pool replaces node by node", "b", func(f *fleet) {
			f.pool.Static, f.pool.Replicas, f.o.Static = true, 4, true
			f.replaced(f.claim("n1").Move, "new", "large")
			f.host("new").Labels = f.host("new").Labels.With("rack", "b")
		}, "delete/n1; want $1"},
		{"both are ready", "b", func(f *fleet) {
			f.claim("n4").Conditions = f.claim("n3").Conditions
		}, "delete/n1; delete/n2"},
	} {
		f := shyFleet(c.rack)
		c.change(f)
		f.s.DemandRev, f.s.SupplyRev = 7, 7
		first, memo := Execute(f.s.Seal(), f.set, f.o)
		if got := sorted(outcome(&first)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		f.o.LastMemo = memo
		again, _ := Execute(f.s, f.set, f.o)
		if got := sorted(outcome(&again)); got != c.want {
			t.Errorf("%s, asked again: %q, want %q", c.name, got, c.want)
		}
	}
}

// A node waits for the pods of another that was to go and stays after all, even if nobody else says anything about
// other pods.
func TestNodesWaitForThoseThatStay(t *testing.T) {
	f := fleetOf("large:2 small:1 large: large:")
	f.makePod(f.pod("p2"), "apart", "")
	f.pod("p2").Class.Rules[0].TopologyKey = "rack"
	for name, rack := range map[string]string{"n1": "a", "n2": "b", "n3": "c", "n4": "b"} {
		f.host(name).Labels = f.host(name).Labels.With("rack", rack)
	}
	f.fenced(command.Underutilized, "n1")
	f.fenced(command.Underutilized, "n2", "n3")
	if got, want := sorted(f.carry()), "give up n2: NothingCheaper; unfence/n2: NothingCheaper, rests"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
