package purchase

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
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
	podSet *topology.PodSet
	count  int
}

func (g *podGroup) classes() []*cluster.PodClass {
	out := make([]*cluster.PodClass, len(g.members))
	for i := range g.members {
		out[i] = g.members[i].podSet.Class
	}
	return out
}

func (g *podGroup) podSets() []*topology.PodSet {
	out := make([]*topology.PodSet, len(g.members))
	for i := range g.members {
		out[i] = g.members[i].podSet
	}
	return out
}

// makePodGroups makes groups of the pods that must share a node with others, and lets the rest go alone. Pod sets whose
// affinity nobody can meet are left out.
//
// Each pod is in at most one group. That holds because a pod set joins once at most: whoever is in a group is taken, as
// its leader, as one that follows a leader or as one of several equals, and nobody else looks at it again.
func makePodGroups(t *topology.Counts, mk *market.Market, podSets []*topology.PodSet) []*podGroup {
	var out []*podGroup
	follows := make(map[*topology.PodSet]bool)
	podSets = slices.DeleteFunc(slices.Clone(podSets), func(p *topology.PodSet) bool {
		if len(p.Pods) == 0 || p.Hopeless { // whoever has nothing to hope for must not change what others get
			return true
		}
		if len(p.Exclusive) == 0 {
			return false
		}
		// Whoever can't be placed anyway must not keep the volume from others.
		return !mk.FeasibleSet([]*cluster.PodClass{p.Class}, nil).Fits(&p.Class.Requests) ||
			!t.Volumes.Reserve(p.Exclusive)
	})
	gr := &grouper{counts: t, market: mk, podSets: podSets, taken: make(map[*topology.PodSet]bool)}
	for _, p := range podSets {
		if len(t.HostAffinities(p)) > 0 && !p.FollowsDaemon {
			if follows[p] = true; p.WithoutGroup {
				gr.noteNoGroup(p)
			}
		}
	}
	// Pods that need each other come first. Whoever could go with them or with others goes with them: were it
	// elsewhere, they would have to follow it to where there may be no room.
	for _, founds := range []bool{true, false} {
		for _, p := range podSets {
			if follows[p] && !p.WithoutGroup && !gr.taken[p] && founds == gr.isFirstOfGroup(p) {
				out = append(out, gr.groupsAround(p)...)
			}
		}
	}
	for _, p := range podSets {
		if n := p.PlaceableNow() - countInGroups(out, p); n > 0 && !follows[p] {
			out = append(out, &podGroup{members: []groupMember{{p, 1}}, units: n, need: p.Class.Requests})
		}
	}
	slices.SortStableFunc(out, func(a, b *podGroup) int {
		return topology.ComparePodSets(a.members[0].podSet, b.members[0].podSet)
	})
	return out
}

