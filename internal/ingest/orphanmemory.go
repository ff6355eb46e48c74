package ingest

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// orphansTellTime is how long it takes at most until a new NodePool tells whether many orphans are held: the cloud has
// listed its instances by then, and the pool's conditions have been written.
const orphansTellTime = 2 * time.Minute

// orphanMemory is for what the NodePools said of held orphans if the last of them is deleted: most likely their
// definition was, and all NodeClaims with it.
type orphanMemory struct {
	// forgotten says that many orphans were held, and that no NodePool remembers it.
	forgotten bool
	// due is when the first of the new ones will have told.
	due time.Time
}

// poolSeen takes in a NodePool, which may have been there before. One that is first seen with conditions is not new.
func (m *orphanMemory) poolSeen(old, pool *cluster.Pool, now time.Time) {
	switch {
	case !m.forgotten:
	case old == nil && len(pool.Status.Conditions) > 0:
		m.forgotten = false
	case m.due.IsZero():
		m.due = now.Add(orphansTellTime)
	}
}

// poolDeleted takes in that a NodePool is gone, and how many are left.
func (m *orphanMemory) poolDeleted(pool *cluster.Pool, left int) {
	if left == 0 {
		m.forgotten, m.due = m.forgotten || pool.HasHeldOrphans(), time.Time{}
	}
}

// isUnknown reports whether many orphans may be held without a NodePool that says so.
func (m *orphanMemory) isUnknown(now time.Time) bool {
	if m.forgotten && !m.due.IsZero() && !now.Before(m.due) {
		m.forgotten = false
	}
	return m.forgotten
}
