package execute

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Who gets the room if a drifted node (n1) and one that goes to save money (n2) go at the same time: their pods ask for
// 4 CPUs each, and n3 has 4 left.
func TestWhoGetsTheRoom(t *testing.T) {
	other := func(f *disrupttest.Fleet) { f.Run("more", "n3", 4) } // takes the room of n3
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"room for one: who has to go comes first", func(f *disrupttest.Fleet) {}, "delete/n1; want $2"},
		{"room for both", func(f *disrupttest.Fleet) { f.Node("n4", "medium") }, "delete/n1; delete/n2"},
		{"what is made for who has to go is not for the other", func(f *disrupttest.Fleet) {
			f.Replaced(f.Claim("n1").Move, "new", "medium")
			other(f)
		}, "delete/n1; want $2"},
		{"what is made to save money is not for who has to go", func(f *disrupttest.Fleet) {
			f.Replaced(f.Claim("n2").Move, "new", "medium")
			other(f)
		}, "delete/n2; want $2"},
		{"what was made for an earlier try is for all", func(f *disrupttest.Fleet) {
			f.Replaced(f.Claim("n2").Move, "new", "medium").Created = f.Now.Add(-time.Hour)
			other(f)
		}, "delete/n1; give up n2: NothingCheaper; unfence/n2: NothingCheaper, rests"},
		{"to save money no pods go to a node that is not quiet", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.For = 5 * time.Minute
			f.Node("n4", "large").LastPodEvent = f.Now.Add(-2 * time.Minute)
			other(f)
		}, "delete/n1; want $2"},
		{"what has come or gone since the move began may be its own doing", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.For = 5 * time.Minute
			f.Node("n4", "large").LastPodEvent = f.Now.Add(-50 * time.Second)
			other(f)
		}, "delete/n1; delete/n2"},
		{"a node that has come since the move began is left to those it was made for", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.For = 5 * time.Minute
			c := f.Node("n4", "large")
			c.LastPodEvent = f.Now
			c.Conditions[2].Since = f.Now.Add(-50 * time.Second)
			other(f)
		}, "delete/n1; want $2"},
		{"a node that is not up yet may be a place, whoever has come there", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.For = 5 * time.Minute
			c := f.Node("n4", "large")
			disrupttest.NotUp(c)
			c.LastPodEvent = f.Now.Add(-2 * time.Minute)
			other(f)
		}, ""},
		{"a node that its claim does not know of yet may be a place", func(f *disrupttest.Fleet) {
			disrupttest.NotUp(f.Node("n4", "large"))
			f.Host("n4").ProviderID = ""
			other(f)
		}, ""},
		{"a node that has another name than its claim is a place", func(f *disrupttest.Fleet) {
			f.Node("n4", "medium").Name = "claim-4"
		}, "delete/n1; delete/n2"},
		{"a claim whose node has vanished", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.For = 5 * time.Minute
			f.Node("n4", "large").LastPodEvent = f.Now.Add(-2 * time.Minute)
			f.S.Nodes = f.S.Nodes[:3]
			other(f)
		}, "want $2; want $2"},
		{"a pod that waits comes before both", func(f *disrupttest.Fleet) {
			f.O.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.Run("new", "", 4), Host: "n3"}}}
		}, "want $2; want $2"},
		{"a node that is deleted takes nobody", func(f *disrupttest.Fleet) {
			f.Node("n4", "large")
			f.Host("n4").Deleting = f.Now
		}, "delete/n1; want $2"},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Pod("p1").Class = f.Pod("p2").Class
		f.Drifted("n1")
		f.Fenced(command.Drifted, "n1")
		f.Fenced(command.Underutilized, "n2")
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

