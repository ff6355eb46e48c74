package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// What a place has for a topology key if not a domain by number.
const (
	noDomain        int32 = -1 // its node has no such label
	undecidedDomain int32 = -2 // the launch will decide
	newDomain       int32 = -3 // a domain of its own, empty so far: the hostname of a node to come
)

// topologyCounts counts pods by rule and domain, as kube-scheduler does. A placement only ever adds; a stage takes
// away, too.
type topologyCounts struct {
	s       *cluster.Snapshot
	matcher *ruleMatcher
	volumes *volumeUse
	// keys are the topology keys in use, domains the values of each.
	keys        []topologyKey
	rules       []ruleCounts
	spreads     []spreadCounts
	spreadIndex map[spreadKey]int32
	byRule      map[string]int32
	byKey       map[string]int32 // the places of keys
	// daemons are the pods that DaemonSets will put on new nodes; forNewNodes says that the topology counts are used to
	// choose domains for nodes to come.
	daemons     []*cluster.Pod
	forNewNodes bool
	// daemonRules are the rules of pods that look for a place which count pods of DaemonSets.
	daemonRules []int32
}

// topologyKey is a node label by which rules tell domains apart.
type topologyKey struct {
	label      string
	isHostname bool // every node is a domain of its own
	numbers    map[string]int32
	names      []string
	// ownNumbers are the numbers that a copy of the counts has given out; it shares the others with the one that it
	// came from.
	ownNumbers map[string]int32
	isCopy     bool
}

// ruleCounts counts for one rule, by domain.
type ruleCounts struct {
	rule *cluster.Rule
	key  int32
	// onHostname says that every node is a domain of its own.
	onHostname bool
	// selected counts the pods that the rule selects, declaring those that have it. firstDomain is the first domain
	// that they tell of: a copy for nodes to come does without the nodes that are there.
	selected, declaring []int32
	firstDomain         int32
	total               int
	// undecided counts the pods that the rule selects, or that have it, on nodes whose domain the launch will decide.
	undecided int
	// spreads are the places of the rule's spreads.
	spreads []int32
	// pending says that a pod that looks for a place has the rule; required that some pod insists on it.
	pending, required bool
}

// position is a node, as the topology counts see it.
type position struct {
	domains         []int32 // by key
	countsForSpread []bool  // by spread; nil if all count it
}

