package topology

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// What a place has for a topology key if not a domain by number.
const (
	NoDomain        int32 = -1 // its node has no such label
	UndecidedDomain int32 = -2 // the launch will decide
	NewDomain       int32 = -3 // a domain of its own, empty so far: the hostname of a node to come
)

// Counts counts pods by rule and domain, as kube-scheduler does. A placement only ever adds; a what-if takes
// away, too.
type Counts struct {
	s       *cluster.Snapshot
	matcher *ruleMatcher
	Volumes *volumeUse
	// Keys are the topology keys in use, domains the values of each.
	Keys        []Key
	Rules       []RuleCounts
	spreads     []spreadCounts
	spreadIndex map[spreadKey]int32
	byRule      map[string]int32
	byKey       map[string]int32 // the places of keys
	// daemons are the pods that DaemonSets will put on new nodes; ForNewNodes says that the topology counts are used to
	// choose domains for nodes to come.
	daemons     []*cluster.Pod
	ForNewNodes bool
	// DaemonRules are the rules of pods that look for a place which count pods of DaemonSets.
	DaemonRules []int32
}

// Key is a node label by which rules tell domains apart.
type Key struct {
	Label      string
	IsHostname bool // every node is a domain of its own
	numbers    map[string]int32
	names      []string
	// ownNumbers are the numbers that a copy of the counts has given out; it shares the others with the one that it
	// came from.
	ownNumbers map[string]int32
	isCopy     bool
}

// RuleCounts counts for one rule, by domain.
type RuleCounts struct {
	Rule *cluster.Rule
	Key  int32
	// OnHostname says that every node is a domain of its own.
	OnHostname bool
	// selected counts the pods that the rule selects, declaring those that have it. firstDomain is the first domain
	// that they tell of: a copy for nodes to come does without the nodes that are there.
	selected, declaring []int32
	firstDomain         int32
	Total               int
	// undecided counts the pods that the rule selects, or that have it, on nodes whose domain the launch will decide.
	undecided int
	// spreads are the places of the rule's spreads.
	spreads []int32
	// Pending says that a pod that looks for a place has the rule; Required that some pod insists on it.
	Pending, Required bool
}

// Position is a node, as the topology counts see it.
type Position struct {
	Domains         []int32 // by key
	countsForSpread []bool  // by spread; nil if all count it
}

