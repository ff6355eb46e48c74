package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// askBudgetsAgain is when to look again at evictions that were held, should nobody tell us that a budget has changed.
const askBudgetsAgain = 10 * time.Second

// pending is the phase of a pod that has not begun: it is no loss to any budget.
const pending = "Pending"

// shareEvictions lets go of the evictions that a disruption budget would refuse, over all nodes that are being drained. A
// budget's allowance goes to one node after the other, so that it empties some instead of scratching all.
func (p *Plan) shareEvictions(s *cluster.Snapshot) {
	if len(s.Guards) == 0 {
		return
	}
	asked := evictions(p.Commands)
	if len(asked) == 0 {
		return
	}
	r := newRationing(s, asked)
	for i := range asked {
		r.decide(&asked[i])
	}
	if len(r.held) == 0 {
		return
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		e, ok := c.(command.Evict)
		return ok && !e.Now && r.held[e.UID]
	})
	p.Notes = append(p.Notes, r.notes...)
	p.WakeAt = cluster.Earlier(p.WakeAt, s.Now.Add(askBudgetsAgain))
}

// eviction is one that a plan asks for.
type eviction struct {
	command.Evict
	turn turn
}

// turn says whose evictions come first: of the node that must be gone first, then of the one that is the nearest to being
// empty.
type turn struct {
	deadline time.Time
	left     int
	node     string
}

func (t turn) compare(u turn) int {
	switch {
	case t.deadline.Equal(u.deadline):
	case t.deadline.IsZero():
		return 1
	case u.deadline.IsZero():
		return -1
	default:
		return t.deadline.Compare(u.deadline)
	}
	return cmp.Or(cmp.Compare(t.left, u.left), cmp.Compare(t.node, u.node))
}

// evictions lists those that a budget may refuse. What has come to its last call is no longer asked but told.
func evictions(commands []command.Command) []eviction {
	var out []eviction
	for _, c := range commands {
		if e, ok := c.(command.Evict); ok && !e.Now {
			out = append(out, eviction{Evict: e})
		}
	}
	return out
}

// rationing shares the budgets' allowances out.
type rationing struct {
	s *cluster.Snapshot
	// left is what remains of each budget's allowance; tried says that a pod is asking without one.
	left  map[*cluster.Guard]int
	tried map[*cluster.Guard]bool
	held  map[string]bool // by pod UID
	notes []cluster.Note
	told  map[string]bool // by node
}

// newRationing puts the evictions in order and takes those off the budgets that are under way.
func newRationing(s *cluster.Snapshot, asked []eviction) *rationing {
	r := &rationing{s: s, left: make(map[*cluster.Guard]int, len(s.Guards)), tried: make(map[*cluster.Guard]bool),
		held: make(map[string]bool), told: make(map[string]bool)}
	for _, g := range s.Guards {
		r.left[g] = g.Allowed
	}
	turns := make(map[string]turn)
	for i := range asked {
		node := asked[i].Node
		if _, known := turns[node]; !known {
			turns[node] = turnOf(s, node)
		}
		asked[i].turn = turns[node]
	}
	slices.SortStableFunc(asked, func(a, b eviction) int { return a.turn.compare(b.turn) })
	for i := range asked {
		if s.Busy[asked[i].Key()] {
			r.spend(asked[i].UID)
		}
	}
	return r
}

func turnOf(s *cluster.Snapshot, node string) turn {
	t := turn{node: node}
	if c := s.ClaimOf(node); c != nil {
		t.deadline, _ = c.End()
	}
	for _, p := range s.PodsOn(node) {
		if p.Deleting.IsZero() && !p.Mirror && !p.StaysThroughDrain {
			t.left++
		}
	}
	return t
}

// spend takes an eviction that is under way off its budget.
func (r *rationing) spend(uid string) {
	p := podOf(r.s, uid)
	if p == nil {
		return
	}
	for _, g := range r.s.GuardsOf(p) {
		if p.Phase != pending && !g.Spares(p) {
			r.left[g]--
			r.tried[g] = true
		}
	}
}

// decide says whether the pod is asked now. What is under way, or waits for another try, is left alone: it is not asked in
// this plan anyway, and must not keep others from it.
func (r *rationing) decide(e *eviction) {
	if r.s.Busy[e.Key()] {
		return
	}
	if retry, failed := r.s.Retry[e.Key()]; failed && r.s.Now.Before(retry.NotBefore) {
		return
	}
	p := podOf(r.s, e.UID)
	if p == nil {
		return
	}
	guards := r.s.GuardsOf(p)
	switch {
	case len(guards) == 0, p.Phase == pending:
	case len(guards) > 1:
		r.hold(e, fmt.Sprintf("more than one disruption budget selects it (%s and %s), which Kubernetes refuses to evict", guards[0].ID(), guards[1].ID()))
	case guards[0].Spares(p):
	case r.left[guards[0]] > 0:
		r.left[guards[0]]--
	case uncounted(guards[0]) && !r.tried[guards[0]]:
		r.tried[guards[0]] = true // one at a time finds out
	case guards[0].Never():
		r.hold(e, fmt.Sprintf("disruption budget %s never allows it, since it wants all of its pods", guards[0].ID()))
	default:
		r.hold(e, fmt.Sprintf("disruption budget %s does not allow it now", guards[0].ID()))
	}
}

// uncounted reports whether nobody has counted the budget's pods yet: only the API server can tell what it allows.
func uncounted(g *cluster.Guard) bool {
	return g.Healthy == 0 && g.Wanted == 0 && g.Allowed == 0 && g.Expected == 0
}

// hold keeps an eviction back and tells why; of the pods of a node the first speaks for all.
func (r *rationing) hold(e *eviction, why string) {
	r.held[e.UID] = true
	n := r.s.Node(e.Node)
	if n == nil || r.told[e.Node] {
		return
	}
	r.told[e.Node] = true
	note := n.Note("FailedDraining", fmt.Sprintf("Pod %s can't be evicted: %s", e.Pod, why))
	note.Warning = true
	r.notes = append(r.notes, note)
}
