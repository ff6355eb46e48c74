package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// hints are what a pool's labels have to do with those that pods ask for in vain. They are found once for each key:
// thousands of classes may ask for the same one.
type hints struct {
	has   map[string][]string
	meant map[string]string
	keys  []string // all that the pool's nodes have
}

// missByLabel notes the label by which the pool itself rules out all of the pod's terms. It reports whether there is
// one: each term may fail for a reason of its own.
func (m *market) missByLabel(out *PoolMiss, class *cluster.PodClass) bool {
	key := ""
	for i, term := range class.Terms {
		_, entry, ok := m.matchTerm(term)
		if ok || i > 0 && entry.Key != key {
			return false
		}
		key = entry.Key
	}
	values, known := anyOf(class.Terms, key)
	if !known {
		return false
	}
	out.Label = key
	if !values.IsEmpty() {
		out.Wanted = wanted(values)
	}
	m.blame(out, class, key)
	if len(out.Has) == 0 && out.Wanted != "" { // else there is something better to say
		out.Meant = m.meant(key)
	}
	return true
}

// missByKey notes the label that by itself leaves the fewest offerings, whichever of the pod's terms is taken. What is
// asked of it is noted if it leaves none.
func (m *market) missByKey(out *PoolMiss, class *cluster.PodClass) {
	least := m.offered.Count()
	for _, e := range class.Terms[0] { // what another term does not ask for rules nothing out
		if !m.pool.Catalog.Index().Knows(e.Key) {
			continue
		}
		if n := m.leaves(class.Terms, e.Key); n < least {
			out.Key, least = e.Key, n
		}
	}
	if out.Key == "" {
		return
	}
	if least == 0 {
		if values, known := anyOf(class.Terms, out.Key); known && !values.IsEmpty() {
			out.Wanted = wanted(values)
		}
	}
	m.blame(out, class, out.Key)
}

// leaves counts the offerings that have what some term asks of the label.
func (m *market) leaves(terms []require.Set, key string) int {
	rows := require.NewBits(m.pool.Catalog.Index().Len())
	for _, term := range terms {
		values, asks := term.Get(key)
		if !asks {
			return m.offered.Count()
		}
		rows = rows.Or(m.pool.Catalog.Index().Match(key, values))
	}
	return rows.And(m.offered).Count()
}

// anyOf is what the terms together ask of a label, one or the other of them. It is not known if one of them does not ask
// for it, or if they ask for different things that are not lists of values.
func anyOf(terms []require.Set, key string) (values require.Values, known bool) {
	first, asks := terms[0].Get(key)
	if !asks || len(terms) == 1 {
		return first, asks
	}
	var lists []string
	same, finite := true, true
	for _, term := range terms {
		v, asks := term.Get(key)
		if !asks {
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

// blame notes whether it is only the pod's volumes that ask something of a label, and what the pool has of it, if that
// is going to be said.
func (m *market) blame(out *PoolMiss, class *cluster.PodClass, key string) {
	asks := func(term require.Set) bool {
		_, has := term.Get(key)
		return has
	}
	out.ByVolume = class.OwnTerms != nil && !slices.ContainsFunc(class.OwnTerms, asks)
	if out.ByVolume || out.Wanted != "" || out.Label != "" {
		out.Has = m.choices(key)
	}
}

// choices are the values that the pool has of a label; none if it has none, or allows any. Nobody may change them.
func (m *market) choices(key string) []string {
	if values, known := m.hints.has[key]; known {
		return values
	}
	values := m.findChoices(key)
	if len(values) > 0 {
		if m.hints.has == nil {
			m.hints.has = make(map[string][]string)
		}
		m.hints.has[key] = values
	}
	return values
}

func (m *market) findChoices(key string) []string {
	if value, fixed := m.fixed.Get(key); fixed {
		return []string{value}
	}
	if index := m.pool.Catalog.Index(); index.Knows(key) {
		values, _ := index.Among(key, m.offered)
		return values
	}
	if have, open := m.open.Get(key); open {
		if values, finite := have.Listed(); finite {
			return values
		}
	}
	return nil
}

// meant is the label of the pool's nodes that is probably meant by one that they don't have; empty if none is like it.
func (m *market) meant(key string) string {
	if name, known := m.hints.meant[key]; known {
		return name
	}
	if m.hints.meant == nil {
		m.hints.meant = make(map[string]string)
	}
	name := require.Nearest(key, m.labelKeys())
	m.hints.meant[key] = name
	return name
}

// labelKeys are the labels that nodes of the pool have, or may have, in order.
func (m *market) labelKeys() []string {
	if m.hints.keys == nil {
		keys := m.pool.Catalog.Index().Keys()
		for _, label := range m.fixed {
			keys = append(keys, label.Key)
		}
		for _, e := range m.open {
			keys = append(keys, e.Key)
		}
		slices.Sort(keys)
		m.hints.keys = slices.Compact(keys)
	}
	return m.hints.keys
}
