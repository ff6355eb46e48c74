package ingest

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// launchesKept is how many of a pool's latest launches its health is judged by; launchesFailed how many of them must
	// have come to nothing for it to be bad.
	launchesKept   = 4
	launchesFailed = 2
)

// launches is what became of a pool's latest launches, the oldest first: true for those that have become nodes.
type launches []bool

// state is the health of a pool's launches; Unknown without any.
func (l launches) state() cluster.ConditionStatus {
	failed := 0
	for _, ok := range l {
		if !ok {
			failed++
		}
	}
	switch {
	case len(l) == 0:
		return cluster.Unknown
	case failed >= launchesFailed:
		return cluster.False
	}
	return cluster.True
}

// joined notes what became of a launch. The lock is held.
func (b *Book) joined(pool string, ok bool) {
	if pool == "" || b.pools[pool] == nil {
		return
	}
	list := append(slices.Clone(b.joining[pool]), ok)
	b.joining[pool] = list[max(0, len(list)-launchesKept):]
}

// recallJoining takes over what the status of a pool that is new to us says about its launches, and forgets what is known
// about them once the pool has changed. The lock is held.
func (b *Book) recallJoining(old *poolEntry, p *cluster.Pool) {
	if old != nil {
		if old.pool.Generation != p.Generation {
			delete(b.joining, p.Name)
			delete(b.holds, p.Name) // the change may be the cure
			b.easeTrials()
		}
		return
	}
	class, known := b.class[p.Template.NodeClass]
	if known && class.Generation != p.Status.ClassGeneration {
		return
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type != cluster.RegistrationHealthy || c.Generation != p.Generation:
		case c.Status == cluster.True:
			b.joining[p.Name] = launches{true}
		case c.Status == cluster.False:
			b.joining[p.Name] = launches{false, false}
		}
	}
}

// watchLaunch draws the lessons from a claim that has come a step further. The lock is held.
func (b *Book) watchLaunch(old *claimEntry, c *cluster.Claim) change {
	what := nothing
	_, complete := offeringOf(c)
	if launched := c.Condition(cluster.Launched); launched.Status == cluster.True && complete && !wasSold(old) {
		what |= b.sold(c, launched.Since)
	}
	if old != nil && !old.claim.Is(cluster.Registered) && c.Is(cluster.Registered) {
		b.joined(c.Pool, true)
	}
	if c.Condition(cluster.Launched).Status != cluster.Unknown {
		delete(b.refused, c.UID)
	}
	return what
}

// wasSold reports whether a claim had told already what it was launched as.
func wasSold(old *claimEntry) bool {
	if old == nil || !old.claim.Is(cluster.Launched) {
		return false
	}
	_, complete := offeringOf(old.claim)
	return complete
}

// failedToJoin reports whether a claim is deleted because its launch came to nothing.
func failedToJoin(c command.DeleteClaim) bool {
	return c.Reason == command.LaunchTimeout || c.Reason == command.RegistrationTimeout
}
