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

// kind is the pods of one class that the same rules count: whatever holds for one of them holds for all.
type kind struct {
	class *cluster.PodClass
	pods  []*cluster.Pod
	// carries are the rules that its pods have, counted are those that select its pods, wishes those that they would
	// like: places in the ledger, sorted.
	carries, counted, wishes []int32
	// spreads are the places of its spread rules' tallies in the ledger: a spread counts only nodes that its pods may
	// use.
	spreads []int32
	// handles are the volumes that pods of other kinds may share; exclusive those that nobody may.
	volumes   []cluster.Volume
	exclusive []string
	// attached says that a DaemonSet's pod, which every node for the kind will have, meets its affinity.
	attached bool
	// order is the sites to which the kind's pods were dealt, one after the other.
	order []*site
	// doomed says that there is nothing for the kind's pods, even were they alone.
	doomed bool
	// lone says that the company that the kind's pods want could not be had.
	lone bool
	// held are the workloads of those of its pods that are held: the last of them, in the same order.
	held []string
	// why is the last rule that kept the kind's pods from a domain, for the explanation.
	why *hurdle
}

// holdBack puts the pods that are held behind the others.
func holdBack(kinds []*kind, held map[string]Hold) {
	if len(held) == 0 {
		return
	}
	for _, k := range kinds {
		first, last := []*cluster.Pod(nil), []*cluster.Pod(nil)
		for _, p := range k.pods {
			if why, is := held[p.UID]; is {
				last, k.held = append(last, p), append(k.held, why.Setback.Owner)
			} else {
				first = append(first, p)
			}
		}
		k.pods = append(first, last...)
	}
}

// notHeld is how many of the kind's pods are not held.
func (k *kind) notHeld() int { return len(k.pods) - len(k.held) }

// mayUse is how many of the kind's pods may take room on the host. Those that are held take none of a node that is on its way,
// but for their seats: it is for others, and what they take of it would be bought again for these.
func (k *kind) mayUse(h *house) int {
	if h.Initialized {
		return len(k.pods)
	}
	return k.notHeld()
}

// maySit is how many of the kind's pods may take seats on the host; they come first then. While a node is on its way, or what it is to
// replace waits for it, those that are held take no seats of another workload, be its pods like them in everything: these would be given
// another node, and the held ones would take that, too.
func (k *kind) maySit(h *house) int {
	if h.Initialized && !h.Reserved || len(h.MadeFor) == 0 {
		return len(k.pods)
	}
	may := k.notHeld()
	for i := may; i < len(k.pods); i++ {
		at := i - k.notHeld()
		if !slices.ContainsFunc(h.MadeFor, func(m cluster.MadeFor) bool { return m.Owner == k.held[at] }) {
			continue
		}
		to := may - k.notHeld()
		k.pods[may], k.pods[i] = k.pods[i], k.pods[may]
		k.held[to], k.held[at] = k.held[at], k.held[to]
		may++
	}
	return may
}

// take removes the first n pods.
func (k *kind) take(n int) []*cluster.Pod {
	if free := k.notHeld(); n > free {
		k.held = k.held[n-free:]
	}
	taken := k.pods[:n:n]
	k.pods = k.pods[n:]
	return taken
}

// free reports whether the kind's pods neither have rules nor are counted by any.
func (k *kind) free() bool { return len(k.carries) == 0 && len(k.counted) == 0 }

// tribe is the pods of a namespace that carry the same labels. Rules select all of them or none.
type tribe struct {
	namespace string
	labels    *cluster.Label
	count     int
}

// census finds out which rules count which pods.
type census struct {
	s     *cluster.Snapshot
	rules []*cluster.Rule
	// byLabel finds the rules of which some selector asks for one value of a label; rest are the others.
	byLabel map[cluster.Label][]int32
	rest    []int32
	tribes  map[tribe][]int32
	// asked is how many rules pods have that look for a place: the first ones. tenants are tribes of pods that have one.
	asked   int32
	tenants map[tribe][]int32
}

func newCensus(s *cluster.Snapshot, rules []*cluster.Rule, asked int32) *census {
	c := &census{s: s, rules: rules, byLabel: make(map[cluster.Label][]int32), tribes: make(map[tribe][]int32), asked: asked, tenants: make(map[tribe][]int32)}
	for i, r := range rules {
		c.index(int32(i), r)
	}
	return c
}

// index files a rule under one label that the pods it counts must have, if there is such a label.
func (c *census) index(id int32, r *cluster.Rule) {
	for i := range r.Selectors {
		if r.Selectors[i].Nothing {
			return
		}
	}
	for i := range r.Selectors {
		at := anchor(&r.Selectors[i])
		if at < 0 {
			continue
		}
		e := &r.Selectors[i].Labels[at]
		values, _ := e.Values.Listed()
		for _, value := range values {
			at := cluster.Label{Key: e.Key, Value: value}
			c.byLabel[at] = append(c.byLabel[at], id)
		}
		return
	}
	c.rest = append(c.rest, id)
}

// counted lists the rules that count the pod, sorted.
func (c *census) counted(p *cluster.Pod) []int32 { return c.find(c.tribes, p, int32(len(c.rules))) }

// countedByPending lists the rules of pods that look for a place which count the pod, sorted: nothing depends on whom other
// rules count of those that have a place.
func (c *census) countedByPending(p *cluster.Pod) []int32 {
	if ids, known := c.tribes[tribeOf(p)]; known { // its pods may move, and all rules were looked at
		n, _ := slices.BinarySearch(ids, c.asked)
		return ids[:n:n]
	}
	return c.find(c.tenants, p, c.asked)
}

