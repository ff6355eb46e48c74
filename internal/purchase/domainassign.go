package purchase

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/topology"
)

// domainShare is groups that go to the same domains.
type domainShare struct {
	group *podGroup
	units int
	// feasible is where they may go; anyDomain is the same before domains were chosen.
	feasible, anyDomain *market.FeasibleSet
	// preferredDomains are domains that the pods would like, beside those that they insist on.
	preferredDomains require.Set
}

// domainAssigner decides, before anything is packed, which domains (zones, say) pods go to whose rules tell domains
// apart. From then on each domain can be packed by itself. The hostname is left to packing.
type domainAssigner struct {
	counts *topology.Counts
	market *market.Market
	// allDomains counts every domain that could be had, not only those where a pod fits: what other pods' nodes may
	// bring about.
	allDomains     bool
	usePreferences bool
	// hosts are asked first: a domain may open for one more pod only after others have gone elsewhere.
	hosts    []*topology.Host
	hostBins []*OpenBin
	// assignedSets are the feasible sets to which the pod sets' pods were assigned, one after the other.
	assignedSets map[*topology.PodSet][]*market.FeasibleSet
	shares       []*domainShare
	byKey        map[domainShareKey]*domainShare
	combinations map[combinationKey][]domainCombination
}

type domainShareKey struct {
	group            *podGroup
	feasible         *market.FeasibleSet
	preferredDomains string
}

type combinationKey struct {
	feasible *market.FeasibleSet
	keys     string
}

// domainCombination is a domain for each of some keys.
type domainCombination struct {
	topology.Position // with a fresh hostname, and undecided in keys that don't matter
	feasible          *market.FeasibleSet
}

// assign shares the groups out. What no domain takes stays where it is.
func (da *domainAssigner) assign(groups []*podGroup) []*domainShare {
	da.byKey, da.combinations = make(map[domainShareKey]*domainShare), make(map[combinationKey][]domainCombination)
	da.assignedSets = make(map[*topology.PodSet][]*market.FeasibleSet)
	open := make([]*domainChoice, 0, len(groups))
	for _, g := range groups {
		if c := da.choiceFor(g); c != nil {
			open = append(open, c)
		}
	}
	for _, c := range open {
		da.registerDomains(c)
	}
	// Pods that rules count without having one themselves come first: kube-scheduler may bind them first, too.
	slices.SortStableFunc(open, func(a, b *domainChoice) int { return a.orderWithoutRules() - b.orderWithoutRules() })
	for again := true; again; {
		again = false
		for _, c := range open {
			for c.group.units > c.assigned && (da.placeOnHost(c) || da.assignOne(c)) {
				again = true
			}
		}
	}
	return da.shares
}

// domainChoice is a group for which domains have to be chosen.
type domainChoice struct {
	group        *podGroup
	keys         []int32
	anyDomain    *market.FeasibleSet
	combinations []domainCombination
	used         []int // by combination: how many groups went there
	hosts        []hostsWithRoom
	assigned     int
}

// hostsWithRoom are hosts in the same domains that have room for a group.
type hostsWithRoom struct {
	domains []int32 // with a fresh hostname
	hosts   []*topology.Host
}

// orderWithoutRules is 0 for groups without rules of their own.
func (c *domainChoice) orderWithoutRules() int {
	for _, member := range c.group.members {
		if len(member.podSet.Declared) > 0 {
			return 1
		}
	}
	return 0
}

// choiceFor passes groups on that no domain matters to, and finds the choice for the others.
func (da *domainAssigner) choiceFor(g *podGroup) *domainChoice {
	keys := da.counts.DomainKeys(g.podSets()...)
	unrestricted := da.market.FeasibleSet(g.classes(), nil)
	if len(keys) == 0 {
		da.addToShare(g, g.units, unrestricted, unrestricted)
		return nil
	}
	combos := da.combinationsFor(g, unrestricted, keys)
	return &domainChoice{group: g, keys: keys, anyDomain: unrestricted, combinations: combos,
		used: make([]int, len(combos)), hosts: da.hostsWithRoomFor(g)}
}

