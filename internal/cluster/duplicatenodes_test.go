package cluster

import (
	"testing"
	"time"
)

// Two nodes, or two claims, may say that they are one machine. A claim that has joined keeps its own node, one that has
// not gets a node that stays, and of two claims the older one has the machine.
func TestWhoHasTheMachine(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, x := range []struct {
		name   string
		nodes  []*Node
		claims []*Claim
		want   map[string]string // the node of each claim
	}{
		{"its own node", []*Node{{Name: "a", ProviderID: "i"}, {Name: "b", ProviderID: "i"}},
			[]*Claim{{Name: "c", ProviderID: "i", NodeName: "a"}}, map[string]string{"c": "a"}},
		{"its own node is being deleted", []*Node{{Name: "a", ProviderID: "i", Deleting: now},
			{Name: "b", ProviderID: "i"}},
			[]*Claim{{Name: "c", ProviderID: "i", NodeName: "a"}}, map[string]string{"c": "a"}},
		{"not joined yet", []*Node{{Name: "a", ProviderID: "i"}, {Name: "b", ProviderID: "i", Deleting: now}},
			[]*Claim{{Name: "c", ProviderID: "i"}}, map[string]string{"c": "a"}},
		{"only one that goes", []*Node{{Name: "b", ProviderID: "i", Deleting: now}},
			[]*Claim{{Name: "c", ProviderID: "i"}}, map[string]string{"c": "b"}},
		{"two claims", []*Node{{Name: "a", ProviderID: "i"}},
			[]*Claim{{Name: "c", ProviderID: "i", Created: now.Add(time.Hour)}, {Name: "d", ProviderID: "i",
				Created: now}}, map[string]string{"c": "", "d": "a"}},
	} {
		s := (&Snapshot{Nodes: x.nodes, Claims: x.claims}).Seal()
		for claim, want := range x.want {
			got := ""
			if n := s.NodeOf(claim); n != nil {
				got = n.Name
				if s.ClaimOf(got).Name != claim {
					t.Errorf("%s: node %s is that of %s", x.name, got, s.ClaimOf(got).Name)
				}
			}
			if got != want {
				t.Errorf("%s: %s has node %q, want %q", x.name, claim, got, want)
			}
		}
	}
}
