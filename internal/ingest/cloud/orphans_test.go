package cloud

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// What the pools say of orphans is lost with the last of them, until one is back or a new one has had time to tell.
func TestHoldMemory(t *testing.T) {
	start := time.Unix(0, 0)
	fresh := &cluster.Pool{Name: "p"}
	written := &cluster.Pool{Name: "p", Status: cluster.PoolStatus{Conditions: []cluster.Condition{
		{Type: cluster.Ready, Status: cluster.True}}}}
	holding := &cluster.Pool{Name: "p", Status: cluster.PoolStatus{Conditions: []cluster.Condition{
		{Type: cluster.OrphansHeld, Status: cluster.True, Reason: cluster.ManyOrphans}}}}
	ask := func(m *OrphanMemory, at time.Duration, want bool, when string) {
		t.Helper()
		if got := m.IsUnknown(start.Add(at)); got != want {
			t.Errorf("%s: unknown %v, want %v", when, got, want)
		}
	}
	var m OrphanMemory
	ask(&m, 0, false, "no pool yet")
	m.PoolSeen(nil, fresh, start)
	m.PoolDeleted(written, 0)
	ask(&m, time.Hour, false, "the last pool is gone, and held nothing")
	m.PoolSeen(nil, holding, start.Add(time.Hour))
	m.PoolDeleted(holding, 1)
	ask(&m, time.Hour, false, "another pool remembers")
	m.PoolDeleted(holding, 0)
	ask(&m, 30*time.Hour, true, "the last pool is gone, and many were held")
	m.PoolSeen(nil, fresh, start.Add(30*time.Hour))
	m.PoolSeen(fresh, written, start.Add(30*time.Hour+time.Second))
	ask(&m, 30*time.Hour+orphansTellTime-1, true, "a new pool")
	m.PoolDeleted(written, 0)
	ask(&m, 40*time.Hour, true, "it is gone before it had time to tell")
	m.PoolSeen(nil, fresh, start.Add(40*time.Hour))
	ask(&m, 40*time.Hour+orphansTellTime, false, "a pool that had time to tell")
	m.PoolDeleted(holding, 0)
	m.PoolSeen(nil, holding, start.Add(50*time.Hour))
	ask(&m, 50*time.Hour, false, "a pool is back and says what it said")
}
