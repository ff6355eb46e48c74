package ingest

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// stillMissed is for how long after a node has left its end may be held against it: pods that are evicted are made anew and
	// looked at by kube-scheduler in that time.
	stillMissed = 2 * time.Minute
	// trialFor is how long a node that is up is watched if pods of its owner neither run there nor wait.
	trialFor = 10 * time.Minute
	// restAfter is how long a setback is told while no pod of the owner waits and nothing is tried. It is no shorter
	// than the longest time between two tries. rememberFor is how long the count goes on if pods come again: those of a
	// CronJob come and go. mostResting is how many such owners are remembered.
	restAfter   = 5 * time.Minute
	rememberFor = time.Hour
	mostResting = 1000
	// causesKept is how many different causes are remembered of an owner.
	causesKept = 4
	// mostGuests is how many of an owner's pods on a node are followed.
	mostGuests = 4
	// easedEvery is how long after a try the next may be made at the earliest because something has changed.
	easedEvery = 30 * time.Second
)

// trial follows a claim until it is known whether it was made in vain, for each owner that it was made for.
type trial struct {
	claim *cluster.Claim // as it was last seen
	fates []fate
	left  time.Time // when it was first seen to be on its way out; zero if it is not
	gone  bool
}

// fate is what a claim was good for to one owner.
type fate struct {
	cluster.MadeFor
	running time.Time // since when a pod of the owner has been running there
	lent    time.Time // since when pods of others have been running there, and none of the owner's was there
	// guests are some of the owner's pods that were there at the last look, by UID; lost says that one of them had to leave although
	// its owner still wants it.
	guests []string
	lost   bool
	// end is why pods of the owner had to leave, as the last of them said; its Kind is empty if none has said anything.
	end cluster.Cause
	// refusal is what would have kept the owner's pods away when the node was last looked at; its Kind is empty if nothing would.
	refusal cluster.Cause
	over    bool // nothing more is to be learned
	failed  bool
}

// account is what is remembered of an owner whose nodes were made in vain.
type account struct {
	// kind and name of the owner, for people; empty if they were never known.
	kind, name string

	tries int
	since time.Time
	// made is when the newest claim that failed, or is tried, was made, missed when pods of the owner waited last; eased is when something
	// changed that may be the cure.
	made, missed, eased time.Time
	failures            []cluster.VainNode
	// failed is when the last node was found to be in vain. well says that nodes have seemed well since the first
	// failure, so that more were made than one at a time; wary that a node has failed after that.
	failed     time.Time
	well, wary bool
	// most is the most nodes at a time that were made for the owner and on which none of its pods had run for long
	// enough yet.
	most int
	// rests says that it concerns nobody until a pod of the owner has no node again, or a node fails: moves of its pods
	// go on as ever.
	rests bool
}

// watchTrial begins to follow a claim that is new, or goes on with what it looks like now. The lock is held.
func (b *Book) watchTrial(c *cluster.Claim) {
	if len(c.MadeFor) == 0 && !c.MadeForUnread {
		return
	}
	if t := b.trials[c.UID]; t != nil {
		t.claim = c
		b.addFates(t, c.MadeFor)
		return
	}
	if b.settled[c.UID] {
		return
	}
	t := &trial{claim: c}
	b.addFates(t, c.MadeFor)
	b.trials[c.UID] = t
}

// addFates follows a claim for those owners, too. The lock is held.
func (b *Book) addFates(t *trial, list []cluster.MadeFor) {
	c := t.claim
	if len(t.fates) > 0 && len(t.fates) >= len(list) && !c.MadeForUnread {
		return // as mostly: they do not change
	}
	known := make(map[string]bool, len(t.fates))
	for i := range t.fates {
		known[t.fates[i].Owner] = true
	}
	for _, m := range list {
		if known[m.Owner] {
			continue
		}
		t.fates = append(t.fates, fate{MadeFor: m, over: b.usedBefore(c, m)})
		if a := b.accounts[m.Owner]; a != nil && m.Try > a.tries && c.Created.After(a.made) {
			a.made = c.Created // a try counts from its beginning, also if others take the room
		}
	}
}

// usedBefore reports whether a claim from before our start is taken to have been of use: what ran there before is known to nobody, and
// its first try is long over. The lock is held.
func (b *Book) usedBefore(c *cluster.Claim, m cluster.MadeFor) bool {
	open := c.Condition(cluster.Initialized)
	return m.Try == 1 && open.Status == cluster.True && open.Since.Before(b.started.Add(-trialFor)) && !c.SavedPodEvent.IsZero()
}