// countInGroups counts the pods of a pod set that belong to groups.
func countInGroups(groups []*podGroup, set *topology.PodSet) int {
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

// grouper puts pods together that must share a node.
type grouper struct {
	counts  *topology.Counts
	market  *market.Market
	podSets []*topology.PodSet
	taken   map[*topology.PodSet]bool
}

// isFirstOfGroup reports whether the pod set's pods are the first of those that they want to share a node with.
func (gr *grouper) isFirstOfGroup(p *topology.PodSet) bool {
	return gr.mayJoin(p, p) && !slices.ContainsFunc(gr.counts.HostAffinities(p), func(id int32) bool {
		return gr.counts.Rules[id].Total > 0 // a pod that it asks for has a place already
	})
}

// groupsAround joins the pod set's pods with each other, if they select themselves and nobody else is selected yet, or
// with pods of another pod set that are selected.
func (gr *grouper) groupsAround(p *topology.PodSet) []*podGroup {
	if gr.isFirstOfGroup(p) {
		return gr.mutualGroups(p)
	}
	for _, leader := range gr.podSets {
		if leader == p || gr.taken[leader] || len(leader.Pods) == 0 || len(gr.counts.HostAffinities(leader)) > 0 ||
			!gr.mayJoin(p, leader) || len(leader.Class.Unsupported) > 0 {
			continue
		}
		if out := gr.splitIntoGroups([]groupMember{{leader, 1}, {p, 1}}, 1, p.PlaceableNow(),
			leader.PlaceableNow()); len(out) > 0 {
			gr.taken[leader], gr.taken[p] = true, true
			return out
		}
	}
	gr.noteNoGroup(p)
	return nil
}

// noteNoGroup notes that the group that the pod set's pods want could not be had.
func (gr *grouper) noteNoGroup(p *topology.PodSet) {
	p.LastConflict = &topology.Conflict{Rule: gr.counts.Rules[gr.counts.HostAffinities(p)[0]].Rule}
}

// mutualGroups makes one group of the pod sets that ask to share a node with the same pods, themselves among them: as
// many of their pods as the largest node holds.
func (gr *grouper) mutualGroups(set *topology.PodSet) []*podGroup {
	var members []groupMember
	for _, other := range gr.podSets {
		same := gr.mayJoin(other, set) && !gr.taken[other] && !other.WithoutGroup && len(other.Class.Unsupported) == 0
		if other != set && (!same || len(other.Pods) == 0) {
			continue
		}
		next := append(slices.Clone(members), groupMember{other, 1})
		if fs := gr.market.FeasibleSet((&podGroup{members: next}).classes(), require.Set{}); len(fs.LargestRooms) > 0 {
			for n := min(other.PlaceableNow(), gr.maxPerNode(next, len(next)-1)); n > 0; n-- {
				if need := groupNeed(next, len(next)-1, n); fs.Fits(&need) {
					next[len(next)-1].count = n
					members = next
					gr.taken[other] = true
					break
				}
			}
		}
		if len(members) == 0 || members[len(members)-1].podSet != other ||
			members[len(members)-1].count < len(other.Pods) {
			gr.noteNoGroup(other)
		}
	}
	if len(members) == 0 {
		return nil
	}
	return []*podGroup{{members: members, units: 1, need: groupNeed(members, 0, members[0].count)}}
}

// mayJoin reports whether pods of a pod set that clings may share k's node: k's pods are what all of its rules ask for.
func (gr *grouper) mayJoin(other, p *topology.PodSet) bool {
	rules := gr.counts.HostAffinities(other)
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(id int32) bool {
		_, chosen := slices.BinarySearch(p.SelectedBy, id)
		return !chosen
	})
}

// splitIntoGroups shares total pods of one of the parts out over the groups, as evenly as the largest node allows.
// Leaders without followers go alone.
func (gr *grouper) splitIntoGroups(members []groupMember, of, total, companies int) []*podGroup {
	var out []*podGroup
	model := podGroup{members: members}
	fs := gr.market.FeasibleSet(model.classes(), require.Set{})
	for total > 0 && companies > 0 {
		n := (total + companies - 1) / companies
		for n = min(n, gr.maxPerNode(members, of)); n > 0; n-- {
			if need := groupNeed(members, of, n); fs.Fits(&need) {
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
func (gr *grouper) maxPerNode(members []groupMember, of int) int {
	p, most := members[of].podSet, 1<<30
	if len(p.Class.Ports) > 0 || len(p.Exclusive) > 0 {
		most = 1
	}
	for i := range members {
		other := members[i].podSet
		if i != of && topology.PortsClash(p.Class.Ports, other.Class.Ports) {
			return 0
		}
		for _, id := range p.Declared {
			_, chosen := slices.BinarySearch(other.SelectedBy, id)
			rule := gr.counts.Rules[id].Rule
			switch {
			case !chosen:
			case rule.Kind == cluster.AntiAffinity && i != of:
				return 0
			case rule.Kind == cluster.AntiAffinity:
				most = 1
			case rule.Kind == cluster.Spread && gr.counts.Rules[id].OnHostname && i == of:
				most = min(most, rule.MaxSkew)
			}
		}
		for _, id := range other.Declared {
			if _, chosen := slices.BinarySearch(p.SelectedBy, id); chosen && i != of &&
				gr.counts.Rules[id].Rule.Kind == cluster.AntiAffinity {
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
		sum = sum.Add(p.podSet.Class.Requests.Times(int64(count)))
	}
	return sum
}
