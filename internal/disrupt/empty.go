// Package disrupt decides which nodes go, within what a pool's budgets allow: empty ones, those whose pods can be run
// for less, and those that have drifted, are unhealthy, or come near the end of their life. Search looks for a cheaper
// cluster. Carry takes what goes together, a move, from its fences over its replacements to its departure, or gives it
// up. Static keeps the number of nodes that static pools ask for.
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
	// Replacements are new nodes for moves. Begun are the moves that begin now, GivenUp those that don't come about,
	// DryRuns those of which a dry run only tells.
	Replacements []ReplacementRequest
	Begun        []Move
	GivenUp      []GivenUp
	DryRuns      []Move
	// NotBegun are moves that a search has found and that are not begun.
	NotBegun []GivenUp
	// PlanSoon says that nodes wait only for others to be gone: as soon as one is, the next may begin.
	PlanSoon bool
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
	return EmptyWithin(s, NewBudgetTracker(s), PodDemand{Hosts: needed}, Settings{Nomination: nomination})
}

// PodDemand is what pods that look for a place want of the nodes that are there. Hosts are those that they are to go
// to. Limited are pools whose limits keep one of them from getting a node.
type PodDemand struct{ Hosts, LimitedPools map[string]bool }

// EmptyWithin is Empty, drawing on the budgets of a budget tracker. A node that stays only to show why it is in vain
// goes if its pool's limits are what a pod waits for: one owner's trouble must not hold up others.
func EmptyWithin(s *cluster.Snapshot, budgets *BudgetTracker, wants PodDemand, set Settings) Result {
	var result Result
	moves := movesUnderWay(s)
	unused := findUnusedNodes(s)
	for _, until := range unused.youngUntil {
		result.WakeAt = cluster.Earlier(result.WakeAt, until)
	}
	for _, p := range s.Pools {
		if p.Deleting {
			continue
		}
		if p.Static {
			reopenStatic(s, p, &result)
			continue
		}
		e := &emptinessCheck{s: s, budgets: budgets, pool: p, moves: moves, needed: wants.Hosts, unusedNodes: unused,
			set: set, result: &result}
		if wants.LimitedPools[p.Name] {
			e.unusedNodes.retained, e.unusedNodes.youngUntil = nil, nil
		}
		e.run()
	}
	return result
}

// emptinessCheck is one look at the nodes of a pool.
type emptinessCheck struct {
	s       *cluster.Snapshot
	budgets *BudgetTracker
	pool    *cluster.Pool
	moves   map[string]bool
	needed  map[string]bool
	// unusedNodes are nodes that were made in vain and need not be waited for, but for those of them that stay.
	unusedNodes unusedNodes
	set         Settings
	result      *Result
	// noPodWaiting is whether nobody looks for a place, once that is known; keptReplacements are replacements of
	// drifted nodes that tell something.
	noPodWaiting     *bool
	keptReplacements map[*cluster.Claim]bool
}

func (ec *emptinessCheck) run() {
	s, p, result := ec.s, ec.pool, ec.result
	wait, _ := QuietPeriod(p, command.Empty)
	for _, c := range s.ClaimsOf(p.Name) {
		n := s.NodeOf(c.Name)
		if s.IsLeftAlone(c) {
			continue
		}
		if ec.isAbandonedReplacement(c, n) {
			result.Commands = append(result.Commands, command.DeleteClaim{Claim: c.Name, UID: c.UID,
				Node: nodeNameOf(n), Reason: command.Empty, Message: replacedNodesStay})
			continue
		}
		if n == nil || c.Move != "" || leavesInterrupted(c) || !c.Deleting.IsZero() || !n.Deleting.IsZero() ||
			!c.Is(cluster.Initialized) || hasCommandUnderWay(s, c, n) {
			continue
		}
		mayGo := !wait.Never || neverUsed(c) || ec.unusedNodes.tries[c.Name] != nil
		kept := ec.needed[n.Name] || ec.moves[c.Replaces] || ec.unusedNodes.isKept(c.Name)
		idle := mayGo && !kept && IsEmpty(s, c, n)
		switch {
		case Fenced(c, n) && (!idle || p.Overrides.DryRun || ec.budgets.Remaining(p.Name, command.Empty) < 0):
			ec.reopen(c, n, idle)
		case Fenced(c, n):
			result.Commands = append(result.Commands, command.DeleteClaim{
				Claim: c.Name, UID: c.UID, Node: n.Name, Reason: command.Empty,
				Message: "the node carries no workload"})
		case isHalfUnfenced(c, n) && !(idle && c.Condition(cluster.DisruptionReason).Reason == string(command.Empty)):
			result.Commands = append(result.Commands, command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name})
		case !idle || hasFence(n): // a fence that somebody else put up is theirs to take down
		case ec.unusedNodes.tries[c.Name] == nil && s.Now.Before(quietAt(wait, c, ec.set.Nomination)) &&
			!(neverUsed(c) && savesMoney(MoveReason(c.Replaces)) && ec.noPodWaits()):
			result.WakeAt = cluster.Earlier(result.WakeAt, quietAt(wait, c, ec.set.Nomination))
		case s.Now.Before(c.SavingRestUntil) && !s.Now.Before(c.SavingRestUntil.Add(-longestSavingRest)):
			result.WakeAt = cluster.Earlier(result.WakeAt, c.SavingRestUntil)
		case !ec.budgets.Reserve(p.Name, command.Empty, 1):
		case p.Overrides.DryRun:
			ec.addDryRun(c, n)
		default:
			result.Commands = append(result.Commands, command.Fence{Claim: c.Name, UID: c.UID, Node: n.Name,
				Reason: command.Empty})
		}
	}
	for i := range p.Budgets {
		result.WakeAt = cluster.Earlier(result.WakeAt, p.Budgets[i].ChangesAt)
	}
}

