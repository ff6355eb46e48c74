package ingest

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// startCountingEvictions notes from when on evictions, and nodes in vain, are ours to count: a replica may stand by for
// days before it leads.
func (b *Book) startCountingEvictions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evictions.Restart(b.now())
	b.tries.Restart(b.now())
}

// noteEviction remembers that a pod was evicted, if it was to save money. The pod itself may be gone by now.
func (b *Book) noteEviction(c command.Evict, at time.Time) {
	if c.Owner == "" || !b.leavesToSaveMoney(c.Node) {
		return
	}
	b.evictions.Add(c.Owner, c.UID, at)
}

// leavesToSaveMoney reports whether a node is taken away to save money.
func (b *machineState) leavesToSaveMoney(node string) bool {
	c := b.claimOfNode(node)
	if c == nil {
		return false
	}
	reason := c.Condition(cluster.DisruptionReason)
	return reason.Status == cluster.True && reason.Reason == string(command.Underutilized)
}
