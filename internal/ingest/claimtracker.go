package ingest

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// missedFor is for how long after a node has left its end may be held against it: pods that are evicted are made
	// anew and looked at by kube-scheduler in that time.
	missedFor = 2 * time.Minute
	// trackFor is how long a node that is up is watched if pods of its owner neither run there nor wait.
	trackFor = 10 * time.Minute
	// dormantAfter is how long the tries are told while no pod of the owner waits and nothing is tried. It is no
	// shorter than the longest time between two tries. rememberFor is how long the count goes on if pods come again:
	// those of a CronJob come and go. maxDormant is how many such owners are remembered.
	dormantAfter = 5 * time.Minute
	rememberFor  = time.Hour
	maxDormant   = 1000
	// causesKept is how many different causes are remembered of an owner.
	causesKept = 4
	// maxSeenPods is how many of an owner's pods on a node are followed.
	maxSeenPods = 4
	// retryAllowedEvery is how long after a try the next may be made at the earliest because something has changed.
	retryAllowedEvery = 30 * time.Second
)

// claimTracker follows a claim until it is known whether it was made in vain, for each owner that it was made for.
type claimTracker struct {
	claim        *cluster.Claim // as it was last seen
	owners       []ownerOutcome
	leavingSince time.Time // when it was first seen to be on its way out; zero if it is not
	gone         bool
}

// ownerOutcome is what a claim was good for to one owner.
type ownerOutcome struct {
	cluster.MadeFor
	runningSince time.Time // since when a pod of the owner has been running there
	lentSince    time.Time // since when pods of others have been running there, and none of the owner's was there
	// seenPods are some of the owner's pods that were there at the last look, by UID; lostPod says that one of them had
	// to leave although its owner still wants it.
	seenPods []string
	lostPod  bool
	// evictionCause is why pods of the owner had to leave, as the last of them said; its Kind is empty if none has said
	// anything.
	evictionCause cluster.Cause
	// refusalCause is what would have kept the owner's pods away when the node was last looked at; its Kind is empty if
	// nothing would.
	refusalCause cluster.Cause
	done         bool // nothing more is to be learned
	failed       bool
}

// tryHistory is what is remembered of an owner whose nodes were made in vain.
type tryHistory struct {
	// kind and name of the owner, for people; empty if they were never known.
	kind, name string

	tries int
	since time.Time
	// lastMade is when the newest claim that failed, or is tried, was made, lastMissed when pods of the owner waited
	// last; retryAllowed is when something changed that may be the cure.
	lastMade, lastMissed, retryAllowed time.Time
	failures                           []cluster.UnusedNode
	// lastFailed is when the last node was found to be in vain. seemedWell says that nodes have seemed well since the
	// first failure, so that more were made than one at a time; wary that a node has failed after that.
	lastFailed       time.Time
	seemedWell, wary bool
	// mostUnproven is the most nodes at a time that were made for the owner and on which none of its pods had run for
	// long enough yet.
	mostUnproven int
	// dormant says that it concerns nobody until a pod of the owner has no node again, or a node fails: moves of its
	// pods go on as ever.
	dormant bool
}

// trackClaim begins to follow a claim that is new, or goes on with what it looks like now. The lock is held.
func (b *Book) trackClaim(c *cluster.Claim) {
	if len(c.MadeFor) == 0 && !c.MadeForUnread {
		return
	}
	if t := b.trackers[c.UID]; t != nil {
		t.claim = c
		b.trackOwners(t, c.MadeFor)
		return
	}
	if b.settledClaims[c.UID] {
		return
	}
	t := &claimTracker{claim: c}
	b.trackOwners(t, c.MadeFor)
	b.trackers[c.UID] = t
}

// trackOwners follows a claim for those owners, too. The lock is held.
func (b *Book) trackOwners(t *claimTracker, list []cluster.MadeFor) {
	c := t.claim
	if len(t.owners) > 0 && len(t.owners) >= len(list) && !c.MadeForUnread {
		return // as mostly: they do not change
	}
	known := make(map[string]bool, len(t.owners))
	for i := range t.owners {
		known[t.owners[i].Owner] = true
	}
	for _, m := range list {
		if known[m.Owner] {
			continue
		}
		t.owners = append(t.owners, ownerOutcome{MadeFor: m, done: b.assumedUsed(c, m)})
		if history := b.tryHistories[m.Owner]; history != nil && m.Try > history.tries &&
			c.Created.After(history.lastMade) {
			history.lastMade = c.Created // a try counts from its beginning, also if others take the room
		}
	}
}

// assumedUsed reports whether a claim from before our start is taken to have been of use: what ran there before is
// known to nobody, and its first try is long over. The lock is held.
func (b *Book) assumedUsed(c *cluster.Claim, m cluster.MadeFor) bool {
	open := c.Condition(cluster.Initialized)
	return m.Try == 1 && open.Status == cluster.True && open.Since.Before(b.evictionsSince.Add(-trackFor)) &&
		!c.SavedPodEvent.IsZero()
}

