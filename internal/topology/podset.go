package topology

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

// PodSet is the pods of one class that the same rules count: whatever holds for one of them holds for all.
type PodSet struct {
	Class *cluster.PodClass
	Pods  []*cluster.Pod
	// Declared are the rules that its pods have, SelectedBy are those that select its pods, Preferred those that they
	// would like: places in the topology counts, sorted.
	Declared, SelectedBy, Preferred []int32
	// Spreads are the places of its spread rules' tallies in the topology counts: a spread counts only nodes that its
	// pods may use.
	Spreads []int32
	// Volumes are those that pods of other pod sets may share; Exclusive those that nobody may.
	Volumes   []cluster.Volume
	Exclusive []string
	// FollowsDaemon says that a DaemonSet's pod, which every node for the pod set will have, meets its affinity.
	FollowsDaemon bool

	// Hopeless says that there is nothing for the pod set's pods, even were they alone.
	Hopeless bool
	// WithoutGroup says that the group that the pod set's pods want could not be had.
	WithoutGroup bool
	// held are the workloads of those of its pods that are held: the last of them, in the same order.
	held []string
	// LastConflict is the last rule that kept the pod set's pods from a domain, for the explanation.
	LastConflict *Conflict
}

// PutHeldLast puts the pods that are held behind the others. workload names the workload of one that is.
func (p *PodSet) PutHeldLast(workload func(*cluster.Pod) (owner string, held bool)) {
	var first, last []*cluster.Pod
	for _, pod := range p.Pods {
		if owner, held := workload(pod); held {
			last, p.held = append(last, pod), append(p.held, owner)
		} else {
			first = append(first, pod)
		}
	}
	p.Pods = append(first, last...)
}

// TakeOutHeld removes the pods that are held, and returns them.
func (p *PodSet) TakeOutHeld() []*cluster.Pod {
	free := p.notHeld()
	held := p.Pods[free:]
	p.Pods, p.held = p.Pods[:free:free], nil
	return held
}

// notHeld is how many of the pod set's pods are not held.
func (p *PodSet) notHeld() int { return len(p.Pods) - len(p.held) }

// TakePods removes the first n pods.
func (p *PodSet) TakePods(n int) []*cluster.Pod {
	if free := p.notHeld(); n > free {
		p.held = p.held[n-free:]
	}
	taken := p.Pods[:n:n]
	p.Pods = p.Pods[n:]
	return taken
}

// HasNoRules reports whether the pod set's pods neither have rules nor are counted by any.
func (p *PodSet) HasNoRules() bool { return len(p.Declared) == 0 && len(p.SelectedBy) == 0 }

// PodSetsOf sorts pods into pod sets: the important and the large come first.
func PodSetsOf(pods []*cluster.Pod, counts *Counts) []*PodSet {
	s := NewPodSetBuilder(counts)
	for _, pod := range pods {
		p := s.PodSetOf(pod)
		p.Pods = append(p.Pods, pod)
	}
	slices.SortStableFunc(s.PodSets, ComparePodSets)
	return s.PodSets
}

// PodSetBuilder finds the pod sets of pods.
type PodSetBuilder struct {
	counts  *Counts
	byKey   map[podSetKey]*PodSet
	PodSets []*PodSet
	text    []byte
}

// NewPodSetBuilder has no pod sets yet.
func NewPodSetBuilder(counts *Counts) *PodSetBuilder {
	return &PodSetBuilder{counts: counts, byKey: make(map[podSetKey]*PodSet), text: make([]byte, 0, 64)}
}

// PodSetOf finds the pod's kind, or makes it.
func (s *PodSetBuilder) PodSetOf(pod *cluster.Pod) *PodSet {
	counted, ties := s.counts.matcher.rulesSelecting(pod), s.counts.VolumeRules(pod)
	if len(ties) > 0 {
		counted = unite(counted, ties)
	}
	shared, exclusive := s.counts.Volumes.volumesOf(pod)
	s.text = signature(s.text[:0], counted, shared, exclusive)
	p := s.byKey[podSetKey{pod.Class, string(s.text)}]
	if p == nil {
		p = &PodSet{Class: pod.Class, SelectedBy: counted, Volumes: shared, Exclusive: exclusive}
		p.Declared, p.Preferred = s.counts.rulesOf(pod.Class)
		p.Declared = unite(p.Declared, ties)
		p.Spreads = s.counts.spreadCountsOf(p)
		s.byKey[podSetKey{pod.Class, string(s.text)}] = p
		s.PodSets = append(s.PodSets, p)
	}
	return p
}

// podSetKey tells pod sets apart.
type podSetKey struct {
	class     *cluster.PodClass
	signature string
}

// unite is all numbers of the lists, sorted.
func unite(a, b []int32) []int32 {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// AppendIDs appends numbers to a text that tells lists apart.
func AppendIDs(text []byte, ids []int32) []byte {
	for _, id := range ids {
		text = binary.BigEndian.AppendUint32(text, uint32(id))
	}
	return text
}

func signature(text []byte, counted []int32, shared []cluster.Volume, exclusive []string) []byte {
	text = AppendIDs(text, counted)
	for _, v := range shared {
		text = append(append(text, 's'), v.Handle...)
	}
	for _, handle := range exclusive {
		text = append(append(text, 'x'), handle...)
	}
	return text
}

// ComparePodSets puts the important and the large first.
func ComparePodSets(a, b *PodSet) int {
	x, y := a.Class, b.Class
	return cmp.Or(
		cmp.Compare(y.Priority, x.Priority),
		cmp.Compare(y.Requests[resource.CPU], x.Requests[resource.CPU]),
		cmp.Compare(y.Requests[resource.Memory], x.Requests[resource.Memory]),
		strings.Compare(x.Key, y.Key),
		slices.Compare(a.SelectedBy, b.SelectedBy))
}

// OnlyRoomDecides reports whether nothing but room decides how many of the pod set's pods a host takes.
func (p *PodSet) OnlyRoomDecides() bool {
	return p.HasNoRules() && len(p.Volumes) == 0 && len(p.Exclusive) == 0 && len(p.Class.Ports) == 0
}

// PlaceableNow is how many of the pod set's pods may be given a place at once.
func (p *PodSet) PlaceableNow() int {
	if len(p.Exclusive) > 0 {
		return min(len(p.Pods), 1)
	}
	return len(p.Pods)
}

// RuleSteps is how many rules are looked at when a pod of the pod set is put somewhere.
func (p *PodSet) RuleSteps() int { return 1 + len(p.Declared) + len(p.SelectedBy) }

// IsIndependent reports whether what the pod set's pods find depends on nothing but their class, nodes and what is for
// sale.
func (p *PodSet) IsIndependent() bool {
	return len(p.Declared) == 0 && len(p.SelectedBy) == 0 && len(p.Exclusive) == 0 && len(p.Volumes) == 0
}

// TermsText is the same for alternatives that ask the same of a node.
func TermsText(terms []require.Set) string {
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

// TolerationsText is the same for classes with the same tolerations.
func TolerationsText(c *cluster.PodClass) string {
	if len(c.Tolerations) == 0 {
		return ""
	}
	return fmt.Sprint(c.Tolerations)
}
