package cluster

import "testing"

// Only nodes that have to do with what the planner fails on are left alone.
func TestLeftAlone(t *testing.T) {
	guilty, other := &PodClass{Key: "guilty"}, &PodClass{Key: "other"}
	claim := func(name string, madeFor ...MadeFor) *Claim {
		return &Claim{Name: name, ProviderID: "cloud://" + name, NodeName: name, MadeFor: madeFor}
	}
	s := &Snapshot{
		Claims: []*Claim{claim("runs-it"), claim("runs-another"), claim("made-for-it", MadeFor{Owner: "waits"}),
			claim("made-for-another", MadeFor{Owner: "x"}),
			claim("itself"), claim("coming", MadeFor{Owner: "waits"})},
		Pods: []*Pod{{UID: "1", Node: "runs-it", Class: guilty}, {UID: "2", Node: "runs-another", Class: other},
			{UID: "waits", Class: guilty, Phase: "Pending", Unschedulable: true}},
	}
	for _, c := range s.Claims[:5] {
		s.Nodes = append(s.Nodes, &Node{Name: c.Name, ProviderID: c.ProviderID})
	}
	left := s.WithQuarantine(Quarantine{Classes: map[string]Failure{"guilty": {}},
		Claims: map[string]Failure{"itself": {}}})
	if len(left.QuarantinedPods()) != 1 {
		t.Fatalf("%d pods are refused, want the one that waits", len(left.QuarantinedPods()))
	}
	want := map[string]bool{"runs-it": true, "made-for-it": true, "itself": true, "coming": true}
	for _, c := range s.Claims {
		if got := left.IsLeftAlone(c); got != want[c.Name] {
			t.Errorf("%s is left alone: %v", c.Name, got)
		}
		if s.Seal().IsLeftAlone(c) {
			t.Errorf("%s is left alone although the planner does not fail", c.Name)
		}
	}
}
