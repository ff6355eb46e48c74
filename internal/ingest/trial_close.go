package ingest

import (
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
	sum.Kind, sum.Name = b.nameOf(owner)
	return sum
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
