package ingest

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/machines"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
)

// noteLaunchResult notes what became of a launch. The lock is held.
func (b *Book) noteLaunchResult(pool string, ok bool) {
	if pool != "" && b.pools[pool] != nil {
		b.launches.NoteResult(pool, ok)
	}
}

// restoreLaunchResults takes over what the status of a pool that is new to us says about its launches, and forgets what
// is known about them once the pool has changed. The lock is held.
func (b *Book) restoreLaunchResults(old *pools.Entry, p *cluster.Pool) {
	if old == nil {
		if class, known := b.nodeClasses[p.Template.NodeClass]; !known || class.Generation == p.Status.ClassGeneration {
			b.launches.Restore(p)
		}
		return
	}
	if old.Pool.Generation != p.Generation {
		b.launches.Forget(p.Name)
		b.allowTriesNow()
	}
}

// observeLaunch draws what there is to learn from a claim that has come a step further. The lock is held.
func (b *Book) observeLaunch(old *machines.ClaimEntry, c *cluster.Claim) change.Kind {
	what := change.None
	_, complete := offerings.LaunchedAs(c)
	if launched := c.Condition(cluster.Launched); launched.Status == cluster.True && complete && !wasLaunched(old) &&
		b.market.Shortages.Sold(c, launched.Since) {
		what = change.Room
	}
	if old != nil && !old.Claim.Is(cluster.Registered) && c.Is(cluster.Registered) {
		b.noteLaunchResult(c.Pool, true)
	}
	if c.Condition(cluster.Launched).Status != cluster.Unknown {
		b.launches.ForgetRefusal(c.UID)
	}
	return what
}

// wasLaunched reports whether a claim had told already what it was launched as.
func wasLaunched(old *machines.ClaimEntry) bool {
	if old == nil || !old.Claim.Is(cluster.Launched) {
		return false
	}
	_, complete := offerings.LaunchedAs(old.Claim)
	return complete
}

// isFailedLaunch reports whether a claim is deleted because its launch came to nothing.
func isFailedLaunch(c command.DeleteClaim) bool {
	return c.Reason == command.LaunchTimeout || c.Reason == command.RegistrationTimeout
}
