package execute

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/disrupt/empty"
)

func TestTheCheapestNodesThatHelpStay(t *testing.T) {
	web, db := &cluster.PodClass{Key: "web"}, &cluster.PodClass{Key: "db"}
	s := disrupttest.Quiet(0)
	m := &destination.Move{ID: "underutilized-x", Reason: command.Underutilized}
	add := func(name string, price float64, classes ...*cluster.PodClass) {
		n := &cluster.Node{Name: name, ProviderID: "cloud://" + name, Ready: true}
		c := &cluster.Claim{Name: name, Pool: "default", ProviderID: n.ProviderID, Price: price}
		s.Nodes, s.Claims = append(s.Nodes, n), append(s.Claims, c)
		for i, class := range classes {
			s.Pods = append(s.Pods, &cluster.Pod{UID: name + string(rune('a'+i)), Name: name, Node: name, Owner: "o",
				Class: class, Phase: "Running"})
		}
		m.Nodes = append(m.Nodes, disrupt.Candidate{Claim: c, Node: n, Pool: s.Pools[0], Price: price})
	}
	add("n1", 0.40, web, web)
	add("n2", 0.10, web)
	add("n3", 0.20, db)
	s.Seal()
	for i, p := range s.Pods {
		dest := destination.Place{Pod: p, Distance: destination.AtReadyNode}
		if i == 0 { // a web pod of the dearest node has no place: that of another will do
			dest.Distance = destination.AtNewNode
		}
		m.Destinations = append(m.Destinations, dest)
	}
	x := newExecutor(s, disrupt.Settings{}, Input{})
	l := &linkedMoves{moves: []*destination.Move{m}}
	got := x.nodesToKeep(l, destination.AtNewNode)
	if len(got) != 1 || got[0].candidate().Claim.Name != "n2" {
		t.Fatalf("%v stay, want the cheapest node with a pod of the kind", got)
	}
	m.Destinations[1].Distance, m.Destinations[2].Distance = destination.AtNewNode, destination.AtNewNode
	if got = x.nodesToKeep(l, destination.AtNewNode); len(got) != 2 {
		t.Errorf("%d nodes stay for three pods, want the two that have them", len(got))
	}

	m.Destinations[2].Distance = destination.AtReadyNode
	if got = x.nodesToKeep(l, destination.AtNewNode); len(got) != 2 || got[0].candidate().Claim.Name != "n2" ||
		got[1].candidate().Claim.Name != "n1" {
		t.Errorf("%d nodes stay for two pods, want the cheaper and, for the other pod, the dearer", len(got))
	}
	s.Pods[2].Deleting = s.Now
	if got = x.nodesToKeep(l, destination.AtNewNode); len(got) != 1 || got[0].candidate().Claim.Name != "n1" {
		t.Errorf("%v stay, want the node whose pods are not on their way out", got)
	}
	s.Pods[2].Deleting = time.Time{}

	x.shrinkLinked(l, []moveNode{{m, 1}}, disrupt.NothingCheaper)
	if len(m.Nodes) != 2 || m.GiveUpReason != "" || len(x.excluded) != 1 || x.excluded[0].node.Claim.Name != "n2" ||
		!x.excluded[0].restAfter {
		t.Errorf("after n2 stays: %d nodes go (%q), dropped are %+v", len(m.Nodes), m.GiveUpReason, x.excluded)
	}
	l.replacements = []*cluster.Claim{{Name: "new", Pool: "default", Price: 1}}
	x.shrinkLinked(l, []moveNode{{m, 1}}, disrupt.NothingCheaper)
	if m.GiveUpReason != disrupt.NothingCheaper || !m.RestAfter {
		t.Errorf("what is left saves nothing: over is %q", m.GiveUpReason)
	}
}

func TestWhatWasMadeInVainGoesAtOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot, c *cluster.Claim)
		want   bool
	}{
		{"nobody waits for it", func(*cluster.Snapshot, *cluster.Claim) {}, true},
		{"its move goes on", func(s *cluster.Snapshot, c *cluster.Claim) { s.Claims[1].Move = c.Replaces }, false},
		{"it was made for pods", func(_ *cluster.Snapshot, c *cluster.Claim) { c.Replaces = "" }, false},
		{"a pod is on its way", func(s *cluster.Snapshot, _ *cluster.Claim) {
			s.Pods = append(s.Pods, &cluster.Pod{UID: "p", Name: "p", Owner: "o", Class: &cluster.PodClass{Key: "web"},
				Phase: "Pending"})
		}, false},
		{"a fence is being put up", func(s *cluster.Snapshot, _ *cluster.Claim) {
			s.InFlight = map[string]bool{command.Fence{Node: "old"}.Key(): true}
		}, false},
	} {
		s := disrupttest.Quiet(0)
		p := s.Pools[0]
		p.ConsolidateAfter = cluster.NillableDuration{For: time.Hour}
		p.Budgets = nil
		up := []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Registered,
			Status: cluster.True},
			{Type: cluster.Initialized, Status: cluster.True, Since: s.Now.Add(-time.Second)}}
		for _, name := range []string{"new", "old"} {
			s.Nodes = append(s.Nodes, &cluster.Node{Name: name, ProviderID: "cloud://" + name, Ready: true})
			s.Claims = append(s.Claims, &cluster.Claim{Name: name, Pool: p.Name, ProviderID: "cloud://" + name,
				Created: s.Now.Add(-time.Minute), Conditions: up})
		}
		s.Claims[0].Replaces = disrupt.MoveID(command.Underutilized, []string{"old"})
		s.Claims[1].LastPodEvent = s.Now
		c.change(s, s.Claims[0])
		s.Seal()
		fenced := false
		for _, cmd := range empty.Remove(s, disrupt.NewBudgetTracker(s), empty.Demand{},
			disrupt.Settings{Nomination: time.Minute}).Commands {
			f, ok := cmd.(command.Fence)
			fenced = fenced || ok && f.Node == "new"
		}
		if fenced != c.want {
			t.Errorf("%s: it goes at once: %v, want %v", c.name, fenced, c.want)
		}
	}
}

// A rest after a move that was to save money keeps the node from no others: it may have to go.
func TestWhatARestIsFrom(t *testing.T) {
	for reason, forSaving := range map[command.Reason]bool{
		command.Underutilized: true, command.Drifted: false, command.Unhealthy: false,
	} {
		s := disrupttest.Quiet(0)
		n := &cluster.Node{Name: "n1", ProviderID: "cloud://n1", Ready: true}
		c := &cluster.Claim{Name: "n1", Pool: "default", ProviderID: n.ProviderID, Move: disrupt.MoveID(reason,
			[]string{"n1"}),
			RestUntil: s.Now, Rests: 1, SavingRestUntil: s.Now, SavingRests: 6}
		s.Nodes, s.Claims = append(s.Nodes, n), append(s.Claims, c)
		s.Seal()
		x := newExecutor(s, disrupt.Settings{}, Input{})
		x.unfence(&disrupt.Candidate{Claim: c, Node: n, Pool: s.Pools[0]}, disrupt.NothingCheaper, true)
		want := command.Unfence{Claim: "n1", Node: "n1", BlockReason: string(disrupt.NothingCheaper),
			RestUntil: s.Now.Add(2 * time.Minute), Rests: 2}
		if forSaving {
			want.RestUntil, want.Rests, want.ForSaving = s.Now.Add(time.Hour), 7, true
		}
		if len(x.Commands) != 1 || x.Commands[0] != command.Command(want) {
			t.Errorf("%s was given up: %+v, want %+v", reason, x.Commands, want)
		}
	}
}

// A node that helps all is better than a cheaper one that helps fewer and another, if it helps more for its price.
func TestTheNodeThatHelpsMostForItsPriceStays(t *testing.T) {
	f := disrupttest.FleetOf("medium:1,1,1 small:1 small:1")
	f.Moving("all", "alike", "", nil)
	m := &destination.Move{ID: f.Fenced(command.Underutilized, "n1", "n2"), Reason: command.Underutilized}
	for i, price := range []float64{2, 0.8} {
		m.Nodes = append(m.Nodes, disrupt.Candidate{Claim: f.S.Claims[i], Node: f.S.Nodes[i], Pool: f.Pool,
			Price: price})
	}
	for _, p := range f.S.Pods[:3] {
		m.Destinations = append(m.Destinations, destination.Place{Pod: p, Distance: destination.Nowhere})
	}
	x := newExecutor(f.S.Seal(), disrupt.Settings{}, Input{})
	if got := x.nodesToKeep(&linkedMoves{moves: []*destination.Move{m}}, destination.Nowhere); len(got) != 1 ||
		got[0].candidate().Claim.Name != "n1" {
		t.Errorf("%v stay, want n1", got)
	}
}
