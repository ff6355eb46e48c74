package schedule

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// podSet is the pods of one class that the same rules count: whatever holds for one of them holds for all.
type podSet struct {
	class *cluster.PodClass
	pods  []*cluster.Pod
	// declared are the rules that its pods have, selectedBy are those that select its pods, preferred those that they
	// would like: places in the topology counts, sorted.
	declared, selectedBy, preferred []int32
	// spreads are the places of its spread rules' tallies in the topology counts: a spread counts only nodes that its
	// pods may use.
	spreads []int32
	// handles are the volumes that pods of other pod sets may share; exclusive those that nobody may.
	volumes   []cluster.Volume
	exclusive []string
	// followsDaemon says that a DaemonSet's pod, which every node for the pod set will have, meets its affinity.
	followsDaemon bool
	// assignedSets is the feasible sets to which the pod set's pods were assigned, one after the other.
	assignedSets []*feasibleSet
	// hopeless says that there is nothing for the pod set's pods, even were they alone.
	hopeless bool
	// withoutGroup says that the group that the pod set's pods want could not be had.
	withoutGroup bool
	// held are the workloads of those of its pods that are held: the last of them, in the same order.
	held []string
	// lastConflict is the last rule that kept the pod set's pods from a domain, for the explanation.
	lastConflict *ruleConflict
}

// orderHeldLast puts the pods that are held behind the others.
func orderHeldLast(podSets []*podSet, held map[string]PodHold) {
	if len(held) == 0 {
		return
	}
	for _, set := range podSets {
		first, last := []*cluster.Pod(nil), []*cluster.Pod(nil)
		for _, p := range set.pods {
			if reason, is := held[p.UID]; is {
				last, set.held = append(last, p), append(set.held, reason.Tries.Owner)
			} else {
				first = append(first, p)
			}
		}
		set.pods = append(first, last...)
	}
}

// notHeld is how many of the pod set's pods are not held.
func (p *podSet) notHeld() int { return len(p.pods) - len(p.held) }

// mayUse is how many of the pod set's pods may take room on the host. Those that are held take none of a node that is
// on its way, but for their seats: it is for others, and what they take of it would be bought again for these.
func (p *podSet) mayUse(h *hostState) int {
	if h.Initialized {
		return len(p.pods)
	}
	return p.notHeld()
}

// maySit is how many of the pod set's pods may take seats on the host; they come first then. While a node is on its
// way, or what it is to replace waits for it, those that are held take no seats of another workload, be its pods like
// them in everything: these would be given another node, and the held ones would take that, too.
func (p *podSet) maySit(h *hostState) int {
	if h.Initialized && !h.Reserved || len(h.MadeFor) == 0 {
		return len(p.pods)
	}
	may := p.notHeld()
	for i := may; i < len(p.pods); i++ {
		at := i - p.notHeld()
		if !slices.ContainsFunc(h.MadeFor, func(m cluster.MadeFor) bool { return m.Owner == p.held[at] }) {
			continue
		}
		to := may - p.notHeld()
		p.pods[may], p.pods[i] = p.pods[i], p.pods[may]
		p.held[to], p.held[at] = p.held[at], p.held[to]
		may++
	}
	return may
}

// takePods removes the first n pods.
func (p *podSet) takePods(n int) []*cluster.Pod {
	if free := p.notHeld(); n > free {
		p.held = p.held[n-free:]
	}
	taken := p.pods[:n:n]
	p.pods = p.pods[n:]
	return taken
}

// hasNoRules reports whether the pod set's pods neither have rules nor are counted by any.
func (p *podSet) hasNoRules() bool { return len(p.declared) == 0 && len(p.selectedBy) == 0 }

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

// podSetsOf sorts pods into pod sets: the important and the large come first.
func podSetsOf(pods []*cluster.Pod, counts *topologyCounts) []*podSet {
	s := newPodSetBuilder(counts)
	for _, pod := range pods {
		p := s.podSetOf(pod)
		p.pods = append(p.pods, pod)
	}
	slices.SortStableFunc(s.podSets, comparePodSets)
	return s.podSets
}

