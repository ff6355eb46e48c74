package offerings

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Backoff says how long an offering is left alone that the cloud could not sell: First after the first refusal,
// twice as long after each further one, at most Most.
type Backoff struct{ First, Most time.Duration }

// DefaultBackoff is what holds if nobody says anything else.
func DefaultBackoff() Backoff {
	return Backoff{First: 30 * time.Second, Most: 15 * time.Minute}
}

// Shortages is what the cloud could not sell lately.
type Shortages struct {
	// Backoff says how long offerings are left alone.
	Backoff Backoff
	all     map[command.UnavailableOffering]*shortage
	states  map[command.UnavailableOffering]offeringState // what now gave last
}

// newShortages knows of none yet.
func newShortages() Shortages {
	return Shortages{Backoff: DefaultBackoff(), all: make(map[command.UnavailableOffering]*shortage)}
}

// wait is how long an offering is left alone after so many refusals.
func (k Backoff) wait(refusals int) time.Duration {
	return min(k.First<<min(refusals-1, 20), k.Most)
}

// shortage is an offering that the cloud refused. It is shut until Until. Then it is probed: it can be bought, and the
// first launch finds out whether it is back. One that is left alone is forgiven refusal by refusal, each after as long
// as its wait was.
type shortage struct {
	refusals  int
	refusedAt time.Time // of the last refusal
	until     time.Time
	probing   bool   // that until has passed has been noted
	advice    string // what people could do about the last refusal, if anything
}

// refuse notes a refusal. Launches that were under way together are refused together: while the offering is shut,
// another refusal is no news.
func (s *shortage) refuse(k Backoff, at time.Time, why string) (news bool) {
	if s.refusals > 0 && at.Before(s.until) {
		return false
	}
	s.forgive(k, at)
	s.refusals++
	s.refusedAt, s.until, s.probing, s.advice = at, at.Add(k.wait(s.refusals)), false, why
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

// Refuse notes what the cloud could not sell, and reports whether any of it is news.
func (m *Shortages) Refuse(list []command.UnavailableOffering, at time.Time) (news bool) {
	for _, e := range list {
		why := e.Advice
		e.Advice = "" // it is the same offering, whatever the reason
		s := m.all[e]
		if s == nil {
			s = &shortage{}
			m.all[e] = s
		}
		news = s.refuse(m.Backoff, at, why) || news
	}
	return news
}

// Sold notes that the cloud has sold an offering after all: nothing is held against it any more. It reports whether
// anything was.
func (m *Shortages) Sold(c *cluster.Claim, at time.Time) (news bool) {
	e, complete := LaunchedAs(c)
	if !complete {
		return false
	}
	for key, s := range m.all {
		if at.After(s.refusedAt) && refusalCovers(key, e, c.Labels) {
			delete(m.all, key)
			news = true
		}
	}
	return news
}

// refusalCovers tells whether what was refused includes the offering, which has the labels.
func refusalCovers(refused, e command.UnavailableOffering, labels cluster.Labels) bool {
	return (refused.Type == "" || refused.Type == e.Type) && (refused.Zone == "" || refused.Zone == e.Zone) &&
		refused.CapacityType == e.CapacityType && (refused.Within == "" || hasValue(labels, refused.Within))
}

// LaunchedAs is what a claim was launched as; complete is false if its labels don't tell yet.
func LaunchedAs(c *cluster.Claim) (e command.UnavailableOffering, complete bool) {
	var okType, okZone, okTerms bool
	e.Type, okType = c.Labels.Get(cluster.InstanceTypeLabel)
	e.Zone, okZone = c.Labels.Get(cluster.ZoneLabel)
	e.CapacityType, okTerms = c.Labels.Get(cluster.CapacityTypeLabel)
	return e, okType && okZone && okTerms
}

// Update opens offerings for a probe whose wait is over, and forgets those that have been left alone; it tells how many
// of each there were.
func (m *Shortages) Update(now time.Time) (opened, forgotten int) {
	for e, s := range m.all {
		if now.Before(s.until) && !s.probing {
			continue
		}
		if !s.probing {
			s.probing = true
			opened++
		}
		if open := *s; open.forgive(m.Backoff, now) {
			delete(m.all, e)
			forgotten++ // it is like any other again
		}
	}
	return opened, forgotten
}

// availability is what is held against an offering now.
type availability uint8

const (
	notAvailable availability = iota + 1 // it can't be bought
	beingProbed                          // it may be back
)

// offeringState is what is held against an offering now, and what people could do about it, if anything.
type offeringState struct {
	availability
	advice string
}

// worse is the one that weighs more: what is shut can't be bought, whatever else is said of it.
func worse(a, b offeringState) offeringState {
	if a.availability == notAvailable || b.availability == 0 {
		return a
	}
	return b
}

// stateOf is what is held against an offering, or against all of its type, of its zone or on its terms.
func stateOf(unavailable map[command.UnavailableOffering]offeringState, of command.UnavailableOffering) offeringState {
	worst := unavailable[of]
	for _, wide := range []command.UnavailableOffering{
		{Zone: of.Zone, CapacityType: of.CapacityType, Within: of.Within},
		{Type: of.Type, CapacityType: of.CapacityType, Within: of.Within},
		{CapacityType: of.CapacityType, Within: of.Within},
	} {
		worst = worse(worst, unavailable[wide])
	}
	return worst
}

// Unavailable says of offerings whether they can't be bought for now, as the plans of this moment take it. A NodeClaim
// names types and zones, and any of its types in any of its zones will do for its pods, also one that no plan would
// choose now: the provider asks.
func (m *Shortages) Unavailable() func(cloudprovider.OfferingRef) bool {
	if len(m.all) == 0 {
		return func(cloudprovider.OfferingRef) bool { return false }
	}
	unavailable := m.now()
	return func(o cloudprovider.OfferingRef) bool {
		of := command.UnavailableOffering{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType}
		if stateOf(unavailable, of).availability == notAvailable {
			return true
		}
		of.Within = o.Within
		return o.Within != "" && stateOf(unavailable, of).availability == notAvailable
	}
}

// withinValues are the values of labels that shortages are narrowed down to, sorted.
func withinValues(unavailable map[command.UnavailableOffering]offeringState) []string {
	var out []string
	for e := range unavailable {
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

func (s *shortage) state() offeringState {
	if s.probing {
		return offeringState{beingProbed, s.advice}
	}
	return offeringState{notAvailable, s.advice}
}

// now is what is held against which offerings. Nobody writes to it: until something changes all get the
// same, be they pools or hundreds of launches.
func (m *Shortages) now() map[command.UnavailableOffering]offeringState {
	if m.states != nil && m.same(m.states) {
		return m.states
	}
	m.states = make(map[command.UnavailableOffering]offeringState, len(m.all))
	for e, s := range m.all {
		m.states[e] = s.state()
	}
	return m.states
}

func (m *Shortages) same(have map[command.UnavailableOffering]offeringState) bool {
	if len(have) != len(m.all) {
		return false
	}
	for e, s := range m.all {
		if have[e] != s.state() {
			return false
		}
	}
	return true
}
