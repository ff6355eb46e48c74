package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/render"
)

// What counts as an orphan, which of them are ended, and which are held. There are a few more than are ended unasked,
// if nothing else is said.
func TestWhichOrphansAreHeld(t *testing.T) {
	launched := []cluster.Condition{{Type: cluster.Launched, Status: cluster.True}}
	second := func(s *cluster.Snapshot) { // every instance has a claim, and every claim another instance
		for _, i := range s.Inventory.Instances {
			s.Claims = append(s.Claims, &cluster.Claim{Name: i.Claim, UID: i.ClaimUID, ProviderID: i.ProviderID + "-2",
				Conditions: launched})
		}
	}
	holds := func(kind string, status cluster.ConditionStatus) func(*cluster.Snapshot) {
		return func(s *cluster.Snapshot) {
			s.Pools[0].Status.Conditions = []cluster.Condition{{Type: kind, Status: status, Reason: ManyOrphans}}
		}
	}
	others := func(count int, change func(*cluster.Node)) func(*cluster.Snapshot) {
		// nodes that the cloud's list does not have yet, and that may find their claims
		return func(s *cluster.Snapshot) {
			for range count {
				n := &cluster.Node{Name: "x" + string(rune('a'+len(s.Nodes))), ProviderID: "cloud://x" +
					string(rune('a'+len(s.Nodes))), Ours: true, Ready: true, Created: noon}
				change(n)
				s.Nodes = append(s.Nodes, n)
			}
		}
	}
	each := func(do func(*cluster.Node, *cluster.Instance)) func(*cluster.Snapshot) {
		return func(s *cluster.Snapshot) {
			for i := range s.Nodes {
				do(s.Nodes[i], &s.Inventory.Instances[i])
			}
		}
	}
	for _, x := range []struct {
		name                  string
		count                 int
		deleted               bool
		set                   func(*cluster.Snapshot)
		orphans, ended, held  int
		unproven, onlyWarning int
	}{
		{name: "many", count: 4, set: func(*cluster.Snapshot) {}, orphans: 4, held: 4},
		{name: "those that a person has confirmed don't count", count: 7, set: func(s *cluster.Snapshot) {
			s.EndOrphans = noon.Add(-30 * time.Minute)
			for i := range 3 {
				s.Nodes[i].Created = noon.Add(-10 * time.Minute)
			}
		}, orphans: 7, ended: 7},
		{name: "what was made after a person's word is not confirmed", count: 4, set: func(s *cluster.Snapshot) {
			s.EndOrphans = noon.Add(-30 * time.Minute)
			each(func(n *cluster.Node, _ *cluster.Instance) { n.Created = noon.Add(-10 * time.Minute) })(s)
		}, orphans: 4, held: 4},
		{name: "second machines of claims are nobody's, however many", count: 6, set: second, orphans: 6, ended: 6},
		{name: "and don't make others many", count: 9, set: func(s *cluster.Snapshot) {
			second(s)
			s.Claims = s.Claims[3:]
		}, orphans: 9, ended: 9},
		{name: "one that was ended before and is a claim's after all does not count", count: 3,
			set: func(s *cluster.Snapshot) {
				s.OrphansEnded, s.Claims = map[string]time.Time{"cloud://y": noon},
					[]*cluster.Claim{{Name: "y", UID: "y", ProviderID: "cloud://y"}}
			}, orphans: 3, ended: 3},
		{name: "a person's word of long ago changes nothing", count: 1, set: func(s *cluster.Snapshot) {
			before := noon.Add(-90 * time.Minute)
			s.EndOrphans, s.OrphansEnded = noon.Add(-3*time.Hour), map[string]time.Time{"cloud://x": before,
				"cloud://y": before, "cloud://z": before}
		}, orphans: 1, ended: 1},
		{name: "also if their nodes are being deleted", count: 6, deleted: true, set: second, orphans: 6},
		{name: "nobody knows for whom they were launched", count: 4, set: func(s *cluster.Snapshot) {
			each(func(_ *cluster.Node, i *cluster.Instance) { i.ClaimUID = "" })(s)
			s.Claims = []*cluster.Claim{{Name: "expected", ProviderID: "cloud://y", Conditions: launched}}
		}, orphans: 4, held: 4},
		{name: "another condition holds nothing", count: 1, set: holds("Odd", cluster.True), orphans: 1, ended: 1},
		{name: "a hold that is over holds nothing", count: 1, set: holds(cluster.OrphansHeld, cluster.False),
			orphans: 1, ended: 1},
		{name: "a tenth of what there is", count: 4, set: others(36, func(*cluster.Node) {}), orphans: 4, ended: 4},
		{name: "less than a tenth", count: 4, set: others(35, func(*cluster.Node) {}), orphans: 4, held: 4},
		{name: "others' nodes don't count", count: 4, set: others(36, func(n *cluster.Node) {
			n.Ours = false
		}), orphans: 4, held: 4},
		{name: "nodes without a machine don't count", count: 4, set: others(36, func(n *cluster.Node) {
			n.ProviderID = ""
		}), orphans: 4, held: 4},
		{name: "those that the list has count once", count: 4, set: func(s *cluster.Snapshot) {
			others(20, func(*cluster.Node) {})(s)
			for _, n := range s.Nodes[4:] {
				s.Inventory.Instances = append(s.Inventory.Instances, cluster.Instance{ProviderID: n.ProviderID,
					Claim: n.Name, ClaimUID: n.Name, Terminating: true})
			}
		}, orphans: 4, held: 4},
		{name: "nodes whose machines are gone go at once", count: 5, set: func(s *cluster.Snapshot) {
			s.InstancesGone = map[string]bool{}
			each(func(n *cluster.Node, _ *cluster.Instance) { s.InstancesGone[n.ProviderID] = true })(s)
		}, ended: 5},
		{name: "and don't count if they are being deleted", count: 5, deleted: true, set: func(s *cluster.Snapshot) {
			s.InstancesGone = map[string]bool{}
			each(func(n *cluster.Node, _ *cluster.Instance) { s.InstancesGone[n.ProviderID] = true })(s)
		}},
		{name: "a machine whose node does not wait for us counts once", count: 5, deleted: true,
			set: each(func(n *cluster.Node, _ *cluster.Instance) { n.Finalized = false }), orphans: 5, held: 5},
		{name: "one that may be another cluster's", count: 1, set: each(func(_ *cluster.Node, i *cluster.Instance) {
			i.Unproven = true
		}), orphans: 1, held: 1, unproven: 1},
		{name: "the same, and its node is being deleted", count: 1, deleted: true,
			set: each(func(_ *cluster.Node, i *cluster.Instance) {
				i.Unproven = true
			}), orphans: 1, held: 1, unproven: 1},
		{name: "the end of one was asked for", count: 4, deleted: true, set: func(s *cluster.Snapshot) {
			s.Retry = map[string]cluster.Retry{"terminate//cloud://n00/n00": {}}
		}, orphans: 4, held: 3},
		{name: "one whose claim names another and is not launched", count: 1, set: func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "n00", UID: "n00", ProviderID: "cloud://y"}}
		}},
		{name: "one whose machine is a claim's that has another node", count: 1, set: func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "c", UID: "c", ProviderID: "cloud://n00", NodeName: "other"}}
			s.Nodes = append(s.Nodes, &cluster.Node{Name: "other", ProviderID: "cloud://n00", Ours: true,
				Finalized: true, Ready: true})
		}, onlyWarning: 1},
		{name: "one whose machine is a claim's that has no node yet", count: 1, set: func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "n00", UID: "n00"}}
		}},
	} {
		s := lostClaims(x.count, x.deleted)
		x.set(s)
		step, status := Orphans(s.Seal())
		if status.Orphans != x.orphans || len(step.Commands) != x.ended || status.Held != x.held ||
			status.Unproven != x.unproven || len(step.Notes) != x.onlyWarning {
			t.Errorf("%s: %d ended, %d notes, %+v", x.name, len(step.Commands), len(step.Notes), status)
		}
	}
}

