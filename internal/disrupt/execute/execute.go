package execute

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Input are what carrying moves on depends on besides the snapshot and the settings.
type Input struct {
	// Budgets is what budgets leave; nil for what they leave by the snapshot.
	Budgets *disrupt.BudgetTracker
	// Placement is where this plan sends pods that have no place; Commands are what it does otherwise.
	Placement *schedule.Placement
	Commands  []command.Command
	// Proposal is what a search has found since the last plan, or nil.
	Proposal *disrupt.Proposal
	// Repair says which nodes are unhealthy, Static whether static pools are served.
	Repair disrupt.RepairSettings
	Static bool
	// LastMemo is what was verified last, or nil.
	LastMemo *Memo
}

// Moves brings the moves that are under way a step further and begins new ones: nodes that are unhealthy, drifted or
// near the end of their life, and what a search has found.
//
// A move is a set of nodes that go together. Its nodes are fenced first. When a later snapshot shows all fences, their
// pods are placed again as if the nodes were gone; what that takes in new nodes is made, and awaited. Once every pod
// has a place on a node that is up, it is asked once more, and then the nodes go. Whatever no longer holds on the way
// takes the fences down again. Nothing of that is remembered: claims say which move they go in or replace.
func Moves(s *cluster.Snapshot, set disrupt.Settings, o Input) (disrupt.Result, *Memo) {
	x := newExecutor(s, set, o)

	// 1. What is under way: who may no longer go, whether people and pods say so or the budgets.
	x.gatherActive()
	x.revalidate()
	x.fitBudgets()

	// 2. What has to be replaced whatever it costs.
	x.beginRequired()

	// 3. Where would the pods go if all these nodes were gone?
	x.verify()

	// 4. Accordingly nodes are fenced, replaced, deleted or opened again.
	x.proceed()
	x.beginProposed(o.Proposal)
	return x.Result, x.memo
}

// executor is the work on one plan's moves.
type executor struct {
	// interruptionsOnly says that only nodes are looked at which the cloud takes away.
	interruptionsOnly bool
	disrupt.Result
	s           *cluster.Snapshot
	set         disrupt.Settings
	input       Input
	eligibility *disrupt.Eligibility
	budgets     *disrupt.BudgetTracker
	// neededHosts are the hosts to which the plan sends pods; removedNodes are nodes that other parts of it take away;
	// deletedClaims are the claims that it deletes.
	neededHosts, removedNodes, deletedClaims map[string]bool
	// chosen are hosts that kube-scheduler has chosen for pods which the plan sends elsewhere: it may still bind them
	// there.
	chosen map[string]bool
	// awaitingReplacements are the moves for which something was made that is not up yet, once somebody has asked.
	awaitingReplacements map[string]bool
	// unavailable are how many nodes of a pool are out, as far as somebody has asked.
	unavailable map[budgetKey]int
	// unhealthy is what ails the nodes that are beyond hope, by claim.
	unhealthy map[string]disrupt.UnhealthyCondition
	health    *disrupt.NodeHealth
	// forcedPods are pods that will have to leave at the deadline of an interrupted or unhealthy node, whatever they
	// say, by UID.
	forcedPods map[string]bool
	// moves are the moves, the oldest first.
	moves []*activeMove
	// requiredPlacement and savingPlacement are where the pods of moves would go that have to be, and of those that
	// save money.
	requiredPlacement, savingPlacement *schedule.Placement
	// otherPodsHosts are the hosts to which pods go in these that are of no move.
	otherPodsHosts map[string]bool
	departures     []departure
	// excluded are nodes that stay although their moves go on.
	excluded []excludedNode
	// podsBetweenNodes are the pods that are between two nodes, once they are counted.
	podsBetweenNodes []*cluster.Pod
	podsCounted      bool
	// totals are what balances are measured against, once somebody asks.
	totals   disrupt.PoolTotals
	memo     *Memo
	lastMemo *Memo
	// fencePending says that a fence is being put up of which it is not known yet in which move it is.
	fencePending bool
}

func newExecutor(s *cluster.Snapshot, set disrupt.Settings, o Input) *executor {
	x := &executor{s: s, set: set, input: o, lastMemo: o.LastMemo, eligibility: disrupt.NewEligibility(s, set),
		budgets:     o.Budgets,
		neededHosts: make(map[string]bool), removedNodes: make(map[string]bool), deletedClaims: make(map[string]bool),
		unavailable:    make(map[budgetKey]int),
		otherPodsHosts: make(map[string]bool), health: disrupt.NewNodeHealth(s, o.Repair)}
	if x.lastMemo == nil {
		x.lastMemo = &Memo{}
	}
	if x.budgets == nil {
		x.budgets = disrupt.NewBudgetTracker(s)
	}
	if o.Placement != nil {
		for i := range o.Placement.Assigned {
			x.neededHosts[o.Placement.Assigned[i].Host] = true
		}
		x.chosen = chosenHosts(o.Placement)
	}
	opened := make(map[string]bool)
	for _, c := range o.Commands {
		switch c := c.(type) {
		case command.Fence:
			x.removedNodes[c.Node] = true
		case command.DeleteClaim:
			x.removedNodes[c.Node], x.deletedClaims[c.Claim] = true, true
		case command.Unfence:
			opened[c.Node] = true
		}
	}
	for _, n := range s.Nodes {
		if c := s.ClaimOf(n.Name); c != nil && (disrupt.LeavesInterrupted(c) || c.Move == "" && disrupt.Fenced(c, n) &&
			!opened[n.Name]) {
			x.removedNodes[n.Name] = true
		}
	}
	delete(x.removedNodes, "")
	return x
}

func (ex *executor) wake(at time.Time) { ex.WakeAt = cluster.Earlier(ex.WakeAt, at) }

func (ex *executor) emit(c command.Command) { ex.Commands = append(ex.Commands, c) }
