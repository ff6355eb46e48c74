package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/reason"
)

// askPDBsAgain is when to look again at evictions that were held, should nobody tell us that a budget has changed.
const askPDBsAgain = 10 * time.Second

// phasePending is the phase of a pod that has not begun: it is no loss to any budget.
const phasePending = "Pending"

// shareEvictions lets go of the evictions that a disruption budget would refuse, over all nodes that are being drained.
// A budget's allowance goes to one node after the other, so that it empties some instead of scratching all.
func (p *Plan) shareEvictions(s *cluster.Snapshot) {
	if len(s.PDBs) == 0 {
		return
	}
	asked := evictions(p.Commands)
	if len(asked) == 0 {
		return
	}
	sharing := newPDBSharing(s, asked)
	for i := range asked {
		sharing.decide(&asked[i])
	}
	if len(sharing.heldBack) == 0 {
		return
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		e, ok := c.(command.Evict)
		return ok && !e.Delete && sharing.heldBack[e.UID]
	})
	p.Notes = append(p.Notes, sharing.notes...)
	p.WakeAt = cluster.Earlier(p.WakeAt, s.Now.Add(askPDBsAgain))
}

// budgetedEviction is one that a plan asks for.
type budgetedEviction struct {
	command.Evict
	priority evictionPriority
}

// evictionPriority says whose evictions come first: of the node that must be gone first, then of the one that is the
// nearest to being empty.
type evictionPriority struct {
	deadline time.Time
	podsLeft int
	node     string
}

func (p evictionPriority) compare(u evictionPriority) int {
	switch {
	case p.deadline.Equal(u.deadline):
	case p.deadline.IsZero():
		return 1
	case u.deadline.IsZero():
		return -1
	default:
		return p.deadline.Compare(u.deadline)
	}
	return cmp.Or(cmp.Compare(p.podsLeft, u.podsLeft), cmp.Compare(p.node, u.node))
}

// evictions lists those that a budget may refuse. What has come to its last call is no longer asked but told.
func evictions(commands []command.Command) []budgetedEviction {
	var out []budgetedEviction
	for _, c := range commands {
		if e, ok := c.(command.Evict); ok && !e.Delete {
			out = append(out, budgetedEviction{Evict: e})
		}
	}
	return out
}

// pdbSharing shares the budgets' allowances out.
type pdbSharing struct {
	s *cluster.Snapshot
	// allowance is what remains of each budget's allowance; tried says that a pod is asking without one.
	allowance map[*cluster.PDB]int
	tried     map[*cluster.PDB]bool
	heldBack  map[string]bool // by pod UID
	notes     []cluster.Note
	toldNodes map[string]bool // by node
}

// newPDBSharing puts the evictions in order and takes those off the budgets that are under way.
func newPDBSharing(s *cluster.Snapshot, asked []budgetedEviction) *pdbSharing {
	sharing := &pdbSharing{s: s, allowance: make(map[*cluster.PDB]int, len(s.PDBs)), tried: make(map[*cluster.PDB]bool),
		heldBack: make(map[string]bool), toldNodes: make(map[string]bool)}
	for _, g := range s.PDBs {
		sharing.allowance[g] = g.Allowed
	}
	turns := make(map[string]evictionPriority)
	for i := range asked {
		node := asked[i].Node
		if _, known := turns[node]; !known {
			turns[node] = evictionPriorityOf(s, node)
		}
		asked[i].priority = turns[node]
	}
	slices.SortStableFunc(asked, func(a, b budgetedEviction) int { return a.priority.compare(b.priority) })
	for i := range asked {
		if s.InFlight[asked[i].Key()] {
			sharing.spend(asked[i].UID)
		}
	}
	return sharing
}

func evictionPriorityOf(s *cluster.Snapshot, node string) evictionPriority {
	priority := evictionPriority{node: node}
	if c := s.ClaimOf(node); c != nil {
		priority.deadline, _ = c.EndsBy()
	}
	for _, p := range s.PodsOn(node) {
		if p.Deleting.IsZero() && !p.Mirror && !p.StaysThroughDrain {
			priority.podsLeft++
		}
	}
	return priority
}

// spend takes an eviction that is under way off its budget.
func (s *pdbSharing) spend(uid string) {
	p := podOf(s.s, uid)
	if p == nil {
		return
	}
	for _, g := range s.s.PDBsOf(p) {
		if p.Phase != phasePending && !g.AllowsFreely(p) {
			s.allowance[g]--
			s.tried[g] = true
		}
	}
}

// decide says whether the pod is asked now. What is under way, or waits for another try, is left alone: it is not asked
// in this plan anyway, and must not keep others from it.
func (s *pdbSharing) decide(e *budgetedEviction) {
	if s.s.InFlight[e.Key()] {
		return
	}
	if retry, failed := s.s.Retry[e.Key()]; failed && s.s.Now.Before(retry.NotBefore) {
		return
	}
	p := podOf(s.s, e.UID)
	if p == nil {
		return
	}
	pdbs := s.s.PDBsOf(p)
	switch {
	case len(pdbs) == 0, p.Phase == phasePending:
	case len(pdbs) > 1:
		s.holdBack(e, reason.Of(reason.TwoBudgets, pdbs[0].ID(), pdbs[1].ID()))
	case pdbs[0].AllowsFreely(p):
	case s.allowance[pdbs[0]] > 0:
		s.allowance[pdbs[0]]--
	case isUncounted(pdbs[0]) && !s.tried[pdbs[0]]:
		s.tried[pdbs[0]] = true // one at a time finds out
	case pdbs[0].NeverAllows():
		s.holdBack(e, reason.Of(reason.BudgetNever, pdbs[0].ID()))
	default:
		s.holdBack(e, reason.Of(reason.BudgetNotNow, pdbs[0].ID()))
	}
}

// isUncounted reports whether nobody has counted the budget's pods yet: only the API server can tell what it allows.
func isUncounted(g *cluster.PDB) bool {
	return g.Healthy == 0 && g.DesiredHealthy == 0 && g.Allowed == 0 && g.Expected == 0
}

// holdBack keeps an eviction back and tells why; of the pods of a node the first speaks for all.
func (s *pdbSharing) holdBack(e *budgetedEviction, why reason.Text) {
	s.heldBack[e.UID] = true
	n := s.s.Node(e.Node)
	if n == nil || s.toldNodes[e.Node] {
		return
	}
	s.toldNodes[e.Node] = true
	note := n.Note("FailedDraining", reason.Of(reason.PodNotEvicted, e.Pod, why))
	note.Warning = true
	s.notes = append(s.notes, note)
}