// hostsWithRoomFor finds the hosts that would take a pod of the group, were it not for the rules.
func (da *domainAssigner) hostsWithRoomFor(g *podGroup) []hostsWithRoom {
	if len(g.members) != 1 || g.members[0].count != 1 || len(g.members[0].podSet.Declared) == 0 {
		return nil
	}
	var out []hostsWithRoom
	known := make(map[string]int)
	class, set := g.members[0].podSet.Class, g.members[0].podSet
	for _, h := range da.hosts {
		if !h.Takes(set) || !h.MeetsDemands(class, da.market.DemandNumber(class)) {
			continue
		}
		at := slices.Clone(h.Domains)
		for i := range at {
			if da.counts.Keys[i].IsHostname {
				at[i] = topology.NewDomain
			}
		}
		text := string(topology.AppendIDs(nil, at))
		i, there := known[text]
		if !there {
			i = len(out)
			known[text] = i
			out = append(out, hostsWithRoom{domains: at})
		}
		out[i].hosts = append(out[i].hosts, h)
	}
	return out
}

// placeOnHost gives the next pod of the group a place on a host, now that others have been assigned.
func (da *domainAssigner) placeOnHost(c *domainChoice) bool {
	for _, r := range c.hosts {
		p := c.group.members[0].podSet
		if _, ok := da.counts.Allows(r.domains, p); !ok {
			continue
		}
		for _, host := range r.hosts {
			if _, ok := da.counts.Allows(host.Domains, p); !ok || !host.Takes(p) {
				continue
			}
			da.counts.AddPods(host.Position, p, 1)
			host.Occupy(p, 1)
			if da.counts.SpreadsOverSeveralKeys(p) {
				da.assignedSets[p] = append(da.assignedSets[p], c.anyDomain)
			}
			da.hostBins = append(da.hostBins, &OpenBin{Host: host,
				Contents: []Content{{p, p.TakePods(1), c.anyDomain}}})
			c.group.units--
			return true
		}
	}
	return false
}

// maxCombinations bounds how many combinations of domains are looked at.
const maxCombinations = 4096

// combinationsFor lists the combinations of domains in which nodes for the group's feasible set can be had.
func (da *domainAssigner) combinationsFor(g *podGroup, unrestricted *market.FeasibleSet,
	keys []int32) []domainCombination {
	at := combinationKey{unrestricted, string(topology.AppendIDs(nil, keys))}
	if list, ok := da.combinations[at]; ok {
		return list
	}
	sets := []require.Set{nil}
	domains := [][]int32{make([]int32, len(da.counts.Keys))}
	for i := range da.counts.Keys {
		domains[0][i] = topology.UndecidedDomain
		if da.counts.Keys[i].IsHostname {
			domains[0][i] = topology.NewDomain
		}
	}
	for _, key := range keys {
		values, without := da.labelValues(unrestricted, da.counts.Keys[key].Label)
		var nextSets []require.Set
		var nextDomains [][]int32
		add := func(i int, demand require.Values, domain int32) {
			if len(nextSets) < maxCombinations {
				nextSets = append(nextSets, sets[i].With(da.counts.Keys[key].Label, demand))
				next := slices.Clone(domains[i])
				next[key] = domain
				nextDomains = append(nextDomains, next)
			}
		}
		for i := range sets {
			for _, value := range values {
				add(i, require.Only(value), da.counts.Keys[key].DomainIndex(value))
			}
			if without {
				none, _ := require.Make(require.DoesNotExist, nil)
				add(i, none, topology.NoDomain)
			}
		}
		sets, domains = nextSets, nextDomains
	}
	var list []domainCombination
	classes := g.classes()
	for i := range sets {
		if fs := da.market.FeasibleSet(classes, sets[i]); len(fs.LargestRooms) > 0 {
			list = append(list, domainCombination{topology.Position{Domains: domains[i]}, fs})
		}
	}
	da.combinations[at] = list
	return list
}

