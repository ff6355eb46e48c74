package sigv4

import (
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
	mu   sync.Mutex
	keys map[string]Key
}

// NewRing makes a ring with some keys on it.
func NewRing(keys ...Key) *Ring {
	r := &Ring{keys: map[string]Key{}}
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
}

// Remove forgets a key: whoever signs with it is a stranger from now on.
func (r *Ring) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, id)
}

// ExpireAll makes every temporary key expire at the given time and says how many it were.
func (r *Ring) ExpireAll(at time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for id, k := range r.keys {
		if k.Token == "" {
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
