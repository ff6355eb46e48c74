package purchase

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/topology"
)

// Fault is an invariant of a placement that was found violated: a mistake in this package, and never a user's. What
// would have come of it is left out, so that one mistake costs a few pods their place for a while and not everybody the
// program. Tests fail on each.
type Fault struct {
	// Invariant is what should hold.
	Invariant Invariant
	// Class is the key of the class of pods with which it does not.
	Class string
	// Have and Most are how many pods were given away and how many there are.
	Have, Most int
}

// Invariant is what should hold of each placement.
type Invariant int

// OneGroup is that each pod is in at most one group.
const OneGroup Invariant = iota

// keepConsistentGroups keeps the groups that together ask for no more pods of a pod set than there are, and writes down
// which do not.
func (b *Buyer) keepConsistentGroups(groups []*podGroup) []*podGroup {
	given := make(map[*topology.PodSet]int)
	return slices.DeleteFunc(groups, func(g *podGroup) bool {
		for _, member := range g.members {
			if have := given[member.podSet] + member.count*g.units; have > member.podSet.PlaceableNow() {
				b.Faults = append(b.Faults, Fault{
					Invariant: OneGroup, Class: member.podSet.Class.Key, Have: have,
					Most: member.podSet.PlaceableNow()})
				return true
			}
		}
		for _, member := range g.members {
			given[member.podSet] += member.count * g.units
		}
		return false
	})
}
