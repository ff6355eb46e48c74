package purchase

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/topology"
)

// preferredCount is how many groups would like to be in which domains.
type preferredCount struct {
	set   require.Set
	units int
}

// shareByPreference shares groups out over the domains that their pods would like. Nothing is held against a domain
// that they don't like: it is only what is taken first where the price is the same.
func (da *domainAssigner) shareByPreference(g *podGroup, units int, fs *market.FeasibleSet) []preferredCount {
	if !da.usePreferences || len(g.members) != 1 || !da.hasDomainPreferences(g.members[0].podSet) {
		return []preferredCount{{units: units}}
	}
	p := g.members[0].podSet
	counts := make(map[string]int)
	var out []preferredCount
	for range units {
		set := da.preferredDomainsFor(p, g, fs)
		text := set.String()
		i, known := counts[text]
		if !known {
			i = len(out)
			counts[text] = i
			out = append(out, preferredCount{set: set})
		}
		out[i].units++
	}
	return out
}

// hasDomainPreferences reports whether the pod set wishes for something about domains other than a single node.
func (da *domainAssigner) hasDomainPreferences(p *topology.PodSet) bool {
	return slices.ContainsFunc(p.Preferred, func(id int32) bool {
		return !da.counts.Rules[id].OnHostname
	})
}

// preferredDomainsFor chooses, for each key that the pod set's wishes are about, the domain that meets most of them,
// and counts the pod there.
func (da *domainAssigner) preferredDomainsFor(set *topology.PodSet, g *podGroup, fs *market.FeasibleSet) require.Set {
	var out require.Set
	done := make([]bool, len(da.counts.Keys))
	for _, id := range set.Preferred {
		key := da.counts.Rules[id].Key
		if done[key] || da.counts.Rules[id].OnHostname {
			continue
		}
		done[key] = true
		values, _ := da.labelValues(fs, da.counts.Keys[key].Label)
		best, bestScore := "", int64(-1)
		for _, value := range values {
			if score := da.preferenceWeight(set, key, value); score > bestScore {
				best, bestScore = value, score
			}
		}
		if bestScore < 0 {
			continue
		}
		out = out.With(da.counts.Keys[key].Label, require.Only(best))
		domain := da.counts.Keys[key].DomainIndex(best)
		da.counts.AddWished(set, key, domain)
	}
	return out
}

// preferenceWeight is the weight of the pod set's wishes about the key that the value would meet.
func (da *domainAssigner) preferenceWeight(p *topology.PodSet, key int32, value string) int64 {
	sum, domain := int64(0), da.counts.Keys[key].DomainIndex(value)
	for i := range p.Class.Preferences {
		w := &p.Class.Preferences[i]
		if w.Rule == nil {
			if e, asked := w.Term.Get(da.counts.Keys[key].Label); asked && e.Matches(value, true) {
				sum += int64(w.Weight) * 1000
			}
			continue
		}
		there, about := da.counts.CountWished(w.Rule, key, domain)
		switch {
		case !about:
		case w.Rule.Kind == cluster.Affinity:
			sum += int64(w.Weight) * 1000 * int64(min(there, 1))
		default: // the fewer the better
			sum += int64(w.Weight) * 1000 / int64(1+there)
		}
	}
	return sum
}
