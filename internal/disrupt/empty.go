// Package disrupt decides which nodes go, within what a pool's budgets allow: empty ones, those whose pods can be run for less, and
// those that have drifted, are sick, or come near the end of their life. Search looks for a cheaper cluster. Carry takes what
// goes together, a move, from its fences over its replacements to its departure, or gives it up. Static keeps the number of
// nodes that static pools ask for.
//
// Floor 2: pure.
package disrupt

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Result is what to do now, and when to look again if nothing happens before.
type Result struct {
	Commands []command.Command
	WakeAt   time.Time
	// Notes are what stands in the way, for people.
	Notes []cluster.Note
	// Wanted are new nodes for moves. Begun are the moves that begin now, GivenUp those that don't come about, Would those of
	// which a dry run only tells.
	Wanted  []Wanted
	Begun   []Move
	GivenUp []GivenUp
	Would   []Move
	// Passed are moves that a search has found and that are not begun.
	Passed []GivenUp
	// Eager says that nodes wait only for others to be gone: as soon as one is, the next may begin.
	Eager bool
}

// Empty removes nodes that carry no workload: a node that has been quiet for its pool's consolidateAfter is fenced, and
// once a later snapshot shows it fenced and still empty its claim is deleted. A fenced node that is needed after all is
// opened again. needed holds the hosts that pending pods are to go to.
//
// A new node that no pod has reached yet is kept for the nomination time even if no pod is to go there at this moment:
// the pod it was made for may be between its old incarnation and its new one.
//
// Nodes that go in a move are left to it, and so is what was made to replace them for as long as one of them is there.
func Empty(s *cluster.Snapshot, needed map[string]bool, nomination time.Duration) Result {
	return EmptyFrom(s, NewLedger(s), Wants{Hosts: needed}, Settings{Nomination: nomination})
}

// Wants is what pods that look for a place want of the nodes that are there. Hosts are those that they are to go to. Limited are pools
// whose limits keep one of them from getting a node.
type Wants struct{ Hosts, Limited map[string]bool }

// EmptyFrom is Empty, drawing on the budgets of a ledger. A node that stays only to show why it is in vain goes if its pool's limits
// are what a pod waits for: one owner's trouble must not hold up others.
func EmptyFrom(s *cluster.Snapshot, l *Ledger, wants Wants, set Settings) Result {
	var out Result
	moves := movesUnderWay(s)
	unused := inVain(s)
	for _, until := range unused.fresh {
		out.WakeAt = cluster.Earlier(out.WakeAt, until)
	}
	for _, p := range s.Pools {
		if p.Deleting {
			continue
		}
		if p.Static {
			reopenStatic(s, p, &out)
			continue
		}
		e := &emptying{s: s, l: l, pool: p, moves: moves, needed: wants.Hosts, unused: unused, set: set, out: &out}
		if wants.Limited[p.Name] {
			e.unused.shown, e.unused.fresh = nil, nil
		}
		e.run()
	}
	return out
}

// emptying is one look at the nodes of a pool.
type emptying struct {
	s      *cluster.Snapshot
	l      *Ledger
	pool   *cluster.Pool
	moves  map[string]bool
	needed map[string]bool
	// unused are nodes that were made in vain and need not be waited for, but for those of them that stay.
	unused vainNodes
	set    Settings
	out    *Result
	// asked is whether nobody looks for a place, once that is known; kept are replacements of drifted nodes that tell something.
	asked *bool
	kept  map[*cluster.Claim]bool
}

func (e *emptying) run() {
	s, p, out := e.s, e.pool, e.out
	wait, _ := WaitFor(p, command.Empty)
	for _, c := range s.ClaimsOf(p.Name) {
		n := s.NodeOf(c.Name)
		if s.LeftAlone(c) {
			continue
		}
		if e.vain(c, n) {
			out.Commands = append(out.Commands, command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: nameOf(n), Reason: command.Empty, Message: madeInVain})
			continue
		}
		if n == nil || c.Move != "" || hurried(c) || !c.Deleting.IsZero() || !n.Deleting.IsZero() || !c.Is(cluster.Initialized) || underWay(s, c, n) {
			continue
		}
		mayGo := !wait.Never || stray(c) || e.unused.of[c.Name] != nil
		kept := e.needed[n.Name] || e.moves[c.Replaces] || e.unused.stays(c.Name)
		idle := mayGo && !kept && IsEmpty(s, c, n)
		switch {
		case Fenced(c, n) && (!idle || p.Care.DryRun || e.l.Left(p.Name, command.Empty) < 0):
			e.open(c, n, idle)
		case Fenced(c, n):
			out.Commands = append(out.Commands, command.DeleteClaim{
				Claim: c.Name, UID: c.UID, Node: n.Name, Reason: command.Empty, Message: "the node carries no workload"})
		case halfOpen(c, n) && !(idle && c.Condition(cluster.DisruptionReason).Reason == string(command.Empty)):
			out.Commands = append(out.Commands, command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name})
		case !idle || tainted(n): // a fence that somebody else put up is theirs to take down
		case e.unused.of[c.Name] == nil && s.Now.Before(quietAt(wait, c, e.set.Nomination)) &&
			!(stray(c) && saves(ReasonOf(c.Replaces)) && e.deserted()):
			out.WakeAt = cluster.Earlier(out.WakeAt, quietAt(wait, c, e.set.Nomination))
		case s.Now.Before(c.SavingRestUntil) && !s.Now.Before(c.SavingRestUntil.Add(-longestSavingRest)):
			out.WakeAt = cluster.Earlier(out.WakeAt, c.SavingRestUntil)
		case !e.l.Take(p.Name, command.Empty, 1):
		case p.Care.DryRun:
			e.would(c, n)
		default:
			out.Commands = append(out.Commands, command.Fence{Claim: c.Name, UID: c.UID, Node: n.Name, Reason: command.Empty})
		}
	}
	for i := range p.Budgets {
		out.WakeAt = cluster.Earlier(out.WakeAt, p.Budgets[i].Changes)
	}
}

