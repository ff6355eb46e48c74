package execute

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/disrupt/empty"
	"github.com/tenon-sh/tenon/internal/disrupt/saving"
	"github.com/tenon-sh/tenon/internal/render"
)

// halfway is a move of two nodes for 0.40 each, which a new one for 0.60 is to replace.
func halfway() (*executor, *linkedMoves, *cluster.Claim) {
	s := disrupttest.Quiet(3)
	p := s.Pools[0]
	p.Catalog = disrupttest.Shop()
	id := disrupt.MoveID(command.Underutilized, []string{"n0", "n1"})
	m := &destination.Move{ID: id, Reason: command.Underutilized, FencedAt: s.Now.Add(-time.Minute)}
	for i := range 2 {
		s.Claims[i].Price, s.Claims[i].Move = 0.40, id
		m.Nodes = append(m.Nodes, disrupt.Candidate{Claim: s.Claims[i], Node: s.Nodes[i], Pool: p, Price: 0.40,
			Evicted: 1})
	}
	made := s.Claims[2]
	made.Price, made.Replaces, made.Created = 0.60, id, s.Now.Add(-time.Minute)
	return newExecutor(s.Seal(), disrupt.Settings{MinSaving: 0.05}, Input{}),
		&linkedMoves{moves: []*destination.Move{m},
			replacements: []*cluster.Claim{made}}, made
}

// What the nodes cost that have gone ahead counts, or the rest of a move would have to pay for all that was bought.
func TestHalfAMoveIsWeighedWithTheOtherHalf(t *testing.T) {
	x, l, _ := halfway()
	m := l.moves[0]
	if x.deleteLinked(l); m.GiveUpReason != "" || len(x.departures) != 1 ||
		!strings.Contains(render.Text(x.departures[0].text),
			"$0.200") {
		t.Fatalf("both nodes: over is %q, %d depart", m.GiveUpReason, len(x.departures))
	}
	m.Leaving, m.Nodes = m.Nodes[:1], m.Nodes[1:]
	m.Destinations = []destination.Place{{Pod: &cluster.Pod{Name: "p"}, Host: l.replacements[0].Name}}
	if x.deleteLinked(l); m.GiveUpReason != "" || len(x.departures) != 2 ||
		!strings.Contains(render.Text(x.departures[1].text),
			"$0.200") {
		t.Errorf("one is on its way out: over is %q, %d depart", m.GiveUpReason, len(x.departures))
	}
	m.Leaving = nil
	if x.deleteLinked(l); m.GiveUpReason != disrupt.NothingCheaper {
		t.Errorf("a node for 0.40 goes for one of 0.60 that nobody uses: over is %q", m.GiveUpReason)
	}
}

// A replacement that nobody needs goes in any case: it does not keep the last node of a move whose others have gone.
func TestTheRestOfAMoveDoesNotPayForWhatNobodyNeeds(t *testing.T) {
	x, l, made := halfway()
	m := l.moves[0]
	spare := *made
	spare.Name, spare.ProviderID, spare.Price = "spare", "", 0.50
	x.s.Claims = append(x.s.Claims, &spare)
	x.s.Seal()
	l.replacements = append(l.replacements, &spare)
	x.OtherPodsHosts[made.Name] = true // by a pod of the node that has gone
	m.Leaving, m.Nodes = m.Nodes[:1], m.Nodes[1:]
	if x.deleteLinked(l); m.GiveUpReason != "" || len(x.departures) != 1 ||
		!strings.Contains(render.Text(x.departures[0].text),
			"$0.400") {
		t.Errorf("none of its pods goes there: over is %q, departures are %+v", m.GiveUpReason, x.departures)
	}
	m.Destinations = []destination.Place{{Pod: &cluster.Pod{Name: "p"}, Host: spare.Name}}
	if x.deleteLinked(l); m.GiveUpReason != disrupt.NothingCheaper {
		t.Errorf("its pod goes there: over is %q, want %s", m.GiveUpReason, disrupt.NothingCheaper)
	}
}

