package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// hurdle is a rule that keeps a pod from a place.
type hurdle struct {
	rule *cluster.Rule
	// inverse says that it is the rule of a pod that is there, not the pod's own; waits that a node on its way will decide.
	inverse, waits bool
}

// allows reports whether the rules let one more pod of the kind go to a place: its own, and those of the pods that are
// there. It answers as kube-scheduler's filters do.
func (l *ledger) allows(at []int32, k *kind) (hurdle, bool) {
	if h, ok := l.certain(k); !ok {
		return h, false
	}
	if h, ok := l.allowsSpread(at, k); !ok {
		return h, false
	}
	for _, id := range k.carries {
		t := &l.rules[id]
		if t.rule.Kind != cluster.AntiAffinity {
			continue
		}
		if at[t.key] == unknown || count(t.match, at[t.key]-t.from) > 0 {
			return hurdle{rule: t.rule}, false
		}
	}
	for _, id := range k.counted {
		t := &l.rules[id]
		if at[t.key] == unknown && t.hard || t.rule.Kind == cluster.AntiAffinity && count(t.carry, at[t.key]-t.from) > 0 {
			return hurdle{rule: t.rule, inverse: true}, false
		}
	}
	return l.allowsAffinity(at, k)
}

// certain reports whether it is known where the pods are that the kind's rules look at, and those whose rules look at it.
func (l *ledger) certain(k *kind) (hurdle, bool) {
	for _, id := range k.carries {
		if t := &l.rules[id]; t.adrift > 0 {
			return hurdle{rule: t.rule, waits: true}, false
		}
	}
	for _, id := range k.counted {
		if t := &l.rules[id]; t.adrift > 0 && t.rule.Kind == cluster.AntiAffinity {
			return hurdle{rule: t.rule, inverse: true, waits: true}, false
		}
	}
	return hurdle{}, true
}

func (l *ledger) allowsSpread(at []int32, k *kind) (hurdle, bool) {
	for _, n := range k.spreads {
		s := &l.spreads[n]
		rule, domain := l.rules[s.rule].rule, at[s.key]
		if domain == absent || domain == unknown {
			return hurdle{rule: rule}, false
		}
		after := s.at(domain)
		if _, self := slices.BinarySearch(k.counted, s.rule); self {
			after++
		}
		least := s.least(rule)
		if domain == fresh {
			least = 0
		}
		if after-least > int32(rule.MaxSkew) {
			return hurdle{rule: rule}, false
		}
	}
	return hurdle{}, true
}

// allowsAffinity wants a pod that all of the kind's affinity rules select in each of their domains. If there is none
// anywhere, the first pod of a kind that selects itself may begin.
func (l *ledger) allowsAffinity(at []int32, k *kind) (hurdle, bool) {
	if l.draft && k.attached {
		return hurdle{}, true
	}
	var missing *cluster.Rule
	anywhere, self := false, true
	for _, id := range k.carries {
		t := &l.rules[id]
		if t.rule.Kind != cluster.Affinity {
			continue
		}
		if len(t.rule.Selectors) == 0 { // a volume to be made: where its first pod is, the others must be
			if at[t.key] == unknown || t.total > 0 && count(t.match, at[t.key]) == 0 {
				return hurdle{rule: t.rule}, false
			}
			continue
		}
		if at[t.key] == absent || at[t.key] == unknown {
			return hurdle{rule: t.rule}, false
		}
		if at[t.key] == fresh { // who shares a node that is to come is settled when it is filled
			continue
		}
		if count(t.match, at[t.key]) == 0 {
			missing = t.rule
		}
		anywhere = anywhere || t.total > 0
		_, matches := slices.BinarySearch(k.counted, id)
		self = self && matches
	}
	if missing != nil && (anywhere || !self) {
		return hurdle{rule: missing}, false
	}
	return hurdle{}, true
}