// podSetBuilder finds the pod sets of pods.
type podSetBuilder struct {
	counts  *topologyCounts
	byKey   map[podSetKey]*podSet
	podSets []*podSet
	text    []byte
}

func newPodSetBuilder(counts *topologyCounts) *podSetBuilder {
	return &podSetBuilder{counts: counts, byKey: make(map[podSetKey]*podSet), text: make([]byte, 0, 64)}
}

// podSetOf finds the pod's kind, or makes it.
func (s *podSetBuilder) podSetOf(pod *cluster.Pod) *podSet {
	counted, ties := s.counts.matcher.rulesSelecting(pod), s.counts.volumeRules(pod)
	if len(ties) > 0 {
		counted = sortedSet(slices.Concat(counted, ties))
	}
	shared, exclusive := s.counts.volumes.volumesOf(pod)
	s.text = signature(s.text[:0], counted, shared, exclusive)
	p := s.byKey[podSetKey{pod.Class, string(s.text)}]
	if p == nil {
		p = &podSet{class: pod.Class, selectedBy: counted, volumes: shared, exclusive: exclusive}
		p.declared, p.preferred = s.counts.rulesOf(pod.Class)
		p.declared = sortedSet(slices.Concat(p.declared, ties))
		p.spreads = s.counts.spreadCountsOf(p)
		s.byKey[podSetKey{pod.Class, string(s.text)}] = p
		s.podSets = append(s.podSets, p)
	}
	return p
}

// podSetKey tells pod sets apart.
type podSetKey struct {
	class     *cluster.PodClass
	signature string
}

func signature(text []byte, counted []int32, shared []cluster.Volume, exclusive []string) []byte {
	for _, id := range counted {
		text = binary.BigEndian.AppendUint32(text, uint32(id))
	}
	for _, v := range shared {
		text = append(append(text, 's'), v.Handle...)
	}
	for _, handle := range exclusive {
		text = append(append(text, 'x'), handle...)
	}
	return text
}

func comparePodSets(a, b *podSet) int {
	x, y := a.class, b.class
	return cmp.Or(
		cmp.Compare(y.Priority, x.Priority),
		cmp.Compare(y.Requests[resource.CPU], x.Requests[resource.CPU]),
		cmp.Compare(y.Requests[resource.Memory], x.Requests[resource.Memory]),
		strings.Compare(x.Key, y.Key),
		slices.Compare(a.selectedBy, b.selectedBy))
}

// volumeUse knows which volumes are used by more than one pod.
type volumeUse struct {
	users map[string]int
	// unboundUsers counts the pods of claims whose volumes don't exist yet.
	unboundUsers map[string]int
	// taken are exclusive volumes that a pod with a place uses.
	taken map[string]bool
}

// copyTo makes out, if there is one, a copy of which volumes are taken.
func (v *volumeUse) copyTo(out *volumeUse) *volumeUse {
	if out == nil {
		out = &volumeUse{taken: make(map[string]bool, len(v.taken))}
	}
	out.users, out.unboundUsers = v.users, v.unboundUsers
	clear(out.taken)
	maps.Copy(out.taken, v.taken)
	return out
}

func newVolumeUse(pods []*cluster.Pod) *volumeUse {
	v := &volumeUse{users: make(map[string]int), unboundUsers: make(map[string]int), taken: make(map[string]bool)}
	for _, p := range pods {
		if p.Finished {
			continue
		}
		for _, volume := range p.Volumes {
			v.users[volume.Handle]++
		}
		for _, claim := range p.UnboundClaims {
			v.unboundUsers[claim]++
		}
	}
	return v
}

// volumesOf lists the pod's volumes that other pods use, too, and those that nobody else may use.
func (v *volumeUse) volumesOf(p *cluster.Pod) (shared []cluster.Volume, exclusive []string) {
	for _, volume := range p.Volumes {
		if v.users[volume.Handle] > 1 {
			shared = append(shared, volume)
		}
	}
	return shared, p.ExclusiveVolumes
}
