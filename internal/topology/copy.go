package topology

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// CopyTo makes out a copy of what has been counted, in the memory that out has; rules, pod sets and the numbers of
// domains are shared. It is for as long as the counts that it came from do not change. Rules and spreads that are not
// among those that are asked for stay empty; nil asks for all. Where only some are asked for, it is for nodes to come:
// what keeps pods off the nodes that are there is left out. A search makes thousands of copies: without the memory of
// the last one, most of what it allocates would be these.
func (tc *Counts) CopyTo(out *Counts, rules, spreads []bool) *Counts {
	old := *out
	*out = *tc
	out.Volumes = tc.Volumes.copyTo(old.Volumes)
	out.Keys = resize(old.Keys, len(tc.Keys))
	for i := range tc.Keys {
		own := out.Keys[i].ownNumbers
		if own == nil {
			own = make(map[string]int32)
		}
		clear(own)
		if tc.Keys[i].isCopy {
			maps.Copy(own, tc.Keys[i].ownNumbers)
		}
		out.Keys[i] = tc.Keys[i]
		out.Keys[i].isCopy, out.Keys[i].ownNumbers, out.Keys[i].names = true, own, slices.Clip(tc.Keys[i].names)
	}
	out.Rules = resize(old.Rules, len(tc.Rules))
	for i := range tc.Rules {
		t, match, carry, from := &tc.Rules[i], out.Rules[i].selected[:0], out.Rules[i].declaring[:0],
			tc.Rules[i].firstDomain
		switch {
		case rules == nil || rules[i] && !(t.Rule.Kind == cluster.AntiAffinity && t.OnHostname):
			match, carry = append(match, t.selected...), append(carry, t.declaring...)
		case rules[i]:
			from = int32(len(tc.Keys[t.Key].names))
		}
		out.Rules[i] = *t
		out.Rules[i].selected, out.Rules[i].declaring, out.Rules[i].firstDomain = match, carry, from
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

// CopyFor makes out a copy of the counts in which only those rules are counted on that have to do with the pod sets:
// the others are not copied, because nobody asks for them.
func (tc *Counts) CopyFor(out *Counts, podSets []*PodSet) *Counts {
	rules, spreads := make([]bool, len(tc.Rules)), make([]bool, len(tc.spreads))
	mark := func(ids []int32) {
		for _, id := range ids {
			rules[id] = true
			for _, n := range tc.Rules[id].spreads {
				spreads[n] = true
			}
		}
	}
	mark(tc.DaemonRules)
	for _, p := range podSets {
		mark(p.Declared)
		mark(p.SelectedBy)
		mark(p.Preferred)
	}
	return tc.CopyTo(out, rules, spreads)
}