// Orphans are looked at again when all that vanish must have been seen; without any there is nothing to look at.
func TestOrphansAreLookedAtAgain(t *testing.T) {
	for _, count := range []int{0, 1} {
		s := lostClaims(count, false)
		s.ClaimLostAt = noon
		if step, _ := Orphans(s.Seal()); step.WakeAt.IsZero() != (count == 0) {
			t.Errorf("%d orphans: to look again at %s", count, step.WakeAt)
		}
	}
}

// Before the cloud has been asked, nodes are all that is known.
func TestOrphansBeforeTheFirstList(t *testing.T) {
	s := lostClaims(2, false)
	s.Inventory = nil
	if _, status := Orphans(s.Seal()); status.Known != 2 || status.Orphans != 2 {
		t.Errorf("%+v, want two of two", status)
	}
}

// What is told of a hold says why it is one.
func TestAHoldSaysWhy(t *testing.T) {
	for want, status := range map[string]OrphanStatus{
		"; more were held before, and nobody has confirmed them yet. ": {TooMany: true, Held: 1, Known: 9},
		"; none of them has this cluster's identity tag. ":             {Held: 1, Known: 9, MaxUnasked: 3, Unproven: 1},
		"; at most 3 are ended without confirmation. ": {TooMany: true, Held: 4, Known: 9,
			MaxUnasked: 3},
		"; at most 3 are ended within an hour without confirmation, and 1 have been. ": {
			TooMany: true, Held: 4, Known: 9, MaxUnasked: 3, Ended: 1,
		},
	} {
		if !strings.Contains(render.Text(status.Text()), want) {
			t.Errorf("%+v is told as %q, want %q in it", status, render.Text(status.Text()), want)
		}
	}
}

// What is left of many is told as that, and is many only as long as some of it may be this cluster's.
func TestWhatIsLeftOfMany(t *testing.T) {
	s := lostClaims(1, false)
	s.Pools[0].Status.Conditions = []cluster.Condition{{Type: cluster.OrphansHeld, Status: cluster.True,
		Reason: ManyOrphans}}
	_, status := Orphans(s.Seal())
	if !strings.Contains(render.Text(status.Text()), "more were held before, and nobody has confirmed them yet") {
		t.Errorf("%+v: %s", status, render.Text(status.Text()))
	}
	s = lostClaims(1, false)
	s.Inventory.Instances[0].Unproven = true
	s.OrphansEnded = map[string]time.Time{"cloud://1": noon, "cloud://2": noon, "cloud://3": noon, "cloud://4": noon}
	if _, status := Orphans(s.Seal()); status.TooMany || status.Reason() != UnprovenOrphans {
		t.Errorf("only one that may be another cluster's is left: %+v", status)
	}
}

// A node that has just come may still find its claim, and is looked at again when it has had the time.
func TestAYoungNodeIsLookedAtAgain(t *testing.T) {
	s := lostClaims(1, false)
	s.Nodes[0].Created, s.Inventory.Instances = noon.Add(-time.Second), nil
	if step, _ := Orphans(s.Seal()); len(step.Commands) != 0 || !step.WakeAt.Equal(noon.Add(lagFor-time.Second)) {
		t.Errorf("%s until %s", keys(step), step.WakeAt)
	}
}
