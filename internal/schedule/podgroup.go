package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// podGroup is pods that look for a new node together: mostly each by itself, in groups where affinity wants several on
// one node.
type podGroup struct {
	members []groupMember
	// units is how many groups there are; need is what one of them asks for.
	units int
	need  resource.Vector
}

// groupMember is how many pods of a pod set belong to a group.
type groupMember struct {
	podSet *podSet
	count  int
}

func (g *podGroup) classes() []*cluster.PodClass {
	out := make([]*cluster.PodClass, len(g.members))
	for i := range g.members {
		out[i] = g.members[i].podSet.class
	}
	return out
}

// makePodGroups makes groups of the pods that must share a node with others, and lets the rest go alone. Pod sets whose
// affinity nobody can meet are left out.
//
// Each pod is in at most one group. That holds because a pod set joins once at most: whoever is in a group is taken, as
// its leader, as one that follows a leader or as one of several equals, and nobody else looks at it again.
func makePodGroups(t *topologyCounts, mk *market, podSets []*podSet) []*podGroup {
	var out []*podGroup
	taken, follows := make(map[*podSet]bool), make(map[*podSet]bool)
	podSets = slices.DeleteFunc(slices.Clone(podSets), func(p *podSet) bool {
		if len(p.pods) == 0 || p.hopeless { // whoever has nothing to hope for must not change what others get
			return true
		}
		if len(p.exclusive) == 0 {
			return false
		}
		// Whoever can't be placed anyway must not keep the volume from others.
		return !mk.feasibleSet([]*cluster.PodClass{p.class}, nil).fits(&p.class.Requests) ||
			!t.volumes.reserve(p.exclusive)
	})
	for _, p := range podSets {
		if t.needsSameNode(p) && !p.followsDaemon {
			if follows[p] = true; p.withoutGroup {
				p.lastConflict = &ruleConflict{rule: t.hostAffinity(p)}
			}
		}
	}
	// Pods that need each other come first. Whoever could go with them or with others goes with them: were it
	// elsewhere, they would have to follow it to where there may be no room.
	for _, founds := range []bool{true, false} {
		for _, p := range podSets {
			if follows[p] && !p.withoutGroup && !taken[p] && founds == t.isFirstOfGroup(p) {
				out = append(out, t.groupsAround(mk, p, podSets, taken)...)
			}
		}
	}
	for _, p := range podSets {
		if n := p.placeableNow() - countInGroups(out, p); n > 0 && !follows[p] {
			out = append(out, &podGroup{members: []groupMember{{p, 1}}, units: n, need: p.class.Requests})
		}
	}
	slices.SortStableFunc(out, func(a, b *podGroup) int {
		return comparePodSets(a.members[0].podSet, b.members[0].podSet)
	})
	return out
}

// placeableNow is how many of the pod set's pods may be given a place at once.
func (p *podSet) placeableNow() int {
	if len(p.exclusive) > 0 {
		return min(len(p.pods), 1)
	}
	return len(p.pods)
}

// countInGroups counts the pods of a pod set that belong to groups.
func countInGroups(groups []*podGroup, set *podSet) int {
	n := 0
	for _, g := range groups {
		for _, member := range g.members {
			if member.podSet == set {
				n += member.count * g.units
			}
		}
	}
	return n
}

// needsSameNode reports whether the pod set's pods must share a node with others.
func (tc *topologyCounts) needsSameNode(p *podSet) bool {
	return slices.ContainsFunc(p.declared, func(id int32) bool {
		return tc.rules[id].rule.Kind == cluster.Affinity && tc.keys[tc.rules[id].key].isHostname
	})
}

// isFirstOfGroup reports whether the pod set's pods are the first of those that they want to share a node with.
func (tc *topologyCounts) isFirstOfGroup(p *podSet) bool {
	return tc.mayJoin(p, p) && !tc.affinityMetSomewhere(p)
}

// groupsAround joins the pod set's pods with each other, if they select themselves and nobody else is selected yet, or
// with pods of another pod set that are selected.
func (tc *topologyCounts) groupsAround(mk *market, p *podSet, podSets []*podSet, taken map[*podSet]bool) []*podGroup {
	if tc.isFirstOfGroup(p) {
		return tc.mutualGroups(mk, p, podSets, taken)
	}
	for _, leader := range podSets {
		if leader == p || taken[leader] || len(leader.pods) == 0 || tc.needsSameNode(leader) ||
			!tc.mayJoin(p, leader) || len(leader.class.Unsupported) > 0 {
			continue
		}
		if out := tc.splitIntoGroups(mk, []groupMember{{leader, 1}, {p, 1}}, 1, p.placeableNow(),
			leader.placeableNow()); len(out) > 0 {
			taken[leader], taken[p] = true, true
			return out
		}
	}
	p.lastConflict = &ruleConflict{rule: tc.hostAffinity(p)}
	return nil
}

