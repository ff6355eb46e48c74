package disrupt

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
)

// shyFleet has two drifted nodes, n1 in rack a and n2 in rack b, each with a pod that shares its rack with no other such pod. There is
// room on n3, and on n4, which is not up yet; so n1 is ready to go, and n2 is not.
func shyFleet(rackOfRoom string) *fleet {
	f := newFleet()
	f.s.Pods = nil
	class := &cluster.PodClass{Key: "shy", Terms: []require.Set{nil}, Requests: f.run("x", "n1", 2).Class.Requests, Rules: []*cluster.Rule{{Key: "shy", Kind: cluster.AntiAffinity,
		Topology: "rack", Selectors: []cluster.Selector{{Namespaces: []string{"shop"}, Labels: require.Set{}.With("app", require.Only("web"))}}}}}
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

// Where pods say something about each other, nodes wait for each other if a place is free only once the other's pods have gone.
func TestNodesWaitForEachOther(t *testing.T) {
	for _, c := range []struct {
		name   string
		rack   string
		change func(f *fleet)
		want   string
	}{
		{"the place is free whoever stays", "c", func(f *fleet) {}, "delete/n1"},
		{"the place is free once n2 has gone", "b", func(f *fleet) {}, ""},
		{"the pods don't mind each other", "b", func(f *fleet) { f.pod("p1").Class.Rules = nil }, "delete/n1; delete/n2"},
		{"n2 is not to go after all", "b", func(f *fleet) { f.claim("n2").DoNotDisrupt = true },
			"give up n2: NodeDoNotDisrupt; unfence/n2: NodeDoNotDisrupt"},
		{"both are ready", "b", func(f *fleet) { f.claim("n4").Conditions = f.claim("n3").Conditions }, "delete/n1; delete/n2"},
	} {
		f := shyFleet(c.rack)
		c.change(f)
		f.s.Demand, f.s.Supply = 7, 7
		first, memo := Carry(f.s.Seal(), f.set, f.o)
		if got := sorted(outcome(&first)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		f.o.Before = memo
		again, _ := Carry(f.s, f.set, f.o)
		if got := sorted(outcome(&again)); got != c.want {
			t.Errorf("%s, asked again: %q, want %q", c.name, got, c.want)
		}
	}
}
