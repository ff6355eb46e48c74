package ingest

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// holdShows is how long it takes at most until a new NodePool tells whether many orphans are held: the cloud has listed its
// instances by then, and the pool's conditions have been written.
const holdShows = 2 * time.Minute

// holdMemory is whether the NodePools can be relied on to remember that many orphans are held. They are not while there are
// none, or none but new ones: their definition may have been deleted, and what they said with it.
type holdMemory struct {
	// known says that they can be.
	known bool
	// due is when the first of the new ones will have told.
	due time.Time
}

// seen takes in a NodePool, which may have been there before. One that is first seen with conditions is not new.
func (m *holdMemory) seen(old, pool *cluster.Pool, now time.Time) {
	switch {
	case m.known:
	case old == nil && len(pool.Status.Conditions) > 0:
		m.known = true
	case m.due.IsZero():
		m.due = now.Add(holdShows)
	}
}

// deleted takes in that a NodePool is gone. If it was the last, and many orphans are held, nothing remembers that now.
func (m *holdMemory) deleted(pool *cluster.Pool, left int) {
	if left > 0 {
		return
	}
	m.due = time.Time{}
	if pool.HoldsOrphans() {
		m.known = false
	}
}

// unknown reports whether many orphans may be held without a NodePool that says so.
func (m *holdMemory) unknown(now time.Time) bool {
	if !m.known && !m.due.IsZero() && !now.Before(m.due) {
		m.known = true
	}
	return !m.known
}