// reopen takes a fence down again, because the node is needed or may not go. One that is needed rests: where pods come
// and go all the time, as those do that somebody evicts, it would be fenced and opened again and again.
func (ec *emptinessCheck) reopen(c *cluster.Claim, n *cluster.Node, idle bool) {
	cmd := command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name}
	switch {
	case !idle:
		cmd.ForSaving = true
		cmd.RestUntil, cmd.Rests = savingRestOf(c, ec.s.Now)
	case ec.pool.Overrides.DryRun:
		cmd.BlockReason = string(DryRun)
	default:
		cmd.BlockReason = string(BudgetBlocks)
	}
	ec.budgets.Return(ec.pool.Name, 1)
	ec.result.Commands = append(ec.result.Commands, cmd)
}

// neverUsed reports whether the node was made to replace others and never got a pod: their move has been given up, and
// a pool that keeps its nodes for ever has not asked for this one.
func neverUsed(c *cluster.Claim) bool { return c.Replaces != "" && c.LastPodEvent.IsZero() }

// noPodWaits reports whether no pod looks for a place or is about to, and no move is about to begin: what was made for
// a move that has been given up is made for nobody then.
func (ec *emptinessCheck) noPodWaits() bool {
	if ec.noPodWaiting == nil {
		answer := len(ec.s.Pending()) == 0 && ec.s.LastGrowth().IsZero() && len(ec.s.PodsBetweenNodes()) == 0 &&
			!anyMoveBeginning(ec.s)
		ec.noPodWaiting = &answer
	}
	return *ec.noPodWaiting
}

// anyMoveBeginning reports whether fences are being put up of which it is not known yet in which move they are.
func anyMoveBeginning(s *cluster.Snapshot) bool {
	for key := range s.InFlight {
		if node, ok := strings.CutPrefix(key, command.Fence{}.Key()); ok {
			if c := s.ClaimOf(node); c != nil && c.Move == "" && c.Deleting.IsZero() {
				return true
			}
		}
	}
	return false
}

// addDryRun tells that a dry run keeps the node from going.
func (ec *emptinessCheck) addDryRun(c *cluster.Claim, n *cluster.Node) {
	m := Move{ID: MoveID(command.Empty, []string{ClaimIdentity(c)}), Reason: command.Empty, Claims: []string{c.Name},
		Before: c.Price}
	ec.result.DryRuns = append(ec.result.DryRuns, m)
	text := fmt.Sprintf("Dry run: would disrupt the node (Empty: it carries no workload); $%.2f a month would be saved",
		m.Before*hoursPerMonth)
	ec.result.Notes = append(ec.result.Notes, n.Note(string(DryRun), text), c.Note(string(DryRun), text))
}

// Fenced reports whether it was we who fenced the node: the reason is written on its claim, or the label that comes
// with our fence is on the node. The reason alone may be missing if two replicas put up and took down the fence at the
// same time.
func Fenced(c *cluster.Claim, n *cluster.Node) bool {
	mark, _ := n.Labels.Get(excludeFromBalancers)
	return hasFence(n) && (c.Is(cluster.DisruptionReason) || mark == "karpenter")
}

// excludeFromBalancers is the label that a fence puts on a node beside the taint.
const excludeFromBalancers = "node.kubernetes.io/exclude-from-external-load-balancers"

func hasFence(n *cluster.Node) bool { return n.HasTaint(cluster.DisruptedTaint, cluster.NoSchedule) }

// hasCommandUnderWay reports whether something is being done to the node whose effect the snapshot does not show yet.
func hasCommandUnderWay(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	return len(s.InFlight) > 0 && (s.InFlight[command.Fence{Node: n.Name}.Key()] ||
		s.InFlight[command.Unfence{Node: n.Name}.Key()] ||
		s.InFlight[command.DeleteClaim{Claim: c.Name}.Key()])
}

// IsEmpty reports whether nothing on the node is a reason to keep it.
func IsEmpty(s *cluster.Snapshot, c *cluster.Claim, n *cluster.Node) bool {
	if n.DoNotDisrupt || c.DoNotDisrupt {
		return false
	}
	for _, p := range s.PodsOn(n.Name) {
		if p.IsWorkload() || p.DoNotDisrupt {
			return false
		}
	}
	return !s.HasNominatedPod(n.Name) // kube-scheduler has chosen it for a pod that will come
}
