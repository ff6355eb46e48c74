package plan

import (
	"maps"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// heldPods are the pods for which no node is bought now, because nodes that were made for their owner are of no use to
// them. Where it is time for another try, one pod of each class is let through; that only one node is made of it is the
// admission's to see to.
func heldPods(o *cluster.Overlay) map[string]schedule.PodHold {
	s := o.Base
	if len(s.WorkloadTries) == 0 {
		return nil
	}
	type entrant struct {
		owner *cluster.WorkloadTries
		class *cluster.PodClass
	}
	var out map[string]schedule.PodHold
	let := make(map[entrant]bool)
	for _, p := range o.Pending() {
		b, f := s.TriesHolding(p)
		if b == nil {
			continue
		}
		if at := (entrant{b, p.Class}); b.MayTry(s.Now) && !let[at] {
			let[at] = true
			continue
		}
		if out == nil {
			out = make(map[string]schedule.PodHold)
		}
		out[p.UID] = schedule.PodHold{Tries: b, Failure: f, TryUnderWay: b.MayTry(s.Now)}
	}
	return out
}

// sameHolds reports whether the same pods are held, for reasons that would be told in the same words.
func sameHolds(a, b map[string]schedule.PodHold) bool {
	return maps.EqualFunc(a, b, func(x, y schedule.PodHold) bool {
		a, b := x.Tries, y.Tries
		return a.FailedTries == b.FailedTries && a.NextTry.Equal(b.NextTry) && a.ComingClaims == b.ComingClaims &&
			a.CountUnused() == b.CountUnused() &&
			x.Failure.Claim == y.Failure.Claim && x.TryUnderWay == y.TryUnderWay
	})
}

// claimAdmission is what every new claim for pods has to pass, whatever it is made for. It keeps the bound on nodes in
// vain: see docs/concepts/bounds.md.
type claimAdmission struct {
	s     *cluster.Snapshot
	tried map[*cluster.WorkloadTries]bool
}

func newClaimAdmission(s *cluster.Snapshot) *claimAdmission {
	return &claimAdmission{s: s, tried: make(map[*cluster.WorkloadTries]bool)}
}

// admit reports whether a node may be made for the pods: each of their owners is free of tries that concern them, or
// may make a try that none has made in this plan.
func (g *claimAdmission) admit(pods []*cluster.Pod) bool {
	tries, ok := g.triesOf([][]*cluster.Pod{pods})
	if ok {
		maps.Copy(g.tried, tries)
	}
	return ok
}

// triesOf says whether nodes may be made for all these groups of pods, one for each, and whose tries they would be.
// Nothing counts as tried yet.
func (g *claimAdmission) triesOf(groups [][]*cluster.Pod) (tries map[*cluster.WorkloadTries]bool, ok bool) {
	if len(g.s.WorkloadTries) == 0 {
		return nil, true
	}
	tries = make(map[*cluster.WorkloadTries]bool)
	for _, pods := range groups {
		owners := make(map[*cluster.WorkloadTries]bool)
		for _, p := range pods {
			if b, _ := g.s.TriesHolding(p); b != nil {
				owners[b] = true
			}
		}
		for b := range owners {
			if g.tried[b] || tries[b] || !b.MayTry(g.s.Now) {
				return nil, false
			}
		}
		maps.Copy(tries, owners)
	}
	return tries, true
}

// wakeForTries looks again when a try may be made.
func (p *Plan) wakeForTries(s *cluster.Snapshot) {
	var at time.Time
	for _, b := range s.WorkloadTries {
		at = cluster.Earlier(at, b.ChangesAt(s.Now))
	}
	p.WakeAt = cluster.Earlier(p.WakeAt, at)
}
