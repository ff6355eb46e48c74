package ingest

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Backoff says how long an offering is left alone that the cloud could not sell: First after the first refusal, twice as
// long after each further one, at most Most.
type Backoff struct{ First, Most time.Duration }

// defaultBackoff is what holds if nobody says anything else.
func defaultBackoff() Backoff { return Backoff{First: 30 * time.Second, Most: 15 * time.Minute} }

// SetBackoff says how long offerings are left alone that the cloud could not sell. It comes before anything is taken in.
func (b *Book) SetBackoff(backoff Backoff) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backoff = backoff
}

// wait is how long an offering is left alone after so many refusals.
func (k Backoff) wait(refusals int) time.Duration {
	return min(k.First<<min(refusals-1, 20), k.Most)
}

// shortage is an offering that the cloud refused. It is shut until Until. Then it is on trial: it can be bought, and the
// first launch finds out whether it is back. One that is left in peace is forgiven refusal by refusal, each after as long
// as its wait was.
type shortage struct {
	refusals int
	at       time.Time // of the last refusal
	until    time.Time
	trial    bool   // that until has passed has been noted
	why      string // what people could do about the last refusal, if anything
}

// refuse notes a refusal. Launches that were under way together are refused together: while the offering is shut, another
// refusal is no news.
func (s *shortage) refuse(k Backoff, at time.Time, why string) (news bool) {
	if s.refusals > 0 && at.Before(s.until) {
		return false
	}
	s.forgive(k, at)
	s.refusals++
	s.at, s.until, s.trial, s.why = at, at.Add(k.wait(s.refusals)), false, why
	return true
}

// forgive takes off the refusals that time has made up for, and reports whether none is left.
func (s *shortage) forgive(k Backoff, now time.Time) bool {
	for s.refusals > 0 && !now.Before(s.until.Add(k.wait(s.refusals))) {
		s.until = s.until.Add(k.wait(s.refusals))
		s.refusals--
	}
	return s.refusals == 0
}

// refuseOfferings notes what the cloud could not sell, and reports whether any of it is news. The lock is held.
func (b *Book) refuseOfferings(list []command.Exhausted, at time.Time) (news bool) {
	for _, e := range list {
		why := e.Why
		e.Why = "" // it is the same offering, whatever the reason
		s := b.shortages[e]
		if s == nil {
			s = &shortage{}
			b.shortages[e] = s
		}
		news = s.refuse(b.backoff, at, why) || news
	}
	return news
}

// sold notes that the cloud has sold an offering after all: nothing is held against it any more. The lock is held.
func (b *Book) sold(c *cluster.Claim, at time.Time) change {
	e, complete := offeringOf(c)
	if !complete {
		return nothing
	}
	what := nothing
	for key, s := range b.shortages {
		if at.After(s.at) && covers(key, e, c.Labels) {
			delete(b.shortages, key)
			what = room
		}
	}
	return what
}

// covers tells whether what was refused includes the offering, which has the labels.
func covers(refused, e command.Exhausted, labels cluster.Labels) bool {
	return (refused.Type == "" || refused.Type == e.Type) && (refused.Zone == "" || refused.Zone == e.Zone) &&
		refused.CapacityType == e.CapacityType && (refused.Within == "" || hasValue(labels, refused.Within))
}

// offeringOf is what a claim was launched as; complete is false if its labels don't tell yet.
func offeringOf(c *cluster.Claim) (e command.Exhausted, complete bool) {
	var okType, okZone, okTerms bool
	e.Type, okType = c.Labels.Get(cluster.InstanceTypeLabel)
	e.Zone, okZone = c.Labels.Get(cluster.ZoneLabel)
	e.CapacityType, okTerms = c.Labels.Get(cluster.CapacityTypeLabel)
	return e, okType && okZone && okTerms
}

// easeShortages opens offerings for trial whose wait is over, and forgets those that have been left in peace. The lock is
// held.
func (b *Book) easeShortages(now time.Time) {
	for e, s := range b.shortages {
		if now.Before(s.until) && !s.trial {
			continue
		}
		if !s.trial {
			s.trial = true
			b.note(room)
		}
		if open := *s; open.forgive(b.backoff, now) {
			delete(b.shortages, e)
			b.note(supply) // it is like any other again
		}
	}
}

// scarcity is what is held against an offering now.
type scarcity uint8

const (
	shut    scarcity = iota + 1 // it can't be bought
	onTrial                     // it may be back
)

// held is what is held against an offering now, and what people could do about it, if anything.
type held struct {
	scarcity
	why string
}

// worse is the one that weighs more: what is shut can't be bought, whatever else is said of it.
func worse(a, b held) held {
	if a.scarcity == shut || b.scarcity == 0 {
		return a
	}
	return b
}

// against is what is held against an offering, or against all of its type, of its zone or on its terms.
func against(scarce map[command.Exhausted]held, of command.Exhausted) held {
	worst := scarce[of]
	for _, wide := range []command.Exhausted{
		{Zone: of.Zone, CapacityType: of.CapacityType, Within: of.Within}, {Type: of.Type, CapacityType: of.CapacityType, Within: of.Within},
		{CapacityType: of.CapacityType, Within: of.Within},
	} {
		worst = worse(worst, scarce[wide])
	}
	return worst
}

// Refusals says of offerings whether they can't be bought for now, as the plans of this moment take it. A NodeClaim names types and zones,
// and any of its types in any of its zones will do for its pods, also one that no plan would choose now: the provider asks.
func (b *Book) Refusals() func(cloudprovider.OfferingRef) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.shortages) == 0 {
		return func(cloudprovider.OfferingRef) bool { return false }
	}
	scarce := b.scarceNow()
	return func(o cloudprovider.OfferingRef) bool {
		of := command.Exhausted{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType}
		if against(scarce, of).scarcity == shut {
			return true
		}
		of.Within = o.Within
		return o.Within != "" && against(scarce, of).scarcity == shut
	}
}

// withins are the values of labels that shortages are narrowed down to, sorted.
func withins(scarce map[command.Exhausted]held) []string {
	var out []string
	for e := range scarce {
		if e.Within != "" {
			out = append(out, e.Within)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hasValue tells whether one of the labels has the value.
func hasValue(labels cluster.Labels, value string) bool {
	return slices.ContainsFunc(labels, func(l cluster.Label) bool { return l.Value == value })
}

func (s *shortage) now() held {
	if s.trial {
		return held{onTrial, s.why}
	}
	return held{shut, s.why}
}

// scarceNow is what is held against which offerings. Nobody writes to it: until something changes all get the same, be they
// pools or hundreds of launches. The lock is held.
func (b *Book) scarceNow() map[command.Exhausted]held {
	if b.scarce != nil && b.sameScarcity(b.scarce) {
		return b.scarce
	}
	b.scarce = make(map[command.Exhausted]held, len(b.shortages))
	for e, s := range b.shortages {
		b.scarce[e] = s.now()
	}
	return b.scarce
}

func (b *Book) sameScarcity(have map[command.Exhausted]held) bool {
	if len(have) != len(b.shortages) {
		return false
	}
	for e, s := range b.shortages {
		if have[e] != s.now() {
			return false
		}
	}
	return true
}
