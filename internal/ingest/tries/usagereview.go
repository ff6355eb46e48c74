package tries

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// usageReview is one look at all claim trackers.
type usageReview struct {
	tries   *Tracker
	known   Known
	s       *cluster.Snapshot
	waiting *waiting
	results map[string]*cluster.WorkloadTries
	// dormant are the owners with accounts that concern nobody now.
	dormant []string
}

// Known is what a review asks of what is known beside the snapshot.
type Known struct {
	// Pod finds a pod by its UID as the watch has shown it: one that is being bound has no node yet.
	Pod func(uid string) (*cluster.Pod, bool)
	// Class finds a class by its key, of which there may be no pod any more; nil if it is forgotten.
	Class func(key string) *cluster.PodClass
	// AddAuthor adds to a cause who wrote what the node shows.
	AddAuthor func(node string, cause *cluster.Cause)
}

// waiting are the pods that wait for a place.
type waiting struct {
	s *cluster.Snapshot
	// classes are those of pods that wait for a place, or will soon, by owner and key.
	classes map[string]map[string]*cluster.PodClass
	// pending are the owners of which pods have no node now.
	pending map[string]bool
	// messages is what kube-scheduler says of those pods.
	messages map[ownerAndClass]schedulerMessages
}

// waitingNow lists the pods that wait.
func (tr *Tracker) waitingNow(s *cluster.Snapshot) *waiting {
	w := &waiting{s: s, classes: make(map[string]map[string]*cluster.PodClass), pending: make(map[string]bool),
		messages: make(map[ownerAndClass]schedulerMessages)}
	for _, p := range s.Pending() {
		w.add(p)
		w.pending[s.Workload(p)] = true
		w.addMessage(p, tr.messages[p.UID])
	}
	for _, n := range s.Nodes {
		c := s.ClaimOf(n.Name) // none, if somebody has taken it away: nodes are made for the pods all the same
		if n.Deleting.IsZero() && (c == nil || c.Deleting.IsZero() && c.Move == "" && !c.IsInterrupted()) {
			continue
		}
		for _, p := range s.PodsOn(n.Name) {
			if p.IsReschedulable() {
				w.add(p)
			}
		}
	}
	return w
}

func (w *waiting) add(p *cluster.Pod) {
	root := w.s.Workload(p)
	if w.classes[root] == nil {
		w.classes[root] = make(map[string]*cluster.PodClass)
	}
	w.classes[root][p.Class.Key] = p.Class
}

// resultFor is what the look finds about an owner.
func (ur *usageReview) resultFor(owner string) *cluster.WorkloadTries {
	if ur.results[owner] == nil {
		ur.results[owner] = &cluster.WorkloadTries{Owner: owner}
	}
	return ur.results[owner]
}

// review looks at one claim tracker, and forgets it when nothing more is to be learned.
func (ur *usageReview) review(t *claimTracker) {
	c, done := t.claim, !t.claim.MadeForUnread || t.gone
	if !done {
		ur.tries.trackOwners(t, ur.ownersWaitingFor(c))
	}
	var n *cluster.Node
	if !t.gone {
		if now := ur.s.Claim(c.Name); now != nil && now.UID == c.UID {
			c, n = now, ur.s.NodeOf(c.Name)
		}
	}
	for i := range t.owners {
		outcome := &t.owners[i]
		ur.judgeOwner(t, c, n, outcome)
		done = done && outcome.done && !(outcome.failed && !t.gone)
	}
	if !done {
		return
	}
	delete(ur.tries.trackers, t.claim.UID)
	if !t.gone {
		ur.tries.settled[t.claim.UID] = true
	}
}

// ownersWaitingFor lists the owners whose pods wait for the seats of a claim, which may have been made for them: it
// does not say so in a way that can be read.
func (ur *usageReview) ownersWaitingFor(c *cluster.Claim) []cluster.MadeFor {
	var out []cluster.MadeFor
	for owner, classes := range ur.waiting.classes {
		if !slices.ContainsFunc(c.Seats, func(seat cluster.Seat) bool { return classes[seat.Class] != nil }) {
			continue
		}
		m := cluster.MadeFor{Owner: owner, Try: 1}
		if history := ur.tries.histories[owner]; history != nil && c.Created.After(history.lastMade) {
			m.Try = history.tries + 1
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b cluster.MadeFor) int { return strings.Compare(a.Owner, b.Owner) })
	return out
}