// What a node on its way out costs may be known from its Node alone.
func TestTheLeavingCountForWhatTheirNodesSay(t *testing.T) {
	s := disrupttest.Quiet(1)
	s.Pools[0].Catalog = disrupttest.Shop()
	s.Nodes[0].Labels = disrupttest.LabelsFor("small", "a", disrupt.Spot)
	s.Claims[0].Deleting = s.Now
	m := &destination.Move{}
	if (&gathered{s: s.Seal()}).noteLeaving(m, s.Claims[0],
		s.Nodes[0]); len(m.Leaving) != 1 ||
		m.Leaving[0].Price != 0.3 {
		t.Errorf("%+v, want one for 0.3", m.Leaving)
	}
}

// A replacement that stays in any case costs the rest of the move nothing; but whoever buys more has to make up for it.
func TestWhatStaysInAnyCaseIsNotPaidForTwice(t *testing.T) {
	x, l, made := halfway()
	m := l.moves[0]
	m.Nodes = m.Nodes[1:]
	x.OtherPodsHosts[made.Name] = true // by a pod of the node that has gone
	if x.deleteLinked(l); m.GiveUpReason != "" || len(x.departures) != 1 ||
		!strings.Contains(render.Text(x.departures[0].text),
			"$0.400") {
		t.Errorf("over is %q, departures are %+v", m.GiveUpReason, x.departures)
	}
	if whole, known := x.fullBalance(l, m.Nodes); !known || whole.Shortfall(x.set, 0) != disrupt.NothingCheaper {
		t.Errorf("the whole of it is %+v (known: %v), want that more can't be bought", whole, known)
	}
}

func TestCommitAsksForTheLeastSaving(t *testing.T) {
	for _, c := range []struct {
		price float64
		want  disrupt.BlockReason
	}{{0.60, ""}, {0.76, ""}, {0.761, disrupt.SavesTooLittle}, {0.7999, disrupt.SavesTooLittle},
		{0.80, disrupt.NothingCheaper},
		{0.90, disrupt.NothingCheaper}} {
		x, l, made := halfway()
		made.Price = c.price
		if x.deleteLinked(l); l.moves[0].GiveUpReason != c.want {
			t.Errorf("for %v: over is %q, want %q", c.price, l.moves[0].GiveUpReason, c.want)
		}
	}
}

// A replacement whose price nobody knows is no cheap one.
func TestAnUnknownPriceIsANo(t *testing.T) {
	x, l, made := halfway()
	made.Price, made.Labels = 0, disrupttest.LabelsFor("huge", "a", disrupt.OnDemand)
	if x.deleteLinked(l); l.moves[0].GiveUpReason != disrupt.PriceUnknown {
		t.Errorf("nobody sells it: over is %q, want %s", l.moves[0].GiveUpReason, disrupt.PriceUnknown)
	}
	x, l, made = halfway()
	made.Price, made.Labels = 0, disrupttest.LabelsFor("small", "a", disrupt.Spot)
	if price, known := saving.ReplacementPrice(x.s, made); !known || price != 0.3 {
		t.Errorf("a small spot node costs %v (known: %v), want 0.3", price, known)
	}
	made.Labels = cluster.LabelsOf(map[string]string{cluster.CapacityTypeLabel: disrupt.OnDemand})
	if price, known := saving.ReplacementPrice(x.s, made); !known || price != 0.3 {
		t.Errorf("nobody knows of which type it is: it costs %v (known: %v), want the least that is sold, 0.3",
			price, known)
	}
	made.Labels = disrupttest.LabelsFor("small", "a", disrupt.Spot)
	if x.deleteLinked(l); l.moves[0].GiveUpReason != "" {
		t.Errorf("the catalog knows its price: over is %q", l.moves[0].GiveUpReason)
	}
}