// Where nothing has changed the answer of the last plan is taken over.
func TestAnswersAreTakenOver(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Node("n4", "large")
	f.Drifted("n1")
	f.Fenced(command.Drifted, "n1")
	f.Fenced(command.Underutilized, "n2")
	f.S.DemandRev, f.S.SupplyRev = 7, 7
	_, first := Moves(f.S.Seal(), f.Set, input(f))
	for _, c := range []struct {
		name   string
		change func()
		want   bool
	}{{"nothing", func() {}, true}, {"the pods", func() { f.S.DemandRev++ }, false}} {
		c.change()
		_, again := Moves(f.S, f.Set, inputAfter(f, first))
		for i, answers := range [][2]*schedule.Placement{{&first.Required.Placement, &again.Required.Placement},
			{&first.Saving.Placement, &again.Saving.Placement}} {
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
		change func(f *disrupttest.Fleet, x *executor)
		want   destination.Distance
	}{
		{"a node that is up", func(f *disrupttest.Fleet, x *executor) {}, destination.AtReadyNode},
		{"a node that is gone", func(f *disrupttest.Fleet, x *executor) {
			f.S.Nodes = f.S.Nodes[1:]
		}, destination.AtComingNode},
		{"a node on its way out", func(f *disrupttest.Fleet, x *executor) {
			f.Host("n1").Deleting = f.Now
		}, destination.AtComingNode},
		{"a fenced node", func(f *disrupttest.Fleet, x *executor) {
			disrupttest.Taint(f.S, 0)
		}, destination.AtComingNode},
		{"a node that is not up", func(f *disrupttest.Fleet, x *executor) {
			disrupttest.NotUp(f.Claim("n1"))
		}, destination.AtComingNode},
		{"a node that has joined before its claim knows", func(f *disrupttest.Fleet, x *executor) {
			f.Host("n1").ProviderID = ""
			disrupttest.NotUp(f.Claim("n1"))
		}, destination.AtComingNode},
		{"a node of others that has joined under the name of a claim", func(f *disrupttest.Fleet, x *executor) {
			f.Host("n1").ProviderID, f.Host("n1").Ours = "", false
			disrupttest.NotUp(f.Claim("n1"))
		}, destination.AtComingNode},
		{"a node of ours without a claim", func(f *disrupttest.Fleet, x *executor) {
			f.S.Claims = f.S.Claims[1:]
		}, destination.AtComingNode},
		{"a node of others", func(f *disrupttest.Fleet, x *executor) {
			f.S.Claims, f.Host("n1").Ours = f.S.Claims[1:], false
		}, destination.AtReadyNode},
		{"a node that is kept for a move", func(f *disrupttest.Fleet, x *executor) {
			f.Host("n1").KeptFor = "m"
		}, destination.AtReadyNode},
		{"a node that is kept for another move, while an interruption is looked at", func(f *disrupttest.Fleet,
			x *executor) {
			f.Host("n1").KeptFor, x.InterruptionsOnly, x.Moves = "m", true, []*destination.Move{{ID: "other"}}
		}, destination.AtComingNode},
		{"a node that is kept for the interruption that is looked at", func(f *disrupttest.Fleet, x *executor) {
			f.Host("n1").KeptFor, x.InterruptionsOnly, x.Moves = "m", true, []*destination.Move{{ID: "m"}}
		}, destination.AtReadyNode},
		{"a node that is kept for nobody, while an interruption is looked at", func(f *disrupttest.Fleet, x *executor) {
			x.InterruptionsOnly = true
		}, destination.AtReadyNode},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		x := newExecutor(f.S.Seal(), f.Set, input(f))
		c.change(f, x)
		f.S.Seal()
		if got := x.DistanceOf("n1"); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// What is said of where pods go.
func TestWhereThePodsGo(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Drifted("n1")
	id := f.Fenced(command.Drifted, "n1")
	for _, name := range []string{"r4", "r3", "r2", "r1"} {
		f.Replaced(id, name, "small")
	}
	x := newExecutor(f.S.Seal(), f.Set, input(f))
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
		m := &destination.Move{}
		for _, host := range c.hosts {
			m.Destinations = append(m.Destinations, destination.Place{Host: host})
		}
		if got := render.Text(x.describeDestinations(m)); got != c.want {
			t.Errorf("%v: %q, want %q", c.hosts, got, c.want)
		}
	}
	f.Claim("n1").ExpireAfter.For = 24 * time.Hour
	if got, want := render.Text(x.deleteText(&destination.Move{Reason: command.Expired,
		Nodes: []disrupt.Candidate{{Claim: f.Claim("n1")}}})),
		"it comes to the end of its expireAfter of 24h0m0s; it has no pods that move"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a dry run tells.
func TestWhatADryRunTells(t *testing.T) {
	small := market.Bin{Price: 1}
	for _, c := range []struct {
		move  disrupt.Move
		nodes int
		want  string
	}{
		{disrupt.Move{Reason: command.Underutilized, Before: 4, Evicted: 2}, 1,
			"Dry run: would disrupt the node (Underutilized: its pods fit on nodes that are there); 2 pods would " +
				"move and $2920.00 a month be saved"},
		{disrupt.Move{Reason: command.Underutilized, Before: 4, After: 1, Bins: []market.Bin{small}}, 2,
			"Dry run: would disrupt the node (Underutilized: one cheaper node would take its pods, together with 1 " +
				"other nodes); 0 pods would move and $2190.00 a month be saved"},
		{disrupt.Move{Reason: command.Underutilized, Before: 4, After: 2, Bins: []market.Bin{small, small}}, 3,
			"Dry run: would disrupt the node (Underutilized: 2 cheaper nodes would take its pods, together with 2 " +
				"other nodes); 0 pods would move and $1460.00 a month be saved"},
		{disrupt.Move{Reason: command.Drifted, Bins: []market.Bin{small}}, 1,
			"Dry run: would disrupt the node (Drifted: it is no longer what its NodePool and NodeClass ask for); 0 " +
				"pods would move"},
		{disrupt.Move{Reason: command.Expired}, 1,
			"Dry run: would disrupt the node (Expired: it comes to the end of its " +
				"expireAfter); 0 pods would move"},
		{disrupt.Move{Reason: command.Unhealthy}, 1, "Dry run: would disrupt the node (Unhealthy: it is unhealthy); " +
			"0 pods " +
			"would move"},
	} {
		var r disrupt.Result
		var nodes []disrupt.Candidate
		for range c.nodes {
			nodes = append(nodes, disrupt.Candidate{Claim: &cluster.Claim{Name: "n"}, Node: &cluster.Node{Name: "n"}})
		}
		r.AddDryRun(c.move, nodes)
		if len(r.Notes) != 2*c.nodes || render.Text(r.Notes[0].Text) != c.want {
			t.Errorf("%d notes, %q, want %q", len(r.Notes), render.Text(r.Notes[0].Text), c.want)
		}
	}
}