// labelValues lists what a label may be on nodes that can be bought for the feasible set; without says that there are
// some that lack it.
func (da *domainAssigner) labelValues(fs *market.FeasibleSet, key string) (values []string, without bool) {
	for i, pm := range da.market.Pools {
		rows := fs.Offerings[i].And(pm.Buyable)
		if !rows.Any() {
			continue
		}
		if value, fixed := pm.FixedLabels.Get(key); fixed {
			values = append(values, value)
			continue
		}
		if index := pm.Spec.Catalog.Index(); index.Knows(key) {
			among, lacking := index.Among(key, rows)
			values, without = append(values, among...), without || lacking
			continue
		}
		have, open := pm.OpenRequirements.Get(key)
		if listed, finite := have.Listed(); open && finite {
			values = append(values, listed...)
			continue
		}
		if value, ok := have.Pick(); open && ok {
			values = append(values, value)
			continue
		}
		without = true
	}
	slices.Sort(values)
	return slices.Compact(values), without
}

// registerDomains makes the domains count in which the group's pods could be.
func (da *domainAssigner) registerDomains(dc *domainChoice) {
	for i := range dc.combinations {
		if c := &dc.combinations[i]; da.allDomains || c.feasible.Fits(&dc.group.need) {
			for _, member := range dc.group.members {
				da.counts.AddSpreadDomains(member.podSet, c.Domains)
			}
		}
	}
}

// assignOne gives the next group its domains: the emptiest where its pods are to be spread, else the cheapest.
func (da *domainAssigner) assignOne(dc *domainChoice) bool {
	best, bestLoad, bestPrice := -1, 0, 0.0
	for i := range dc.combinations {
		c := &dc.combinations[i]
		if !c.feasible.Fits(&dc.group.need) || !da.rulesAllow(dc, c) {
			continue
		}
		load, price := da.podsSeen(dc, c), c.feasible.RoughPrice(&dc.group.need)
		better := best < 0 || load < bestLoad
		if !better && load == bestLoad {
			// Combinations of several keys are used evenly, so that no order in which the pods are bound ends in one
			// that is full in each key.
			better = dc.used[i] < dc.used[best] || dc.used[i] == dc.used[best] && price < bestPrice
			if len(dc.keys) == 1 {
				better = price < bestPrice
			}
		}
		if better {
			best, bestLoad, bestPrice = i, load, price
		}
	}
	if best < 0 {
		return false
	}
	dc.used[best]++
	c := &dc.combinations[best]
	if p := dc.group.members[0].podSet; len(dc.group.members) == 1 && da.counts.SpreadsOverSeveralKeys(p) {
		da.assignedSets[p] = append(da.assignedSets[p], c.feasible)
	}
	for _, member := range dc.group.members {
		da.counts.AddPods(&c.Position, member.podSet, member.count)
	}
	dc.assigned++
	da.addToShare(dc.group, 1, c.feasible, dc.anyDomain)
	return true
}

// rulesAllow asks the rules of every pod of a group. That they follow one another is left to the verification.
func (da *domainAssigner) rulesAllow(dc *domainChoice, c *domainCombination) bool {
	for _, member := range dc.group.members {
		if reason, ok := da.counts.Allows(c.Domains, member.podSet); !ok {
			member.podSet.LastConflict = &reason
			return false
		}
	}
	return true
}

// podsSeen counts the pods that a group's spreads would see in the combination.
func (da *domainAssigner) podsSeen(dc *domainChoice, c *domainCombination) int {
	n := 0
	for _, member := range dc.group.members {
		n += da.counts.PodsSeen(member.podSet, c.Domains)
	}
	return n
}

// addToShare adds units of a group to the share for the feasible set.
func (da *domainAssigner) addToShare(g *podGroup, units int, fs, unrestricted *market.FeasibleSet) {
	for _, near := range da.shareByPreference(g, units, fs) {
		key := domainShareKey{group: g, feasible: fs}
		if len(near.set) > 0 {
			key.preferredDomains = near.set.String()
		}
		q := da.byKey[key]
		if q == nil {
			q = &domainShare{group: g, feasible: fs, anyDomain: unrestricted, preferredDomains: near.set}
			da.byKey[key] = q
			da.shares = append(da.shares, q)
		}
		q.units += near.units
	}
}