func tribeOf(p *cluster.Pod) tribe {
	of := tribe{namespace: p.Namespace, count: len(p.Labels)}
	if len(p.Labels) > 0 {
		of.labels = &p.Labels[0]
	}
	return of
}

func (c *census) find(known map[tribe][]int32, p *cluster.Pod, end int32) []int32 {
	if end == 0 {
		return nil
	}
	of := tribeOf(p)
	ids, found := known[of]
	if !found {
		ids = c.count(p, end)
		known[of] = ids
	}
	return ids
}

// count finds the rules before the end that count the pod.
func (c *census) count(p *cluster.Pod, end int32) []int32 {
	var out []int32
	var last *cluster.Selector // the rules of a pod's affinity terms share their selectors: they are asked once
	selected := false
	try := func(ids []int32) {
		for _, id := range ids {
			if id >= end {
				break
			}
			if r := c.rules[id]; len(r.Selectors) < 2 || &r.Selectors[0] != last {
				if selected, last = c.selects(r, p), nil; len(r.Selectors) > 1 {
					last = &r.Selectors[0]
				}
			}
			if selected {
				out = append(out, id)
			}
		}
	}
	for _, label := range p.Labels {
		try(c.byLabel[label])
	}
	try(c.rest)
	slices.Sort(out)
	return out
}

// selects reports whether the rule counts the pod.
func (c *census) selects(r *cluster.Rule, p *cluster.Pod) bool {
	for i := range r.Selectors {
		if !r.Selectors[i].Selects(p.Namespace, c.s.Namespaces[p.Namespace], p.Labels) {
			return false
		}
	}
	return len(r.Selectors) > 0
}

// kindsOf sorts pods into kinds: the important and the large come first.
func kindsOf(pods []*cluster.Pod, book *ledger) []*kind {
	s := newSorter(book)
	for _, pod := range pods {
		k := s.kindOf(pod)
		k.pods = append(k.pods, pod)
	}
	slices.SortStableFunc(s.kinds, compareKinds)
	return s.kinds
}

// sorter finds the kinds of pods.
type sorter struct {
	book  *ledger
	byKey map[kindKey]*kind
	kinds []*kind
	text  []byte
}

func newSorter(book *ledger) *sorter {
	return &sorter{book: book, byKey: make(map[kindKey]*kind), text: make([]byte, 0, 64)}
}

// kindOf finds the pod's kind, or makes it.
func (s *sorter) kindOf(pod *cluster.Pod) *kind {
	counted, ties := s.book.census.counted(pod), s.book.ties(pod)
	if len(ties) > 0 {
		counted = sortedSet(slices.Concat(counted, ties))
	}
	shared, exclusive := s.book.volumes.of(pod)
	s.text = signature(s.text[:0], counted, shared, exclusive)
	k := s.byKey[kindKey{pod.Class, string(s.text)}]
	if k == nil {
		k = &kind{class: pod.Class, counted: counted, volumes: shared, exclusive: exclusive}
		k.carries, k.wishes = s.book.carried(pod.Class)
		k.carries = sortedSet(slices.Concat(k.carries, ties))
		k.spreads = s.book.spreadsOf(k)
		s.byKey[kindKey{pod.Class, string(s.text)}] = k
		s.kinds = append(s.kinds, k)
	}
	return k
}

// kindKey tells kinds apart.
type kindKey struct {
	class *cluster.PodClass
	rest  string
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

func compareKinds(a, b *kind) int {
	x, y := a.class, b.class
	return cmp.Or(
		cmp.Compare(y.Priority, x.Priority),
		cmp.Compare(y.Requests[resource.CPU], x.Requests[resource.CPU]),
		cmp.Compare(y.Requests[resource.Memory], x.Requests[resource.Memory]),
		strings.Compare(x.Key, y.Key),
		slices.Compare(a.counted, b.counted))
}

// volumes knows which volumes are used by more than one pod.
type volumes struct {
	users map[string]int
	// waiting counts the pods of claims whose volumes don't exist yet.
	waiting map[string]int
	// taken are exclusive volumes that a pod with a place uses.
	taken map[string]bool
}

// copyTo makes out, if there is one, a copy of which volumes are taken.
func (v *volumes) copyTo(out *volumes) *volumes {
	if out == nil {
		out = &volumes{taken: make(map[string]bool, len(v.taken))}
	}
	out.users, out.waiting = v.users, v.waiting
	clear(out.taken)
	maps.Copy(out.taken, v.taken)
	return out
}

func newVolumes(pods []*cluster.Pod) *volumes {
	v := &volumes{users: make(map[string]int), waiting: make(map[string]int), taken: make(map[string]bool)}
	for _, p := range pods {
		if p.Done {
			continue
		}
		for _, volume := range p.Volumes {
			v.users[volume.Handle]++
		}
		for _, claim := range p.Unbound {
			v.waiting[claim]++
		}
	}
	return v
}

// of lists the pod's volumes that other pods use, too, and those that nobody else may use.
func (v *volumes) of(p *cluster.Pod) (shared []cluster.Volume, exclusive []string) {
	for _, volume := range p.Volumes {
		if v.users[volume.Handle] > 1 {
			shared = append(shared, volume)
		}
	}
	return shared, p.Exclusive
}