// judgeOwner looks at a claim as one of the owners would that it was made for.
func (ur *usageReview) judgeOwner(t *claimTracker, c *cluster.Claim, n *cluster.Node, outcome *ownerOutcome) {
	if outcome.done && !outcome.failed {
		return
	}
	leaves := isLeaving(t, c, n, ur.s.Now)
	busy := ur.followPods(t, c, n, outcome)
	switch {
	case outcome.done && !outcome.failed: // a pod has run there for long enough just now
		return
	case outcome.done:
	case leaves:
		ur.judgeLeaving(c, n, outcome, t.leavingSince)
	case n != nil && (c.Is(cluster.Initialized) || n.Cordoned) && len(outcome.seenPods) == 0:
		// A plan counts on no node that is cordoned, so such a node is judged before it is initialized, too.
		ur.judgeUp(c, n, outcome, busy)
	}
	if !t.gone {
		ur.addToResult(c, n, outcome, busy, leaves)
	}
}

// use is what a claim that is there means for an owner that it was made for.
type use uint8

const (
	noUse          use = iota // nothing new
	useUnused                 // made in vain, and empty
	useUnusedAgain            // made in vain, and the owner's pods have come to it again
	useUnproven               // the owner's pods are there, for too short a time to tell
	useComing                 // the owner's pods may still come, or have come just now
)

// useOf tells what a claim means for an owner.
func (ur *usageReview) useOf(c *cluster.Claim, n *cluster.Node, outcome *ownerOutcome, busy, leaves bool) use {
	switch visited := len(outcome.seenPods) > 0; {
	case outcome.failed && visited && leaves: // its pods go to others, or it never goes
	case outcome.failed && visited:
		return useUnusedAgain
	case outcome.failed && !busy:
		return useUnused
	case outcome.done:
	case visited && (leaves || ur.seemsWell(outcome)): // nothing new is to be expected of it soon
		return useUnproven
	case visited && watchedLong(c, ur.s.Now):
	case visited || !busy && ur.mayServe(c, n, outcome.Owner):
		return useComing
	}
	return noUse
}

// addToResult adds a claim that is there to what is known of an owner that it was made for.
func (ur *usageReview) addToResult(c *cluster.Claim, n *cluster.Node, outcome *ownerOutcome, busy, leaves bool) {
	sum := ur.resultFor(outcome.Owner)
	switch ur.useOf(c, n, outcome, busy, leaves) {
	case useUnusedAgain:
		sum.UnusedWithPods++
		// the retained node takes them again: what kept them away has gone
		sum.RunsAgain = sum.RunsAgain || ur.seemsWell(outcome)
	case useUnused:
		sum.UnusedClaims = append(sum.UnusedClaims, c.Name)
		sum.Price += c.Price
		if c.Deleting.IsZero() && n != nil && n.Deleting.IsZero() && ur.stillShowsCause(c, n, outcome) {
			sum.Retained = c.Name
		}
	case useUnproven:
		sum.Unproven++
		sum.RunsAgain = sum.RunsAgain || !leaves && ur.seemsWell(outcome) && ur.ofLastTry(outcome)
	case useComing:
		sum.ComingClaims++
	}
}

// watchedLong reports whether the node has been up for so long that no more is to be learned by waiting for pods that
// have come to it: one that can't start (its image is missing) must not hold up the others of its owner.
func watchedLong(c *cluster.Claim, now time.Time) bool {
	return c.Is(cluster.Initialized) && !now.Before(c.Condition(cluster.Initialized).Since.Add(TrackFor))
}

// ofLastTry reports whether the node was made after the last failure of the owner, or with it.
func (ur *usageReview) ofLastTry(outcome *ownerOutcome) bool {
	history := ur.tries.histories[outcome.Owner]
	return history != nil && outcome.Try >= history.tries
}

// mayServe reports whether pods of the owner may still come to an empty node that was made for it: it is not up yet, or
// nobody waits, or one that waits has a seat there or would be let in. If none of this holds, then nothing is learned
// by waiting for it.
func (ur *usageReview) mayServe(c *cluster.Claim, n *cluster.Node, owner string) bool {
	if n == nil || !c.Is(cluster.Initialized) || len(ur.waiting.classes[owner]) == 0 ||
		len(ur.missedClasses(c, owner)) > 0 {
		return true
	}
	for _, class := range ur.waiting.classes[owner] {
		if _, refuses := ur.s.RefusalCause(c, n, class); !refuses {
			return true
		}
	}
	return false
}

