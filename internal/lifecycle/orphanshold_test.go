package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/render"
)

// lostClaims is a cluster in which the claims of so many instances are gone. Each has a node, which the garbage
// collector deletes if asked.
func lostClaims(count int, deleted bool) *cluster.Snapshot {
	s := &cluster.Snapshot{Now: noon, Inventory: &cluster.Inventory{At: noon}, Pools: []*cluster.Pool{{Name: "p"}}}
	for i := range count {
		name := fmt.Sprintf("n%02d", i)
		id := "cloud://" + name
		n := &cluster.Node{Name: name, UID: name, ProviderID: id, Created: noon.Add(-time.Hour), Ours: true,
			Finalized: true, Ready: true}
		if deleted {
			n.Deleting = noon
		}
		s.Nodes = append(s.Nodes, n)
		s.Inventory.Instances = append(s.Inventory.Instances, cluster.Instance{ProviderID: id, Claim: name,
			ClaimUID: name, Created: noon.Add(-time.Hour)})
	}
	return s
}

// When claims are gone, the garbage collector deletes their nodes. That is no reason to drain them, or to end what runs
// there.
func TestNodesThatTheGarbageCollectorDeletesAreHeld(t *testing.T) {
	for _, x := range []struct {
		count int
		set   func(*cluster.Snapshot)
		held  int
	}{
		{3, func(*cluster.Snapshot) {}, 0},
		{4, func(*cluster.Snapshot) {}, 4},
		{4, func(s *cluster.Snapshot) { s.EndOrphans = noon }, 0},
		// its end was asked for
		{4, func(s *cluster.Snapshot) { s.InFlight = map[string]bool{"terminate//cloud://n00/n00": true} }, 3},
		{4, func(s *cluster.Snapshot) { s.Inventory.Instances[0].Terminating = true }, 3},
	} {
		s := lostClaims(x.count, true)
		x.set(s)
		step, status := Orphans(s.Seal())
		held := 0
		for _, n := range s.Nodes {
			if status.IsHeld(n.Name) {
				held++
			}
		}
		if held != x.held || status.Held != x.held || len(step.Commands) != 0 {
			t.Errorf("%d nodes are being deleted: %d are held (%+v), %d commands; want %d held", x.count, held, status,
				len(step.Commands), x.held)
		}
	}
}

// Claims that vanish together are seen one after the other: nothing is ended while they may still be vanishing.
func TestOrphansAreCountedTogether(t *testing.T) {
	s := lostClaims(2, false)
	s.Nodes[1].Deleting = noon
	s.ClaimLostAt = noon.Add(-allSeenFor + time.Second)
	step, status := Orphans(s.Seal())
	if len(step.Commands) != 0 || !step.WakeAt.Equal(s.ClaimLostAt.Add(allSeenFor)) || !status.IsHeld("n01") ||
		render.Text(status.Text()) != "" {
		t.Errorf("a second before all are seen: %d commands, to look again at %v, %+v", len(step.Commands),
			step.WakeAt, status)
	}
	s.ClaimLostAt = noon.Add(-allSeenFor)
	if step, status := Orphans(s.Seal()); len(step.Commands) != 1 || status.IsHeld("n01") {
		t.Errorf("when all are seen: %d commands, %+v", len(step.Commands), status)
	}
}

// What is too young to be ended counts all the same: with the others it is many.
func TestYoungOrphansCount(t *testing.T) {
	s := lostClaims(4, false)
	s.Nodes = s.Nodes[:1]
	s.Nodes[0].Created, s.Inventory.Instances[0].Created = noon.Add(-time.Second), noon.Add(-time.Second)
	s.Inventory.Instances[1].Created = noon.Add(-time.Second)
	if step, status := Orphans(s.Seal()); len(step.Commands) != 0 || status.Held != 2 {
		t.Errorf("%d commands, %+v; want the two that are old enough held", len(step.Commands), status)
	}
}

