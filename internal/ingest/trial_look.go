package ingest

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// look is one look at all trials.
type look struct {
	b *Book
	s *cluster.Snapshot
	// waiting are the classes of pods that wait for a place, or will soon, by owner and key.
	waiting map[string]map[string]*cluster.PodClass
	// pending are the owners of which pods have no node now.
	pending map[string]bool
	// heard is what kube-scheduler says of those pods.
	heard map[kin]heard
	sums  map[string]*cluster.Setback
	// resting are the owners with accounts that concern nobody now.
	resting []string
}

func (l *look) listWaiting() {
	for _, p := range l.s.Pending() {
		l.waits(p)
		l.pending[l.s.Root(p)] = true
		l.hear(p)
	}
	for _, n := range l.s.Nodes {
		c := l.s.ClaimOf(n.Name) // none, if somebody has taken it away: nodes are made for the pods all the same
		if n.Deleting.IsZero() && (c == nil || c.Deleting.IsZero() && c.Move == "" && !c.Interrupted()) {
			continue
		}
		for _, p := range l.s.PodsOn(n.Name) {
			if p.Reschedulable() {
				l.waits(p)
			}
		}
	}
}

func (l *look) waits(p *cluster.Pod) {
	root := l.s.Root(p)
	if l.waiting[root] == nil {
		l.waiting[root] = make(map[string]*cluster.PodClass)
	}
	l.waiting[root][p.Class.Key] = p.Class
}

// sum is what the look finds about an owner.
func (l *look) sum(owner string) *cluster.Setback {
	if l.sums[owner] == nil {
		l.sums[owner] = &cluster.Setback{Owner: owner}
	}
	return l.sums[owner]
}

// at looks at one trial, and forgets it when nothing more is to be learned.
func (l *look) at(t *trial) {
	c, done := t.claim, !t.claim.MadeForUnread || t.gone
	if !done {
		l.b.addFates(t, l.waitingFor(c))
	}
	var n *cluster.Node
	if !t.gone {
		if now := l.s.Claim(c.Name); now != nil && now.UID == c.UID {
			c, n = now, l.s.NodeOf(c.Name)
		}
	}
	for i := range t.fates {
		f := &t.fates[i]
		l.judge(t, c, n, f)
		done = done && f.over && !(f.failed && !t.gone)
	}
	if !done {
		return
	}
	delete(l.b.trials, t.claim.UID)
	if !t.gone {
		l.b.settled[t.claim.UID] = true
	}
}

// waitingFor lists the owners whose pods wait for the seats of a claim, which may have been made for them: it does not say
// so in a way that can be read.
func (l *look) waitingFor(c *cluster.Claim) []cluster.MadeFor {
	var out []cluster.MadeFor
	for owner, classes := range l.waiting {
		if !slices.ContainsFunc(c.Seats, func(seat cluster.Seat) bool { return classes[seat.Class] != nil }) {
			continue
		}
		m := cluster.MadeFor{Owner: owner, Try: 1}
		if a := l.b.accounts[owner]; a != nil && c.Created.After(a.made) {
			m.Try = a.tries + 1
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b cluster.MadeFor) int { return strings.Compare(a.Owner, b.Owner) })
	return out
}

// judge looks at a claim as one of the owners would that it was made for.
func (l *look) judge(t *trial, c *cluster.Claim, n *cluster.Node, f *fate) {
	if f.over && !f.failed {
		return
	}
	leaves := l.leaves(t, c, n)
	busy := l.follow(t, c, n, f)
	switch {
	case f.over && !f.failed: // a pod has run there for long enough just now
		return
	case f.over:
	case leaves:
		l.judgeLeft(c, n, f, t.left)
	case n != nil && (c.Is(cluster.Initialized) || n.Cordoned) && len(f.guests) == 0:
		// A plan counts on no node that is cordoned, so such a node is judged before it is initialized, too.
		l.judgeUp(c, n, f, busy)
	}
	if !t.gone {
		l.count(c, n, f, busy, leaves)
	}
}

// count adds a claim that is there to what is known of an owner that it was made for.
func (l *look) count(c *cluster.Claim, n *cluster.Node, f *fate, busy, leaves bool) {
	sum := l.sum(f.Owner)
	switch visited := len(f.guests) > 0; {
	case f.failed && visited && leaves: // its pods go to others, or it never goes
	case f.failed && visited:
		sum.Visited++
		sum.Well = sum.Well || l.seemsWell(f) // the witness takes them again: what kept them away has gone
	case f.failed && !busy:
		sum.Standing = append(sum.Standing, c.Name)
		sum.Price += c.Price
		if c.Deleting.IsZero() && n != nil && n.Deleting.IsZero() && l.shows(c, n, f) {
			sum.Witness = c.Name
		}
	case f.over:
	case visited && (leaves || l.seemsWell(f)): // nothing new is to be expected of it soon
		sum.Settling++
		sum.Well = sum.Well || !leaves && l.seemsWell(f) && l.ofLastTry(f)
	case visited && watchedLong(c, l.s.Now):
	case visited || !busy && l.mayServe(c, n, f.Owner):
		sum.Coming++
	}
}

