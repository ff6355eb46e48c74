package cloud

import (
	"maps"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// orphansTellTime is how long it takes at most until a new NodePool tells whether many orphans are held: the cloud has
// listed its instances by then, and the pool's conditions have been written.
const orphansTellTime = 2 * time.Minute

// OrphanMemory is for what the NodePools said of held orphans if the last of them is deleted: most likely their
// definition was, and all NodeClaims with it.
type OrphanMemory struct {
	// forgotten says that many orphans were held, and that no NodePool remembers it.
	forgotten bool
	// due is when the first of the new ones will have told.
	due time.Time
}

// PoolSeen takes in a NodePool, which may have been there before. One that is first seen with conditions is not new.
func (m *OrphanMemory) PoolSeen(old, pool *cluster.Pool, now time.Time) {
	switch {
	case !m.forgotten:
	case old == nil && len(pool.Status.Conditions) > 0:
		m.forgotten = false
	case m.due.IsZero():
		m.due = now.Add(orphansTellTime)
	}
}

// PoolDeleted takes in that a NodePool is gone, and how many are left.
func (m *OrphanMemory) PoolDeleted(pool *cluster.Pool, left int) {
	if left == 0 {
		m.forgotten, m.due = m.forgotten || pool.HasHeldOrphans(), time.Time{}
	}
}

// IsUnknown reports whether many orphans may be held without a NodePool that says so.
func (m *OrphanMemory) IsUnknown(now time.Time) bool {
	if m.forgotten && !m.due.IsZero() && !now.Before(m.due) {
		m.forgotten = false
	}
	return m.forgotten
}

// orphanEndsCount is for how long it is remembered that an instance was ended because nobody claimed it.
const orphanEndsCount = time.Hour

// OrphanEnds is when the cloud was first asked to end instances that nobody claimed, by provider id.
type OrphanEnds map[string]time.Time

// Note remembers that the cloud was asked to end an instance which no claim accounted for. If the answer was an error
// it may have been ended all the same, and counts.
func (e OrphanEnds) Note(c command.Terminate, o command.Outcome) {
	if _, known := e[c.ProviderID]; !known && c.Claim == "" && c.ProviderID != "" && !o.InstanceGone {
		e[c.ProviderID] = o.At
	}
}

// Forget forgets those that are long over.
func (e OrphanEnds) Forget(now time.Time) {
	maps.DeleteFunc(e, func(_ string, at time.Time) bool { return !now.Before(at.Add(orphanEndsCount)) })
}