// Once many are held, the few that are left of them are held as well; but not because of those that may be another
// cluster's.
func TestWhatIsHeldStaysHeld(t *testing.T) {
	for _, x := range []struct {
		reason string
		held   int
	}{{ManyOrphans, 1}, {UnprovenOrphans, 0}} {
		s := lostClaims(1, false)
		s.Pools[0].Status.Conditions = []cluster.Condition{{Type: cluster.OrphansHeld, Status: cluster.True,
			Reason: x.reason}}
		step, status := Orphans(s.Seal())
		if status.Held != x.held || len(step.Commands) != 1-x.held ||
			(x.held > 0) != (render.Text(status.Text()) != "") {
			t.Errorf("%s: %d commands, %+v, %q", x.reason, len(step.Commands), status, render.Text(status.Text()))
		}
		s.EndOrphans = noon
		if step, status := Orphans(s.Seal()); status.Held != 0 || len(step.Commands) != 1 {
			t.Errorf("%s, and a person has confirmed: %d commands, %+v", x.reason, len(step.Commands), status)
		}
	}
	for want, status := range map[string]OrphanStatus{ManyOrphans: {Held: 2, Unproven: 2, TooMany: true},
		UnprovenOrphans: {Held: 2, Unproven: 2}} {
		if got := status.Reason(); got != want {
			t.Errorf("%+v is told as %s, want %s", status, got, want)
		}
	}
}

// Claims may be lost one after the other: what was ended within the last hour counts with what is there.
func TestOrphansEndedWithinTheHourCount(t *testing.T) {
	ended := func(ago ...time.Duration) map[string]time.Time {
		out := make(map[string]time.Time)
		for i, d := range ago {
			out[fmt.Sprintf("cloud://gone%d", i)] = noon.Add(-d)
		}
		return out
	}
	for _, x := range []struct {
		name  string
		ended map[string]time.Time
		said  time.Duration // how long ago a person confirmed; zero for never
		held  int
	}{
		{"two", ended(time.Minute, 2*time.Minute), 0, 0},
		{"three", ended(time.Minute, 2*time.Minute, 59*time.Minute), 0, 1},
		{"three, one of them long ago", ended(time.Minute, 2*time.Minute, time.Hour), 0, 0},
		{"three, one of them is still listed", map[string]time.Time{"cloud://n00": noon, "cloud://a": noon,
			"cloud://b": noon}, 0, 0},
		{"three, one of them is a claim's", map[string]time.Time{"cloud://claimed": noon, "cloud://a": noon,
			"cloud://b": noon}, 0, 0},
		{"three, while a person's word held", ended(31*time.Minute, 40*time.Minute, 50*time.Minute),
			90 * time.Minute, 0},
		{"three, since that word no longer holds", ended(time.Minute, 2*time.Minute, 3*time.Minute),
			90 * time.Minute, 1},
	} {
		s := lostClaims(1, false)
		s.Nodes[0].Created, s.Inventory.Instances[0].Created = noon.Add(-time.Minute), noon.Add(-time.Minute)
		s.Claims = []*cluster.Claim{{Name: "claimed", UID: "claimed", ProviderID: "cloud://claimed"}}
		if s.OrphansEnded = x.ended; x.said > 0 {
			s.EndOrphans = noon.Add(-x.said)
		}
		step, status := Orphans(s.Seal())
		if status.Held != x.held || len(step.Commands) != 1-x.held || status.TooMany != (x.held > 0) {
			t.Errorf("%s were ended: %d commands, %+v; want %d held", x.name, len(step.Commands), status, x.held)
		}
	}
	h := OrphanStatus{TooMany: true, Held: 1, Known: 9, MaxUnasked: 3, Ended: 3}
	want := "No NodeClaim accounts for 1 of 9 instances; " +
		"at most 3 are ended within an hour without confirmation, and 3 have been. "
	if !strings.HasPrefix(render.Text(h.Text()), want) {
		t.Errorf("%s\nwant it to begin with\n%s", render.Text(h.Text()), want)
	}
}

