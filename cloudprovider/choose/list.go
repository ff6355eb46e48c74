package choose

import (
	"slices"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// List is a catalog that is asked again and again: it is sorted once, and not for every claim. It never changes.
type List struct {
	types  []*cloudprovider.InstanceType
	sorted []listed
	known  map[string]bool
}

// listed is an offering and the place of its type in the list.
type listed struct {
	kind     int
	offering *cloudprovider.Offering
}

// NewList sorts a catalog.
func NewList(types []*cloudprovider.InstanceType) *List {
	l := &List{types: types, known: map[string]bool{}}
	type priced struct {
		listed
		candidate Candidate
		ref       cloudprovider.OfferingRef
	}
	var all []priced
	for i, t := range types {
		for key := range t.Labels {
			l.known[key] = true
		}
		for k := range t.Offerings {
			o := &t.Offerings[k]
			for key := range o.Labels {
				l.known[key] = true
			}
			c := Candidate{Type: t, Offering: o}
			all = append(all, priced{listed{i, o}, c, c.Ref()})
		}
	}
	slices.SortFunc(all, func(a, b priced) int {
		return compare(a.candidate.Offering.Price, b.candidate.Offering.Price, &a.ref, &b.ref)
	})
	for _, p := range all {
		l.sorted = append(l.sorted, p.listed)
	}
	return l
}

// Ranked is what the function of this name says of the catalog.
func (l *List) Ranked(claim *v1.NodeClaim) []Candidate {
	asked := requirements{}
	for _, r := range claim.Spec.Requirements {
		if len(asked[r.Key]) > 0 || l.known[r.Key] {
			asked[r.Key] = append(asked[r.Key], r)
		}
	}
	fits := make([]bool, len(l.types))
	count := 0
	for i, t := range l.types {
		if fits[i] = asked.allowType(t) && Fits(claim.Spec.Resources.Requests, t); fits[i] {
			count += len(t.Offerings)
		}
	}
	out := make([]Candidate, 0, count)
	for _, s := range l.sorted {
		if t := l.types[s.kind]; fits[s.kind] && asked.allowOffering(t, s.offering) {
			out = append(out, Candidate{Type: t, Offering: s.offering, asked: asked})
		}
	}
	return out
}
