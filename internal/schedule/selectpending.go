package schedule

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// What one placement takes on of rules between pods. Each class may have rules of its own, and whoever may create pods
// may create classes: the work grows with the square of rules that look at pods of any label. Pods beyond these bounds
// wait for the next placement, whoever asks for less first. Nobody else is held up by them.
const (
	// MostWide bounds the rules that name no label which the pods they look at must have.
	MostWide = 128
	// MostRules bounds all rules, MostKeys the topology keys that they are about.
	MostRules = 50_000
	MostKeys  = 512
	// modest classes, with so many rules that are not wide, come first.
	modest = 8
)

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
	b, begun := newRuleBudget(usePreferences), false
	next = last
	for _, a := range classes {
		// Whose nodes are on their way is looked at in any case, for these would seem to be made in vain.
		switch {
		case a.hasSeat:
		case a.modest() && b.admit(a.class):
			next.modest = a.class.Key
		case !a.modest() && (b.admit(a.class) || !begun): // one of them at least, so that all come in time
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
	b := newRuleBudget(usePreferences)
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
		if seen[last] = true; !b.admit(last) {
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
			eachRule(p.Class, usePreferences, func(r *cluster.Rule) {
				a.rules++
				if selectsByNoLabel(r) {
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

func eachRule(c *cluster.PodClass, usePreferences bool, each func(*cluster.Rule)) {
	for _, r := range c.Rules {
		each(r)
	}
	for i := range c.Preferences {
		if r := c.Preferences[i].Rule; usePreferences && r != nil {
			each(r)
		}
	}
}

// selectsByNoLabel reports whether pods of any labels may be what the rule looks at.
func selectsByNoLabel(r *cluster.Rule) bool {
	for i := range r.Selectors {
		if r.Selectors[i].MatchesNone || anchorLabel(&r.Selectors[i]) >= 0 {
			return false
		}
	}
	return len(r.Selectors) > 0
}

// anchorLabel is the place of a label of which the selector asks for listed values, −1 if there is none.
func anchorLabel(s *cluster.Selector) int {
	return slices.IndexFunc(s.Labels, func(e require.Entry) bool {
		_, finite := e.Values.Listed()
		return finite && !e.Values.AllowsAbsent()
	})
}

// ruleBudget counts what the classes that were taken on ask for; the same rule of several counts once.
type ruleBudget struct {
	rules, keys    map[string]bool
	wide           int
	usePreferences bool
}

func newRuleBudget(usePreferences bool) *ruleBudget {
	return &ruleBudget{rules: make(map[string]bool), keys: make(map[string]bool), usePreferences: usePreferences}
}

// admit counts a class and reports whether all is still within bounds. One that is not within bounds is not counted.
func (b *ruleBudget) admit(c *cluster.PodClass) bool {
	var rules, keys []string
	allDomains := 0
	eachRule(c, b.usePreferences, func(r *cluster.Rule) {
		if b.rules[r.Key] {
			return
		}
		if rules = append(rules, r.Key); selectsByNoLabel(r) {
			allDomains++
		}
		if !b.keys[r.TopologyKey] {
			keys = append(keys, r.TopologyKey)
		}
	})
	if b.wide+allDomains > MostWide || len(b.rules)+len(rules) > MostRules || len(b.keys)+len(keys) > MostKeys {
		return false
	}
	b.wide += allDomains
	for _, key := range rules {
		b.rules[key] = true
	}
	for _, key := range keys {
		b.keys[key] = true
	}
	return true
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
