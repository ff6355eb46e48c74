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