// stillShowsCause reports whether a node that is in vain still shows why: it refuses the pods as it did, or they were
// made to leave it.
func (ur *usageReview) stillShowsCause(c *cluster.Claim, n *cluster.Node, outcome *ownerOutcome) bool {
	return outcome.refusalCause.Kind == "" || slices.ContainsFunc(ur.missedClasses(c, outcome.Owner),
		func(class *cluster.PodClass) bool {
			_, refuses := ur.s.RefusalCause(c, n, class)
			return refuses
		})
}

// judgeLeaving looks at a node that goes before pods of the owner have really run there. If they wait, it was made in
// vain.
func (ur *usageReview) judgeLeaving(c *cluster.Claim, n *cluster.Node, outcome *ownerOutcome, left time.Time) {
	cause := cluster.Cause{Kind: cluster.CauseDeleted, By: endedBy(c, n)}
	switch {
	case outcome.refusalCause.Kind != "":
		cause = outcome.refusalCause
	case chosenByUs(c) && outcome.lostPod:
		cause = evictionCauseOf(outcome)
	}
	byUs := chosenByUs(c) && cause.Kind == cluster.CauseDeleted && !wouldEndSoon(ur.s, c)
	switch classes := ur.missedClasses(c, outcome.Owner); {
	case cause.Kind == cluster.CauseDeleted && !wouldEndSoon(ur.s, c) && (expired(c) || ur.endsWell(c, outcome, left)):
		outcome.done = true // nobody keeps pods away
	case c.ProviderID == "" && !shortLived(c), byUs && len(outcome.seenPods) == 0:
		outcome.done = true // it has cost nothing and the next one may do, or nobody needs it
	case byUs: // whether its pods find another place will show
	case len(classes) > 0:
		ur.noteUnused(c, outcome, cause, classes)
	case !ur.s.Now.Before(left.Add(MissedFor)):
		outcome.done = true
	}
}

// wouldEndSoon reports whether what is made in place of the node would go in the same way: it lives too shortly, or
// drifts again.
func wouldEndSoon(s *cluster.Snapshot, c *cluster.Claim) bool {
	drifted := c.Condition(cluster.DisruptionReason)
	return shortLived(c) || drifted.Status == cluster.True && command.Reason(drifted.Reason) == command.Drifted &&
		s.HasDriftedAgain(c)
}

// endsWell reports whether a node goes by the cloud's choice or ours, and its pods seemed well.
func (ur *usageReview) endsWell(c *cluster.Claim, outcome *ownerOutcome, left time.Time) bool {
	return ur.seemsWell(outcome) && (c.IsInterrupted() || chosenByUs(c) && ur.tries.mayRemoveEarly(c, outcome, left))
}

// chosenByUs reports whether it was we who let the node go: for want of use, or because it is not what its pool asks
// for any more.
func chosenByUs(c *cluster.Claim) bool {
	why := c.Condition(cluster.DisruptionReason)
	if why.Status != cluster.True {
		return false
	}
	switch command.Reason(why.Reason) {
	case command.Empty, command.Underutilized, command.ScaledDown, command.Drifted, command.Expired:
		return true
	}
	return false
}

// expired reports whether the node goes because it has lived as long as its pool lets it.
func expired(c *cluster.Claim) bool {
	return !c.Deleting.IsZero() && !c.ExpireAfter.Never && c.ExpireAfter.For > 0 &&
		!c.Deleting.Before(c.Created.Add(c.ExpireAfter.For))
}

// shortLived reports whether the node goes because its pool lets nodes live for so little time that pods hardly run:
// each node that is made in its place would go in the same way. With soft expiry it goes before its time is over.
func shortLived(c *cluster.Claim) bool {
	soft := c.Condition(cluster.DisruptionReason)
	goes := expired(c) || soft.Status == cluster.True && command.Reason(soft.Reason) == command.Expired
	return goes && !c.ExpireAfter.Never && c.ExpireAfter.For > 0 && c.ExpireAfter.For < cluster.ShortLife
}

// endedBy says what is known about who ended a node.
func endedBy(c *cluster.Claim, n *cluster.Node) string {
	why := c.Condition(cluster.DisruptionReason)
	switch {
	case c.IsInterrupted():
		return "the cloud (" + c.Interruption.Kind + ")"
	case shortLived(c):
		return "an expireAfter of " + c.ExpireAfter.For.String()
	case why.Status == cluster.True:
		return why.Reason
	case n != nil && !n.Deleting.IsZero() && c.Deleting.IsZero():
		return "somebody who deleted the Node"
	}
	return ""
}

