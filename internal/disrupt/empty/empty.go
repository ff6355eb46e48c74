package empty

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/reason"
)

// Demand is what pods that look for a place want of the nodes that are there. Hosts are those that they are to go
// to. Limited are pools whose limits keep one of them from getting a node.
type Demand struct{ Hosts, LimitedPools map[string]bool }

// Remove removes nodes that carry no workload: a node that has been quiet for its pool's consolidateAfter is fenced,
// and once a later snapshot shows it fenced and still empty its claim is deleted. A fenced node that is needed after
// all is opened again.
//
// A new node that no pod has reached yet is kept for the nomination time even if no pod is to go there at this moment:
// the pod it was made for may be between its old incarnation and its new one. A node that stays only to show why it is
// in vain goes if its pool's limits are what a pod waits for: one owner's trouble must not hold up others.
//
// Nodes that go in a move are left to it, and so is what was made to replace them for as long as one of them is there.
func Remove(s *cluster.Snapshot, budgets *disrupt.BudgetTracker, wants Demand, set disrupt.Settings) disrupt.Result {
	var result disrupt.Result
	moves := disrupt.MovesUnderWay(s)
	unused := disrupt.FindUnusedNodes(s)
	for _, until := range unused.YoungUntil {
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
			e.unusedNodes.Retained, e.unusedNodes.YoungUntil = nil, nil
		}
		e.run()
	}
	return result
}

// emptinessCheck is one look at the nodes of a pool.
type emptinessCheck struct {
	s       *cluster.Snapshot
	budgets *disrupt.BudgetTracker
	pool    *cluster.Pool
	moves   map[string]bool
	needed  map[string]bool
	// unusedNodes are nodes that were made in vain and need not be waited for, but for those of them that stay.
	unusedNodes disrupt.UnusedNodes
	set         disrupt.Settings
	// wait is how long a node must have been quiet.
	wait   cluster.NillableDuration
	result *disrupt.Result
	// noPodWaiting is whether nobody looks for a place, once that is known; keptReplacements are replacements of
	// drifted nodes that tell something.
	noPodWaiting     *bool
	keptReplacements map[*cluster.Claim]bool
}

// run looks at each node of the pool.
func (ec *emptinessCheck) run() {
	ec.wait, _ = disrupt.QuietPeriod(ec.pool, command.Empty)
	for _, c := range ec.s.ClaimsOf(ec.pool.Name) {
		n := ec.s.NodeOf(c.Name)
		switch {
		case ec.s.IsLeftAlone(c):
		case ec.isAbandonedReplacement(c, n):
			ec.result.Emit(command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: nodeNameOf(n), Reason: command.Empty,
				Text: reason.Of(reason.ReplacedNodesStay)})
		case ec.isAtWork(c, n):
			ec.act(ec.stateOf(c, n), c, n)
		}
	}
	for i := range ec.pool.Budgets {
		ec.result.Wake(ec.pool.Budgets[i].ChangesAt)
	}
}

// isAtWork reports whether the node is up and nobody else takes it away.
func (ec *emptinessCheck) isAtWork(c *cluster.Claim, n *cluster.Node) bool {
	return n != nil && c.Move == "" && !disrupt.LeavesInterrupted(c) && c.Deleting.IsZero() && n.Deleting.IsZero() &&
		c.Is(cluster.Initialized) && !disrupt.HasCommandUnderWay(ec.s, c, n)
}

// emptyState is what becomes of a node.
type emptyState int

const (
	stays      emptyState = iota
	goes                  // it is fenced and empty
	isNeeded              // it is fenced, and not empty or needed
	mayNotGo              // it is fenced and empty, and its pool no longer lets it go
	halfFenced            // its fence is down in part
	mayBegin              // it is empty and has been for long enough
)

// stateOf says what becomes of a node that is at work.
func (ec *emptinessCheck) stateOf(c *cluster.Claim, n *cluster.Node) emptyState {
	idle := ec.isIdle(c, n)
	switch {
	case disrupt.Fenced(c, n) && !idle:
		return isNeeded
	case disrupt.Fenced(c, n) && (ec.pool.Overrides.DryRun || ec.budgets.Remaining(ec.pool.Name, command.Empty) < 0):
		return mayNotGo
	case disrupt.Fenced(c, n):
		return goes
	case disrupt.IsHalfUnfenced(c, n) &&
		!(idle && c.Condition(cluster.DisruptionReason).Reason == string(command.Empty)):
		return halfFenced
	case !idle || disrupt.HasFence(n): // a fence that somebody else put up is theirs to take down
		return stays
	}
	if at := ec.waitsUntil(c); !at.IsZero() {
		ec.result.Wake(at)
		return stays
	}
	return mayBegin
}

