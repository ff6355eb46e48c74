package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// What a place has for a topology key if not a domain by number.
const (
	absent  int32 = -1 // its node has no such label
	unknown int32 = -2 // the launch will decide
	fresh   int32 = -3 // a domain of its own, empty so far: the hostname of a node to come
)

// ledger counts pods by rule and domain, as kube-scheduler does. A placement only ever adds; a stage takes away, too.
type ledger struct {
	s       *cluster.Snapshot
	census  *census
	volumes *volumes
	// keys are the topology keys in use, domains the values of each.
	keys    []topology
	rules   []tally
	spreads []spread
	bySeat  map[spreadKey]int32
	byRule  map[string]int32
	byKey   map[string]int32 // the places of keys
	// daemons are the pods that DaemonSets will put on new nodes; draft says that the ledger is used to choose domains
	// for nodes to come.
	daemons []*cluster.Pod
	draft   bool
	// staffed are the rules of pods that look for a place which count pods of DaemonSets.
	staffed []int32
}

// topology is a node label by which rules tell domains apart.
type topology struct {
	key     string
	host    bool // every node is a domain of its own
	numbers map[string]int32
	names   []string
	// own are the numbers that a copy of the ledger has given out; it shares the others with the one that it came from.
	own    map[string]int32
	copied bool
}

// tally counts for one rule, by domain.
type tally struct {
	rule *cluster.Rule
	key  int32
	// match counts the pods that the rule selects, carry those that have it. from is the first domain that they tell of: a copy for
	// nodes to come does without the nodes that are there.
	match, carry []int32
	from         int32
	total        int
	// adrift counts the pods that the rule selects, or that have it, on nodes whose domain the launch will decide.
	adrift int
	// spreads are the places of the rule's spreads.
	spreads []int32
	// pending says that a pod that looks for a place has the rule; hard that some pod insists on it.
	pending, hard bool
}

// spot is a node, as the ledger sees it.
type spot struct {
	at     []int32 // by key
	counts []bool  // by spread
}

// newLedger collects the rules of the pods that look for a place, and the anti-affinity of those that have one.
func newLedger(s *cluster.Snapshot, pending []*cluster.Pod, wishes bool) *ledger {
	l := &ledger{s: s, bySeat: make(map[spreadKey]int32), byRule: make(map[string]int32), byKey: make(map[string]int32), volumes: newVolumes(s.Pods)}
	seen := make(map[*cluster.PodClass]bool)
	var rules []*cluster.Rule
	add := func(r *cluster.Rule, pending, hard bool) {
		id, known := l.byRule[r.Key]
		if !known {
			id = int32(len(l.rules))
			l.byRule[r.Key] = id
			l.rules = append(l.rules, tally{rule: r, key: l.key(r.Topology)})
			rules = append(rules, r)
		}
		t := &l.rules[id]
		t.pending, t.hard = t.pending || pending, t.hard || hard
	}
	for _, p := range pending {
		if seen[p.Class] {
			continue
		}
		seen[p.Class] = true
		for _, r := range p.Class.Rules {
			add(r, true, true)
		}
		for i := range p.Class.Wishes {
			if w := &p.Class.Wishes[i]; wishes && w.Rule != nil {
				add(w.Rule, true, false)
			}
		}
	}
	asked := int32(len(rules))
	for _, p := range s.Pods {
		if !p.Holds() || len(p.Class.Rules) == 0 {
			continue
		}
		for _, r := range p.Class.Rules {
			if r.Kind == cluster.AntiAffinity {
				add(r, false, true)
			}
		}
	}
	// Pods that share a volume which does not exist yet must all go where it will be made.
	for _, p := range pending {
		for _, handle := range p.Unbound {
			if l.volumes.waiting[handle] > 1 {
				add(&cluster.Rule{Key: unboundRule(handle), Kind: cluster.Affinity, Topology: cluster.ZoneLabel}, true, true)
			}
		}
	}
	l.census = newCensus(s, rules, asked)
	l.expectDaemons()
	return l
}

// expectDaemons takes in the pods that DaemonSets will put on new nodes.
func (l *ledger) expectDaemons() {
	for _, d := range l.s.Daemons {
		pod := &cluster.Pod{Namespace: d.Namespace, Name: d.Name, Labels: d.Labels, Class: d.Class}
		l.daemons = append(l.daemons, pod)
		for _, id := range l.census.counted(pod) {
			if t := &l.rules[id]; t.hard && t.pending && t.rule.Kind != cluster.Affinity {
				l.staffed = append(l.staffed, id)
			}
		}
	}
}

