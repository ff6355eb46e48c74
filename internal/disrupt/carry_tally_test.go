package disrupt

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// halfway is a move of two nodes for 0.40 each, which a new one for 0.60 is to replace.
func halfway() (*desk, *bundle, *cluster.Claim) {
	s := quiet(3)
	p := s.Pools[0]
	p.Catalog = shop()
	id := MoveID(command.Underutilized, []string{"n0", "n1"})
	g := &group{id: id, reason: command.Underutilized, since: s.Now.Add(-time.Minute)}
	for i := range 2 {
		s.Claims[i].Price, s.Claims[i].Move = 0.40, id
		g.nodes = append(g.nodes, Candidate{Claim: s.Claims[i], Node: s.Nodes[i], Pool: p, Price: 0.40, Evicted: 1})
	}
	made := s.Claims[2]
	made.Price, made.Replaces, made.Created = 0.60, id, s.Now.Add(-time.Minute)
	return newDesk(s.Seal(), Settings{MinSaving: 0.05}, Orders{}), &bundle{groups: []*group{g}, made: []*cluster.Claim{made}}, made
}

// What the nodes cost that have gone ahead counts, or the rest of a move would have to pay for all that was bought.
func TestHalfAMoveIsWeighedWithTheOtherHalf(t *testing.T) {
	d, b, _ := halfway()
	g := b.groups[0]
	if d.commit(b); g.over != "" || len(d.departures) != 1 || !strings.Contains(d.departures[0].message, "$0.200") {
		t.Fatalf("both nodes: over is %q, %d depart", g.over, len(d.departures))
	}
	g.leaving, g.nodes = g.nodes[:1], g.nodes[1:]
	g.seats = []seat{{pod: &cluster.Pod{Name: "p"}, host: b.made[0].Name}}
	if d.commit(b); g.over != "" || len(d.departures) != 2 || !strings.Contains(d.departures[1].message, "$0.200") {
		t.Errorf("one is on its way out: over is %q, %d depart", g.over, len(d.departures))
	}
	g.leaving = nil
	if d.commit(b); g.over != NothingCheaper {
		t.Errorf("a node for 0.40 goes for one of 0.60 that nobody uses: over is %q", g.over)
	}
}

// A replacement that nobody needs goes in any case: it does not keep the last node of a move whose others have gone.
func TestTheRestOfAMoveDoesNotPayForWhatNobodyNeeds(t *testing.T) {
	d, b, made := halfway()
	g := b.groups[0]
	spare := *made
	spare.Name, spare.ProviderID, spare.Price = "spare", "", 0.50
	d.s.Claims = append(d.s.Claims, &spare)
	d.s.Seal()
	b.made = append(b.made, &spare)
	d.sought[made.Name] = true // by a pod of the node that has gone
	g.leaving, g.nodes = g.nodes[:1], g.nodes[1:]
	if d.commit(b); g.over != "" || len(d.departures) != 1 || !strings.Contains(d.departures[0].message, "$0.400") {
		t.Errorf("none of its pods goes there: over is %q, departures are %+v", g.over, d.departures)
	}
	g.seats = []seat{{pod: &cluster.Pod{Name: "p"}, host: spare.Name}}
	if d.commit(b); g.over != NothingCheaper {
		t.Errorf("its pod goes there: over is %q, want %s", g.over, NothingCheaper)
	}
}

// What a node on its way out costs may be known from its Node alone.
func TestTheLeavingCountForWhatTheirNodesSay(t *testing.T) {
	s := quiet(1)
	s.Pools[0].Catalog = shop()
	s.Nodes[0].Labels = labelsFor("small", "a", spot)
	s.Claims[0].Deleting = s.Now
	g := &group{}
	if newDesk(s.Seal(), Settings{}, Orders{}).note(g, s.Claims[0], s.Nodes[0]); len(g.leaving) != 1 || g.leaving[0].Price != 0.3 {
		t.Errorf("%+v, want one for 0.3", g.leaving)
	}
}

// A replacement that stays in any case costs the rest of the move nothing; but whoever buys more has to make up for it.
func TestWhatStaysInAnyCaseIsNotPaidForTwice(t *testing.T) {
	d, b, made := halfway()
	g := b.groups[0]
	g.nodes = g.nodes[1:]
	d.sought[made.Name] = true // by a pod of the node that has gone
	if d.commit(b); g.over != "" || len(d.departures) != 1 || !strings.Contains(d.departures[0].message, "$0.400") {
		t.Errorf("over is %q, departures are %+v", g.over, d.departures)
	}
	if whole, known := d.whole(b, g.nodes); !known || whole.short(d.set, 0) != NothingCheaper {
		t.Errorf("the whole of it is %+v (known: %v), want that more can't be bought", whole, known)
	}
}

func TestCommitAsksForTheLeastSaving(t *testing.T) {
	for _, c := range []struct {
		price float64
		want  Why
	}{{0.60, ""}, {0.76, ""}, {0.761, SavesTooLittle}, {0.7999, SavesTooLittle}, {0.80, NothingCheaper}, {0.90, NothingCheaper}} {
		d, b, made := halfway()
		made.Price = c.price
		if d.commit(b); b.groups[0].over != c.want {
			t.Errorf("for %v: over is %q, want %q", c.price, b.groups[0].over, c.want)
		}
	}
}