// isIdle reports whether the node carries nothing, nobody needs it, and its pool lets empty nodes go.
func (ec *emptinessCheck) isIdle(c *cluster.Claim, n *cluster.Node) bool {
	mayGo := !ec.wait.Never || disrupt.NeverUsed(c) || ec.unusedNodes.Tries[c.Name] != nil
	kept := ec.needed[n.Name] || ec.moves[c.Replaces] || ec.unusedNodes.IsKept(c.Name)
	return mayGo && !kept && disrupt.IsEmpty(ec.s, c, n)
}

// waitsUntil is until when an empty node waits because it has not been quiet for long enough, or rests; zero if it
// does not.
func (ec *emptinessCheck) waitsUntil(c *cluster.Claim) time.Time {
	quiet, rest := disrupt.QuietAt(ec.wait, c, ec.set.Nomination), c.SavingRestUntil
	switch {
	case ec.unusedNodes.Tries[c.Name] == nil && ec.s.Now.Before(quiet) &&
		!(disrupt.NeverUsed(c) && disrupt.SavesMoney(disrupt.MoveReason(c.Replaces)) && ec.noPodWaits()):
		return quiet
	case ec.s.Now.Before(rest) && !ec.s.Now.Before(rest.Add(-disrupt.LongestSavingRest)):
		return rest
	}
	return time.Time{}
}

// act does what the state of a node asks for, as far as the budgets allow it.
func (ec *emptinessCheck) act(state emptyState, c *cluster.Claim, n *cluster.Node) {
	switch state {
	case goes:
		ec.result.Emit(command.DeleteClaim{Claim: c.Name, UID: c.UID, Node: n.Name, Reason: command.Empty,
			Text: reason.Of(reason.NodeEmpty)})
	case isNeeded, mayNotGo:
		ec.reopen(c, n, state == mayNotGo)
	case halfFenced:
		ec.result.Emit(command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name})
	case mayBegin:
		switch {
		case !ec.budgets.Reserve(ec.pool.Name, command.Empty, 1):
		case ec.pool.Overrides.DryRun:
			ec.addDryRun(c, n)
		default:
			ec.result.Emit(command.Fence{Claim: c.Name, UID: c.UID, Node: n.Name, Reason: command.Empty})
		}
	}
}

// reopen takes a fence down again, because the node is needed or may not go. One that is needed rests: where pods come
// and go all the time, as those do that somebody evicts, it would be fenced and opened again and again.
func (ec *emptinessCheck) reopen(c *cluster.Claim, n *cluster.Node, idle bool) {
	cmd := command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name}
	switch {
	case !idle:
		cmd.ForSaving = true
		cmd.RestUntil, cmd.Rests = disrupt.SavingRestOf(c, ec.s.Now)
	case ec.pool.Overrides.DryRun:
		cmd.BlockReason = string(disrupt.DryRun)
	default:
		cmd.BlockReason = string(disrupt.BudgetBlocks)
	}
	ec.budgets.Return(ec.pool.Name, 1)
	ec.result.Commands = append(ec.result.Commands, cmd)
}

// addDryRun tells that a dry run keeps the node from going.
func (ec *emptinessCheck) addDryRun(c *cluster.Claim, n *cluster.Node) {
	m := disrupt.Move{ID: disrupt.MoveID(command.Empty, []string{disrupt.ClaimIdentity(c)}), Reason: command.Empty,
		Claims: []string{c.Name},
		Before: c.Price}
	ec.result.DryRuns = append(ec.result.DryRuns, m)
	text := reason.Of(reason.DryRunEmpty, m.Before*disrupt.HoursPerMonth)
	ec.result.Notes = append(ec.result.Notes, n.Note(string(disrupt.DryRun), text),
		c.Note(string(disrupt.DryRun), text))
}

// reopenStatic takes down what is left of fences in a static pool. Its nodes are only ever fenced for a move, whatever
// they carry: a fence of ours without one is left from two replicas that have put it up and taken it down at the same
// time, and nobody follows it.
func reopenStatic(s *cluster.Snapshot, p *cluster.Pool, result *disrupt.Result) {
	for _, c := range s.ClaimsOf(p.Name) {
		n := s.NodeOf(c.Name)
		if n == nil || c.Move != "" || !c.Deleting.IsZero() || !n.Deleting.IsZero() ||
			disrupt.HasCommandUnderWay(s, c, n) {
			continue
		}
		if disrupt.Fenced(c, n) || disrupt.IsHalfUnfenced(c, n) {
			result.Commands = append(result.Commands, command.Unfence{Claim: c.Name, UID: c.UID, Node: n.Name})
		}
	}
}
