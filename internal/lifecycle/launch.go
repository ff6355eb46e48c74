package lifecycle

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/require"
)

// tellInvalid tells what is wrong with a claim that a person wrote. The claim is theirs: it is kept, and never launched
// as long as its text is what it is.
func (st *claimStep) tellInvalid() {
	text := cluster.ProblemsText(st.claim.Problems)
	st.setCondition(cluster.Launched, cluster.False, string(command.Invalid), text)
	st.warn(st.claim.Note(string(command.Invalid), text))
}

// launch asks for an instance, unless it is known that the answer would be no or it is somebody else's turn to find
// out.
func (st *claimStep) launch() {
	cond := st.claim.Condition(cluster.Launched)
	if cond.Status == cluster.False && cond.Reason != string(command.Invalid) {
		st.deleteClaim(command.Reason(cond.Reason), reason.Said(cond.Message))
		return
	}
	act := command.LaunchInstance{Claim: st.claim.Name, UID: st.claim.UID}
	busy := st.s.InFlight[act.Key()]
	timeout := st.timeouts().Launch
	if deadline := st.claim.ExistsSince().Add(timeout); st.s.Now.Before(deadline) {
		st.wake(deadline)
	} else {
		if !busy { // deleting the claim now could leave an instance behind; the launch's end wakes us
			st.deleteClaim(command.LaunchTimeout, reason.Of(reason.NotLaunched, timeout))
		}
		return
	}
	if busy {
		return
	}
	switch verdict, until := st.queue.decide(st.claim); verdict {
	case launchHopeless:
		st.deleteClaim(command.InsufficientCapacity, reason.Of(reason.OfferingsGone))
	case launchHeld:
		st.deleteClaim(command.LaunchesRefused, reason.Of(reason.LaunchesFailElsewhere))
	case launchLater:
		st.wake(until)
	case launchNow:
		st.emit(act)
	}
}

// wasAttempted reports whether the cloud may have been asked for the claim's instance before: then it may be running
// although we don't know of it.
func wasAttempted(s *cluster.Snapshot, c *cluster.Claim) bool {
	if _, tried := s.Retry[command.LaunchInstance{Claim: c.Name}.Key()]; tried {
		return true
	}
	return c.Condition(cluster.Launched).Reason != "" && c.Condition(cluster.Launched).Reason != string(command.Invalid)
}

// possibleOfferings are the offerings that the claim may become and that can be bought. known is false if that is not
// known, or if there is at least one about which there is no doubt; otherwise all of them are being probed.
func possibleOfferings(p *cluster.Pool, c *cluster.Claim) (probes []offeringKey, known bool) {
	catalog := p.Catalog
	var asked require.Set
	for _, e := range c.Requirements {
		if catalog.Index().Knows(e.Key) {
			asked = asked.With(e.Key, e.Values)
		}
	}
	for i := range catalog.Index().MatchAll(asked).All {
		o := &catalog.Offerings[i]
		switch {
		case o.Reservation != "": // the claim's own share of it counts as taken
			return nil, false
		case !o.Available:
		case !o.Probing:
			return nil, false
		default:
			probes = append(probes, offeringKey{catalog.Types[o.Type].Name, o.Zone, o.CapacityType})
		}
	}
	return probes, true
}
