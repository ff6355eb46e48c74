package topology

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// spreadCounts counts for one spread rule over the nodes that count for one class.
type spreadCounts struct {
	rule   int32
	key    int32
	class  *cluster.PodClass
	keys   []int32 // nodes count only if they have all of these
	counts []int32 // by domain, −1 where no node counts
	// levels says how many domains have how many pods; lowest is the lowest of them.
	levels  []int32
	lowest  int32
	domains int
	// unused says that nobody asks for it in this copy of the counts: it is not kept up to date.
	unused bool
}

// spreadKey tells spreads apart: the same rule over the same nodes is one.
type spreadKey struct {
	rule         int32
	terms, taint string
	keys         string
}

// spreadCountsOf finds or makes the tallies of a pod set's spread rules.
func (tc *Counts) spreadCountsOf(p *PodSet) []int32 {
	var out, keys []int32
	for _, id := range p.Declared {
		if tc.Rules[id].Rule.Kind == cluster.Spread {
			keys = append(keys, tc.Rules[id].Key)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, id := range p.Declared {
		t := &tc.Rules[id]
		if t.Rule.Kind != cluster.Spread {
			continue
		}
		seat := spreadKey{rule: id, keys: string(AppendIDs(nil, keys))}
		if !t.Rule.AnyNode {
			seat.terms = TermsText(p.Class.OwnOrAllTerms())
		}
		if t.Rule.HonorTaints {
			seat.taint = TolerationsText(p.Class)
		}
		n, known := tc.spreadIndex[seat]
		if !known {
			n = int32(len(tc.spreads))
			tc.spreadIndex[seat] = n
			tc.spreads = append(tc.spreads, spreadCounts{rule: id, key: t.Key, class: p.Class, keys: keys})
			t.spreads = append(t.spreads, n)
		}
		out = append(out, n)
	}
	return out
}

// countsNode reports whether a node counts for the spread.
func (s *spreadCounts) countsNode(rule *cluster.Rule, at []int32, h *cluster.Host) bool {
	if at[s.key] < 0 {
		return false
	}
	for _, key := range s.keys {
		if at[key] == NoDomain {
			return false
		}
	}
	if own := s.class.OwnOrAllTerms(); !rule.AnyNode && !allowAnyNode(own) && !h.Meets(own) &&
		!(h.Undecided && h.MayMeet(own)) {
		return false // a node to come counts if it may turn out to: then its domain is not taken for empty
	}
	if rule.HonorTaints {
		if _, tainted := cluster.Untolerated(s.class.Tolerations, h.Taints); tainted {
			return false
		}
	}
	return true
}

// allowAnyNode reports whether the terms leave out no node.
func allowAnyNode(terms []require.Set) bool { return len(terms) == 1 && len(terms[0]) == 0 }

// addDomain makes a domain count, empty if it is new.
func (s *spreadCounts) addDomain(domain int32) {
	for int(domain) >= len(s.counts) {
		s.counts = append(s.counts, -1)
	}
	if s.counts[domain] >= 0 {
		return
	}
	s.counts[domain] = 0
	if len(s.levels) == 0 {
		s.levels = append(s.levels, 0)
	}
	s.levels[0]++
	s.domains++
	s.lowest = 0
}

// addPods adds pods to a domain, or takes them away.
func (s *spreadCounts) addPods(domain, n int32) {
	if int(domain) >= len(s.counts) || s.counts[domain] < 0 {
		return
	}
	was := s.counts[domain]
	s.counts[domain] = was + n
	for int(was+n) >= len(s.levels) {
		s.levels = append(s.levels, 0)
	}
	s.levels[was]--
	s.levels[was+n]++
	s.lowest = min(s.lowest, was+n)
	for s.levels[s.lowest] == 0 {
		s.lowest++
	}
}

// AddSpreadDomains makes the domains of a place count in which the pod set's pods could be.
func (tc *Counts) AddSpreadDomains(p *PodSet, domains []int32) {
	for _, n := range p.Spreads {
		s := &tc.spreads[n]
		lacking := slices.ContainsFunc(s.keys, func(key int32) bool { return domains[key] == NoDomain })
		if domains[s.key] >= 0 && !lacking && !tc.Rules[s.rule].OnHostname {
			s.addDomain(domains[s.key])
		}
	}
}

// PodsSeen counts the pods that the pod set's spreads see in the domains of a place.
func (tc *Counts) PodsSeen(p *PodSet, domains []int32) int {
	n := 0
	for _, i := range p.Spreads {
		n += int(tc.spreads[i].countAt(domains[tc.spreads[i].key]))
	}
	return n
}

// lowestCount is the number of pods of the emptiest domain, as the rule counts it.
func (s *spreadCounts) lowestCount(rule *cluster.Rule) int32 {
	if s.domains < rule.MinDomains {
		return 0
	}
	return s.lowest
}

// countAt is the number of pods in a domain.
func (s *spreadCounts) countAt(domain int32) int32 {
	if domain < 0 || int(domain) >= len(s.counts) || s.counts[domain] < 0 {
		return 0
	}
	return s.counts[domain]
}

// AddPossibleDomains makes the domains count in which the node may turn out to be: a spread must hold whatever the
// launch decides.
func (tc *Counts) AddPossibleDomains(requirements require.Set, h *cluster.Host, pos *Position) {
	for i := range tc.spreads {
		s := &tc.spreads[i]
		if s.unused || pos.Domains[s.key] != UndecidedDomain {
			continue
		}
		rule := tc.Rules[s.rule].Rule
		if !rule.AnyNode && !h.MayMeet(s.class.OwnOrAllTerms()) {
			continue
		}
		if _, tainted := cluster.Untolerated(s.class.Tolerations, h.Taints); tainted && rule.HonorTaints {
			continue
		}
		asked, _ := requirements.Get(tc.Keys[s.key].Label)
		listed, finite := asked.Listed()
		if !finite {
			continue
		}
		for _, value := range listed {
			s.addDomain(tc.Keys[s.key].DomainIndex(value))
		}
	}
}

// SpreadsOverSeveralKeys reports whether the pod set's pods are spread over several keys beside the hostname: then not
// every order in which they are let in comes to an end.
func (tc *Counts) SpreadsOverSeveralKeys(p *PodSet) bool {
	keys := 0
	for _, n := range p.Spreads {
		if !tc.Rules[tc.spreads[n].rule].OnHostname {
			keys++
		}
	}
	return keys > 1
}
