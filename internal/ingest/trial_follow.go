package ingest

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// follow notes whether a pod of the owner runs on the node, and for how long. It reports whether anybody's workload is
// there.
func (l *look) follow(t *trial, c *cluster.Claim, n *cluster.Node, f *fate) (busy bool) {
	f.lost = f.lost || l.someLeft(n, f) && l.lacks(f.Owner)
	f.guests = f.guests[:0]
	runs, others := time.Time{}, false
	if n != nil && !t.gone {
		for _, p := range l.s.PodsOn(n.Name) {
			if !p.Workload() {
				continue
			}
			busy = true
			if l.s.Root(p) != f.Owner {
				others = others || p.Phase == "Running"
				continue
			}
			f.guests = append(f.guests, p.UID)
			if p.Phase == "Running" && (runs.IsZero() || p.Started.Before(runs)) {
				runs = p.Started
			}
			if len(f.guests) == mostGuests && !runs.IsZero() {
				break // a few tell as much as all
			}
		}
	}
	until := l.s.Now
	if ends(t, c, n) {
		until = t.left
	}
	l.clock(f, runs, until)
	l.lend(f, others && len(f.guests) == 0 && !ends(t, c, n))
	return busy
}

// someLeft reports whether a pod of the owner that was on the node at the last look is there no more.
func (l *look) someLeft(n *cluster.Node, f *fate) bool {
	return slices.ContainsFunc(f.guests, func(uid string) bool {
		p, there := l.b.pods.get(uid)
		return !there || n == nil || p.Node != n.Name || !p.Deleting.IsZero()
	})
}

// lacks reports whether the owner, or one that it controls, wants more pods than there are, or some of its pods wait.
func (l *look) lacks(owner string) bool {
	if len(l.waiting[owner]) > 0 {
		return true
	}
	for uid, o := range l.s.Owners {
		if uid != owner && o.Root != owner {
			continue
		}
		if whole, known := l.s.Complete(uid); known && !whole {
			return true
		}
	}
	return false
}

// seemsWell reports whether a pod of the owner has been running there for long enough to try more. For an owner whose
// nodes seemed well and failed after all, nothing less than RanFor is enough.
func (l *look) seemsWell(f *fate) bool {
	a := l.b.accounts[f.Owner]
	wary := a != nil && a.wary
	return !wary && !f.running.IsZero() && !l.s.Now.Before(f.running.Add(cluster.SeemsWell))
}

// clock notes for how long a pod of the owner has been running there until now, or until somebody ended the node; runs
// is zero for none. What it runs after that does not count: its kubelet may be gone, and nobody says so of the pod.
func (l *look) clock(f *fate, runs, until time.Time) {
	now := l.s.Now
	switch {
	case runs.IsZero():
		f.running = time.Time{}
		return
	case f.running.IsZero() && l.b.started.Add(cluster.RanFor).After(now): // we are new; it may have run for long
		f.running = runs
	case f.running.IsZero():
		f.running = now
	}
	if !until.Before(f.running.Add(cluster.RanFor)) {
		l.b.wentWell(f)
		return
	}
	if a := l.b.accounts[f.Owner]; a != nil && until.Equal(now) {
		soon := f.running.Add(cluster.SeemsWell)
		if a.wary || f.failed || !l.ofLastTry(f) || !now.Before(soon) {
			soon = f.running.Add(cluster.RanFor)
		}
		sum := l.sum(f.Owner)
		sum.Soon = cluster.Earlier(sum.Soon, soon)
	}
}

// lend notes for how long pods of others have been running on a node that was made for the owner, and that none of its
// pods got to. If that was long enough, then the node was of use, and shows that the cause may have gone: the owner may
// try again. Else others could take each of its tries, and it would wait for ever.
func (l *look) lend(f *fate, others bool) {
	a, now := l.b.accounts[f.Owner], l.s.Now
	if !others || f.over || a == nil {
		f.lent = time.Time{}
		return
	}
	if f.lent.IsZero() {
		f.lent = now
	}
	if long := f.lent.Add(cluster.RanFor); now.Before(long) {
		sum := l.sum(f.Owner)
		sum.Soon = cluster.Earlier(sum.Soon, long)
		return
	}
	f.over = true
	if l.ofLastTry(f) {
		a.eased = now
	}
}

// ends reports whether somebody has ended the claim or its node.
func ends(t *trial, c *cluster.Claim, n *cluster.Node) bool {
	return t.gone || !c.Deleting.IsZero() || n != nil && !n.Deleting.IsZero()
}

// leaves reports whether the claim's node is on its way out, and notes since when. One that the cloud interrupts works
// until its end.
func (l *look) leaves(t *trial, c *cluster.Claim, n *cluster.Node) bool {
	if !ends(t, c, n) && !c.Interrupted() {
		t.left = time.Time{}
		return false
	}
	if t.left.IsZero() {
		t.left = l.s.Now
	}
	return true
}