// A replacement whose price nobody knows is no cheap one.
func TestAnUnknownPriceIsANo(t *testing.T) {
	d, b, made := halfway()
	made.Price, made.Labels = 0, labelsFor("huge", "a", onDemand)
	if d.commit(b); b.groups[0].over != PriceUnknown {
		t.Errorf("nobody sells it: over is %q, want %s", b.groups[0].over, PriceUnknown)
	}
	d, b, made = halfway()
	made.Price, made.Labels = 0, labelsFor("small", "a", spot)
	if price, known := d.priceOf(made); !known || price != 0.3 {
		t.Errorf("a small spot node costs %v (known: %v), want 0.3", price, known)
	}
	made.Labels = cluster.LabelsOf(map[string]string{cluster.CapacityTypeLabel: onDemand})
	if price, known := d.priceOf(made); !known || price != 0.3 {
		t.Errorf("nobody knows of which type it is: it costs %v (known: %v), want the least that is sold, 0.3", price, known)
	}
	made.Labels = labelsFor("small", "a", spot)
	if d.commit(b); b.groups[0].over != "" {
		t.Errorf("the catalog knows its price: over is %q", b.groups[0].over)
	}
}

// What an earlier try of the same move has left counts as long as nobody uses it, and is like any other node after that, be it
// that pods of the move find room there.
func TestLeavingsOfAnEarlierTry(t *testing.T) {
	for _, c := range []struct {
		name       string
		made       time.Duration
		used, host bool
		after      float64
	}{
		{"of this try, not used yet", time.Minute, false, false, 0.60}, {"of this try, somebody else came", time.Minute, true, false, 0.60},
		{"of an earlier try, never used", time.Hour, false, false, 0.60}, {"of an earlier try, somebody runs there", time.Hour, true, false, 0},
		{"of this try, and a pod goes there", time.Minute, true, true, 0.60}, {"of an earlier try, and a pod goes there", time.Hour, false, true, 0.60},
		{"of an earlier try, in use, and a pod goes there", time.Hour, true, true, 0},
	} {
		d, b, made := halfway()
		made.Created = d.s.Now.Add(-c.made)
		for _, claim := range d.s.Claims[:2] {
			claim.Conditions = append(claim.Conditions, cluster.Condition{Type: cluster.DisruptionReason, Status: cluster.True, Since: d.s.Now.Add(-time.Minute)})
		}
		if c.used {
			d.s.Pods = []*cluster.Pod{{UID: "p", Name: "p", Node: "n2", Owner: "o", Class: &cluster.PodClass{Key: "web"}, Phase: "Running"}}
		}
		if c.host {
			b.groups[0].seats = []seat{{pod: &cluster.Pod{Name: "q"}, host: made.Name}}
		}
		d.s.Seal()
		whole, known := d.whole(d.bundlesOf(b.groups)[0], b.groups[0].nodes)
		if !known || whole.after != c.after {
			t.Errorf("%s: %.2f has been paid, want %.2f", c.name, whole.after, c.after)
		}
		if left := d.newProof().left[made.Replaces]; left != (c.after > 0) {
			t.Errorf("%s: there is something left to pay: %v, want %v", c.name, left, c.after > 0)
		}
	}
}

// A replacement that never comes up does not stay behind, but the last of drifted nodes does: it tells that more are pointless.
func TestReplacementsThatNeverComeUpGo(t *testing.T) {
	set := Settings{ReplacementTimeout: 5 * time.Minute}
	for _, c := range []struct {
		name   string
		change func(s *cluster.Snapshot, c *cluster.Claim)
		want   bool
	}{
		{"its time is up", func(*cluster.Snapshot, *cluster.Claim) {}, true},
		{"its time is not up", func(s *cluster.Snapshot, c *cluster.Claim) { c.Created = s.Now.Add(-4 * time.Minute) }, false},
		{"its move goes on", func(s *cluster.Snapshot, c *cluster.Claim) { s.Claims[1].Move = c.Replaces }, false},
		{"a pod has come", func(s *cluster.Snapshot, c *cluster.Claim) { c.LastPodEvent = s.Now }, false},
		{"it is of nobody", func(_ *cluster.Snapshot, c *cluster.Claim) { c.Replaces = "" }, false},
		{"people keep it", func(_ *cluster.Snapshot, c *cluster.Claim) { c.DoNotDisrupt = true }, false},
		{"it replaces a drifted node, and others have drifted", func(s *cluster.Snapshot, c *cluster.Claim) {
			c.Replaces = MoveID(command.Drifted, []string{"x"})
			s.Claims[1].Conditions = append(s.Claims[1].Conditions, cluster.Condition{Type: cluster.Drifted, Status: cluster.True})
		}, false},
		{"a younger one is late as well", func(s *cluster.Snapshot, c *cluster.Claim) {
			c.Replaces = MoveID(command.Drifted, []string{"x"})
			s.Claims[1].Conditions = append(s.Claims[1].Conditions, cluster.Condition{Type: cluster.Drifted, Status: cluster.True})
			s.Claims = append(s.Claims, &cluster.Claim{Name: "n9", Pool: "default", Created: s.Now.Add(-4 * time.Minute), Replaces: MoveID(command.Drifted, []string{"y"})})
		}, true},
	} {
		s := quiet(2)
		s.Claims[0].LastPodEvent, s.Claims[0].Created = time.Time{}, s.Now.Add(-time.Hour)
		s.Claims[0].Conditions = []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}, {Type: cluster.Registered, Status: cluster.True}}
		s.Claims[0].Replaces = MoveID(command.Underutilized, []string{"x"})
		c.change(s, s.Claims[0])
		r := EmptyFrom(s.Seal(), NewLedger(s), Wants{}, set)
		if got := strings.Contains(keys(r), "delete/n0 "); got != c.want {
			t.Errorf("%s: it goes: %v, want %v (%s)", c.name, got, c.want, keys(r))
		}
	}
}
