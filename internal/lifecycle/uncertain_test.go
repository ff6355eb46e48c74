package lifecycle

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Names of claims come again when what they are derived from does. A claim that has only the name of the one that an
// instance was launched for is another one, also while it is being launched.
func TestNamesakeOfAClaimHasNoPartInItsInstance(t *testing.T) {
	launching := command.LaunchInstance{Claim: "n00"}.Key()
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot)
		// held are orphans that wait for a person, ends is what becomes of the first node, which is being deleted.
		held int
		ends string
	}{
		{"no claim has the name", func(*cluster.Snapshot) {}, 4, "fence/n00"},
		{"another claim has the name", func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "n00", UID: "new"}}
		}, 4, "fence/n00"},
		{"another claim has the name, and is being launched", func(s *cluster.Snapshot) {
			s.Claims, s.InFlight = []*cluster.Claim{{Name: "n00", UID: "new"}}, map[string]bool{launching: true}
		}, 4, "fence/n00"},
		{"it is being made, and may be another", func(s *cluster.Snapshot) {
			s.Claims = []*cluster.Claim{{Name: "n00", Expected: true}}
		}, 4, ""},
		{"it was removed by force while it is being launched", func(s *cluster.Snapshot) {
			s.InFlight = map[string]bool{launching: true}
		}, 4, ""},
	} {
		s := lostClaims(4, true)
		x.set(s)
		_, status := Orphans(s.Seal())
		if status.Held != x.held {
			t.Errorf("%s: %+v, want %d held", x.name, status, x.held)
		}
		if got := keys(EndNode(s, s.Nodes[0], false)); got != x.ends {
			t.Errorf("%s: %q becomes of the node, want %q", x.name, got, x.ends)
		}
	}
}

// What may be somebody's is not ended, and counts: the others must not seem to be few because of it.
func TestDoubtfulOrphansCountAndStay(t *testing.T) {
	for _, nodes := range []bool{true, false} {
		s := lostClaims(4, false)
		if !nodes {
			s.Nodes = nil
		}
		s.Claims = []*cluster.Claim{{Name: "n00", Expected: true}}
		if step, status := Orphans(s.Seal()); len(step.Commands) != 0 || status.Orphans != 4 || status.Held != 3 {
			t.Errorf("with nodes %t: %d commands, %+v; want all four counted and three held", nodes,
				len(step.Commands), status)
		}
		s.Inventory.Instances, s.Nodes = s.Inventory.Instances[:2], s.Nodes[:min(len(s.Nodes), 2)]
		if step, status := Orphans(s.Seal()); len(step.Commands) != 1 || status.Orphans != 2 {
			t.Errorf("with nodes %t, two orphans: %d commands, %+v; want one to end", nodes, len(step.Commands), status)
		}
	}
}

// The node of a claim that is gone is drained like any other, and looked at once more before its end. An end that was
// refused has not begun.
func TestEndOfANodeWithoutClaimIsLookedAtOnceMore(t *testing.T) {
	stays := &cluster.Pod{UID: "p", Namespace: "ns", Name: "agent", Node: "a", StaysThroughDrain: true}
	key := command.Terminate{Node: "a", ProviderID: "cloud://a"}.Key()
	for _, x := range []struct {
		name string
		set  func(s *cluster.Snapshot)
		look bool
	}{
		{"an empty node", func(*cluster.Snapshot) {}, true},
		{"its end was refused", func(s *cluster.Snapshot) { s.Retry[key] = cluster.Retry{Attempts: 1} }, true},
		{"its end has begun", func(s *cluster.Snapshot) { s.Retry[key] = cluster.Retry{} }, false},
		{"the cloud says that it is ending", func(s *cluster.Snapshot) {
			s.Inventory = &cluster.Inventory{At: noon, Instances: []cluster.Instance{{ProviderID: "cloud://a",
				Terminating: true}}}
		}, false},
	} {
		s, n := lone()
		s.Pods = []*cluster.Pod{stays}
		x.set(s)
		step := EndNode(s.Seal(), n, false)
		if len(step.Commands) != 1 {
			t.Errorf("%s: %s, want its end", x.name, keys(step))
			continue
		}
		end := step.Commands[0].(command.Terminate)
		if end.Drained != x.look || (len(end.StayingPods) == 1) != x.look {
			t.Errorf("%s: %+v, want it looked at: %t", x.name, end, x.look)
		}
	}
}

// Two claims may say that they have the same instance. The younger one's node is known, as the other's: nothing is
// missing.
func TestNodeOfAnotherClaimIsNotMissing(t *testing.T) {
	s, c, n := leaving()
	first := &cluster.Claim{Name: "first", UID: "uf", ProviderID: c.ProviderID, NodeName: n.Name,
		Created: c.Created.Add(-1)}
	s.Claims = append(s.Claims, first)
	for _, cmd := range Next(s.Seal(), Settings{}).Commands {
		if end, ok := cmd.(command.Terminate); ok && end.Claim == c.Name {
			if end.Missing != "" {
				t.Errorf("%+v waits for a node that is another claim's", end)
			}
			return
		}
	}
	t.Error("the claim is not ended")
}
