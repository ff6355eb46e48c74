package market

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/require"
)

// What pods say about values that nobody sells is left out of a claim's requirements if it is long: more than
// mostForeign bytes in all, or mostOfOne in what one kind of pods asks for. Values may be excluded by the ten thousand,
// and the API server takes no object of any size. The bound is in docs/concepts/bounds.md.
const (
	mostForeign = 16 << 10
	mostOfOne   = 1 << 10
)

// claimTerm is what the launch decides about of an alternative, in as many words as a claim may have.
func (pm *Pool) claimTerm(tm *termMatch) require.Set {
	if !tm.hasClaimText {
		tm.claimText, tm.hasClaimText = pm.shorten(pm.decidable(tm.term), mostOfOne), true
	}
	return tm.claimText
}

// shorten leaves out values that neither an offering nor the pool names, if the values of the set are longer than most.
// Each offering is allowed or not as before: so is what is launched, and what the pool says is kept word for word.
func (pm *Pool) shorten(set require.Set, most int) require.Set {
	size := 0
	for i := range set {
		size += set[i].Values.Bytes()
	}
	if size <= most {
		return set
	}
	out := slices.Clone(set)
	for i := range out {
		e := &out[i]
		own, _ := pm.Spec.Template.Requirements.Get(e.Key)
		e.Values = e.Values.Among(func(value string) bool {
			return pm.Spec.Catalog.Index().Has(e.Key, value) || own.Names(value)
		})
	}
	return out
}
