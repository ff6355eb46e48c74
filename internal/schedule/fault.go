package schedule

import (
	"fmt"
	"slices"
)

// Fault is an invariant of a placement that was found violated: a mistake in this package, and never a user's. What
// would have come of it is left out, so that one mistake costs a few pods their place for a while and not everybody the
// program. Tests fail on each.
type Fault struct {
	// Invariant is what should hold.
	Invariant string
	// Class is the key of the class of pods with which it does not.
	Class string
	// Have and Most are how many pods were given away and how many there are.
	Have, Most int
}

// The invariants.
const oneGroup = "each pod is in at most one group"

// String says it for people.
func (f Fault) String() string {
	return fmt.Sprintf("%s: of class %s %d pods were given to groups and there are %d",
		f.Invariant, f.Class, f.Have, f.Most)
}

// inOneGroup keeps the groups that together ask for no more pods of a kind than there are, and writes down which do
// not.
func (sh *shop) inOneGroup(parties []*party) []*party {
	given := make(map[*kind]int)
	return slices.DeleteFunc(parties, func(p *party) bool {
		for _, part := range p.parts {
			if have := given[part.kind] + part.count*p.units; have > part.kind.ready() {
				sh.faults = append(sh.faults, Fault{
					Invariant: oneGroup, Class: part.kind.class.Key, Have: have, Most: part.kind.ready()})
				return true
			}
		}
		for _, part := range p.parts {
			given[part.kind] += part.count * p.units
		}
		return false
	})
}

// Faults are the invariants that were found violated so far.
func (st *Stage) Faults() []Fault { return st.shop.faults }