// endTrial notes that a claim is gone. The lock is held.
func (b *Book) endTrial(c *cluster.Claim) {
	delete(b.settled, c.UID)
	if t := b.trials[c.UID]; t != nil {
		t.gone = true
		if t.left.IsZero() {
			t.left = b.now()
		}
	}
}

// trialPod notes what a pod shows about the node that was made for it: one that has finished has run. It reports whether
// somebody waits for the news. The lock is held.
func (b *Book) trialPod(old, p *cluster.Pod) bool {
	if p.Daemon || p.Mirror || p.Node == "" || len(b.trials) == 0 {
		return false
	}
	if p.Phase == "Succeeded" {
		if n := b.nodes[p.Node]; n != nil {
			if e := b.claims[b.claimBy[n.node.ProviderID]]; e != nil {
				b.finished(e.claim.UID, b.rootOf(p))
			}
		}
	}
	return len(b.accounts) > 0 && b.accounts[b.rootOf(p)] != nil && (old == nil || old.Phase != p.Phase)
}

func (b *Book) finished(claim, owner string) {
	if t := b.trials[claim]; t != nil {
		for i := range t.fates {
			if f := &t.fates[i]; f.Owner == owner && !f.over {
				b.wentWell(f)
			}
		}
	}
}

// rootOf is Snapshot.Root of a pod.
func (b *Book) rootOf(p *cluster.Pod) string {
	return (&cluster.Snapshot{Owners: b.owners.now}).Root(p)
}

// easeTrials lets the next tries be made at once: something has changed that may be the cure. The lock is held.
func (b *Book) easeTrials() {
	for _, a := range b.accounts {
		a.eased = b.now()
	}
	for _, l := range b.slots {
		l.eased = b.now()
	}
}

// easeTrialsFor does so for the owners with whose failures the DaemonSet can have to do: its pods take room and ports
// of a node, preempt others or hold up kube-scheduler, or they wrote what keeps the pods away. Each DaemonSet that
// changes must not end everybody's backoff. The lock is held.
func (b *Book) easeTrialsFor(ds *appsv1.DaemonSet) {
	for _, a := range b.accounts {
		if slices.ContainsFunc(a.failures, func(f cluster.VainNode) bool { return concerns(ds.Name, &f.Cause) }) {
			a.eased = b.now()
		}
	}
}

// concerns reports whether a DaemonSet of the name can have to do with the cause. Field managers are mostly named after
// the program, and it after its DaemonSet.
func concerns(name string, c *cluster.Cause) bool {
	switch c.Kind {
	case cluster.CauseRoom, cluster.CausePort, cluster.CauseShrunk, cluster.CauseEvicted, cluster.CauseScheduler:
		return true
	}
	return c.By != "" && name != "" && (strings.Contains(c.By, name) || strings.Contains(name, c.By))
}

// wentWell notes that a node has been of use to an owner. The lock is held.
func (b *Book) wentWell(f *fate) {
	f.over, f.failed = true, false
	delete(b.takenEarly, f.Owner)
	if a := b.accounts[f.Owner]; a != nil && f.Try >= a.tries {
		a.tries, a.well, a.wary = 0, false, false
	}
}

// setbacksNow looks at every claim that is followed and says whose nodes were made in vain. The lock is held.
func (b *Book) setbacksNow(s *cluster.Snapshot) map[string]*cluster.Setback {
	if len(b.trials) == 0 && len(b.accounts) == 0 {
		return nil
	}
	look := &look{b: b, s: s, waiting: make(map[string]map[string]*cluster.PodClass), pending: make(map[string]bool),
		heard: make(map[kin]heard), sums: make(map[string]*cluster.Setback)}
	look.listWaiting()
	for _, t := range b.trialsInOrder() {
		look.at(t)
	}
	out := make(map[string]*cluster.Setback, len(b.accounts))
	for owner, a := range b.accounts {
		if sum := look.close(owner, a); sum != nil {
			out[owner] = sum
		}
	}
	look.markGone(out)
	look.forgetOldest()
	return out
}

// trialsInOrder lists the trials by claim, the oldest first.
func (b *Book) trialsInOrder() []*trial {
	out := make([]*trial, 0, len(b.trials))
	for _, t := range b.trials {
		out = append(out, t)
	}
	slices.SortFunc(out, func(x, y *trial) int {
		if c := x.claim.Created.Compare(y.claim.Created); c != 0 {
			return c
		}
		return strings.Compare(x.claim.UID, y.claim.UID)
	})
	return out
}
