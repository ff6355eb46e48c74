package plan

import (
	"maps"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// heldPods are the pods for which no node is bought now, because nodes that were made for their owner are of no use to them. Where it is
// time for another try, one pod of each class is let through; that only one node is made of it is the admission's to see to.
func heldPods(o *cluster.Overlay) map[string]schedule.Hold {
	s := o.Base
	if len(s.Setbacks) == 0 {
		return nil
	}
	type entrant struct {
		owner *cluster.Setback
		class *cluster.PodClass
	}
	var out map[string]schedule.Hold
	let := make(map[entrant]bool)
	for _, p := range o.Pending() {
		b, f := s.HeldBy(p)
		if b == nil {
			continue
		}
		if at := (entrant{b, p.Class}); b.MayTry(s.Now) && !let[at] {
			let[at] = true
			continue
		}
		if out == nil {
			out = make(map[string]schedule.Hold)
		}
		out[p.UID] = schedule.Hold{Setback: b, Failure: f, Trying: b.MayTry(s.Now)}
	}
	return out
}

// sameHolds reports whether the same pods are held, for reasons that would be told in the same words.
func sameHolds(a, b map[string]schedule.Hold) bool {
	return maps.EqualFunc(a, b, func(x, y schedule.Hold) bool {
		a, b := x.Setback, y.Setback
		return a.Tries == b.Tries && a.Next.Equal(b.Next) && a.Coming == b.Coming && a.InVain() == b.InVain() &&
			x.Failure.Claim == y.Failure.Claim && x.Trying == y.Trying
	})
}

// admission is what every new claim for pods has to pass, whatever it is made for. It keeps the bound on nodes in vain: see
// docs/concepts/bounds.md.
type admission struct {
	s     *cluster.Snapshot
	tried map[*cluster.Setback]bool
}

func newAdmission(s *cluster.Snapshot) *admission {
	return &admission{s: s, tried: make(map[*cluster.Setback]bool)}
}

// admit reports whether a node may be made for the pods: each of their owners is free of setbacks that concern them, or may make a try
// that none has made in this plan.
func (g *admission) admit(pods []*cluster.Pod) bool { return g.admitAll([][]*cluster.Pod{pods}) }

// admitAll reports whether nodes may be made for all these groups of pods, one for each; if not, none counts as tried.
func (g *admission) admitAll(groups [][]*cluster.Pod) bool {
	if len(g.s.Setbacks) == 0 {
		return true
	}
	all := make(map[*cluster.Setback]bool)
	for _, pods := range groups {
		owners := make(map[*cluster.Setback]bool)
		for _, p := range pods {
			if b, _ := g.s.HeldBy(p); b != nil {
				owners[b] = true
			}
		}
		for b := range owners {
			if g.tried[b] || all[b] || !b.MayTry(g.s.Now) {
				return false
			}
		}
		maps.Copy(all, owners)
	}
	maps.Copy(g.tried, all)
	return true
}

// wakeForTries looks again when a try may be made.
func (p *Plan) wakeForTries(s *cluster.Snapshot) {
	var at time.Time
	for _, b := range s.Setbacks {
		at = cluster.Earlier(at, b.Again(s.Now))
	}
	p.WakeAt = cluster.Earlier(p.WakeAt, at)
}
