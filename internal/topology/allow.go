package topology

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// Conflict is a rule that keeps a pod from a place.
type Conflict struct {
	Rule *cluster.Rule
	// Inverse says that it is the rule of a pod that is there, not the pod's own; Undecided that a node on its way will
	// decide.
	Inverse, Undecided bool
}

// Allows reports whether the rules let one more pod of the pod set go to a place: its own, and those of the pods that
// are there. It answers as kube-scheduler's filters do.
func (tc *Counts) Allows(at []int32, p *PodSet) (Conflict, bool) {
	if h, ok := tc.isCertain(p); !ok {
		return h, false
	}
	if h, ok := tc.allowsSpread(at, p); !ok {
		return h, false
	}
	for _, id := range p.Declared {
		t := &tc.Rules[id]
		if t.Rule.Kind != cluster.AntiAffinity {
			continue
		}
		if at[t.Key] == UndecidedDomain || countAt(t.selected, at[t.Key]-t.firstDomain) > 0 {
			return Conflict{Rule: t.Rule}, false
		}
	}
	for _, id := range p.SelectedBy {
		t := &tc.Rules[id]
		if at[t.Key] == UndecidedDomain && t.Required || t.Rule.Kind == cluster.AntiAffinity &&
			countAt(t.declaring, at[t.Key]-t.firstDomain) > 0 {
			return Conflict{Rule: t.Rule, Inverse: true}, false
		}
	}
	return tc.allowsAffinity(at, p)
}

// isCertain reports whether it is known where the pods are that the pod set's rules look at, and those whose rules look
// at it.
func (tc *Counts) isCertain(p *PodSet) (Conflict, bool) {
	for _, id := range p.Declared {
		if t := &tc.Rules[id]; t.undecided > 0 {
			return Conflict{Rule: t.Rule, Undecided: true}, false
		}
	}
	for _, id := range p.SelectedBy {
		if t := &tc.Rules[id]; t.undecided > 0 && t.Rule.Kind == cluster.AntiAffinity {
			return Conflict{Rule: t.Rule, Inverse: true, Undecided: true}, false
		}
	}
	return Conflict{}, true
}

func (tc *Counts) allowsSpread(at []int32, p *PodSet) (Conflict, bool) {
	for _, n := range p.Spreads {
		s := &tc.spreads[n]
		rule, domain := tc.Rules[s.rule].Rule, at[s.key]
		if domain == NoDomain || domain == UndecidedDomain {
			return Conflict{Rule: rule}, false
		}
		after := s.countAt(domain)
		if _, self := slices.BinarySearch(p.SelectedBy, s.rule); self {
			after++
		}
		least := s.lowestCount(rule)
		if domain == NewDomain {
			least = 0
		}
		if after-least > int32(rule.MaxSkew) {
			return Conflict{Rule: rule}, false
		}
	}
	return Conflict{}, true
}

// allowsAffinity wants a pod that all of the pod set's affinity rules select in each of their domains. If there is none
// anywhere, the first pod of a pod set that selects itself may begin.
func (tc *Counts) allowsAffinity(at []int32, p *PodSet) (Conflict, bool) {
	if tc.ForNewNodes && p.FollowsDaemon {
		return Conflict{}, true
	}
	var missing *cluster.Rule
	anywhere, self := false, true
	for _, id := range p.Declared {
		t := &tc.Rules[id]
		if t.Rule.Kind != cluster.Affinity {
			continue
		}
		if len(t.Rule.Selectors) == 0 { // a volume to be made: where its first pod is, the others must be
			if at[t.Key] == UndecidedDomain || t.Total > 0 && countAt(t.selected, at[t.Key]) == 0 {
				return Conflict{Rule: t.Rule}, false
			}
			continue
		}
		if at[t.Key] == NoDomain || at[t.Key] == UndecidedDomain {
			return Conflict{Rule: t.Rule}, false
		}
		if at[t.Key] == NewDomain { // who shares a node that is to come is settled when it is filled
			continue
		}
		if countAt(t.selected, at[t.Key]) == 0 {
			missing = t.Rule
		}
		anywhere = anywhere || t.Total > 0
		_, matches := slices.BinarySearch(p.SelectedBy, id)
		self = self && matches
	}
	if missing != nil && (anywhere || !self) {
		return Conflict{Rule: missing}, false
	}
	return Conflict{}, true
}
