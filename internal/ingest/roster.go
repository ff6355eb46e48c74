package ingest

import (
	"maps"
	"slices"
	"strings"
)

// roster is a set of things by key that can be listed in order at any time. Changing one costs a look into a map; only
// what is new is sorted, when the list is next asked for; a list in which nothing has changed is handed out again.
type roster[V any] struct {
	seats map[string]*seat[V]
	order []*seat[V] // sorted by key; may hold empty seats
	fresh []*seat[V] // not yet in order
	empty int        // seats in order that nobody sits on
	list  []V
	stale bool
}

type seat[V any] struct {
	key   string
	value V
	taken bool
}

func newRoster[V any]() *roster[V] { return &roster[V]{seats: make(map[string]*seat[V])} }

func (r *roster[V]) len() int { return len(r.seats) }

// get finds a value by key; the zero value if there is none.
func (r *roster[V]) get(key string) (v V, found bool) {
	if s := r.seats[key]; s != nil {
		return s.value, true
	}
	return v, false
}

func (r *roster[V]) set(key string, v V) {
	r.stale = true
	if s := r.seats[key]; s != nil {
		s.value = v
		return
	}
	s := &seat[V]{key: key, value: v, taken: true}
	r.seats[key] = s
	r.fresh = append(r.fresh, s)
}

func (r *roster[V]) remove(key string) {
	s := r.seats[key]
	if s == nil {
		return
	}
	var none V
	s.value, s.taken = none, false
	delete(r.seats, key)
	r.empty++
	r.stale = true
}

// all lists the values by rising key. The list must not be changed and never changes.
func (r *roster[V]) all() []V {
	if !r.stale && r.list != nil {
		return r.list
	}
	r.sort()
	r.list = make([]V, 0, len(r.order))
	for _, s := range r.order {
		r.list = append(r.list, s.value)
	}
	r.stale = false
	return r.list
}

// sort brings the seats in order and drops the empty ones.
func (r *roster[V]) sort() {
	byKey := func(a, b *seat[V]) int { return strings.Compare(a.key, b.key) }
	vacant := func(s *seat[V]) bool { return !s.taken }
	if r.empty > 0 {
		r.order, r.fresh = slices.DeleteFunc(r.order, vacant), slices.DeleteFunc(r.fresh, vacant)
		r.empty = 0
	}
	if len(r.fresh) == 0 {
		return
	}
	slices.SortFunc(r.fresh, byKey)
	merged := make([]*seat[V], 0, len(r.order)+len(r.fresh))
	old := r.order
	for _, s := range r.fresh {
		i := 0
		for i < len(old) && old[i].key < s.key {
			i++
		}
		merged = append(append(merged, old[:i]...), s)
		old = old[i:]
	}
	r.order, r.fresh = append(merged, old...), nil
}

// ledger is a map that is handed out without being copied: it is copied when it changes after that.
type ledger[V any] struct {
	now    map[string]V
	shared bool
}

func newLedger[V any]() *ledger[V] { return &ledger[V]{now: make(map[string]V)} }

// share hands out the map as it is. Nobody may change it.
func (l *ledger[V]) share() map[string]V {
	l.shared = true
	return l.now
}

func (l *ledger[V]) set(key string, v V) {
	l.part()
	l.now[key] = v
}

func (l *ledger[V]) remove(key string) {
	l.part()
	delete(l.now, key)
}

func (l *ledger[V]) part() {
	if l.shared {
		l.now, l.shared = maps.Clone(l.now), false
	}
}
