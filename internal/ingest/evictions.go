package ingest

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// evictionsCount is for how long an eviction counts against its workload.
	evictionsCount = time.Hour
	// firstPods is how long after its owner a pod may come and still be one of its first.
	firstPods = 5 * time.Minute
)

// savingEviction is one pod that was asked to leave its node to save money.
type savingEviction struct {
	at  time.Time
	pod string
}

// ownerEvictions are those of one owner, by time unless they still have to be sorted, with the pods that they were of.
type ownerEvictions struct {
	list     []savingEviction
	pods     map[string]bool
	unsorted bool
}

// addEviction counts a pod's eviction, once. The lock is held.
func (b *Book) addEviction(owner string, e savingEviction) {
	all := b.evictions[owner]
	if all == nil {
		all = &ownerEvictions{pods: make(map[string]bool)}
		b.evictions[owner] = all
	}
	if all.pods[e.pod] {
		return // it was asked before
	}
	if n := len(all.list); n > 0 && e.at.Before(all.list[n-1].at) {
		all.unsorted = true
	}
	all.list, all.pods[e.pod] = append(all.list, e), true
}

// dropOld drops those that are an hour ago.
func (e *ownerEvictions) dropOld(now time.Time) {
	if e.unsorted { // thousands may have come since the last look: they are sorted once
		slices.SortStableFunc(e.list, func(x, y savingEviction) int { return x.at.Compare(y.at) })
		e.unsorted = false
	}
	old := 0
	for old < len(e.list) && !now.Before(e.list[old].at.Add(evictionsCount)) {
		delete(e.pods, e.list[old].pod)
		old++
	}
	e.list = e.list[old:]
}

// startCountingEvictions notes from when on evictions are ours to count: a replica may stand by for days before it
// leads.
func (b *Book) startCountingEvictions() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evictionsSince = b.now()
	b.tries.Restart(b.evictionsSince)
}

// noteEviction remembers that a pod was evicted, if it was to save money. The pod itself may be gone by now. The lock
// is held.
func (b *Book) noteEviction(c command.Evict, at time.Time) {
	if c.Owner == "" || !b.leavesToSaveMoney(c.Node) {
		return
	}
	b.addEviction(c.Owner, savingEviction{at: at, pod: c.UID})
}

// leavesToSaveMoney reports whether a node is taken away to save money. The lock is held.
func (b *Book) leavesToSaveMoney(node string) bool {
	c := b.claimOfNode(node)
	if c == nil {
		return false
	}
	reason := c.Condition(cluster.DisruptionReason)
	return reason.Status == cluster.True && reason.Reason == string(command.Underutilized)
}

// assumeEviction makes up for what was counted by nobody, or by another replica, before we started: a pod from the last
// hour that is not one of its owner's first may have come in the place of one that was evicted to save money. To count
// it as such errs on the side of leaving workloads alone for a while. The lock is held.
func (b *Book) assumeEviction(p *cluster.Pod) {
	if p.Owner == "" || p.Daemon || p.Mirror || p.Finished || !p.Created.Before(b.evictionsSince) ||
		!p.Created.After(b.evictionsSince.Add(-evictionsCount)) {
		return
	}
	if owner, known := b.owners.current[p.Owner]; known && !owner.Created.IsZero() &&
		p.Created.Before(owner.Created.Add(firstPods)) {
		return
	}
	b.addEviction(p.Owner, savingEviction{at: p.Created, pod: p.UID})
}

// forgetEvictions drops those that are an hour ago. The lock is held.
func (b *Book) forgetEvictions(now time.Time) {
	for owner, all := range b.evictions {
		if all.dropOld(now); len(all.list) == 0 {
			delete(b.evictions, owner)
		}
	}
}

// evictedNow counts them by owner, and says when the first ceases to count. The lock is held.
func (b *Book) evictedNow() (counts map[string]int, rested map[string]time.Time) {
	if len(b.evictions) == 0 {
		return nil, nil
	}
	counts, rested = make(map[string]int, len(b.evictions)), make(map[string]time.Time, len(b.evictions))
	for owner, all := range b.evictions {
		counts[owner], rested[owner] = len(all.list), all.list[0].at.Add(evictionsCount)
	}
	return counts, rested
}

// readEvictionCost reads what a pod's eviction costs: 1, more or less by what it says of itself and by its priority,
// within bounds. The contract's own annotation comes before the one for ReplicaSets. One that can't be read is ignored,
// and its author is told. The lock is held.
func (b *Book) readEvictionCost(p *cluster.Pod, pod *corev1.Pod) {
	const most = 10
	b.forgetNote("PodCost", p.UID)
	cost := 1.0
	for _, key := range []string{v1.DisruptionCostAnnotationKey, corev1.PodDeletionCost} {
		text, set := pod.Annotations[key]
		if !set {
			continue
		}
		own, err := strconv.ParseInt(text, 10, 32)
		if err == nil {
			cost += float64(own) / (1 << 27)
			break
		}
		note := p.Note("InvalidDisruptionCost", fmt.Sprintf(
			"annotation %s: %q is not a whole number between -2147483648 and 2147483647, and is ignored; correct or "+
				"remove it", key, text))
		note.Warning = true
		b.notes["PodCost"+p.UID] = note
	}
	if priority := pod.Spec.Priority; priority != nil {
		cost += float64(*priority) / (1 << 25)
	}
	p.EvictionCost = min(max(cost, -most), most)
}
