package schedule

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
)

// What one placement takes on of rules between pods. Each class may have rules of its own, and whoever may create pods may create
// classes: the work grows with the square of rules that look at pods of any label. Pods beyond these bounds wait for the next
// placement, whoever asks for less first. Nobody else is held up by them.
const (
	// mostWide bounds the rules that name no label which the pods they look at must have.
	mostWide = 128
	// mostRules bounds all rules, mostKeys the topology keys that they are about.
	mostRules = 50_000
	mostKeys  = 512
	// modest classes, with so many rules that are not wide, come first.
	modest = 8
)

// asks is what a class asks of other pods.
type asks struct {
	class  *cluster.PodClass
	pods   []*cluster.Pod
	rules  int
	wide   int
	seated bool // a node is on its way for its pods
}

// turns are the classes that were taken on last, of those that come first and of those that come last. Whoever has to wait comes
// next.
type turns struct{ modest, others string }

// triage tells the pods that are looked at now from those that wait for the next placement.
func triage(s *cluster.Snapshot, pending []*cluster.Pod, wishes bool, before *Placement) (now, later []*cluster.Pod, next turns) {
	if fewRules(pending, wishes) {
		return pending, nil, turns{}
	}
	var last turns
	if before != nil {
		last = before.turns
	}
	classes, seats := asksOf(pending, wishes), seatsOf(s)
	for _, a := range classes {
		a.seated = seats[a.class.Key]
	}
	slices.SortStableFunc(classes, func(x, y *asks) int {
		return cmp.Or(cmp.Compare(x.turn(last), y.turn(last)), cmp.Compare(x.class.Key, y.class.Key))
	})
	b, begun := newBudget(wishes), false
	next = last
	for _, a := range classes {
		// Whose nodes are on their way is looked at in any case, for these would seem to be made in vain.
		switch {
		case a.seated:
		case a.modest() && b.take(a.class):
			next.modest = a.class.Key
		case !a.modest() && (b.take(a.class) || !begun): // one of them at least, so that all come in time
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
func (a *asks) modest() bool { return a.wide == 0 && a.rules <= modest }

// turn says who comes first: classes whose nodes are on their way, modest ones, and then the others, each one after the other.
func (a *asks) turn(last turns) int {
	switch {
	case a.seated:
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
func fewRules(pending []*cluster.Pod, wishes bool) bool {
	b := newBudget(wishes)
	seen := make(map[*cluster.PodClass]bool)
	var last *cluster.PodClass
	for _, p := range pending {
		if p.Class == last || len(p.Class.Rules) == 0 && len(p.Class.Wishes) == 0 {
			continue
		}
		last = p.Class
		if seen[last] {
			continue
		}
		if seen[last] = true; !b.take(last) {
			return false
		}
	}
	return true
}

// asksOf sorts pods by class, in the order in which the classes first appear.
func asksOf(pending []*cluster.Pod, wishes bool) []*asks {
	byClass := make(map[*cluster.PodClass]*asks)
	var out []*asks
	for _, p := range pending {
		a := byClass[p.Class]
		if a == nil {
			a = &asks{class: p.Class}
			rulesOf(p.Class, wishes, func(r *cluster.Rule) {
				a.rules++
				if isWide(r) {
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

func rulesOf(c *cluster.PodClass, wishes bool, each func(*cluster.Rule)) {
	for _, r := range c.Rules {
		each(r)
	}
	for i := range c.Wishes {
		if r := c.Wishes[i].Rule; wishes && r != nil {
			each(r)
		}
	}
}

// isWide reports whether pods of any labels may be what the rule looks at.
func isWide(r *cluster.Rule) bool {
	for i := range r.Selectors {
		if r.Selectors[i].Nothing || anchor(&r.Selectors[i]) >= 0 {
			return false
		}
	}
	return len(r.Selectors) > 0
}

// anchor is the place of a label of which the selector asks for listed values, −1 if there is none.
func anchor(s *cluster.Selector) int {
	return slices.IndexFunc(s.Labels, func(e require.Entry) bool {
		_, finite := e.Values.Listed()
		return finite && !e.Values.AllowsAbsent()
	})
}

// budget counts what the classes that were taken on ask for; the same rule of several counts once.
type budget struct {
	rules, keys map[string]bool
	wide        int
	wishes      bool
}

func newBudget(wishes bool) *budget {
	return &budget{rules: make(map[string]bool), keys: make(map[string]bool), wishes: wishes}
}

// take counts a class and reports whether all is still within bounds. One that is not within bounds is not counted.
func (b *budget) take(c *cluster.PodClass) bool {
	var rules, keys []string
	wide := 0
	rulesOf(c, b.wishes, func(r *cluster.Rule) {
		if b.rules[r.Key] {
			return
		}
		if rules = append(rules, r.Key); isWide(r) {
			wide++
		}
		if !b.keys[r.Topology] {
			keys = append(keys, r.Topology)
		}
	})
	if b.wide+wide > mostWide || len(b.rules)+len(rules) > mostRules || len(b.keys)+len(keys) > mostKeys {
		return false
	}
	b.wide += wide
	for _, key := range rules {
		b.rules[key] = true
	}
	for _, key := range keys {
		b.keys[key] = true
	}
	return true
}

// seatsOf are the classes for whose pods nodes are on their way.
func seatsOf(s *cluster.Snapshot) map[string]bool {
	out := make(map[string]bool)
	for _, c := range s.Claims {
		for _, seat := range c.Seats {
			out[seat.Class] = true
		}
	}
	return out
}
