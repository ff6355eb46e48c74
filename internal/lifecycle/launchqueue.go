package lifecycle

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// offeringKey names an offering, whichever catalog it is in.
type offeringKey struct{ typeName, zone, capacityType string }

// launchDecision is what becomes of a claim that would like to be launched.
type launchDecision int

const (
	launchNow launchDecision = iota
	launchLater
	launchHopeless
	launchHeld
)

// launchQueue lets claims launch one at a time where it is not known whether the cloud will have them: one answer
// speaks for all, and nobody is served sooner by asking more often.
type launchQueue struct {
	s *cluster.Snapshot
	// uncertain says, by catalog, whether it has offerings that are sold out or being probed.
	uncertain map[*cluster.Catalog]bool
	// probed are the offerings being probed for which a launch is under way.
	probed map[offeringKey]bool
	// probers is the claim that finds out whether a held pool can launch again, by pool.
	probers map[string]string
}

func newLaunchQueue(s *cluster.Snapshot) *launchQueue {
	return &launchQueue{s: s, uncertain: make(map[*cluster.Catalog]bool), probers: make(map[string]string)}
}

// decide says whether the claim may be launched now, and if it has to wait until when; zero for until something
// happens.
func (q *launchQueue) decide(c *cluster.Claim) (v launchDecision, until time.Time) {
	p := q.s.Pool(c.Pool)
	if p == nil {
		return launchNow, time.Time{}
	}
	var probes []offeringKey
	if q.hasUncertain(p) {
		left, known := possibleOfferings(p, c)
		if known && len(left) == 0 && !wasAttempted(q.s, c) {
			return launchHopeless, time.Time{}
		}
		probes = left
	}
	if p.InBackoff || p.Probing {
		if v, until := q.decideProbe(p, c); v != launchNow {
			return v, until
		}
	}
	if len(probes) > 0 && !q.takeProbes(probes, q.isDelayed(c)) {
		return launchLater, time.Time{}
	}
	return launchNow, time.Time{}
}

// longBackoff is how long a hold must have to go for a pool's claims to be given up: their pods may have a place
// elsewhere.
const longBackoff = 10 * time.Second

// decideProbe says what becomes of a claim whose pool's launches have failed: one waits to find out when they go well
// again; the others wait for it, and go if that takes long.
func (q *launchQueue) decideProbe(p *cluster.Pool, c *cluster.Claim) (v launchDecision, until time.Time) {
	first := q.findProber(p) == c.Name
	switch {
	case p.InBackoff && !first && !q.s.Now.Add(longBackoff).After(p.BackoffUntil):
		return launchHeld, time.Time{}
	case p.InBackoff:
		return launchLater, p.BackoffUntil
	case !first:
		return launchLater, time.Time{}
	}
	return launchNow, time.Time{}
}

// hasUncertain reports whether the pool's catalog has anything that might be refused.
func (q *launchQueue) hasUncertain(p *cluster.Pool) bool {
	if p.Catalog == nil {
		return false
	}
	doubtful, known := q.uncertain[p.Catalog]
	if !known {
		for i := range p.Catalog.Offerings {
			if o := &p.Catalog.Offerings[i]; !o.Available || o.Probing {
				doubtful = true
				break
			}
		}
		q.uncertain[p.Catalog] = doubtful
	}
	return doubtful
}

// isDelayed reports whether the claim's launch has failed and is not due again.
func (q *launchQueue) isDelayed(c *cluster.Claim) bool {
	r, failed := q.s.Retry[command.LaunchInstance{Claim: c.Name}.Key()]
	return failed && q.s.Now.Before(r.NotBefore)
}

// takeProbes takes the offerings for a launch, unless somebody else is at one of them. Who is not going to launch yet
// takes none.
func (q *launchQueue) takeProbes(probes []offeringKey, delayed bool) bool {
	if q.probed == nil {
		q.findProbes()
	}
	for _, t := range probes {
		if q.probed[t] {
			return false
		}
	}
	for _, t := range probes {
		if !delayed {
			q.probed[t] = true
		}
	}
	return true
}

// findProbes notes the offerings being probed of all launches under way.
func (q *launchQueue) findProbes() {
	q.probed = make(map[offeringKey]bool)
	for _, c := range q.s.Claims {
		p := q.s.Pool(c.Pool)
		if p == nil || !q.s.InFlight[command.LaunchInstance{Claim: c.Name}.Key()] || !q.hasUncertain(p) {
			continue
		}
		probes, _ := possibleOfferings(p, c)
		for _, t := range probes {
			q.probed[t] = true
		}
	}
}

// findProber is the claim that may try a held pool once its time is over: the one that is being launched already, or
// the first that waits.
func (q *launchQueue) findProber(p *cluster.Pool) string {
	if name, known := q.probers[p.Name]; known {
		return name
	}
	first, due := "", false
	for _, c := range q.s.ClaimsOf(p.Name) {
		if c.Expected || !c.Finalized || !c.Deleting.IsZero() ||
			c.Condition(cluster.Launched).Status != cluster.Unknown {
			continue
		}
		if q.s.InFlight[command.LaunchInstance{Claim: c.Name}.Key()] {
			first = c.Name
			break
		}
		if soon := !q.isDelayed(c); first == "" || soon && !due {
			first, due = c.Name, soon
		}
	}
	q.probers[p.Name] = first
	return first
}
