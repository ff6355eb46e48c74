package search_test

import (
	"slices"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// inspectParts: what has nothing to do with the rest of a move saves by itself, so that nobody is disturbed for
// nothing; and where spot nodes are not to be replaced by spot nodes none of their pods goes to a new one.
func inspectParts(t *testing.T, s *step) {
	t.Helper()
	for i := range s.proposal.Moves {
		m := &s.proposal.Moves[i]
		for _, part := range partsOf(s.before, m) {
			goes, comes := 0.0, 0.0
			for _, name := range part.claims {
				goes += s.before.Claim(name).Price
			}
			for _, b := range part.bins {
				comes += m.Bins[b].Price
			}
			if comes >= goes {
				t.Errorf("%v of move %s go for %v and what takes their place costs %v", part.claims, m.ID, goes, comes)
			}
		}
		for j := range m.Bins {
			terms, _ := m.Bins[j].Requirements.Get(cluster.CapacityTypeLabel)
			for _, p := range m.Bins[j].Pods {
				was, _ := s.before.Node(s.pod(p.UID).Node).Labels.Get(cluster.CapacityTypeLabel)
				if !s.set.SpotToSpot && was == "spot" && terms.Matches("spot", true) {
					t.Errorf("%s goes from a spot node to a new one", p.Name)
				}
			}
		}
	}
}

// part are claims and new nodes of a move that pods tie together.
type part struct {
	claims []string
	bins   []int
}

func partsOf(s *cluster.Snapshot, m *disrupt.Move) []part {
	var parts []part
	for _, name := range m.Claims {
		parts = append(parts, part{claims: []string{name}})
	}
	for b := range m.Bins {
		joint := part{bins: []int{b}}
		parts = slices.DeleteFunc(parts, func(p part) bool {
			in := slices.ContainsFunc(m.Bins[b].Pods, func(pod *cluster.Pod) bool {
				return slices.ContainsFunc(p.claims, func(name string) bool { return s.NodeOf(name).Name == pod.Node })
			})
			if in {
				joint.claims, joint.bins = append(joint.claims, p.claims...), append(joint.bins, p.bins...)
			}
			return in
		})
		parts = append(parts, joint)
	}
	return parts
}
