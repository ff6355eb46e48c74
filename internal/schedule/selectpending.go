package schedule

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/topology"
)

// modest classes, with so many rules that are not wide, come first. Pods beyond the bounds of a rule budget wait for
// the next placement, whoever asks for less first. Nobody else is held up by them.
const modest = 8

// classDemand is what a class asks of other pods.
type classDemand struct {
	class   *cluster.PodClass
	pods    []*cluster.Pod
	rules   int
	wide    int
	hasSeat bool // a node is on its way for its pods
}

// lastTurns are the classes that were taken on last, of those that come first and of those that come last. Whoever has
// to wait comes next.
type lastTurns struct{ modest, others string }

// selectPending tells the pods that are looked at now from those that wait for the next placement.
func selectPending(s *cluster.Snapshot, pending []*cluster.Pod, usePreferences bool, before *Placement) (now,
	later []*cluster.Pod, next lastTurns) {
	if fewRules(pending, usePreferences) {
		return pending, nil, lastTurns{}
	}
	var last lastTurns
	if before != nil {
		last = before.lastTurns
	}
	classes, seats := classDemandsOf(pending, usePreferences), classesWithSeats(s)
	for _, a := range classes {
		a.hasSeat = seats[a.class.Key]
	}
	slices.SortStableFunc(classes, func(x, y *classDemand) int {
		return cmp.Or(cmp.Compare(x.turnAfter(last), y.turnAfter(last)), cmp.Compare(x.class.Key, y.class.Key))
	})
	b, begun := topology.NewRuleBudget(usePreferences), false
	next = last
	for _, a := range classes {
		// Whose nodes are on their way is looked at in any case, for these would seem to be made in vain.
		switch {
		case a.hasSeat:
		case a.modest() && b.Admit(a.class):
			next.modest = a.class.Key
		case !a.modest() && (b.Admit(a.class) || !begun): // one of them at least, so that all come in time
			begun, next.others = true, a.class.Key
		default:
			later = append(later, a.pods...)
			continue
		}
		now = append(now, a.pods...)
	}
	return now, later, next
}

// modest reports whether a class asks for no more than most do.
func (a *classDemand) modest() bool { return a.wide == 0 && a.rules <= modest }

// turnAfter says who comes first: classes whose nodes are on their way, modest ones, and then the others, each one
// after the other.
func (a *classDemand) turnAfter(last lastTurns) int {
	switch {
	case a.hasSeat:
		return 0
	case a.modest() && a.class.Key > last.modest:
		return 1
	case a.modest():
		return 2
	case a.class.Key > last.others:
		return 3
	}
	return 4
}

// fewRules reports whether all pods together are within the bounds, as they nearly always are.
func fewRules(pending []*cluster.Pod, usePreferences bool) bool {
	b := topology.NewRuleBudget(usePreferences)
	seen := make(map[*cluster.PodClass]bool)
	var last *cluster.PodClass
	for _, p := range pending {
		if p.Class == last || len(p.Class.Rules) == 0 && len(p.Class.Preferences) == 0 {
			continue
		}
		last = p.Class
		if seen[last] {
			continue
		}
		if seen[last] = true; !b.Admit(last) {
			return false
		}
	}
	return true
}

// classDemandsOf sorts pods by class, in the order in which the classes first appear.
func classDemandsOf(pending []*cluster.Pod, usePreferences bool) []*classDemand {
	byClass := make(map[*cluster.PodClass]*classDemand)
	var out []*classDemand
	for _, p := range pending {
		a := byClass[p.Class]
		if a == nil {
			a = &classDemand{class: p.Class}
			topology.EachRule(p.Class, usePreferences, func(r *cluster.Rule) {
				a.rules++
				if topology.SelectsByNoLabel(r) {
					a.wide++
				}
			})
			byClass[p.Class] = a
			out = append(out, a)
		}
		a.pods = append(a.pods, p)
	}
	return out
}

// classesWithSeats are the classes for whose pods nodes are on their way.
func classesWithSeats(s *cluster.Snapshot) map[string]bool {
	out := make(map[string]bool)
	for _, c := range s.Claims {
		for _, seat := range c.Seats {
			out[seat.Class] = true
		}
	}
	return out
}