// watchedLong reports whether the node has been up for so long that no more is to be learned by waiting for pods that
// have come to it: one that can't start (its image is missing) must not hold up the others of its owner.
func watchedLong(c *cluster.Claim, now time.Time) bool {
	return c.Is(cluster.Initialized) && !now.Before(c.Condition(cluster.Initialized).Since.Add(trialFor))
}

// ofLastTry reports whether the node was made after the last failure of the owner, or with it.
func (l *look) ofLastTry(f *fate) bool {
	a := l.b.accounts[f.Owner]
	return a != nil && f.Try >= a.tries
}

// mayServe reports whether pods of the owner may still come to an empty node that was made for it: it is not up yet, or
// nobody waits, or one that waits has a seat there or would be let in. If none of this holds, then nothing is learned
// by waiting for it.
func (l *look) mayServe(c *cluster.Claim, n *cluster.Node, owner string) bool {
	if n == nil || !c.Is(cluster.Initialized) || len(l.waiting[owner]) == 0 || len(l.missed(c, owner)) > 0 {
		return true
	}
	for _, class := range l.waiting[owner] {
		if _, refuses := l.s.Refuses(c, n, class); !refuses {
			return true
		}
	}
	return false
}

// shows reports whether a node that is in vain still shows why: it refuses the pods as it did, or they were made to
// leave it.
func (l *look) shows(c *cluster.Claim, n *cluster.Node, f *fate) bool {
	return f.refusal.Kind == "" || slices.ContainsFunc(l.missed(c, f.Owner), func(class *cluster.PodClass) bool {
		_, refuses := l.s.Refuses(c, n, class)
		return refuses
	})
}

// judgeLeft looks at a node that goes before pods of the owner have really run there. If they wait, it was made in vain.
func (l *look) judgeLeft(c *cluster.Claim, n *cluster.Node, f *fate, left time.Time) {
	cause := cluster.Cause{Kind: cluster.CauseDeleted, By: endedBy(c, n)}
	switch {
	case f.refusal.Kind != "":
		cause = f.refusal
	case chosen(c) && f.lost:
		cause = evicted(f)
	}
	byUs := chosen(c) && cause.Kind == cluster.CauseDeleted && !l.doomed(c)
	switch classes := l.missed(c, f.Owner); {
	case cause.Kind == cluster.CauseDeleted && !l.doomed(c) && (expired(c) || l.endsWell(c, f, left)):
		f.over = true // nobody keeps pods away
	case c.ProviderID == "" && !shortLived(c), byUs && len(f.guests) == 0:
		f.over = true // it has cost nothing and the next one may do, or nobody needs it
	case byUs: // whether its pods find another place will show
	case len(classes) > 0:
		l.fail(c, f, cause, classes)
	case !l.s.Now.Before(left.Add(stillMissed)):
		f.over = true
	}
}

// doomed reports whether what is made in place of the node would go in the same way: it lives too shortly, or drifts again.
func (l *look) doomed(c *cluster.Claim) bool {
	drifted := c.Condition(cluster.DisruptionReason)
	return shortLived(c) || drifted.Status == cluster.True && command.Reason(drifted.Reason) == command.Drifted && l.s.DriftsAgain(c)
}

// endsWell reports whether a node goes by the cloud's choice or ours, and its pods seemed well.
func (l *look) endsWell(c *cluster.Claim, f *fate, left time.Time) bool {
	return l.seemsWell(f) && (c.Interrupted() || chosen(c) && l.b.mayTake(c, f, left))
}

// chosen reports whether it was we who let the node go: for want of use, or because it is not what its pool asks for
// any more.
func chosen(c *cluster.Claim) bool {
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
	return !c.Deleting.IsZero() && !c.Expire.Never && c.Expire.For > 0 && !c.Deleting.Before(c.Created.Add(c.Expire.For))
}

// shortLived reports whether the node goes because its pool lets nodes live for so little time that pods hardly run: each
// node that is made in its place would go in the same way. With soft expiry it goes before its time is over.
func shortLived(c *cluster.Claim) bool {
	soft := c.Condition(cluster.DisruptionReason)
	goes := expired(c) || soft.Status == cluster.True && command.Reason(soft.Reason) == command.Expired
	return goes && !c.Expire.Never && c.Expire.For > 0 && c.Expire.For < cluster.ShortLife
}