// newTopologyCounts collects the rules of the pods that look for a place, and the anti-affinity of those that have one.
func newTopologyCounts(s *cluster.Snapshot, pending []*cluster.Pod, usePreferences bool) *topologyCounts {
	tc := &topologyCounts{s: s, spreadIndex: make(map[spreadKey]int32), byRule: make(map[string]int32),
		byKey: make(map[string]int32), volumes: newVolumeUse(s.Pods)}
	seen := make(map[*cluster.PodClass]bool)
	var rules []*cluster.Rule
	add := func(r *cluster.Rule, pending, required bool) {
		id, known := tc.byRule[r.Key]
		if !known {
			id = int32(len(tc.rules))
			tc.byRule[r.Key] = id
			tc.rules = append(tc.rules, ruleCounts{rule: r, key: tc.keyIndex(r.TopologyKey),
				onHostname: r.TopologyKey == cluster.HostnameLabel})
			rules = append(rules, r)
		}
		t := &tc.rules[id]
		t.pending, t.required = t.pending || pending, t.required || required
	}
	for _, p := range pending {
		if seen[p.Class] {
			continue
		}
		seen[p.Class] = true
		for _, r := range p.Class.Rules {
			add(r, true, true)
		}
		for i := range p.Class.Preferences {
			if w := &p.Class.Preferences[i]; usePreferences && w.Rule != nil {
				add(w.Rule, true, false)
			}
		}
	}
	asked := int32(len(rules))
	for _, p := range s.Pods {
		if !p.UsesRoom() || len(p.Class.Rules) == 0 {
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
		for _, handle := range p.UnboundClaims {
			if tc.volumes.unboundUsers[handle] > 1 {
				add(&cluster.Rule{Key: unboundVolumeRule(handle), Kind: cluster.Affinity,
					TopologyKey: cluster.ZoneLabel}, true, true)
			}
		}
	}
	tc.matcher = newRuleMatcher(s, rules, asked)
	tc.expectDaemons()
	return tc
}

// expectDaemons takes in the pods that DaemonSets will put on new nodes.
func (tc *topologyCounts) expectDaemons() {
	for _, d := range tc.s.Daemons {
		pod := &cluster.Pod{Namespace: d.Namespace, Name: d.Name, Labels: d.Labels, Class: d.Class}
		tc.daemons = append(tc.daemons, pod)
		for _, id := range tc.matcher.rulesSelecting(pod) {
			if t := &tc.rules[id]; t.required && t.pending && t.rule.Kind != cluster.Affinity {
				tc.daemonRules = append(tc.daemonRules, id)
			}
		}
	}
}

func unboundVolumeRule(handle string) string { return "volume " + handle }

// volumeRules lists the rules that the pod's volumes amount to: they count the pod and it has them.
func (tc *topologyCounts) volumeRules(p *cluster.Pod) []int32 {
	var out []int32
	for _, handle := range p.UnboundClaims {
		if id, ok := tc.byRule[unboundVolumeRule(handle)]; ok && !slices.Contains(p.ExclusiveVolumes, handle) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (tc *topologyCounts) keyIndex(name string) int32 {
	if n, known := tc.byKey[name]; known {
		return n
	}
	n := int32(len(tc.keys))
	tc.byKey[name] = n
	tc.keys = append(tc.keys, topologyKey{label: name, isHostname: name == cluster.HostnameLabel,
		numbers: make(map[string]int32)})
	return n
}

// domainIndex numbers a value of a key.
func (tc *topologyCounts) domainIndex(key int32, value string) int32 {
	t := &tc.keys[key]
	n, known := t.numbers[value]
	if !known && t.isCopy {
		n, known = t.ownNumbers[value]
	}
	if known {
		return n
	}
	n = int32(len(t.names))
	t.names = append(t.names, value)
	if t.isCopy {
		t.ownNumbers[value] = n
	} else {
		t.numbers[value] = n
	}
	return n
}

// rulesOf lists the places of a class's rules and of the rules it wishes for, sorted.
func (tc *topologyCounts) rulesOf(c *cluster.PodClass) (required, preferred []int32) {
	for _, r := range c.Rules {
		if id, ok := tc.byRule[r.Key]; ok {
			required = append(required, id)
		}
	}
	for i := range c.Preferences {
		if r := c.Preferences[i].Rule; r != nil {
			if id, ok := tc.byRule[r.Key]; ok {
				preferred = append(preferred, id)
			}
		}
	}
	slices.Sort(required)
	slices.Sort(preferred)
	return slices.Compact(required), slices.Compact(preferred)
}

// domainKeys lists the keys, hostname aside, whose domains matter to pods of the pod sets on new nodes: by their own
// rules, and by those of others that count them or the pods of DaemonSets.
func (tc *topologyCounts) domainKeys(podSets ...*podSet) []int32 {
	var keys []int32
	add := func(ids []int32) {
		for _, id := range ids {
			if t := &tc.rules[id]; t.required && !t.onHostname && !slices.Contains(keys, t.key) {
				keys = append(keys, t.key)
			}
		}
	}
	add(tc.daemonRules) // wherever a node is, it brings a pod that the rule counts
	for _, p := range podSets {
		add(p.declared)
		add(p.selectedBy)
	}
	slices.Sort(keys)
	return keys
}

// addWished counts a pod of the pod set in a domain for the rules about the key that others only wish for.
func (tc *topologyCounts) addWished(p *podSet, key, domain int32) {
	for _, id := range p.selectedBy {
		if t := &tc.rules[id]; t.key == key && !t.required {
			t.selected = addAt(t.selected, domain, 1, len(tc.keys[key].names))
		}
	}
}

// countWished is how many pods that the rule selects are in a domain of the key, if the rule is about that key.
func (tc *topologyCounts) countWished(r *cluster.Rule, key, domain int32) (count int32, about bool) {
	t := &tc.rules[tc.byRule[r.Key]]
	return countAt(t.selected, domain), t.key == key
}

// addNode takes a node into the topology counts.
func (tc *topologyCounts) addNode(h *cluster.Host) *position {
	pos := &position{domains: make([]int32, len(tc.keys)), countsForSpread: make([]bool, len(tc.spreads))}
	for i := range tc.keys {
		t := &tc.keys[i]
		value, present := h.Label(t.label)
		switch {
		case t.isHostname && !present:
			pos.domains[i] = tc.domainIndex(int32(i), h.Name)
		case h.IsOpen(t.label):
			pos.domains[i] = undecidedDomain
		case present:
			pos.domains[i] = tc.domainIndex(int32(i), value)
		default:
			pos.domains[i] = noDomain
		}
	}
	for i := range tc.spreads {
		if s := &tc.spreads[i]; !s.unused && tc.countsForSpread(s, pos.domains, h) {
			pos.countsForSpread[i] = true
			s.addDomain(pos.domains[s.key])
		}
	}
	return pos
}

func countAt(list []int32, domain int32) int32 {
	if domain < 0 || int(domain) >= len(list) {
		return 0
	}
	return list[domain]
}

// addAt adds to a domain's count. The list gets room for all domains at once: to grow with each would copy it again and
// again.
func addAt(list []int32, domain, n int32, domains int) []int32 {
	if grow := int(domain) + 1 - len(list); grow > 0 {
		list = resize(slices.Grow(list, max(grow, domains-len(list))), int(domain)+1)
		clear(list[len(list)-grow:])
	}
	list[domain] += n
	return list
}

// addPods counts n pods of the pod set at a place.
func (tc *topologyCounts) addPods(pos *position, p *podSet, n int) {
	tc.addToRules(pos, p.declared, p.selectedBy, n, false)
}

func (tc *topologyCounts) addToRules(pos *position, carries, counted []int32, n int, leaving bool) {
	at := pos.domains
	for _, id := range carries {
		t := &tc.rules[id]
		if t.rule.Kind == cluster.AntiAffinity && at[t.key] >= 0 {
			t.declaring = addAt(t.declaring, at[t.key]-t.firstDomain, int32(n),
				len(tc.keys[t.key].names)-int(t.firstDomain))
		}
		if at[t.key] == undecidedDomain && t.required && !tc.forNewNodes {
			t.undecided += n
		}
	}
	for _, id := range counted {
		t := &tc.rules[id]
		if !t.pending { // where pods are that have the rule matters to others, not where those are that it looks at
			continue
		}
		if at[t.key] == undecidedDomain && t.required && !tc.forNewNodes {
			t.undecided += n
		}
		if at[t.key] < 0 {
			continue
		}
		t.selected = addAt(t.selected, at[t.key]-t.firstDomain, int32(n), len(tc.keys[t.key].names)-int(t.firstDomain))
		t.total += n
		if leaving { // a spread does not count pods that are on their way out; affinity does
			continue
		}
		for _, i := range t.spreads {
			if pos.countsForSpread == nil || pos.countsForSpread[i] {
				tc.spreads[i].addPods(at[t.key], int32(n))
			}
		}
	}
}

// hostAffinities are the rules by which the pod set's pods must share a node with others, sorted.
func (tc *topologyCounts) hostAffinities(p *podSet) []int32 {
	var out []int32
	for _, id := range p.declared {
		if t := &tc.rules[id]; t.rule.Kind == cluster.Affinity && t.onHostname {
			out = append(out, id)
		}
	}
	return out
}
