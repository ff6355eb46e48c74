package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
)

// hints are what a pool's labels have to do with those that pods ask for in vain. They are found once for each key:
// thousands of classes may ask for the same one.
type hints struct {
	values      map[string][]string
	similarKeys map[string]string
	keys        []string // all that the pool's nodes have
}

// poolExplainer says why a pool has nothing for pods.
type poolExplainer struct {
	*market.Pool
	hints hints
}

// missByLabel notes the label by which the pool itself rules out all of the pod's terms. It reports whether there is
// one: each term may fail for a reason of its own.
func (pm *poolExplainer) missByLabel(out *PoolMiss, class *cluster.PodClass) bool {
	key := ""
	for i, term := range class.Terms {
		_, entry, ok := pm.MatchTerm(term)
		if ok || i > 0 && entry.Key != key {
			return false
		}
		key = entry.Key
	}
	values, known := combinedValues(class.Terms, key)
	if !known {
		return false
	}
	out.Label = key
	out.Wanted = values
	pm.noteMissDetail(out, class, key)
	if len(out.Has) == 0 && !out.Wanted.IsEmpty() { // else there is something better to say
		out.Similar = pm.similarLabel(key)
	}
	return true
}

// missByKey notes the label that by itself leaves the fewest offerings, whichever of the pod's terms is taken. What is
// asked of it is noted if it leaves none.
func (pm *poolExplainer) missByKey(out *PoolMiss, class *cluster.PodClass) {
	least := pm.Offered.Count()
	for _, e := range class.Terms[0] { // what another term does not ask for rules nothing out
		if !pm.Spec.Catalog.Index().Knows(e.Key) {
			continue
		}
		if n := pm.countAllowed(class.Terms, e.Key); n < least {
			out.Key, least = e.Key, n
		}
	}
	if out.Key == "" {
		return
	}
	if least == 0 {
		if values, known := combinedValues(class.Terms, out.Key); known {
			out.Wanted = values
		}
	}
	pm.noteMissDetail(out, class, out.Key)
}

// countAllowed counts the offerings that have what some term asks of the label.
func (pm *poolExplainer) countAllowed(terms []require.Set, key string) int {
	rows := require.NewBits(pm.Spec.Catalog.Index().Len())
	for _, term := range terms {
		values, demands := term.Get(key)
		if !demands {
			return pm.Offered.Count()
		}
		rows = rows.Or(pm.Spec.Catalog.Index().Match(key, values))
	}
	return rows.And(pm.Offered).Count()
}

// combinedValues is what the terms together ask of a label, one or the other of them. It is not known if one of them
// does not ask for it, or if they ask for different things that are not lists of values.
func combinedValues(terms []require.Set, key string) (values require.Values, known bool) {
	first, demands := terms[0].Get(key)
	if !demands || len(terms) == 1 {
		return first, demands
	}
	var lists []string
	same, finite := true, true
	for _, term := range terms {
		v, demands := term.Get(key)
		if !demands {
			return require.Values{}, false
		}
		list, listed := v.Listed()
		lists = append(lists, list...)
		finite = finite && listed && !v.AllowsAbsent()
		same = same && v.Within(first) && first.Within(v)
	}
	if same {
		return first, true
	}
	return require.Only(lists...), finite
}

// noteMissDetail notes whether it is only the pod's volumes that ask something of a label, and what the pool has of it,
// if that is going to be said.
func (pm *poolExplainer) noteMissDetail(out *PoolMiss, class *cluster.PodClass, key string) {
	demands := func(term require.Set) bool {
		_, has := term.Get(key)
		return has
	}
	out.ByVolume = class.OwnTerms != nil && !slices.ContainsFunc(class.OwnTerms, demands)
	if out.ByVolume || !out.Wanted.IsEmpty() || out.Label != "" {
		out.Has = pm.labelChoices(key)
	}
}

// labelChoices are the values that the pool has of a label; none if it has none, or allows any. Nobody may change them.
func (pm *poolExplainer) labelChoices(key string) []string {
	if values, known := pm.hints.values[key]; known {
		return values
	}
	values := pm.findLabelChoices(key)
	if len(values) > 0 {
		if pm.hints.values == nil {
			pm.hints.values = make(map[string][]string)
		}
		pm.hints.values[key] = values
	}
	return values
}

func (pm *poolExplainer) findLabelChoices(key string) []string {
	if value, fixed := pm.FixedLabels.Get(key); fixed {
		return []string{value}
	}
	if index := pm.Spec.Catalog.Index(); index.Knows(key) {
		values, _ := index.Among(key, pm.Offered)
		return values
	}
	if have, open := pm.OpenRequirements.Get(key); open {
		if values, finite := have.Listed(); finite {
			return values
		}
	}
	return nil
}

// similarLabel is the label of the pool's nodes that is probably meant by one that they don't have; empty if none is
// like it.
func (pm *poolExplainer) similarLabel(key string) string {
	if name, known := pm.hints.similarKeys[key]; known {
		return name
	}
	if pm.hints.similarKeys == nil {
		pm.hints.similarKeys = make(map[string]string)
	}
	name := require.Nearest(key, pm.labelKeys())
	pm.hints.similarKeys[key] = name
	return name
}

// labelKeys are the labels that nodes of the pool have, or may have, in order.
func (pm *poolExplainer) labelKeys() []string {
	if pm.hints.keys == nil {
		keys := pm.Spec.Catalog.Index().Keys()
		for _, label := range pm.FixedLabels {
			keys = append(keys, label.Key)
		}
		for _, e := range pm.OpenRequirements {
			keys = append(keys, e.Key)
		}
		slices.Sort(keys)
		pm.hints.keys = slices.Compact(keys)
	}
	return pm.hints.keys
}