// judgeUp looks at a node that is up and carries no pod of the owner. If pods of a class that it was made for wait and
// it refuses them, it was made in vain. So it was if they were made to leave it, of an owner whose nodes have been in
// vain before. That others have taken the room is in the order of things. What neither explains, kube-scheduler's own
// words do.
func (ur *usageReview) judgeUp(c *cluster.Claim, n *cluster.Node, outcome *ownerOutcome, busy bool) {
	var refused []*cluster.PodClass
	outcome.refusalCause = cluster.Cause{}
	for _, seat := range c.Seats {
		class := ur.classOf(seat.Class, outcome.Owner)
		if class == nil {
			continue
		}
		if why, no := ur.s.RefusalCause(c, n, class); no && !(busy && why.IsTaken()) {
			ur.known.AddAuthor(n.Name, &why)
			outcome.refusalCause, refused = why, append(refused, class)
		}
	}
	classes := ur.missedClasses(c, outcome.Owner)
	switch {
	case slices.ContainsFunc(refused, func(r *cluster.PodClass) bool { return slices.Contains(classes, r) }):
		ur.noteUnused(c, outcome, outcome.refusalCause, refused)
	case outcome.lostPod && !busy && len(classes) > 0 && ur.tries.histories[outcome.Owner] != nil:
		ur.noteUnused(c, outcome, evictionCauseOf(outcome), classes)
	case !busy && len(classes) > 0 && ur.waiting.refusedByScheduler(c, outcome.Owner) != "":
		ur.noteUnused(c, outcome, cluster.Cause{Kind: cluster.CauseScheduler, Message: ur.waiting.refusedByScheduler(c,
			outcome.Owner)}, classes)
	case watchedLong(c, ur.s.Now) && len(classes) == 0:
		outcome.done = true
	}
}

// evictionCauseOf is the cause if pods had to leave the node: in the words of the last of them, if it had any.
func evictionCauseOf(outcome *ownerOutcome) cluster.Cause {
	cause := outcome.evictionCause
	cause.Kind = cluster.CauseEvicted
	return cause
}

// classOf finds a class by its key: one of which pods wait, or one that the book remembers.
func (ur *usageReview) classOf(key, owner string) *cluster.PodClass {
	if class := ur.waiting.classes[owner][key]; class != nil {
		return class
	}
	return ur.known.Class(key)
}

// missedClasses are the classes for which the claim has seats and of which pods of the owner wait. Those of an owner
// whose nodes have been in vain count as waiting for a while after that: who is evicted is made anew.
func (ur *usageReview) missedClasses(c *cluster.Claim, owner string) []*cluster.PodClass {
	history := ur.tries.histories[owner]
	lately := history != nil && history.tries > 0 && ur.s.Now.Before(history.lastMissed.Add(MissedFor))
	var out []*cluster.PodClass
	for _, seat := range c.Seats {
		class := ur.waiting.classes[owner][seat.Class]
		if class == nil && lately {
			class = ur.classOf(seat.Class, owner)
		}
		if class != nil {
			out = append(out, class)
		}
	}
	return out
}

// noteUnused notes that a claim was made in vain.
func (ur *usageReview) noteUnused(c *cluster.Claim, outcome *ownerOutcome, cause cluster.Cause,
	classes []*cluster.PodClass) {
	tr := ur.tries
	outcome.done, outcome.failed = true, true
	history := tr.histories[outcome.Owner]
	if history == nil {
		history = &tryHistory{lastMissed: ur.s.Now}
		tr.histories[outcome.Owner] = history
	}
	if history.tries == 0 {
		history.since = ur.s.Now
	}
	// the nodes that followed were made because it seemed well
	history.seemedWell = history.seemedWell || !tr.removedEarly[outcome.Owner].IsZero()
	history.tries, history.lastFailed, history.wary, history.dormant = max(history.tries, outcome.Try), ur.s.Now,
		history.wary || history.seemedWell, false
	if len(ur.waiting.classes[outcome.Owner]) > 0 {
		history.lastMissed = ur.s.Now
	}
	if c.Created.After(history.lastMade) {
		history.lastMade = c.Created
	}
	failure := cluster.UnusedNode{Claim: c.Name, Node: c.NodeName, Pool: c.Pool, At: ur.s.Now, Cause: cause,
		Classes: classes}
	kept := slices.DeleteFunc(slices.Clone(history.failures), func(had cluster.UnusedNode) bool {
		return had.Cause.IsSame(cause)
	})
	history.failures = slices.Insert(kept, 0, failure)
	history.failures = history.failures[:min(len(history.failures), causesKept)]
}
