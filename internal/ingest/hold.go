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
	// firstHold to lastHold.
	firstHold = time.Second
	lastHold  = 5 * time.Minute
	// errorsToHold is how many launches in a row must fail with an error until their pool is held: each is tried again by
	// itself, and one may well be an accident.
	errorsToHold = 3
)

// hold is what is remembered of a pool whose launches fail.
type hold struct {
	errors  int // launches in a row that ended in an error
	count   int // holds in a row
	until   time.Time
	over    bool // that until has passed has been noted
	message string
}

// judgeLaunch holds a pool whose launches fail without a hint what to try instead, and lets go of it after one that went
// well. A refusal that names offerings is no reason to hold it: the next plan avoids them. The lock is held.
func (b *Book) judgeLaunch(pool string, o command.Outcome) change {
	h := b.holds[pool]
	if o.Err == nil && !o.Refused {
		delete(b.holds, pool)
		if h != nil && h.count > 0 {
			return room
		}
		return nothing
	}
	if len(o.Exhausted) > 0 || cloudprovider.IsQueued(o.Err) {
		return nothing // it only waits for its turn
	}
	if h == nil {
		h = &hold{}
		b.holds[pool] = h
	}
	h.message = cmp.Or(o.Refusal.Message, "the cloud can't sell what the pool asks for")
	if o.Err != nil {
		h.message = o.Err.Error()
		if h.errors++; h.errors < errorsToHold {
			return nothing
		}
	}
	if o.At.Before(h.until) {
		return nothing // those that were under way together fail together
	}
	h.count++
	h.until, h.over = o.At.Add(min(firstHold<<min(h.count-1, 20), lastHold)), false
	return supply
}

// easeHolds notes which pools may be tried again. The lock is held.
func (b *Book) easeHolds(now time.Time) {
	for _, h := range b.holds {
		if h.count > 0 && !h.over && !now.Before(h.until) {
			h.over = true
			b.note(room)
		}
	}
}

// refusal is when the cloud would not launch an instance, and what it said.
type refusal struct {
	at   time.Time
	said command.Refusal
}

// refusedLaunch is what a claim's status will say, from the moment the cloud has refused to launch it until the watch
// shows it: its pods need another place now.
func (b *Book) refusedLaunch(c *cluster.Claim) (cluster.Condition, bool) {
	no, refused := b.refused[c.UID]
	if !refused || c.Condition(cluster.Launched).Status != cluster.Unknown {
		return cluster.Condition{}, false
	}
	return cluster.Condition{
		Type: cluster.Launched, Status: cluster.False, Since: no.at,
		Reason: string(no.said.Reason), Message: no.said.Message,
	}, true
}
