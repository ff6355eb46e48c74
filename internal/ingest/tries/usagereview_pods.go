package tries

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// followPods notes whether a pod of the owner runs on the node, and for how long. It reports whether anybody's workload
// is there.
func (ur *usageReview) followPods(t *claimTracker, c *cluster.Claim, n *cluster.Node,
	outcome *ownerOutcome) (busy bool) {
	outcome.lostPod = outcome.lostPod || ur.anyPodLeft(n, outcome) && ur.waiting.lacksPods(outcome.Owner)
	outcome.seenPods = outcome.seenPods[:0]
	runs, others := time.Time{}, false
	if n != nil && !t.gone {
		for _, p := range ur.s.PodsOn(n.Name) {
			if !p.IsWorkload() {
				continue
			}
			busy = true
			if ur.s.Workload(p) != outcome.Owner {
				others = others || p.Phase == "Running"
				continue
			}
			outcome.seenPods = append(outcome.seenPods, p.UID)
			if p.Phase == "Running" && (runs.IsZero() || p.Started.Before(runs)) {
				runs = p.Started
			}
			if len(outcome.seenPods) == maxSeenPods && !runs.IsZero() {
				break // a few tell as much as all
			}
		}
	}
	until := ur.s.Now
	if isEnded(t, c, n) {
		until = t.leavingSince
	}
	ur.noteRunning(outcome, runs, until)
	ur.noteLent(outcome, others && len(outcome.seenPods) == 0 && !isEnded(t, c, n))
	return busy
}

// anyPodLeft reports whether a pod of the owner that was on the node at the last look is there no more.
func (ur *usageReview) anyPodLeft(n *cluster.Node, outcome *ownerOutcome) bool {
	return slices.ContainsFunc(outcome.seenPods, func(uid string) bool {
		p, there := ur.known.Pod(uid)
		return !there || n == nil || p.Node != n.Name || !p.Deleting.IsZero()
	})
}

// lacksPods reports whether the owner, or one that it controls, wants more pods than there are, or some of its pods
// wait.
func (w *waiting) lacksPods(owner string) bool {
	if len(w.classes[owner]) > 0 {
		return true
	}
	for uid, o := range w.s.Owners {
		if uid != owner && o.Workload != owner {
			continue
		}
		if whole, known := w.s.IsComplete(uid); known && !whole {
			return true
		}
	}
	return false
}

// seemsWell reports whether a pod of the owner has been running there for long enough to try more. For an owner whose
// nodes seemed well and failed after all, nothing less than RanFor is enough.
func (ur *usageReview) seemsWell(outcome *ownerOutcome) bool {
	history := ur.tries.histories[outcome.Owner]
	wary := history != nil && history.wary
	return !wary && !outcome.runningSince.IsZero() && !ur.s.Now.Before(outcome.runningSince.Add(cluster.SeemsWellAfter))
}

// noteRunning notes for how long a pod of the owner has been running there until now, or until somebody ended the node;
// runs is zero for none. What it runs after that does not count: its kubelet may be gone, and nobody says so of the
// pod.
func (ur *usageReview) noteRunning(outcome *ownerOutcome, runs, until time.Time) {
	now := ur.s.Now
	switch {
	case runs.IsZero():
		outcome.runningSince = time.Time{}
		return
	case outcome.runningSince.IsZero() && ur.tries.watchedSince.Add(cluster.ProvenAfter).After(now):
		// we are new; it may have run for long
		outcome.runningSince = runs
	case outcome.runningSince.IsZero():
		outcome.runningSince = now
	}
	if !until.Before(outcome.runningSince.Add(cluster.ProvenAfter)) {
		ur.tries.noteUsed(outcome)
		return
	}
	if history := ur.tries.histories[outcome.Owner]; history != nil && until.Equal(now) {
		soon := outcome.runningSince.Add(cluster.SeemsWellAfter)
		if history.wary || outcome.failed || !ur.ofLastTry(outcome) || !now.Before(soon) {
			soon = outcome.runningSince.Add(cluster.ProvenAfter)
		}
		sum := ur.resultFor(outcome.Owner)
		sum.ProvenAt = cluster.Earlier(sum.ProvenAt, soon)
	}
}

// noteLent notes for how long pods of others have been running on a node that was made for the owner, and that none of
// its pods got to. If that was long enough, then the node was of use, and shows that the cause may have gone: the owner
// may try again. Else others could take each of its tries, and it would wait for ever.
func (ur *usageReview) noteLent(outcome *ownerOutcome, others bool) {
	history, now := ur.tries.histories[outcome.Owner], ur.s.Now
	if !others || outcome.done || history == nil {
		outcome.lentSince = time.Time{}
		return
	}
	if outcome.lentSince.IsZero() {
		outcome.lentSince = now
	}
	if long := outcome.lentSince.Add(cluster.ProvenAfter); now.Before(long) {
		sum := ur.resultFor(outcome.Owner)
		sum.ProvenAt = cluster.Earlier(sum.ProvenAt, long)
		return
	}
	outcome.done = true
	if ur.ofLastTry(outcome) {
		history.retryAllowed = now
	}
}

// isEnded reports whether somebody has ended the claim or its node.
func isEnded(t *claimTracker, c *cluster.Claim, n *cluster.Node) bool {
	return t.gone || !c.Deleting.IsZero() || n != nil && !n.Deleting.IsZero()
}

// isLeaving reports whether the claim's node is on its way out, and notes since when. One that the cloud interrupts
// works until its end.
func isLeaving(t *claimTracker, c *cluster.Claim, n *cluster.Node, now time.Time) bool {
	if !isEnded(t, c, n) && !c.IsInterrupted() {
		t.leavingSince = time.Time{}
		return false
	}
	if t.leavingSince.IsZero() {
		t.leavingSince = now
	}
	return true
}