func unboundRule(handle string) string { return "volume " + handle }

// ties lists the rules that the pod's volumes amount to: they count the pod and it has them.
func (l *ledger) ties(p *cluster.Pod) []int32 {
	var out []int32
	for _, handle := range p.Unbound {
		if id, ok := l.byRule[unboundRule(handle)]; ok && !slices.Contains(p.Exclusive, handle) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (l *ledger) key(name string) int32 {
	if n, known := l.byKey[name]; known {
		return n
	}
	n := int32(len(l.keys))
	l.byKey[name] = n
	l.keys = append(l.keys, topology{key: name, host: name == cluster.HostnameLabel, numbers: make(map[string]int32)})
	return n
}

// domain numbers a value of a key.
func (l *ledger) domain(key int32, value string) int32 {
	t := &l.keys[key]
	n, known := t.numbers[value]
	if !known && t.copied {
		n, known = t.own[value]
	}
	if known {
		return n
	}
	n = int32(len(t.names))
	t.names = append(t.names, value)
	if t.copied {
		t.own[value] = n
	} else {
		t.numbers[value] = n
	}
	return n
}

// carried lists the places of a class's rules and of the rules it wishes for, sorted.
func (l *ledger) carried(c *cluster.PodClass) (hard, soft []int32) {
	for _, r := range c.Rules {
		if id, ok := l.byRule[r.Key]; ok {
			hard = append(hard, id)
		}
	}
	for i := range c.Wishes {
		if r := c.Wishes[i].Rule; r != nil {
			if id, ok := l.byRule[r.Key]; ok {
				soft = append(soft, id)
			}
		}
	}
	slices.Sort(hard)
	slices.Sort(soft)
	return slices.Compact(hard), slices.Compact(soft)
}

// open takes a node into the ledger.
func (l *ledger) open(h *cluster.Host) *spot {
	sp := &spot{at: make([]int32, len(l.keys)), counts: make([]bool, len(l.spreads))}
	for i := range l.keys {
		t := &l.keys[i]
		value, present := h.Label(t.key)
		switch {
		case t.host && !present:
			sp.at[i] = l.domain(int32(i), h.Name)
		case h.Open(t.key):
			sp.at[i] = unknown
		case present:
			sp.at[i] = l.domain(int32(i), value)
		default:
			sp.at[i] = absent
		}
	}
	for i := range l.spreads {
		if s := &l.spreads[i]; !s.idle && l.eligible(s, sp.at, h) {
			sp.counts[i] = true
			s.present(sp.at[s.key])
		}
	}
	return sp
}

func count(list []int32, domain int32) int32 {
	if domain < 0 || int(domain) >= len(list) {
		return 0
	}
	return list[domain]
}

// raise adds to a domain's count. The list gets room for all domains at once: to grow with each would copy it again and again.
func raise(list []int32, domain, n int32, domains int) []int32 {
	if grow := int(domain) + 1 - len(list); grow > 0 {
		list = resized(slices.Grow(list, max(grow, domains-len(list))), int(domain)+1)
		clear(list[len(list)-grow:])
	}
	list[domain] += n
	return list
}

// add counts n pods of the kind at a place. counts says which spreads count the place.
func (l *ledger) add(at []int32, counts []bool, k *kind, n int) {
	l.addRules(at, counts, k.carries, k.counted, n, false)
}

func (l *ledger) addRules(at []int32, counts []bool, carries, counted []int32, n int, leaving bool) {
	for _, id := range carries {
		t := &l.rules[id]
		if t.rule.Kind == cluster.AntiAffinity && at[t.key] >= 0 {
			t.carry = raise(t.carry, at[t.key]-t.from, int32(n), len(l.keys[t.key].names)-int(t.from))
		}
		if at[t.key] == unknown && t.hard && !l.draft {
			t.adrift += n
		}
	}
	for _, id := range counted {
		t := &l.rules[id]
		if !t.pending { // where pods are that have the rule matters to others, not where those are that it looks at
			continue
		}
		if at[t.key] == unknown && t.hard && !l.draft {
			t.adrift += n
		}
		if at[t.key] < 0 {
			continue
		}
		t.match = raise(t.match, at[t.key]-t.from, int32(n), len(l.keys[t.key].names)-int(t.from))
		t.total += n
		if leaving { // a spread does not count pods that are on their way out; affinity does
			continue
		}
		for _, i := range t.spreads {
			if counts == nil || counts[i] {
				l.spreads[i].raise(at[t.key], int32(n))
			}
		}
	}
}
