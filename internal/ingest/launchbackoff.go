package ingest

import (
	"cmp"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// A pool whose launches fail for no reason that the next plan could avoid is left alone for a while that grows from
	// firstLaunchBackoff to longestLaunchBackoff.
	firstLaunchBackoff   = time.Second
	longestLaunchBackoff = 5 * time.Minute
	// errorsToBackOff is how many launches in a row must fail with an error until their pool is held: each is tried
	// again by itself, and one may well be an accident.
	errorsToBackOff = 3
)

// launchBackoff is what is remembered of a pool whose launches fail.
type launchBackoff struct {
	errors  int // launches in a row that ended in an error
	count   int // holds in a row
	until   time.Time
	ended   bool // that until has passed has been noted
	message string
}

// updateBackoff holds a pool whose launches fail without a hint what to try instead, and lets go of it after one that
// went well. A refusal that names offerings is no reason to hold it: the next plan avoids them. The lock is held.
func (b *Book) updateBackoff(pool string, o command.Outcome) change {
	h := b.launchBackoffs[pool]
	if o.Err == nil && !o.Refused {
		delete(b.launchBackoffs, pool)
		if h != nil && h.count > 0 {
			return changesRoom
		}
		return noChange
	}
	if len(o.Unavailable) > 0 || cloudprovider.IsQueued(o.Err) {
		return noChange // it only waits for its turn
	}
	if h == nil {
		h = &launchBackoff{}
		b.launchBackoffs[pool] = h
	}
	h.message = cmp.Or(o.Refusal.Message, "the cloud can't sell what the pool asks for")
	if o.Err != nil {
		h.message = o.Err.Error()
		if h.errors++; h.errors < errorsToBackOff {
			return noChange
		}
	}
	if o.At.Before(h.until) {
		return noChange // those that were under way together fail together
	}
	h.count++
	h.until, h.ended = o.At.Add(min(firstLaunchBackoff<<min(h.count-1, 20), longestLaunchBackoff)), false
	return changesSupply
}

// endBackoffs notes which pools may be tried again. The lock is held.
func (b *Book) endBackoffs(now time.Time) {
	for _, h := range b.launchBackoffs {
		if h.count > 0 && !h.ended && !now.Before(h.until) {
			h.ended = true
			b.noteChange(changesRoom)
		}
	}
}

// launchRefusal is when the cloud would not launch an instance, and what it said.
type launchRefusal struct {
	at   time.Time
	said command.Refusal
}

// refusalCondition is what a claim's status will say, from the moment the cloud has refused to launch it until the
// watch shows it: its pods need another place now.
func (b *Book) refusalCondition(c *cluster.Claim) (cluster.Condition, bool) {
	no, refused := b.refusedLaunches[c.UID]
	if !refused || c.Condition(cluster.Launched).Status != cluster.Unknown {
		return cluster.Condition{}, false
	}
	return cluster.Condition{
		Type: cluster.Launched, Status: cluster.False, Since: no.at,
		Reason: string(no.said.Reason), Message: no.said.Message,
	}, true
}