// endTracking notes that a claim is gone. The lock is held.
func (b *Book) endTracking(c *cluster.Claim) {
	delete(b.settledClaims, c.UID)
	if t := b.trackers[c.UID]; t != nil {
		t.gone = true
		if t.leavingSince.IsZero() {
			t.leavingSince = b.now()
		}
	}
}

// trackPod notes what a pod shows about the node that was made for it: one that has finished has run. It reports
// whether somebody waits for the news. The lock is held.
func (b *Book) trackPod(old, p *cluster.Pod) bool {
	if p.Daemon || p.Mirror || p.Node == "" || len(b.trackers) == 0 {
		return false
	}
	if p.Phase == "Succeeded" {
		if n := b.nodes[p.Node]; n != nil {
			if e := b.claims[b.claimBy[n.node.ProviderID]]; e != nil {
				b.notePodFinished(e.claim.UID, b.workloadOf(p))
			}
		}
	}
	return len(b.tryHistories) > 0 && b.tryHistories[b.workloadOf(p)] != nil && (old == nil || old.Phase != p.Phase)
}

func (b *Book) notePodFinished(claim, owner string) {
	if t := b.trackers[claim]; t != nil {
		for i := range t.owners {
			if outcome := &t.owners[i]; outcome.Owner == owner && !outcome.done {
				b.noteUsed(outcome)
			}
		}
	}
}

// workloadOf is Snapshot.Root of a pod.
func (b *Book) workloadOf(p *cluster.Pod) string {
	return (&cluster.Snapshot{Owners: b.owners.current}).Workload(p)
}

// allowTries lets the next tries be made at once: something has changed that may be the cure. The lock is held.
func (b *Book) allowTries() {
	for _, history := range b.tryHistories {
		history.retryAllowed = b.now()
	}
	for _, l := range b.lostSlots {
		l.retryAllowed = b.now()
	}
}

// allowTriesFor does so for the owners with whose failures the DaemonSet can have to do: its pods take room and ports
// of a node, preempt others or hold up kube-scheduler, or they wrote what keeps the pods away. Each DaemonSet that
// changes must not end everybody's backoff. The lock is held.
func (b *Book) allowTriesFor(ds *appsv1.DaemonSet) {
	for _, history := range b.tryHistories {
		if slices.ContainsFunc(history.failures, func(f cluster.UnusedNode) bool {
			return mayConcern(ds.Name, &f.Cause)
		}) {
			history.retryAllowed = b.now()
		}
	}
}

// mayConcern reports whether a DaemonSet of the name can have to do with the cause. Field managers are mostly named
// after the program, and it after its DaemonSet.
func mayConcern(name string, c *cluster.Cause) bool {
	switch c.Kind {
	case cluster.CauseRoom, cluster.CausePort, cluster.CauseShrunk, cluster.CauseEvicted, cluster.CauseScheduler:
		return true
	}
	return c.By != "" && name != "" && (strings.Contains(c.By, name) || strings.Contains(name, c.By))
}

// noteUsed notes that a node has been of use to an owner. The lock is held.
func (b *Book) noteUsed(outcome *ownerOutcome) {
	outcome.done, outcome.failed = true, false
	delete(b.removedEarly, outcome.Owner)
	if history := b.tryHistories[outcome.Owner]; history != nil && outcome.Try >= history.tries {
		history.tries, history.seemedWell, history.wary = 0, false, false
	}
}

// triesNow looks at every claim that is followed and says whose nodes were made in vain. The lock is held.
func (b *Book) triesNow(s *cluster.Snapshot) map[string]*cluster.WorkloadTries {
	if len(b.trackers) == 0 && len(b.tryHistories) == 0 {
		return nil
	}
	review := &usageReview{book: b, s: s, waitingClasses: make(map[string]map[string]*cluster.PodClass),
		pendingOwners: make(map[string]bool),
		messages:      make(map[ownerAndClass]schedulerMessages), results: make(map[string]*cluster.WorkloadTries)}
	review.listWaiting()
	for _, t := range b.trackersInOrder() {
		review.review(t)
	}
	out := make(map[string]*cluster.WorkloadTries, len(b.tryHistories))
	for owner, history := range b.tryHistories {
		if sum := review.complete(owner, history); sum != nil {
			out[owner] = sum
		}
	}
	review.markGone(out)
	review.forgetOldest()
	return out
}

// trackersInOrder lists the claim trackers by claim, the oldest first.
func (b *Book) trackersInOrder() []*claimTracker {
	out := make([]*claimTracker, 0, len(b.trackers))
	for _, t := range b.trackers {
		out = append(out, t)
	}
	slices.SortFunc(out, func(x, y *claimTracker) int {
		if c := x.claim.Created.Compare(y.claim.Created); c != 0 {
			return c
		}
		return strings.Compare(x.claim.UID, y.claim.UID)
	})
	return out
}
