package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// ruleConflict is a rule that keeps a pod from a place.
type ruleConflict struct {
	rule *cluster.Rule
	// inverse says that it is the rule of a pod that is there, not the pod's own; undecided that a node on its way will
	// decide.
	inverse, undecided bool
}

// allows reports whether the rules let one more pod of the pod set go to a place: its own, and those of the pods that
// are there. It answers as kube-scheduler's filters do.
func (tc *topologyCounts) allows(at []int32, p *podSet) (ruleConflict, bool) {
	if h, ok := tc.isCertain(p); !ok {
		return h, false
	}
	if h, ok := tc.allowsSpread(at, p); !ok {
		return h, false
	}
	for _, id := range p.declared {
		t := &tc.rules[id]
		if t.rule.Kind != cluster.AntiAffinity {
			continue
		}
		if at[t.key] == undecidedDomain || countAt(t.selected, at[t.key]-t.firstDomain) > 0 {
			return ruleConflict{rule: t.rule}, false
		}
	}
	for _, id := range p.selectedBy {
		t := &tc.rules[id]
		if at[t.key] == undecidedDomain && t.required || t.rule.Kind == cluster.AntiAffinity &&
			countAt(t.declaring, at[t.key]-t.firstDomain) > 0 {
			return ruleConflict{rule: t.rule, inverse: true}, false
		}
	}
	return tc.allowsAffinity(at, p)
}

// isCertain reports whether it is known where the pods are that the pod set's rules look at, and those whose rules look
// at it.
func (tc *topologyCounts) isCertain(p *podSet) (ruleConflict, bool) {
	for _, id := range p.declared {
		if t := &tc.rules[id]; t.undecided > 0 {
			return ruleConflict{rule: t.rule, undecided: true}, false
		}
	}
	for _, id := range p.selectedBy {
		if t := &tc.rules[id]; t.undecided > 0 && t.rule.Kind == cluster.AntiAffinity {
			return ruleConflict{rule: t.rule, inverse: true, undecided: true}, false
		}
	}
	return ruleConflict{}, true
}

func (tc *topologyCounts) allowsSpread(at []int32, p *podSet) (ruleConflict, bool) {
	for _, n := range p.spreads {
		s := &tc.spreads[n]
		rule, domain := tc.rules[s.rule].rule, at[s.key]
		if domain == noDomain || domain == undecidedDomain {
			return ruleConflict{rule: rule}, false
		}
		after := s.countAt(domain)
		if _, self := slices.BinarySearch(p.selectedBy, s.rule); self {
			after++
		}
		least := s.lowestCount(rule)
		if domain == newDomain {
			least = 0
		}
		if after-least > int32(rule.MaxSkew) {
			return ruleConflict{rule: rule}, false
		}
	}
	return ruleConflict{}, true
}

// allowsAffinity wants a pod that all of the pod set's affinity rules select in each of their domains. If there is none
// anywhere, the first pod of a pod set that selects itself may begin.
func (tc *topologyCounts) allowsAffinity(at []int32, p *podSet) (ruleConflict, bool) {
	if tc.forNewNodes && p.followsDaemon {
		return ruleConflict{}, true
	}
	var missing *cluster.Rule
	anywhere, self := false, true
	for _, id := range p.declared {
		t := &tc.rules[id]
		if t.rule.Kind != cluster.Affinity {
			continue
		}
		if len(t.rule.Selectors) == 0 { // a volume to be made: where its first pod is, the others must be
			if at[t.key] == undecidedDomain || t.total > 0 && countAt(t.selected, at[t.key]) == 0 {
				return ruleConflict{rule: t.rule}, false
			}
			continue
		}
		if at[t.key] == noDomain || at[t.key] == undecidedDomain {
			return ruleConflict{rule: t.rule}, false
		}
		if at[t.key] == newDomain { // who shares a node that is to come is settled when it is filled
			continue
		}
		if countAt(t.selected, at[t.key]) == 0 {
			missing = t.rule
		}
		anywhere = anywhere || t.total > 0
		_, matches := slices.BinarySearch(p.selectedBy, id)
		self = self && matches
	}
	if missing != nil && (anywhere || !self) {
		return ruleConflict{rule: missing}, false
	}
	return ruleConflict{}, true
}
