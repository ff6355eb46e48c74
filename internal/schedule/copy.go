package schedule

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// copyTo makes out a copy of what has been counted, in the memory that out has; rules, pod sets and the numbers of
// domains are shared. It is for as long as the counts that it came from do not change. Rules and spreads that are not
// among those that are asked for stay empty; nil asks for all. Where only some are asked for, it is for nodes to come:
// what keeps pods off the nodes that are there is left out. A search makes thousands of copies: without the memory of
// the last one, most of what it allocates would be these.
func (tc *topologyCounts) copyTo(out *topologyCounts, rules, spreads []bool) *topologyCounts {
	old := *out
	*out = *tc
	out.volumes = tc.volumes.copyTo(old.volumes)
	out.keys = resize(old.keys, len(tc.keys))
	for i := range tc.keys {
		own := out.keys[i].ownNumbers
		if own == nil {
			own = make(map[string]int32)
		}
		clear(own)
		if tc.keys[i].isCopy {
			maps.Copy(own, tc.keys[i].ownNumbers)
		}
		out.keys[i] = tc.keys[i]
		out.keys[i].isCopy, out.keys[i].ownNumbers, out.keys[i].names = true, own, slices.Clip(tc.keys[i].names)
	}
	out.rules = resize(old.rules, len(tc.rules))
	for i := range tc.rules {
		t, match, carry, from := &tc.rules[i], out.rules[i].selected[:0], out.rules[i].declaring[:0],
			tc.rules[i].firstDomain
		switch {
		case rules == nil || rules[i] && !(t.rule.Kind == cluster.AntiAffinity && t.onHostname):
			match, carry = append(match, t.selected...), append(carry, t.declaring...)
		case rules[i]:
			from = int32(len(tc.keys[t.key].names))
		}
		out.rules[i] = *t
		out.rules[i].selected, out.rules[i].declaring, out.rules[i].firstDomain = match, carry, from
	}
	out.spreads = resize(old.spreads, len(tc.spreads))
	for i := range tc.spreads {
		s, match, levels := &tc.spreads[i], out.spreads[i].counts[:0], out.spreads[i].levels[:0]
		idle := spreads != nil && !spreads[i]
		if !idle {
			match, levels = append(match, s.counts...), append(levels, s.levels...)
		}
		out.spreads[i] = *s
		out.spreads[i].counts, out.spreads[i].levels, out.spreads[i].unused = match, levels, s.unused || idle
	}
	return out
}

// resize has n elements; what the list holds already, behind its end too, stays where it is.
func resize[E any](list []E, n int) []E {
	list = list[:cap(list)]
	if n > len(list) {
		list = append(list, make([]E, n-len(list))...)
	}
	return list[:n]
}

// copyFor makes out a copy of the counts in which only those rules are counted on that have to do with the pod sets:
// the others are not copied, because nobody asks for them.
func (tc *topologyCounts) copyFor(out *topologyCounts, podSets []*podSet) *topologyCounts {
	rules, spreads := make([]bool, len(tc.rules)), make([]bool, len(tc.spreads))
	mark := func(ids []int32) {
		for _, id := range ids {
			rules[id] = true
			for _, n := range tc.rules[id].spreads {
				spreads[n] = true
			}
		}
	}
	mark(tc.daemonRules)
	for _, p := range podSets {
		mark(p.declared)
		mark(p.selectedBy)
		mark(p.preferred)
	}
	return tc.copyTo(out, rules, spreads)
}