// open takes a fence down again, because the node is needed or may not go. One that is needed rests: where pods come and go all the
// time, as those do that somebody evicts, it would be fenced and opened again and again.
func (e *emptying) open(c *cluster.Claim, n *cluster.Node, idle bool) {
	cmd := command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name}
	switch {
	case !idle:
		cmd.ForSaving = true
		cmd.RestUntil, cmd.Rests = savingRestOf(c, e.s.Now)
	case e.pool.Care.DryRun:
		cmd.Why = string(DryRun)
	default:
		cmd.Why = string(BudgetBlocks)
	}
	e.l.Give(e.pool.Name, 1)
	e.out.Commands = append(e.out.Commands, cmd)
}

// stray reports whether the node was made to replace others and never got a pod: their move has been given up, and a pool
// that keeps its nodes for ever has not asked for this one.
func stray(c *cluster.Claim) bool { return c.Replaces != "" && c.LastPodEvent.IsZero() }

// deserted reports whether no pod looks for a place or is about to, and no move is about to begin: what was made for a move that
// has been given up is made for nobody then.
func (e *emptying) deserted() bool {
	if e.asked == nil {
		answer := len(e.s.Pending()) == 0 && e.s.Growing().IsZero() && len(e.s.Homeless()) == 0 && !beginning(e.s)
		e.asked = &answer
	}
	return *e.asked
}

// beginning reports whether fences are being put up of which it is not known yet in which move they are.
func beginning(s *cluster.Snapshot) bool {
	for key := range s.Busy {
		if node, ok := strings.CutPrefix(key, command.Fence{}.Key()); ok {
			if c := s.ClaimOf(node); c != nil && c.Move == "" && c.Deleting.IsZero() {
				return true
			}
		}
	}
	return false
}

// would tells that a dry run keeps the node from going.
func (e *emptying) would(c *cluster.Claim, n *cluster.Node) {
	m := Move{ID: MoveID(command.Empty, []string{Identity(c)}), Reason: command.Empty, Claims: []string{c.Name}, Before: c.Price}
	e.out.Would = append(e.out.Would, m)
	text := fmt.Sprintf("Dry run: would disrupt the node (Empty: it carries no workload); $%.2f a month would be saved", m.Before*hoursPerMonth)
	e.out.Notes = append(e.out.Notes, n.Note(string(DryRun), text), c.Note(string(DryRun), text))
}

// Fenced reports whether it was we who fenced the node: the reason is written on its claim, or the label that comes with our
// fence is on the node. The reason alone may be missing if two replicas put up and took down the fence at the same time.
func Fenced(c *cluster.Claim, n *cluster.Node) bool {
	mark, _ := n.Labels.Get(excludeFromBalancers)
	return tainted(n) && (c.Is(cluster.DisruptionReason) || mark == "karpenter")
}

// excludeFromBalancers is the label that a fence puts on a node beside the taint.
const excludeFromBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"

func tainted(n *cluster.Node) bool { return n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) }

// underWay reports whether something is being done to the node whose effect the snapshot does not show yet.
func underWay(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	return len(s.Busy) > 0 && (s.Busy[command.Fence{Node: n.Name}.Key()] || s.Busy[command.Unfence{Node: n.Name}.Key()] ||
		s.Busy[command.DeleteClaim{Claim: c.Name}.Key()])
}

// IsEmpty reports whether nothing on the node is a reason to keep it.
func IsEmpty(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	if n.DoNotDisrupt || c.DoNotDisrupt {
		return false
	}
	for _, p := range s.PodsOn(n.Name) {
		if p.Workload() || p.DoNotDisrupt {
			return false
		}
	}
	return !s.Awaited(n.Name) // kube-scheduler has chosen it for a pod that will come
}
