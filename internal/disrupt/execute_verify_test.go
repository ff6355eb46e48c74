package disrupt

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Who gets the room if a drifted node (n1) and one that goes to save money (n2) go at the same time: their pods ask for
// 4 CPUs each, and n3 has 4 left.
func TestWhoGetsTheRoom(t *testing.T) {
	other := func(f *fleet) { f.run("more", "n3", 4) } // takes the room of n3
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"room for one: who has to go comes first", func(f *fleet) {}, "delete/n1; want $2"},
		{"room for both", func(f *fleet) { f.node("n4", "medium") }, "delete/n1; delete/n2"},
		{"what is made for who has to go is not for the other", func(f *fleet) {
			f.replaced(f.claim("n1").Move, "new", "medium")
			other(f)
		}, "delete/n1; want $2"},
		{"what is made to save money is not for who has to go", func(f *fleet) {
			f.replaced(f.claim("n2").Move, "new", "medium")
			other(f)
		}, "delete/n2; want $2"},
		{"what was made for an earlier try is for all", func(f *fleet) {
			f.replaced(f.claim("n2").Move, "new", "medium").Created = f.now.Add(-time.Hour)
			other(f)
		}, "delete/n1; give up n2: NothingCheaper; unfence/n2: NothingCheaper, rests"},
		{"to save money no pods go to a node that is not quiet", func(f *fleet) {
			f.pool.ConsolidateAfter.For = 5 * time.Minute
			f.node("n4", "large").LastPodEvent = f.now.Add(-2 * time.Minute)
			other(f)
		}, "delete/n1; want $2"},
		{"what has come or gone since the move began may be its own doing", func(f *fleet) {
			f.pool.ConsolidateAfter.For = 5 * time.Minute
			f.node("n4", "large").LastPodEvent = f.now.Add(-50 * time.Second)
			other(f)
		}, "delete/n1; delete/n2"},
		{"a node that has come since the move began is left to those it was made for", func(f *fleet) {
			f.pool.ConsolidateAfter.For = 5 * time.Minute
			c := f.node("n4", "large")
			c.LastPodEvent = f.now
			c.Conditions[2].Since = f.now.Add(-50 * time.Second)
			other(f)
		}, "delete/n1; want $2"},
		{"a node that is not up yet may be a place, whoever has come there", func(f *fleet) {
			f.pool.ConsolidateAfter.For = 5 * time.Minute
			c := f.node("n4", "large")
			notUp(c)
			c.LastPodEvent = f.now.Add(-2 * time.Minute)
			other(f)
		}, ""},
		{"a node that its claim does not know of yet may be a place", func(f *fleet) {
			notUp(f.node("n4", "large"))
			f.host("n4").ProviderID = ""
			other(f)
		}, ""},
		{"a node that has another name than its claim is a place", func(f *fleet) {
			f.node("n4", "medium").Name = "claim-4"
		}, "delete/n1; delete/n2"},
		{"a claim whose node has vanished", func(f *fleet) {
			f.pool.ConsolidateAfter.For = 5 * time.Minute
			f.node("n4", "large").LastPodEvent = f.now.Add(-2 * time.Minute)
			f.s.Nodes = f.s.Nodes[:3]
			other(f)
		}, "want $2; want $2"},
		{"a pod that waits comes before both", func(f *fleet) {
			f.o.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.run("new", "", 4), Host: "n3"}}}
		}, "want $2; want $2"},
		{"a node that is deleted takes nobody", func(f *fleet) {
			f.node("n4", "large")
			f.host("n4").Deleting = f.now
		}, "delete/n1; want $2"},
	}
	for _, c := range cases {
		f := newFleet()
		f.pod("p1").Class = f.pod("p2").Class
		f.drifted("n1")
		f.fenced(command.Drifted, "n1")
		f.fenced(command.Underutilized, "n2")
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

// Where nothing has changed the answer of the last plan is taken over.
func TestAnswersAreTakenOver(t *testing.T) {
	f := newFleet()
	f.node("n4", "large")
	f.drifted("n1")
	f.fenced(command.Drifted, "n1")
	f.fenced(command.Underutilized, "n2")
	f.s.DemandRev, f.s.SupplyRev = 7, 7
	_, first := Execute(f.s.Seal(), f.set, f.o)
	f.o.LastMemo = first
	for _, c := range []struct {
		name   string
		change func()
		want   bool
	}{{"nothing", func() {}, true}, {"the pods", func() { f.s.DemandRev++ }, false}} {
		c.change()
		_, again := Execute(f.s, f.set, f.o)
		for i, answers := range [][2]*schedule.Placement{{&first.required.placement, &again.required.placement},
			{&first.saving.placement, &again.saving.placement}} {
			if got := &answers[0].Assigned[0] == &answers[1].Assigned[0]; got != c.want {
				t.Errorf("%s has changed: placement %d is taken over: %t, want %t", c.name, i, got, c.want)
			}
		}
	}
}

// How far hosts are.
func TestHowFarAPlaceIs(t *testing.T) {
	cases := []struct {
		name   string
		change func(f *fleet, x *executor)
		want   distance
	}{
		{"a node that is up", func(f *fleet, x *executor) {}, atReadyNode},
		{"a node that is gone", func(f *fleet, x *executor) { f.s.Nodes = f.s.Nodes[1:] }, atComingNode},
		{"a node on its way out", func(f *fleet, x *executor) { f.host("n1").Deleting = f.now }, atComingNode},
		{"a fenced node", func(f *fleet, x *executor) { taint(f.s, 0) }, atComingNode},
		{"a node that is not up", func(f *fleet, x *executor) { notUp(f.claim("n1")) }, atComingNode},
		{"a node that has joined before its claim knows", func(f *fleet, x *executor) {
			f.host("n1").ProviderID = ""
			notUp(f.claim("n1"))
		}, atComingNode},
		{"a node of others that has joined under the name of a claim", func(f *fleet, x *executor) {
			f.host("n1").ProviderID, f.host("n1").Ours = "", false
			notUp(f.claim("n1"))
		}, atComingNode},
		{"a node of ours without a claim", func(f *fleet, x *executor) { f.s.Claims = f.s.Claims[1:] }, atComingNode},
		{"a node of others", func(f *fleet, x *executor) {
			f.s.Claims, f.host("n1").Ours = f.s.Claims[1:], false
		}, atReadyNode},
		{"a node that is kept for a move", func(f *fleet, x *executor) { f.host("n1").KeptFor = "m" }, atReadyNode},
		{"a node that is kept for another move, while an interruption is looked at", func(f *fleet, x *executor) {
			f.host("n1").KeptFor, x.interruptionsOnly, x.moves = "m", true, []*activeMove{{id: "other"}}
		}, atComingNode},
		{"a node that is kept for the interruption that is looked at", func(f *fleet, x *executor) {
			f.host("n1").KeptFor, x.interruptionsOnly, x.moves = "m", true, []*activeMove{{id: "m"}}
		}, atReadyNode},
		{"a node that is kept for nobody, while an interruption is looked at", func(f *fleet, x *executor) {
			x.interruptionsOnly = true
		}, atReadyNode},
	}
	for _, c := range cases {
		f := newFleet()
		x := newExecutor(f.s.Seal(), f.set, f.o)
		c.change(f, x)
		f.s.Seal()
		if got := x.distanceOf("n1"); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// What is said of where pods go.
func TestWhereThePodsGo(t *testing.T) {
	f := newFleet()
	f.drifted("n1")
	id := f.fenced(command.Drifted, "n1")
	for _, name := range []string{"r4", "r3", "r2", "r1"} {
		f.replaced(id, name, "small")
	}
	x := newExecutor(f.s.Seal(), f.set, f.o)
	for _, c := range []struct {
		hosts []string
		want  string
	}{
		{nil, "it has no pods that move"},
		{[]string{"n2", "n3"}, "its pods fit on nodes that are there"},
		{[]string{"stranger"}, "its pods fit on nodes that are there"},
		{[]string{"r1", "n2", "r1"}, "its pods go to r1"},
		{[]string{"r2", "r1"}, "its pods go to r1 and r2"},
		{[]string{"r3", "r1", "r2"}, "its pods go to r1, r2 and r3"},
		{[]string{"r1", "r2", "r3", "r4"}, "its pods go to 4 new nodes"},
	} {
		m := &activeMove{}
		for _, host := range c.hosts {
			m.destinations = append(m.destinations, destination{host: host})
		}
		if got := x.describeDestinations(m); got != c.want {
			t.Errorf("%v: %q, want %q", c.hosts, got, c.want)
		}
	}
	f.claim("n1").ExpireAfter.For = 24 * time.Hour
	if got, want := x.deleteMessage(&activeMove{reason: command.Expired, nodes: []Candidate{{Claim: f.claim("n1")}}}),
		"it comes to the end of its expireAfter of 24h0m0s; it has no pods that move"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a dry run tells.
func TestWhatADryRunTells(t *testing.T) {
	small := schedule.Bin{Price: 1}
	for _, c := range []struct {
		move  Move
		nodes int
		want  string
	}{
		{Move{Reason: command.Underutilized, Before: 4, Evicted: 2}, 1,
			"Dry run: would disrupt the node (Underutilized: its pods fit on nodes that are there); 2 pods would " +
				"move and $2920.00 a month be saved"},
		{Move{Reason: command.Underutilized, Before: 4, After: 1, Bins: []schedule.Bin{small}}, 2,
			"Dry run: would disrupt the node (Underutilized: one cheaper node would take its pods, together with 1 " +
				"other nodes); 0 pods would move and $2190.00 a month be saved"},
		{Move{Reason: command.Underutilized, Before: 4, After: 2, Bins: []schedule.Bin{small, small}}, 3,
			"Dry run: would disrupt the node (Underutilized: 2 cheaper nodes would take its pods, together with 2 " +
				"other nodes); 0 pods would move and $1460.00 a month be saved"},
		{Move{Reason: command.Drifted, Bins: []schedule.Bin{small}}, 1,
			"Dry run: would disrupt the node (Drifted: it is no longer what its NodePool and NodeClass ask for); 0 " +
				"pods would move"},
		{Move{Reason: command.Expired}, 1, "Dry run: would disrupt the node (Expired: it comes to the end of its " +
			"expireAfter); 0 pods would move"},
		{Move{Reason: command.Unhealthy}, 1, "Dry run: would disrupt the node (Unhealthy: it is unhealthy); 0 pods " +
			"would move"},
	} {
		var r Result
		var nodes []Candidate
		for range c.nodes {
			nodes = append(nodes, Candidate{Claim: &cluster.Claim{Name: "n"}, Node: &cluster.Node{Name: "n"}})
		}
		r.addDryRun(c.move, nodes)
		if len(r.Notes) != 2*c.nodes || r.Notes[0].Message != c.want {
			t.Errorf("%d notes, %q, want %q", len(r.Notes), r.Notes[0].Message, c.want)
		}
	}
}
