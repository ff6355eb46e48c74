package evictions

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
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

// Count is how often pods of each owner were evicted to save money, within the hour.
type Count struct {
	byOwner map[string]*ownerEvictions
	since   time.Time // since when they are counted
}

// New counts from now on.
func New(now time.Time) Count { return Count{byOwner: make(map[string]*ownerEvictions), since: now} }

// Restart notes from when on evictions are ours to count: a replica may stand by for days before it leads.
func (n *Count) Restart(now time.Time) { n.since = now }

// Add counts the eviction of an owner's pod, once.
func (n *Count) Add(owner, pod string, at time.Time) { n.add(owner, savingEviction{at: at, pod: pod}) }

// add counts a pod's eviction, once.
func (n *Count) add(owner string, e savingEviction) {
	all := n.byOwner[owner]
	if all == nil {
		all = &ownerEvictions{pods: make(map[string]bool)}
		n.byOwner[owner] = all
	}
	if all.pods[e.pod] {
		return // it was asked before
	}
	if last := len(all.list) - 1; last >= 0 && e.at.Before(all.list[last].at) {
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

// Assume makes up for what was counted by nobody, or by another replica, before we started: a pod from the last
// hour that is not one of its owner's first may have come in the place of one that was evicted to save money. To count
// it as such errs on the side of leaving workloads alone for a while.
//
// ownerMade is when the pod's owner was; zero if that is not known.
func (n *Count) Assume(p *cluster.Pod, ownerMade time.Time) {
	if p.Owner == "" || p.Daemon || p.Mirror || p.Finished || !p.Created.Before(n.since) ||
		!p.Created.After(n.since.Add(-evictionsCount)) {
		return
	}
	if !ownerMade.IsZero() && p.Created.Before(ownerMade.Add(firstPods)) {
		return
	}
	n.add(p.Owner, savingEviction{at: p.Created, pod: p.UID})
}

// Forget drops those that are an hour ago.
func (n *Count) Forget(now time.Time) {
	for owner, all := range n.byOwner {
		if all.dropOld(now); len(all.list) == 0 {
			delete(n.byOwner, owner)
		}
	}
}

// Now counts them by owner, and says when the first ceases to count.
func (n *Count) Now() (counts map[string]int, rested map[string]time.Time) {
	if len(n.byOwner) == 0 {
		return nil, nil
	}
	counts, rested = make(map[string]int, len(n.byOwner)), make(map[string]time.Time, len(n.byOwner))
	for owner, all := range n.byOwner {
		counts[owner], rested[owner] = len(all.list), all.list[0].at.Add(evictionsCount)
	}
	return counts, rested
}
