package schedule

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
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

	// hopeless says that there is nothing for the pod set's pods, even were they alone.
	hopeless bool
	// withoutGroup says that the group that the pod set's pods want could not be had.
	withoutGroup bool
	// held are the workloads of those of its pods that are held: the last of them, in the same order.
	held []string
	// lastConflict is the last rule that kept the pod set's pods from a domain, for the explanation.
	lastConflict *ruleConflict
}

// putHeldLast puts the pods that are held behind the others. workload names the workload of one that is.
func (p *podSet) putHeldLast(workload func(*cluster.Pod) (owner string, held bool)) {
	var first, last []*cluster.Pod
	for _, pod := range p.pods {
		if owner, held := workload(pod); held {
			last, p.held = append(last, pod), append(p.held, owner)
		} else {
			first = append(first, pod)
		}
	}
	p.pods = append(first, last...)
}

// takeOutHeld removes the pods that are held, and returns them.
func (p *podSet) takeOutHeld() []*cluster.Pod {
	free := p.notHeld()
	held := p.pods[free:]
	p.pods, p.held = p.pods[:free:free], nil
	return held
}

// notHeld is how many of the pod set's pods are not held.
func (p *podSet) notHeld() int { return len(p.pods) - len(p.held) }

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

// onlyRoomDecides reports whether nothing but room decides how many of the pod set's pods a host takes.
func (p *podSet) onlyRoomDecides() bool {
	return p.hasNoRules() && len(p.volumes) == 0 && len(p.exclusive) == 0 && len(p.class.Ports) == 0
}

// placeableNow is how many of the pod set's pods may be given a place at once.
func (p *podSet) placeableNow() int {
	if len(p.exclusive) > 0 {
		return min(len(p.pods), 1)
	}
	return len(p.pods)
}

// ruleSteps is how many rules are looked at when a pod of the pod set is put somewhere.
func (p *podSet) ruleSteps() int { return 1 + len(p.declared) + len(p.selectedBy) }

// isIndependent reports whether what the pod set's pods find depends on nothing but their class, nodes and what is for
// sale.
func isIndependent(p *podSet) bool {
	return len(p.declared) == 0 && len(p.selectedBy) == 0 && len(p.exclusive) == 0 && len(p.volumes) == 0
}

func termsText(terms []require.Set) string {
	if len(terms) == 1 && len(terms[0]) == 0 {
		return ""
	}
	var text strings.Builder
	for _, term := range terms {
		text.WriteString(term.String())
		text.WriteByte('|')
	}
	return text.String()
}

func tolerationsText(c *cluster.PodClass) string {
	if len(c.Tolerations) == 0 {
		return ""
	}
	return fmt.Sprint(c.Tolerations)
}