// What an earlier try of the same move has left counts as long as nobody uses it, and is like any other node after
// that, be it that pods of the move find room there.
func TestLeavingsOfAnEarlierTry(t *testing.T) {
	for _, c := range []struct {
		name       string
		made       time.Duration
		used, host bool
		after      float64
	}{
		{"of this try, not used yet", time.Minute, false, false, 0.60}, {"of this try, somebody else came", time.Minute,
			true, false, 0.60},
		{"of an earlier try, never used", time.Hour, false, false, 0.60}, {"of an earlier try, somebody runs there",
			time.Hour, true, false, 0},
		{"of this try, and a pod goes there", time.Minute, true, true, 0.60},
		{"of an earlier try, and a pod goes there", time.Hour, false, true, 0.60},
		{"of an earlier try, in use, and a pod goes there", time.Hour, true, true, 0},
	} {
		x, l, made := halfway()
		made.Created = x.s.Now.Add(-c.made)
		for _, claim := range x.s.Claims[:2] {
			claim.Conditions = append(claim.Conditions, cluster.Condition{Type: cluster.DisruptionReason,
				Status: cluster.True, Since: x.s.Now.Add(-time.Minute)})
		}
		if c.used {
			x.s.Pods = []*cluster.Pod{{UID: "p", Name: "p", Node: "n2", Owner: "o",
				Class: &cluster.PodClass{Key: "web"}, Phase: "Running"}}
		}
		if c.host {
			l.moves[0].Destinations = []destination.Place{{Pod: &cluster.Pod{Name: "q"}, Host: made.Name}}
		}
		x.s.Seal()
		whole, known := x.fullBalance(x.linkMoves(l.moves)[0], l.moves[0].Nodes)
		if !known || whole.AddedPrice != c.after {
			t.Errorf("%s: %.2f has been paid, want %.2f", c.name, whole.AddedPrice, c.after)
		}
		if left := x.newPlacementCheck().leftovers[made.Replaces]; left != (c.after > 0) {
			t.Errorf("%s: there is something left to pay: %v, want %v", c.name, left, c.after > 0)
		}
	}
}

// A replacement that never comes up does not stay behind, but the last of drifted nodes does: it tells that more are
// pointless.
func TestReplacementsThatNeverComeUpGo(t *testing.T) {
	set := disrupt.Settings{ReplacementTimeout: 5 * time.Minute}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot, c *cluster.Claim)
		want   bool
	}{
		{"its time is up", func(*cluster.Snapshot, *cluster.Claim) {}, true},
		{"its time is not up", func(s *cluster.Snapshot, c *cluster.Claim) {
			c.Created = s.Now.Add(-4 * time.Minute)
		}, false},
		{"its move goes on", func(s *cluster.Snapshot, c *cluster.Claim) { s.Claims[1].Move = c.Replaces }, false},
		{"a pod has come", func(s *cluster.Snapshot, c *cluster.Claim) { c.LastPodEvent = s.Now }, false},
		{"it is of nobody", func(_ *cluster.Snapshot, c *cluster.Claim) { c.Replaces = "" }, false},
		{"people keep it", func(_ *cluster.Snapshot, c *cluster.Claim) { c.DoNotDisrupt = true }, false},
		{"it replaces a drifted node, and others have drifted", func(s *cluster.Snapshot, c *cluster.Claim) {
			c.Replaces = disrupt.MoveID(command.Drifted, []string{"x"})
			s.Claims[1].Conditions = append(s.Claims[1].Conditions, cluster.Condition{Type: cluster.Drifted,
				Status: cluster.True})
		}, false},
		{"a younger one is late as well", func(s *cluster.Snapshot, c *cluster.Claim) {
			c.Replaces = disrupt.MoveID(command.Drifted, []string{"x"})
			s.Claims[1].Conditions = append(s.Claims[1].Conditions, cluster.Condition{Type: cluster.Drifted,
				Status: cluster.True})
			s.Claims = append(s.Claims, &cluster.Claim{Name: "n9", Pool: "default",
				Created: s.Now.Add(-4 * time.Minute), Replaces: disrupt.MoveID(command.Drifted, []string{"y"})})
		}, true},
	} {
		s := disrupttest.Quiet(2)
		s.Claims[0].LastPodEvent, s.Claims[0].Created = time.Time{}, s.Now.Add(-time.Hour)
		s.Claims[0].Conditions = []cluster.Condition{{Type: cluster.Launched, Status: cluster.True},
			{Type: cluster.Registered, Status: cluster.True}}
		s.Claims[0].Replaces = disrupt.MoveID(command.Underutilized, []string{"x"})
		c.change(s, s.Claims[0])
		r := empty.Remove(s.Seal(), disrupt.NewBudgetTracker(s), empty.Demand{}, set)
		if got := strings.Contains(disrupttest.Keys(r), "delete/n0 "); got != c.want {
			t.Errorf("%s: it goes: %v, want %v (%s)", c.name, got, c.want, disrupttest.Keys(r))
		}
	}
}
