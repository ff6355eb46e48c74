package ingest

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// activityGap is how long kube-scheduler must be still before what it does next is a new rush.
const activityGap = 200 * time.Millisecond

// noteActivity notes that kube-scheduler is at work, or has just been given reason to be, which is the beginning of a
// rush. The lock is held.
func (b *Book) noteActivity(reason bool) {
	now := b.now()
	if reason || now.Sub(b.schedulerActivity.Last) > activityGap {
		b.schedulerActivity.Began = now
	}
	b.schedulerActivity.Last = now
}

// noteActivityOf looks at a pod for signs of kube-scheduler: a pod that waited is bound, or something is said of one
// that waits. That we name a node for it is no such sign. The lock is held.
func (b *Book) noteActivityOf(old, now *cluster.Pod) {
	if now.Daemon || now.Mirror || !now.SchedulerSeen || old == nil || old.Node != "" {
		return
	}
	if now.Node == "" && now.Nominated != "" && now.Nominated != old.Nominated {
		return
	}
	b.noteActivity(false)
}
