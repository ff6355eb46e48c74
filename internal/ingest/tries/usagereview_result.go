package tries

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// complete completes what is known of an owner; nil if it is forgotten, or concerns nobody now.
func (ur *usageReview) complete(owner string, history *tryHistory) *cluster.WorkloadTries {
	sum := ur.resultFor(owner)
	if ur.waiting.pending[owner] {
		history.lastMissed, history.dormant = ur.s.Now, false
	}
	if history.tries == 0 && sum.CountUnused() <= cluster.MaxUnused || sum.ComingClaims == 0 &&
		!ur.s.Now.Before(history.lastMissed.Add(RememberFor)) {
		delete(ur.tries.histories, owner)
		return nil
	}
	history.dormant = history.dormant || sum.ComingClaims == 0 && !ur.s.Now.Before(history.lastMissed.Add(DormantAfter))
	if history.dormant {
		ur.dormant = append(ur.dormant, owner)
		return nil
	}
	setSeemsWell(sum, history, ur.s.Now)
	history.mostUnproven = max(history.mostUnproven, sum.ComingClaims+sum.CountUnused()+sum.Unproven)
	if history.tries == 0 { // also after a restart, which has not seen how many there were
		history.mostUnproven = max(history.mostUnproven, sum.CountUnused()+1)
	}
	sum.MostUnproven = history.mostUnproven
	sum.FailedTries, sum.Since, sum.Failures = history.tries, history.since, history.failures
	sum.NextTry = history.lastMade.Add(cluster.TryAfter(history.tries))
	if early := cluster.Later(history.retryAllowed,
		history.lastMade.Add(RetryAllowedEvery)); history.retryAllowed.After(
		history.lastMade) && early.Before(sum.NextTry) {
		sum.NextTry = early
	}
	if !ur.s.Now.Before(history.lastMissed.Add(MissedFor)) {
		sum.Retained = ""
	}
	if history.name == "" { // it is kept: a workload that is deleted is not known any more
		history.kind, history.name = ur.ownerName(owner)
	}
	sum.Kind, sum.Name = history.kind, cmp.Or(history.name, owner)
	return sum
}

// ownerName names an owner for people; empty if nothing is known of it.
func (ur *usageReview) ownerName(root string) (kind, name string) {
	if o, known := ur.s.Owners[root]; known {
		return o.Kind, o.Namespace + "/" + o.Name
	}
	if p, known := ur.known.Pod(root); known {
		return "Pod", p.ID()
	}
	for _, o := range ur.s.Owners { // few owners ever have tries, and all with the same root say the same
		if o.Workload == root {
			return o.WorkloadKind, o.Namespace + "/" + o.WorkloadName
		}
	}
	for _, p := range ur.s.Pods { // a kind that is not watched
		if p.Owner == root {
			return "controller of Pod", p.ID()
		}
	}
	return "", ""
}

// markGone notes which workloads are there no more: no pod of theirs that has not finished, and neither the workload
// nor one that it controls among the kinds that are watched.
func (w *waiting) markGone(setbacks map[string]*cluster.WorkloadTries) {
	if len(setbacks) == 0 {
		return
	}
	gone := make(map[string]bool)
	for owner := range setbacks {
		gone[owner] = !w.pending[owner]
	}
	for uid, o := range w.s.Owners {
		delete(gone, uid)
		delete(gone, o.Workload)
	}
	for _, p := range w.s.Pods {
		if len(gone) == 0 {
			return
		}
		if !p.Finished {
			delete(gone, w.s.Workload(p))
		}
	}
	for owner, is := range gone {
		setbacks[owner].WorkloadGone = is
	}
}

// setSeemsWell says whether the owner's nodes seem well: a pod runs on one that was made after the last failure, or
// with it, and nothing has failed for a while. Nodes of one try fail one after another, and the look that finds the
// first must not release more.
func setSeemsWell(sum *cluster.WorkloadTries, history *tryHistory, now time.Time) {
	if calm := history.lastFailed.Add(cluster.SeemsWellAfter); now.Before(calm) {
		if sum.RunsAgain {
			sum.ProvenAt = cluster.Earlier(sum.ProvenAt, calm)
		}
		sum.RunsAgain = false
	}
	history.seemedWell = history.seemedWell || sum.RunsAgain
}

// forgetOldest drops the accounts that have rested longest, if more rest than are remembered.
func (ur *usageReview) forgetOldest() {
	over := len(ur.dormant) - maxDormant
	if over <= 0 {
		return
	}
	slices.SortFunc(ur.dormant, func(x, y string) int {
		if c := ur.tries.histories[x].lastMissed.Compare(ur.tries.histories[y].lastMissed); c != 0 {
			return c
		}
		return strings.Compare(x, y)
	})
	for _, owner := range ur.dormant[:over] {
		delete(ur.tries.histories, owner)
	}
}