// mutualGroups makes one group of the pod sets that ask to share a node with the same pods, themselves among them: as
// many of their pods as the largest node holds.
func (tc *topologyCounts) mutualGroups(mk *market, set *podSet, podSets []*podSet, taken map[*podSet]bool) []*podGroup {
	var members []groupMember
	for _, other := range podSets {
		same := tc.mayJoin(other, set) && !taken[other] && !other.withoutGroup && len(other.class.Unsupported) == 0
		if other != set && (!same || len(other.pods) == 0) {
			continue
		}
		next := append(slices.Clone(members), groupMember{other, 1})
		if fs := mk.feasibleSet((&podGroup{members: next}).classes(), require.Set{}); len(fs.largestRooms) > 0 {
			for n := min(other.placeableNow(), tc.maxPerNode(next, len(next)-1)); n > 0; n-- {
				if need := groupNeed(next, len(next)-1, n); fs.fits(&need) {
					next[len(next)-1].count = n
					members = next
					taken[other] = true
					break
				}
			}
		}
		if len(members) == 0 || members[len(members)-1].podSet != other ||
			members[len(members)-1].count < len(other.pods) {
			other.lastConflict = &ruleConflict{rule: tc.hostAffinity(other)}
		}
	}
	if len(members) == 0 {
		return nil
	}
	var need resource.Vector
	for _, p := range members {
		need = need.Add(p.podSet.class.Requests.Times(int64(p.count)))
	}
	return []*podGroup{{members: members, units: 1, need: need}}
}

// mayJoin reports whether pods of a pod set that clings may share k's node: k's pods are what all of its rules ask for.
func (tc *topologyCounts) mayJoin(other, p *podSet) bool {
	rules := tc.hostAffinities(other)
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(id int32) bool {
		_, chosen := slices.BinarySearch(p.selectedBy, id)
		return !chosen
	})
}

// hostAffinities are the rules by which the pod set's pods must share a node with others, sorted.
func (tc *topologyCounts) hostAffinities(p *podSet) []int32 {
	var out []int32
	for _, id := range p.declared {
		if t := &tc.rules[id]; t.rule.Kind == cluster.Affinity && tc.keys[t.key].isHostname {
			out = append(out, id)
		}
	}
	return out
}

// affinityMetSomewhere reports whether a pod that the pod set's affinity to a node selects has a place already.
func (tc *topologyCounts) affinityMetSomewhere(p *podSet) bool {
	return slices.ContainsFunc(p.declared, func(id int32) bool {
		t := &tc.rules[id]
		return t.rule.Kind == cluster.Affinity && tc.keys[t.key].isHostname && t.total > 0
	})
}

func (tc *topologyCounts) hostAffinity(p *podSet) *cluster.Rule {
	for _, id := range p.declared {
		if t := &tc.rules[id]; t.rule.Kind == cluster.Affinity && tc.keys[t.key].isHostname {
			return t.rule
		}
	}
	return nil
}

// splitIntoGroups shares total pods of one of the parts out over the groups, as evenly as the largest node allows.
// Leaders without followers go alone.
func (tc *topologyCounts) splitIntoGroups(mk *market, members []groupMember, of, total, companies int) []*podGroup {
	var out []*podGroup
	model := podGroup{members: members}
	fs := mk.feasibleSet(model.classes(), require.Set{})
	for total > 0 && companies > 0 {
		n := (total + companies - 1) / companies
		for n = min(n, tc.maxPerNode(members, of)); n > 0; n-- {
			if need := groupNeed(members, of, n); fs.fits(&need) {
				break
			}
		}
		if n == 0 {
			break
		}
		units := min(total/n, companies)
		g := &podGroup{members: slices.Clone(members), units: units, need: groupNeed(members, of, n)}
		g.members[of].count = n
		out = append(out, g)
		total, companies = total-units*n, companies-units
	}
	return out
}

// maxPerNode is how many pods of one of the parts can share a node with each other and with the rest of the group, room
// aside: ports, volumes for one pod only, anti-affinity and spread over hosts bound it.
func (tc *topologyCounts) maxPerNode(members []groupMember, of int) int {
	p, most := members[of].podSet, 1<<30
	if len(p.class.Ports) > 0 || len(p.exclusive) > 0 {
		most = 1
	}
	for i := range members {
		other := members[i].podSet
		if i != of && portsClash(p.class.Ports, other.class.Ports) {
			return 0
		}
		for _, id := range p.declared {
			_, chosen := slices.BinarySearch(other.selectedBy, id)
			rule := tc.rules[id].rule
			switch {
			case !chosen:
			case rule.Kind == cluster.AntiAffinity && i != of:
				return 0
			case rule.Kind == cluster.AntiAffinity:
				most = 1
			case rule.Kind == cluster.Spread && tc.keys[tc.rules[id].key].isHostname && i == of:
				most = min(most, rule.MaxSkew)
			}
		}
		for _, id := range other.declared {
			if _, chosen := slices.BinarySearch(p.selectedBy, id); chosen && i != of &&
				tc.rules[id].rule.Kind == cluster.AntiAffinity {
				return 0
			}
		}
	}
	return most
}

func groupNeed(members []groupMember, of, n int) resource.Vector {
	var sum resource.Vector
	for i, p := range members {
		count := p.count
		if i == of {
			count = n
		}
		sum = sum.Add(p.podSet.class.Requests.Times(int64(count)))
	}
	return sum
}