// What the condition remembers is not forgotten while nobody can tell whether any are left.
func TestHoldIsRememberedUntilItCanBeTold(t *testing.T) {
	for _, x := range []struct {
		name string
		set  func(*cluster.Snapshot)
		many bool
	}{
		{"none is left", func(*cluster.Snapshot) {}, false},
		{"a claim has vanished just now", func(s *cluster.Snapshot) { s.ClaimLostAt = noon }, true},
		{"the cloud has not been asked yet", func(s *cluster.Snapshot) { s.Inventory = nil }, true},
		{"one is left, and is young", func(s *cluster.Snapshot) {
			s.Inventory.Instances = []cluster.Instance{{ProviderID: "cloud://x", ClaimUID: "x", Created: noon}}
		}, true},
		{"one is left that may be another cluster's", func(s *cluster.Snapshot) {
			s.Inventory.Instances = []cluster.Instance{{ProviderID: "cloud://x", ClaimUID: "x", Unproven: true}}
		}, false},
	} {
		s := lostClaims(0, false)
		s.Pools[0].Status.Conditions = []cluster.Condition{{Type: cluster.OrphansHeld, Status: cluster.True,
			Reason: ManyOrphans}}
		x.set(s)
		if _, status := Orphans(s.Seal()); status.TooMany != x.many {
			t.Errorf("%s: %+v", x.name, status)
		}
	}
}

// A claim that says it has an instance accounts for it, for whomever it was launched: a claim that was restored with a
// new UID, say. Its own claim may be gone, or have another instance.
func TestInstanceThatAnotherClaimNamesIsNoOrphan(t *testing.T) {
	for name, own := range map[string][]*cluster.Claim{
		"its own claim is gone": nil,
		"its own claim has another instance": {{Name: "old", UID: "old", ProviderID: "cloud://other",
			Conditions: []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}}}},
	} {
		inventory := &cluster.Inventory{At: noon, Instances: []cluster.Instance{
			{ProviderID: "cloud://x", Claim: "old", ClaimUID: "old", Created: noon.Add(-time.Hour)},
		}}
		s := &cluster.Snapshot{Now: noon, Pools: []*cluster.Pool{{Name: "p"}}, Inventory: inventory}
		s.Claims = append([]*cluster.Claim{{Name: "new", UID: "new", ProviderID: "cloud://x"}}, own...)
		if step, status := Orphans(s.Seal()); len(step.Commands) != 0 || status.Orphans != 0 {
			t.Errorf("%s: %v, %+v", name, step.Commands, status)
		}
		s.Claims = own
		if step, _ := Orphans(s.Seal()); len(step.Commands) != 1 {
			t.Errorf("%s, and no claim names it: %v, want its end", name, step.Commands)
		}
	}
}

// The definitions were deleted, and with them the NodePools: nothing remembers that many were held, so the few that are
// left stay as well until a person has looked.
func TestNoneIsEndedUnaskedIfNothingRemembersAHold(t *testing.T) {
	s := lostClaims(1, false)
	s.OrphansUnknown = true
	step, status := Orphans(s.Seal())
	reason := "many were held when the last NodePool was deleted, and no new NodePool says yet whether they still are"
	if len(step.Commands) > 0 || status.Held != 1 || !strings.Contains(render.Text(status.Text()), reason) {
		t.Errorf("%v, %d held, %q", step.Commands, status.Held, render.Text(status.Text()))
	}
	s = lostClaims(1, false)
	s.OrphansUnknown, s.EndOrphans = true, noon.Add(-time.Minute)
	if step, _ = Orphans(s.Seal()); len(step.Commands) != 1 {
		t.Errorf("a person has said that it may go: %v", step.Commands)
	}
}
