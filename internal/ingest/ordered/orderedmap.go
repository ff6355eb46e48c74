package ordered

import (
	"maps"
	"slices"
	"strings"
)

// Map is a set of things by key that can be listed in order at any time. Changing one costs a look into a map;
// only what is new is sorted, when the list is next asked for; a list in which nothing has changed is handed out again.
type Map[V any] struct {
	entries  map[string]*orderedEntry[V]
	order    []*orderedEntry[V] // sorted by key; may hold empty seats
	unsorted []*orderedEntry[V] // not yet in order
	empty    int                // seats in order that nobody sits on
	list     []V
	stale    bool
}

type orderedEntry[V any] struct {
	key   string
	value V
	taken bool
}

// NewMap is empty.
func NewMap[V any]() *Map[V] {
	return &Map[V]{entries: make(map[string]*orderedEntry[V])}
}

// Get finds a value by key; the zero value if there is none.
func (m *Map[V]) Get(key string) (v V, found bool) {
	if s := m.entries[key]; s != nil {
		return s.value, true
	}
	return v, false
}

// Set keeps a value.
func (m *Map[V]) Set(key string, v V) {
	m.stale = true
	if s := m.entries[key]; s != nil {
		s.value = v
		return
	}
	s := &orderedEntry[V]{key: key, value: v, taken: true}
	m.entries[key] = s
	m.unsorted = append(m.unsorted, s)
}

// Remove forgets a value.
func (m *Map[V]) Remove(key string) {
	s := m.entries[key]
	if s == nil {
		return
	}
	var none V
	s.value, s.taken = none, false
	delete(m.entries, key)
	m.empty++
	m.stale = true
}

// All lists the values by rising key. The list must not be changed and never changes.
func (m *Map[V]) All() []V {
	if !m.stale && m.list != nil {
		return m.list
	}
	m.sort()
	m.list = make([]V, 0, len(m.order))
	for _, s := range m.order {
		m.list = append(m.list, s.value)
	}
	m.stale = false
	return m.list
}

// sort brings the seats in order and drops the empty ones.
func (m *Map[V]) sort() {
	byKey := func(a, b *orderedEntry[V]) int { return strings.Compare(a.key, b.key) }
	vacant := func(s *orderedEntry[V]) bool { return !s.taken }
	if m.empty > 0 {
		m.order, m.unsorted = slices.DeleteFunc(m.order, vacant), slices.DeleteFunc(m.unsorted, vacant)
		m.empty = 0
	}
	if len(m.unsorted) == 0 {
		return
	}
	slices.SortFunc(m.unsorted, byKey)
	merged := make([]*orderedEntry[V], 0, len(m.order)+len(m.unsorted))
	old := m.order
	for _, s := range m.unsorted {
		i := 0
		for i < len(old) && old[i].key < s.key {
			i++
		}
		merged = append(append(merged, old[:i]...), s)
		old = old[i:]
	}
	m.order, m.unsorted = append(merged, old...), nil
}

// Shared is a map that is handed out without being copied: it is copied when it changes after that.
type Shared[V any] struct {
	Current map[string]V
	shared  bool
}

// NewShared is empty.
func NewShared[V any]() *Shared[V] { return &Shared[V]{Current: make(map[string]V)} }

// Share hands out the map as it is. Nobody may change it.
func (m *Shared[V]) Share() map[string]V {
	m.shared = true
	return m.Current
}

// Set keeps a value.
func (m *Shared[V]) Set(key string, v V) {
	m.copyIfShared()
	m.Current[key] = v
}

// Remove forgets a value.
func (m *Shared[V]) Remove(key string) {
	m.copyIfShared()
	delete(m.Current, key)
}

func (m *Shared[V]) copyIfShared() {
	if m.shared {
		m.Current, m.shared = maps.Clone(m.Current), false
	}
}
