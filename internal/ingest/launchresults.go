package ingest

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// resultsKept is how many of a pool's latest launches its health is judged by; failuresForBad how many of them must
	// have come to nothing for it to be bad.
	resultsKept    = 4
	failuresForBad = 2
)

// launchResults is what became of a pool's latest launches, the oldest first: true for those that have become nodes.
type launchResults []bool

// state is the health of a pool's launches; Unknown without any.
func (l launchResults) state() cluster.ConditionStatus {
	failed := 0
	for _, ok := range l {
		if !ok {
			failed++
		}
	}
	switch {
	case len(l) == 0:
		return cluster.Unknown
	case failed >= failuresForBad:
		return cluster.False
	}
	return cluster.True
}

// noteLaunchResult notes what became of a launch. The lock is held.
func (b *Book) noteLaunchResult(pool string, ok bool) {
	if pool == "" || b.pools[pool] == nil {
		return
	}
	list := append(slices.Clone(b.recentLaunches[pool]), ok)
	b.recentLaunches[pool] = list[max(0, len(list)-resultsKept):]
}

// restoreLaunchResults takes over what the status of a pool that is new to us says about its launches, and forgets what
// is known about them once the pool has changed. The lock is held.
func (b *Book) restoreLaunchResults(old *poolEntry, p *cluster.Pool) {
	if old != nil {
		if old.pool.Generation != p.Generation {
			delete(b.recentLaunches, p.Name)
			delete(b.launchBackoffs, p.Name) // the change may be the cure
			b.allowTriesNow()
		}
		return
	}
	class, known := b.nodeClasses[p.Template.NodeClass]
	if known && class.Generation != p.Status.ClassGeneration {
		return
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type != cluster.RegistrationHealthy || c.Generation != p.Generation:
		case c.Status == cluster.True:
			b.recentLaunches[p.Name] = launchResults{true}
		case c.Status == cluster.False:
			b.recentLaunches[p.Name] = launchResults{false, false}
		}
	}
}

// observeLaunch draws what there is to learn from a claim that has come a step further. The lock is held.
func (b *Book) observeLaunch(old *claimEntry, c *cluster.Claim) change {
	what := noChange
	_, complete := launchedOffering(c)
	if launched := c.Condition(cluster.Launched); launched.Status == cluster.True && complete && !wasLaunched(old) {
		what |= b.noteSold(c, launched.Since)
	}
	if old != nil && !old.claim.Is(cluster.Registered) && c.Is(cluster.Registered) {
		b.noteLaunchResult(c.Pool, true)
	}
	if c.Condition(cluster.Launched).Status != cluster.Unknown {
		delete(b.refusedLaunches, c.UID)
	}
	return what
}

// wasLaunched reports whether a claim had told already what it was launched as.
func wasLaunched(old *claimEntry) bool {
	if old == nil || !old.claim.Is(cluster.Launched) {
		return false
	}
	_, complete := launchedOffering(old.claim)
	return complete
}

// isFailedLaunch reports whether a claim is deleted because its launch came to nothing.
func isFailedLaunch(c command.DeleteClaim) bool {
	return c.Reason == command.LaunchTimeout || c.Reason == command.RegistrationTimeout
}
