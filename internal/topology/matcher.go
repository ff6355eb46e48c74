package topology

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// podLabelSet is the pods of a namespace that carry the same labels. Rules select all of them or none.
type podLabelSet struct {
	namespace string
	labels    *cluster.Label
	count     int
}

// ruleMatcher finds out which rules count which pods.
type ruleMatcher struct {
	s     *cluster.Snapshot
	rules []*cluster.Rule
	// byLabel finds the rules of which some selector asks for one value of a label; unlabelledRules are the others.
	byLabel         map[cluster.Label][]int32
	unlabelledRules []int32
	matches         map[podLabelSet][]int32
	// pendingRules is how many rules pods have that look for a place: the first ones. placedMatches are pod label sets
	// that have one.
	pendingRules  int32
	placedMatches map[podLabelSet][]int32
}

func newRuleMatcher(s *cluster.Snapshot, rules []*cluster.Rule, asked int32) *ruleMatcher {
	m := &ruleMatcher{s: s, rules: rules, byLabel: make(map[cluster.Label][]int32),
		matches: make(map[podLabelSet][]int32), pendingRules: asked, placedMatches: make(map[podLabelSet][]int32)}
	for i, r := range rules {
		m.indexRule(int32(i), r)
	}
	return m
}

// indexRule files a rule under one label that the pods it counts must have, if there is such a label.
func (m *ruleMatcher) indexRule(id int32, r *cluster.Rule) {
	for i := range r.Selectors {
		if r.Selectors[i].MatchesNone {
			return
		}
	}
	for i := range r.Selectors {
		at := anchorLabel(&r.Selectors[i])
		if at < 0 {
			continue
		}
		e := &r.Selectors[i].Labels[at]
		values, _ := e.Values.Listed()
		for _, value := range values {
			at := cluster.Label{Key: e.Key, Value: value}
			m.byLabel[at] = append(m.byLabel[at], id)
		}
		return
	}
	m.unlabelledRules = append(m.unlabelledRules, id)
}

// rulesSelecting lists the rules that count the pod, sorted.
func (m *ruleMatcher) rulesSelecting(p *cluster.Pod) []int32 {
	return m.lookup(m.matches, p, int32(len(m.rules)))
}

// pendingRulesSelecting lists the rules of pods that look for a place which count the pod, sorted: nothing depends on
// whom other rules count of those that have a place.
func (m *ruleMatcher) pendingRulesSelecting(p *cluster.Pod) []int32 {
	if ids, known := m.matches[podLabelSetOf(p)]; known { // its pods may move, and all rules were looked at
		n, _ := slices.BinarySearch(ids, m.pendingRules)
		return ids[:n:n]
	}
	return m.lookup(m.placedMatches, p, m.pendingRules)
}

func podLabelSetOf(p *cluster.Pod) podLabelSet {
	of := podLabelSet{namespace: p.Namespace, count: len(p.Labels)}
	if len(p.Labels) > 0 {
		of.labels = &p.Labels[0]
	}
	return of
}

func (m *ruleMatcher) lookup(known map[podLabelSet][]int32, p *cluster.Pod, end int32) []int32 {
	if end == 0 {
		return nil
	}
	of := podLabelSetOf(p)
	ids, found := known[of]
	if !found {
		ids = m.match(p, end)
		known[of] = ids
	}
	return ids
}

// match finds the rules before the end that count the pod.
func (m *ruleMatcher) match(p *cluster.Pod, end int32) []int32 {
	var out []int32
	var last *cluster.Selector // the rules of a pod's affinity terms share their selectors: they are asked once
	selected := false
	try := func(ids []int32) {
		for _, id := range ids {
			if id >= end {
				break
			}
			if r := m.rules[id]; len(r.Selectors) < 2 || &r.Selectors[0] != last {
				if selected, last = r.Selects(m.s, p.Namespace, p.Labels), nil; len(r.Selectors) > 1 {
					last = &r.Selectors[0]
				}
			}
			if selected {
				out = append(out, id)
			}
		}
	}
	for _, label := range p.Labels {
		try(m.byLabel[label])
	}
	try(m.unlabelledRules)
	slices.Sort(out)
	return out
}

// anchorLabel is the place of a label of which the selector asks for listed values, −1 if there is none.
func anchorLabel(s *cluster.Selector) int {
	return slices.IndexFunc(s.Labels, func(e require.Entry) bool {
		_, finite := e.Values.Listed()
		return finite && !e.Values.AllowsAbsent()
	})
}
