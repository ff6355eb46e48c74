package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// spread counts for one spread rule over the nodes that count for one class.
type spread struct {
	rule  int32
	key   int32
	class *cluster.PodClass
	keys  []int32 // nodes count only if they have all of these
	match []int32 // by domain, −1 where no node counts
	// levels says how many domains have how many pods; floor is the lowest of them.
	levels  []int32
	floor   int32
	domains int
	// idle says that nobody asks for it in this copy of the ledger: it is not kept up to date.
	idle bool
}

// spreadKey tells spreads apart: the same rule over the same nodes is one.
type spreadKey struct {
	rule         int32
	terms, taint string
	keys         string
}

// spreadsOf finds or makes the tallies of a kind's spread rules.
func (l *ledger) spreadsOf(k *kind) []int32 {
	var out, keys []int32
	for _, id := range k.carries {
		if l.rules[id].rule.Kind == cluster.Spread {
			keys = append(keys, l.rules[id].key)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, id := range k.carries {
		t := &l.rules[id]
		if t.rule.Kind != cluster.Spread {
			continue
		}
		seat := spreadKey{rule: id, keys: string(signature(nil, keys, nil, nil))}
		if !t.rule.AnyNode {
			seat.terms = termsText(k.class.Own())
		}
		if t.rule.HonorTaints {
			seat.taint = tolerationsText(k.class)
		}
		n, known := l.bySeat[seat]
		if !known {
			n = int32(len(l.spreads))
			l.bySeat[seat] = n
			l.spreads = append(l.spreads, spread{rule: id, key: t.key, class: k.class, keys: keys})
			t.spreads = append(t.spreads, n)
		}
		out = append(out, n)
	}
	return out
}

// eligible reports whether a node counts for the spread.
func (l *ledger) eligible(s *spread, at []int32, h *cluster.Host) bool {
	if at[s.key] < 0 {
		return false
	}
	for _, key := range s.keys {
		if at[key] == absent {
			return false
		}
	}
	rule := l.rules[s.rule].rule
	if own := s.class.Own(); !rule.AnyNode && !anything(own) && !h.Meets(own) && !(h.Undecided && h.MayMeet(own)) {
		return false // a node to come counts if it may turn out to: then its domain is not taken for empty
	}
	if rule.HonorTaints {
		if _, tainted := cluster.Untolerated(s.class.Tolerations, h.Taints); tainted {
			return false
		}
	}
	return true
}

// anything reports whether the terms leave out no node.
func anything(terms []require.Set) bool { return len(terms) == 1 && len(terms[0]) == 0 }

// present makes a domain count, empty if it is new.
func (s *spread) present(domain int32) {
	for int(domain) >= len(s.match) {
		s.match = append(s.match, -1)
	}
	if s.match[domain] >= 0 {
		return
	}
	s.match[domain] = 0
	if len(s.levels) == 0 {
		s.levels = append(s.levels, 0)
	}
	s.levels[0]++
	s.domains++
	s.floor = 0
}

// raise adds pods to a domain, or takes them away.
func (s *spread) raise(domain, n int32) {
	if int(domain) >= len(s.match) || s.match[domain] < 0 {
		return
	}
	was := s.match[domain]
	s.match[domain] = was + n
	for int(was+n) >= len(s.levels) {
		s.levels = append(s.levels, 0)
	}
	s.levels[was]--
	s.levels[was+n]++
	s.floor = min(s.floor, was+n)
	for s.levels[s.floor] == 0 {
		s.floor++
	}
}

// least is the number of pods of the emptiest domain, as the rule counts it.
func (s *spread) least(rule *cluster.Rule) int32 {
	if s.domains < rule.MinDomains {
		return 0
	}
	return s.floor
}

// at is the number of pods in a domain.
func (s *spread) at(domain int32) int32 {
	if domain < 0 || int(domain) >= len(s.match) || s.match[domain] < 0 {
		return 0
	}
	return s.match[domain]
}
