package sigv4

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Key is one pair of credentials.
type Key struct {
	ID     string
	Secret string
	// Token and Expires are set for temporary credentials.
	Token   string
	Expires time.Time
	// ARN is the principal that the key belongs to.
	ARN string
}

// Ring is the keys that a cloud knows.
type Ring struct {
	mu      sync.Mutex
	keys    map[string]Key
	removed map[string]Key
}

// NewRing makes a ring with some keys on it.
func NewRing(keys ...Key) *Ring {
	r := &Ring{keys: map[string]Key{}, removed: map[string]Key{}}
	for _, k := range keys {
		r.Put(k)
	}
	return r
}

// Put adds a key, or replaces the one with its id.
func (r *Ring) Put(k Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[k.ID] = k
	delete(r.removed, k.ID)
}

// Remove takes a key off: whoever signs with it is a stranger from now on. It says whether there was one.
func (r *Ring) Remove(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.keys[id]
	if ok {
		r.removed[id] = k
		delete(r.keys, id)
	}
	return ok
}

// Restore puts all keys back that were removed, as they were, and returns their ids.
func (r *Ring) Restore() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := slices.Sorted(maps.Keys(r.removed))
	maps.Copy(r.keys, r.removed)
	clear(r.removed)
	return ids
}

// ExpireAll ends the sessions that last beyond the given time and says how many it were. A key that is not temporary
// has no session.
func (r *Ring) ExpireAll(at time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for id, k := range r.keys {
		if k.Token == "" || !k.Expires.IsZero() && !k.Expires.After(at) {
			continue
		}
		k.Expires = at
		r.keys[id] = k
		n++
	}
	return n
}

// Lookup finds a key by its id.
func (r *Ring) Lookup(id string) (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.keys[id]
	return k, ok
}

// List returns the known keys and those that were removed, each by id.
func (r *Ring) List() (known, removed []Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	byID := func(a, b Key) int { return cmp.Compare(a.ID, b.ID) }
	return slices.SortedFunc(maps.Values(r.keys), byID), slices.SortedFunc(maps.Values(r.removed), byID)
}