// NewCounts collects the rules of the pods that look for a place, and the anti-affinity of those that have one.
func NewCounts(s *cluster.Snapshot, pending []*cluster.Pod, usePreferences bool) *Counts {
	tc := &Counts{s: s, spreadIndex: make(map[spreadKey]int32), byRule: make(map[string]int32),
		byKey: make(map[string]int32), Volumes: newVolumeUse(s.Pods)}
	seen := make(map[*cluster.PodClass]bool)
	var rules []*cluster.Rule
	add := func(r *cluster.Rule, pending, required bool) {
		id, known := tc.byRule[r.Key]
		if !known {
			id = int32(len(tc.Rules))
			tc.byRule[r.Key] = id
			tc.Rules = append(tc.Rules, RuleCounts{Rule: r, Key: tc.keyIndex(r.TopologyKey),
				OnHostname: r.TopologyKey == cluster.HostnameLabel})
			rules = append(rules, r)
		}
		t := &tc.Rules[id]
		t.Pending, t.Required = t.Pending || pending, t.Required || required
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
			if tc.Volumes.unboundUsers[handle] > 1 {
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
func (tc *Counts) expectDaemons() {
	for _, d := range tc.s.Daemons {
		pod := &cluster.Pod{Namespace: d.Namespace, Name: d.Name, Labels: d.Labels, Class: d.Class}
		tc.daemons = append(tc.daemons, pod)
		for _, id := range tc.matcher.rulesSelecting(pod) {
			if t := &tc.Rules[id]; t.Required && t.Pending && t.Rule.Kind != cluster.Affinity {
				tc.DaemonRules = append(tc.DaemonRules, id)
			}
		}
	}
}

func unboundVolumeRule(handle string) string { return "volume " + handle }

// VolumeRules lists the rules that the pod's volumes amount to: they count the pod and it has them.
func (tc *Counts) VolumeRules(p *cluster.Pod) []int32 {
	var out []int32
	for _, handle := range p.UnboundClaims {
		if id, ok := tc.byRule[unboundVolumeRule(handle)]; ok && !slices.Contains(p.ExclusiveVolumes, handle) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func (tc *Counts) keyIndex(name string) int32 {
	if n, known := tc.byKey[name]; known {
		return n
	}
	n := int32(len(tc.Keys))
	tc.byKey[name] = n
	tc.Keys = append(tc.Keys, Key{Label: name, IsHostname: name == cluster.HostnameLabel,
		numbers: make(map[string]int32)})
	return n
}

// DomainIndex numbers a value of the key.
func (t *Key) DomainIndex(value string) int32 {
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
func (tc *Counts) rulesOf(c *cluster.PodClass) (required, preferred []int32) {
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

// DomainKeys lists the keys, hostname aside, whose domains matter to pods of the pod sets on new nodes: by their own
// rules, and by those of others that count them or the pods of DaemonSets.
func (tc *Counts) DomainKeys(podSets ...*PodSet) []int32 {
	var keys []int32
	add := func(ids []int32) {
		for _, id := range ids {
			if t := &tc.Rules[id]; t.Required && !t.OnHostname && !slices.Contains(keys, t.Key) {
				keys = append(keys, t.Key)
			}
		}
	}
	add(tc.DaemonRules) // wherever a node is, it brings a pod that the rule counts
	for _, p := range podSets {
		add(p.Declared)
		add(p.SelectedBy)
	}
	slices.Sort(keys)
	return keys
}

// AddWished counts a pod of the pod set in a domain for the rules about the key that others only wish for.
func (tc *Counts) AddWished(p *PodSet, key, domain int32) {
	for _, id := range p.SelectedBy {
		if t := &tc.Rules[id]; t.Key == key && !t.Required {
			t.selected = addAt(t.selected, domain, 1, len(tc.Keys[key].names))
		}
	}
}

// CountWished is how many pods that the rule selects are in a domain of the key, if the rule is about that key.
func (tc *Counts) CountWished(r *cluster.Rule, key, domain int32) (count int32, about bool) {
	t := &tc.Rules[tc.byRule[r.Key]]
	return countAt(t.selected, domain), t.Key == key
}

// AddNode takes a node into the topology counts.
func (tc *Counts) AddNode(h *cluster.Host) *Position {
	pos := &Position{Domains: make([]int32, len(tc.Keys)), countsForSpread: make([]bool, len(tc.spreads))}
	for i := range tc.Keys {
		t := &tc.Keys[i]
		value, present := h.Label(t.Label)
		switch {
		case t.IsHostname && !present:
			pos.Domains[i] = t.DomainIndex(h.Name)
		case h.IsOpen(t.Label):
			pos.Domains[i] = UndecidedDomain
		case present:
			pos.Domains[i] = t.DomainIndex(value)
		default:
			pos.Domains[i] = NoDomain
		}
	}
	for i := range tc.spreads {
		if s := &tc.spreads[i]; !s.unused && s.countsNode(tc.Rules[s.rule].Rule, pos.Domains, h) {
			pos.countsForSpread[i] = true
			s.addDomain(pos.Domains[s.key])
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

// AddPods counts n pods of the pod set at a place.
func (tc *Counts) AddPods(pos *Position, p *PodSet, n int) {
	tc.addToRules(pos, p.Declared, p.SelectedBy, n, false)
}

func (tc *Counts) addToRules(pos *Position, carries, counted []int32, n int, leaving bool) {
	at := pos.Domains
	for _, id := range carries {
		t := &tc.Rules[id]
		if t.Rule.Kind == cluster.AntiAffinity && at[t.Key] >= 0 {
			t.declaring = addAt(t.declaring, at[t.Key]-t.firstDomain, int32(n),
				len(tc.Keys[t.Key].names)-int(t.firstDomain))
		}
		if at[t.Key] == UndecidedDomain && t.Required && !tc.ForNewNodes {
			t.undecided += n
		}
	}
	for _, id := range counted {
		t := &tc.Rules[id]
		if !t.Pending { // where pods are that have the rule matters to others, not where those are that it looks at
			continue
		}
		if at[t.Key] == UndecidedDomain && t.Required && !tc.ForNewNodes {
			t.undecided += n
		}
		if at[t.Key] < 0 {
			continue
		}
		t.selected = addAt(t.selected, at[t.Key]-t.firstDomain, int32(n), len(tc.Keys[t.Key].names)-int(t.firstDomain))
		t.Total += n
		if leaving { // a spread does not count pods that are on their way out; affinity does
			continue
		}
		for _, i := range t.spreads {
			if pos.countsForSpread == nil || pos.countsForSpread[i] {
				tc.spreads[i].addPods(at[t.Key], int32(n))
			}
		}
	}
}

// HostAffinities are the rules by which the pod set's pods must share a node with others, sorted.
func (tc *Counts) HostAffinities(p *PodSet) []int32 {
	var out []int32
	for _, id := range p.Declared {
		if t := &tc.Rules[id]; t.Rule.Kind == cluster.Affinity && t.OnHostname {
			out = append(out, id)
		}
	}
	return out
}
