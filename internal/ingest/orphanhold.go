package ingest

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// holdShows is how long it takes at most until a new NodePool tells whether many orphans are held: the cloud has listed
// its instances by then, and the pool's conditions have been written.
const holdShows = 2 * time.Minute

// holdMemory is for what the NodePools said of held orphans if the last of them is deleted: most likely their
// definition was, and all NodeClaims with it.
type holdMemory struct {
	// lost says that many orphans were held, and that no NodePool remembers it.
	lost bool
	// due is when the first of the new ones will have told.
	due time.Time
}

// seen takes in a NodePool, which may have been there before. One that is first seen with conditions is not new.
func (m *holdMemory) seen(old, pool *cluster.Pool, now time.Time) {
	switch {
	case !m.lost:
	case old == nil && len(pool.Status.Conditions) > 0:
		m.lost = false
	case m.due.IsZero():
		m.due = now.Add(holdShows)
	}
}

// deleted takes in that a NodePool is gone, and how many are left.
func (m *holdMemory) deleted(pool *cluster.Pool, left int) {
	if left == 0 {
		m.lost, m.due = m.lost || pool.HoldsOrphans(), time.Time{}
	}
}

// unknown reports whether many orphans may be held without a NodePool that says so.
func (m *holdMemory) unknown(now time.Time) bool {
	if m.lost && !m.due.IsZero() && !now.Before(m.due) {
		m.lost = false
	}
	return m.lost
}