// endedBy says what is known about who ended a node.
func endedBy(c *cluster.Claim, n *cluster.Node) string {
	why := c.Condition(cluster.DisruptionReason)
	switch {
	case c.Interrupted():
		return "the cloud (" + c.Interruption.Kind + ")"
	case shortLived(c):
		return "an expireAfter of " + c.Expire.For.String()
	case why.Status == cluster.True:
		return why.Reason
	case n != nil && !n.Deleting.IsZero() && c.Deleting.IsZero():
		return "somebody who deleted the Node"
	}
	return ""
}

// judgeUp looks at a node that is up and carries no pod of the owner. If pods of a class that it was made for wait and it refuses them, it
// was made in vain. So it was if they were made to leave it, of an owner whose nodes have been in vain before. That others have
// taken the room is in the order of things. What neither explains, kube-scheduler's own words do.
func (l *look) judgeUp(c *cluster.Claim, n *cluster.Node, f *fate, busy bool) {
	var refused []*cluster.PodClass
	f.refusal = cluster.Cause{}
	for _, seat := range c.Seats {
		class := l.classOf(seat.Class, f.Owner)
		if class == nil {
			continue
		}
		if why, no := l.s.Refuses(c, n, class); no && !(busy && why.Taken()) {
			l.b.nameAuthor(n.Name, &why)
			f.refusal, refused = why, append(refused, class)
		}
	}
	classes := l.missed(c, f.Owner)
	switch {
	case slices.ContainsFunc(refused, func(r *cluster.PodClass) bool { return slices.Contains(classes, r) }):
		l.fail(c, f, f.refusal, refused)
	case f.lost && !busy && len(classes) > 0 && l.b.accounts[f.Owner] != nil:
		l.fail(c, f, evicted(f), classes)
	case !busy && len(classes) > 0 && l.refusedByScheduler(c, f.Owner) != "":
		l.fail(c, f, cluster.Cause{Kind: cluster.CauseScheduler, Words: l.refusedByScheduler(c, f.Owner)}, classes)
	case watchedLong(c, l.s.Now) && len(classes) == 0:
		f.over = true
	}
}

// evicted is the cause if pods had to leave the node: in the words of the last of them, if it had any.
func evicted(f *fate) cluster.Cause {
	cause := f.end
	cause.Kind = cluster.CauseEvicted
	return cause
}

// classOf finds a class by its key: one of which pods wait, or one that the book remembers.
func (l *look) classOf(key, owner string) *cluster.PodClass {
	if class := l.waiting[owner][key]; class != nil {
		return class
	}
	if r := l.b.classes[key]; r != nil {
		return r.class
	}
	return nil
}

// missed are the classes for which the claim has seats and of which pods of the owner wait. Those of an owner whose nodes have been
// in vain count as waiting for a while after that: who is evicted is made anew.
func (l *look) missed(c *cluster.Claim, owner string) []*cluster.PodClass {
	a := l.b.accounts[owner]
	lately := a != nil && a.tries > 0 && l.s.Now.Before(a.missed.Add(stillMissed))
	var out []*cluster.PodClass
	for _, seat := range c.Seats {
		class := l.waiting[owner][seat.Class]
		if class == nil && lately {
			class = l.classOf(seat.Class, owner)
		}
		if class != nil {
			out = append(out, class)
		}
	}
	return out
}

// fail notes that a claim was made in vain.
func (l *look) fail(c *cluster.Claim, f *fate, cause cluster.Cause, classes []*cluster.PodClass) {
	b := l.b
	f.over, f.failed = true, true
	a := b.accounts[f.Owner]
	if a == nil {
		a = &account{missed: l.s.Now}
		b.accounts[f.Owner] = a
	}
	if a.tries == 0 {
		a.since = l.s.Now
	}
	a.well = a.well || !b.takenEarly[f.Owner].IsZero() // the nodes that followed were made because it seemed well
	a.tries, a.failed, a.wary, a.rests = max(a.tries, f.Try), l.s.Now, a.wary || a.well, false
	if len(l.waiting[f.Owner]) > 0 {
		a.missed = l.s.Now
	}
	if c.Created.After(a.made) {
		a.made = c.Created
	}
	failure := cluster.VainNode{Claim: c.Name, Node: c.NodeName, Pool: c.Pool, At: l.s.Now, Cause: cause, Classes: classes}
	kept := slices.DeleteFunc(slices.Clone(a.failures), func(had cluster.VainNode) bool { return had.Cause.Same(cause) })
	a.failures = slices.Insert(kept, 0, failure)
	a.failures = a.failures[:min(len(a.failures), causesKept)]
}
