package ingest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// close completes what is known of an owner; nil if it is forgotten, or concerns nobody now.
func (l *look) close(owner string, a *account) *cluster.Setback {
	b, sum := l.b, l.sum(owner)
	if l.pending[owner] {
		a.missed, a.rests = l.s.Now, false
	}
	if a.tries == 0 && sum.InVain() <= cluster.MayStand || sum.Coming == 0 && !l.s.Now.Before(a.missed.Add(rememberFor)) {
		delete(b.accounts, owner)
		return nil
	}
	a.rests = a.rests || sum.Coming == 0 && !l.s.Now.Before(a.missed.Add(restAfter))
	if a.rests {
		l.resting = append(l.resting, owner)
		return nil
	}
	l.setWell(sum, a)
	a.most = max(a.most, sum.Coming+sum.InVain()+sum.Settling)
	if a.tries == 0 { // also after a restart, which has not seen how many there were
		a.most = max(a.most, sum.InVain()+1)
	}
	sum.Most = a.most
	sum.Tries, sum.Since, sum.Failures = a.tries, a.since, a.failures
	sum.Next = a.made.Add(cluster.RetryAfter(a.tries))
	if early := later(a.eased, a.made.Add(easedEvery)); a.eased.After(a.made) && early.Before(sum.Next) {
		sum.Next = early
	}
	if !l.s.Now.Before(a.missed.Add(stillMissed)) {
		sum.Witness = ""
	}
	if a.name == "" { // it is kept: a workload that is deleted is not known any more
		a.kind, a.name = l.nameOf(owner)
	}
	sum.Kind, sum.Name = a.kind, cmp.Or(a.name, owner)
	return sum
}

// nameOf names an owner for people; empty if nothing is known of it.
func (l *look) nameOf(root string) (kind, name string) {
	b := l.b
	if o, known := b.owners.now[root]; known {
		return o.Kind, o.Namespace + "/" + o.Name
	}
	if p, known := b.pods.get(root); known {
		return "Pod", p.ID()
	}
	for _, o := range b.owners.now { // few owners ever have a setback, and all with the same root say the same
		if o.Root == root {
			return o.RootKind, o.Namespace + "/" + o.RootName
		}
	}
	for _, p := range l.s.Pods { // a kind that is not watched
		if p.Owner == root {
			return "controller of Pod", p.ID()
		}
	}
	return "", ""
}

// markGone notes which workloads are there no more: no pod of theirs that has not finished, and neither the workload
// nor one that it controls among the kinds that are watched.
func (l *look) markGone(setbacks map[string]*cluster.Setback) {
	if len(setbacks) == 0 {
		return
	}
	gone := make(map[string]bool)
	for owner := range setbacks {
		gone[owner] = !l.pending[owner]
	}
	for uid, o := range l.s.Owners {
		delete(gone, uid)
		delete(gone, o.Root)
	}
	for _, p := range l.s.Pods {
		if len(gone) == 0 {
			return
		}
		if !p.Done {
			delete(gone, l.s.Root(p))
		}
	}
	for owner, is := range gone {
		setbacks[owner].Gone = is
	}
}

// setWell says whether the owner's nodes seem well: a pod runs on one that was made after the last failure, or with it,
// and nothing has failed for a while. Nodes of one try fail one after another, and the look that finds the first must
// not release more.
func (l *look) setWell(sum *cluster.Setback, a *account) {
	if calm := a.failed.Add(cluster.SeemsWell); l.s.Now.Before(calm) {
		if sum.Well {
			sum.Soon = cluster.Earlier(sum.Soon, calm)
		}
		sum.Well = false
	}
	a.well = a.well || sum.Well
}

// forgetOldest drops the accounts that have rested longest, if more rest than are remembered.
func (l *look) forgetOldest() {
	over := len(l.resting) - mostResting
	if over <= 0 {
		return
	}
	slices.SortFunc(l.resting, func(x, y string) int {
		if c := l.b.accounts[x].missed.Compare(l.b.accounts[y].missed); c != 0 {
			return c
		}
		return strings.Compare(x, y)
	})
	for _, owner := range l.resting[:over] {
		delete(l.b.accounts, owner)
	}
}
