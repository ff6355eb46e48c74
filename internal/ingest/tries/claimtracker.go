package tries

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// MissedFor is for how long after a node has left its end may be held against it: pods that are evicted are made
	// anew and looked at by kube-scheduler in that time.
	MissedFor = 2 * time.Minute
	// TrackFor is how long a node that is up is watched if pods of its owner neither run there nor wait.
	TrackFor = 10 * time.Minute
	// DormantAfter is how long the tries are told while no pod of the owner waits and nothing is tried. It is no
	// shorter than the longest time between two tries. RememberFor is how long the count goes on if pods come again:
	// those of a CronJob come and go. maxDormant is how many such owners are remembered.
	DormantAfter = 5 * time.Minute
	RememberFor  = time.Hour
	maxDormant   = 1000
	// causesKept is how many different causes are remembered of an owner.
	causesKept = 4
	// maxSeenPods is how many of an owner's pods on a node are followed.
	maxSeenPods = 4
	// RetryAllowedEvery is how long after a try the next may be made at the earliest because something has changed.
	RetryAllowedEvery = 30 * time.Second
)

// Tracker follows claims until it is known whether they were made in vain, and remembers for whom they were.
type Tracker struct {
	// watchedSince is since when claims are watched: what was before is known to nobody.
	watchedSince time.Time
	trackers     map[string]*claimTracker    // by claim UID
	messages     map[string]schedulerMessage // kube-scheduler's words about pods without a place, by UID
	settled      map[string]bool             // claims whose use is decided, by UID
	histories    map[string]*tryHistory      // by the UID of the owner at the root
	removedEarly map[string]time.Time        // see mayRemoveEarly, by the same
}

// New follows no claim yet.
func New(since time.Time) Tracker {
	return Tracker{watchedSince: since, trackers: make(map[string]*claimTracker),
		messages: make(map[string]schedulerMessage), settled: make(map[string]bool),
		histories: make(map[string]*tryHistory), removedEarly: make(map[string]time.Time)}
}

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

// TrackClaim begins to follow a claim that is new, or goes on with what it looks like now.
func (tr *Tracker) TrackClaim(c *cluster.Claim) {
	if len(c.MadeFor) == 0 && !c.MadeForUnread {
		return
	}
	if t := tr.trackers[c.UID]; t != nil {
		t.claim = c
		tr.trackOwners(t, c.MadeFor)
		return
	}
	if tr.settled[c.UID] {
		return
	}
	t := &claimTracker{claim: c}
	tr.trackOwners(t, c.MadeFor)
	tr.trackers[c.UID] = t
}

// trackOwners follows a claim for those owners, too.
func (tr *Tracker) trackOwners(t *claimTracker, list []cluster.MadeFor) {
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
		t.owners = append(t.owners, ownerOutcome{MadeFor: m, done: tr.assumedUsed(c, m)})
		if history := tr.histories[m.Owner]; history != nil && m.Try > history.tries &&
			c.Created.After(history.lastMade) {
			history.lastMade = c.Created // a try counts from its beginning, also if others take the room
		}
	}
}

// assumedUsed reports whether a claim from before our start is taken to have been of use: what ran there before is
// known to nobody, and its first try is long over.
func (tr *Tracker) assumedUsed(c *cluster.Claim, m cluster.MadeFor) bool {
	open := c.Condition(cluster.Initialized)
	return m.Try == 1 && open.Status == cluster.True && open.Since.Before(tr.watchedSince.Add(-TrackFor)) &&
		!c.SavedPodEvent.IsZero()
}

// EndTracking notes that a claim is gone.
func (tr *Tracker) EndTracking(c *cluster.Claim, now time.Time) {
	delete(tr.settled, c.UID)
	if t := tr.trackers[c.UID]; t != nil {
		t.gone = true
		if t.leavingSince.IsZero() {
			t.leavingSince = now
		}
	}
}

// Restart notes that claims are watched from now on: a replica may stand by for days before it leads.
func (tr *Tracker) Restart(now time.Time) { tr.watchedSince = now }

// HasTrackers reports whether any claim is followed.
func (tr *Tracker) HasTrackers() bool { return len(tr.trackers) > 0 }

// Concerns reports whether nodes were made in vain for the owner of a pod.
func (tr *Tracker) Concerns(workloadOf func(*cluster.Pod) string, p *cluster.Pod) bool {
	return len(tr.histories) > 0 && tr.histories[workloadOf(p)] != nil
}

// NotePodFinished notes that a pod of the owner has run to its end on the claim's node.
func (tr *Tracker) NotePodFinished(claim, owner string) {
	if t := tr.trackers[claim]; t != nil {
		for i := range t.owners {
			if outcome := &t.owners[i]; outcome.Owner == owner && !outcome.done {
				tr.noteUsed(outcome)
			}
		}
	}
}

// Allow lets the next tries be made at once: something has changed that may be the cure.
func (tr *Tracker) Allow(now time.Time) {
	for _, history := range tr.histories {
		history.retryAllowed = now
	}
}

// AllowFor does so for the owners with whose failures the DaemonSet can have to do: its pods take room and ports
// of a node, preempt others or hold up kube-scheduler, or they wrote what keeps the pods away. Each DaemonSet that
// changes must not end everybody's backoff.
func (tr *Tracker) AllowFor(daemonSet string, now time.Time) {
	for _, history := range tr.histories {
		if slices.ContainsFunc(history.failures, func(f cluster.UnusedNode) bool {
			return mayConcern(daemonSet, &f.Cause)
		}) {
			history.retryAllowed = now
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

// noteUsed notes that a node has been of use to an owner.
func (tr *Tracker) noteUsed(outcome *ownerOutcome) {
	outcome.done, outcome.failed = true, false
	delete(tr.removedEarly, outcome.Owner)
	if history := tr.histories[outcome.Owner]; history != nil && outcome.Try >= history.tries {
		history.tries, history.seemedWell, history.wary = 0, false, false
	}
}

// Review looks at every claim that is followed and says whose nodes were made in vain.
func (tr *Tracker) Review(s *cluster.Snapshot, known Known) map[string]*cluster.WorkloadTries {
	if len(tr.trackers) == 0 && len(tr.histories) == 0 {
		return nil
	}
	review := &usageReview{tries: tr, known: known, s: s, waiting: tr.waitingNow(s),
		results: make(map[string]*cluster.WorkloadTries)}
	for _, t := range tr.trackersInOrder() {
		review.review(t)
	}
	out := make(map[string]*cluster.WorkloadTries, len(tr.histories))
	for owner, history := range tr.histories {
		if sum := review.complete(owner, history); sum != nil {
			out[owner] = sum
		}
	}
	review.waiting.markGone(out)
	review.forgetOldest()
	return out
}

// trackersInOrder lists the claim trackers by claim, the oldest first.
func (tr *Tracker) trackersInOrder() []*claimTracker {
	out := make([]*claimTracker, 0, len(tr.trackers))
	for _, t := range tr.trackers {
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
