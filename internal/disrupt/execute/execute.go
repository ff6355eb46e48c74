package execute

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
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
	LastMemo *destination.Memo
}

// Moves brings the moves that are under way a step further and begins new ones: nodes that are unhealthy, drifted or
// near the end of their life, and what a search has found.
//
// A move is a set of nodes that go together. Its nodes are fenced first. When a later snapshot shows all fences, their
// pods are placed again as if the nodes were gone; what that takes in new nodes is made, and awaited. Once every pod
// has a place on a node that is up, it is asked once more, and then the nodes go. Whatever no longer holds on the way
// takes the fences down again. Nothing of that is remembered: claims say which move they go in or replace.
func Moves(s *cluster.Snapshot, set disrupt.Settings, o Input) (disrupt.Result, *destination.Memo) {
	x := newExecutor(s, set, o)

	// 1. What is under way: who may no longer go, whether people and pods say so or the budgets.
	x.gather()
	x.revalidate()
	x.fitBudgets()

	// 2. What has to be replaced whatever it costs.
	x.beginRequired()

	// 3. Where would the pods go if all these nodes were gone?
	x.verify()

	// 4. Accordingly nodes are fenced, replaced, deleted or opened again.
	x.proceed()
	x.beginProposed(o.Proposal)
	return *x.Result, x.memo
}

// frame is what all phases of one plan share: what they read, the moves that they hand on, and what is decided.
type frame struct {
	s   *cluster.Snapshot
	set disrupt.Settings
	*destination.Verifier
	*disrupt.Result
	input       Input
	eligibility *disrupt.Eligibility
	health      *disrupt.NodeHealth
	budgets     *disrupt.BudgetTracker
	// out are the nodes that are out, as far as somebody has asked; neededHosts are the hosts to which the plan sends
	// pods.
	out         *disrupt.OutNodes
	neededHosts map[string]bool
	// requiredPlacement and savingPlacement are where the pods of moves would go that have to be, and of those that
	// save money.
	requiredPlacement, savingPlacement *schedule.Placement
	departures                         []departure
	memo, lastMemo                     *destination.Memo
}

// executor is the work on one plan's moves, phase by phase.
type executor struct {
	*frame
	*waits
	*fences
	*balancer
	*revalidator
	*requiredQueue
	*requiredMoves
	*savingMoves
	*departer
	*beginner
}

func newExecutor(s *cluster.Snapshot, set disrupt.Settings, o Input) *executor {
	fr := newFrame(s, set, o)
	x := &executor{frame: fr, waits: &waits{frame: fr}, fences: &fences{frame: fr}, balancer: &balancer{frame: fr}}
	x.revalidator = &revalidator{fr, x.fences}
	x.requiredQueue = &requiredQueue{fr}
	x.requiredMoves = &requiredMoves{fr, x.waits, x.fences}
	x.savingMoves = &savingMoves{fr, x.waits, x.fences, x.balancer}
	x.departer = &departer{fr, x.waits, x.fences}
	x.beginner = &beginner{fr, x.waits, x.fences, x.savingMoves}
	return x
}

func newFrame(s *cluster.Snapshot, set disrupt.Settings, o Input) *frame {
	x := &frame{s: s, set: set, Verifier: destination.NewVerifier(s, set), Result: &disrupt.Result{}, input: o,
		lastMemo:    o.LastMemo,
		eligibility: disrupt.NewEligibility(s, set), health: disrupt.NewNodeHealth(s, o.Repair), budgets: o.Budgets,
		neededHosts: make(map[string]bool)}
	if x.lastMemo == nil {
		x.lastMemo = &destination.Memo{}
	}
	if x.budgets == nil {
		x.budgets = disrupt.NewBudgetTracker(s)
	}
	if o.Placement != nil {
		for i := range o.Placement.Assigned {
			x.neededHosts[o.Placement.Assigned[i].Host] = true
		}
		x.Chosen = destination.ChosenHosts(o.Placement)
	}
	deleted, opened := make(map[string]bool), make(map[string]bool)
	for _, c := range o.Commands {
		switch c := c.(type) {
		case command.Fence:
			x.RemovedNodes[c.Node] = true
		case command.DeleteClaim:
			x.RemovedNodes[c.Node], deleted[c.Claim] = true, true
		case command.Unfence:
			opened[c.Node] = true
		}
	}
	x.out = disrupt.NewOutNodes(s, x.budgets, deleted)
	for _, n := range s.Nodes {
		if c := s.ClaimOf(n.Name); c != nil && (disrupt.LeavesInterrupted(c) || c.Move == "" && disrupt.Fenced(c, n) &&
			!opened[n.Name]) {
			x.RemovedNodes[n.Name] = true
		}
	}
	delete(x.RemovedNodes, "")
	return x
}

// verify places the pods of all moves as if the nodes of all were gone. Those that go whatever it costs come first;
// what they leave is for those that go to save money.
func (ex *executor) verify() {
	var due, saving []*destination.Move
	for _, m := range ex.Moves {
		switch {
		case m.GiveUpReason != "" || m.IsStatic && ex.staticReplacement(m) == nil:
		case disrupt.SavesMoney(m.Reason):
			saving = append(saving, m)
		default:
			due = append(due, m)
		}
	}
	if len(due)+len(saving) == 0 {
		return
	}
	for _, m := range due {
		ex.forceUnhealthyPods(m)
	}
	ex.memo = &destination.Memo{}
	others := destination.OthersOf(ex.input.Placement)
	ex.requiredPlacement = ex.PlaceMoves(due, saving, others, &ex.lastMemo.Required, &ex.memo.Required)
	others.Add(ex.requiredPlacement)
	ex.savingPlacement = ex.PlaceMoves(saving, due, others, &ex.lastMemo.Saving, &ex.memo.Saving)
}

// forceUnhealthyPods counts the pods of an unhealthy node that will be made to leave although they, or a disruption
// budget, object: they need other places, too.
func (ex *executor) forceUnhealthyPods(m *destination.Move) {
	if m.Reason != command.Unhealthy || m.IsStatic {
		return
	}
	for i := range m.Nodes {
		if !ex.health.HasForcedEnd(m.Nodes[i].Claim) {
			continue
		}
		for _, p := range ex.s.PodsOn(m.Nodes[i].Node.Name) {
			if p.IsReschedulable() && !ex.s.NeedsNewPlace(p) {
				ex.ForcePod(p)
			}
		}
	}
}

// proceed takes every move a step further.
func (ex *executor) proceed() {
	ex.proceedRequired()
	ex.proceedSaving()
	ex.proceedStatic()
	ex.departReady()
	ex.reopenExcluded()
	for _, m := range ex.Moves {
		if m.GiveUpReason != "" {
			ex.reopenNodes(m)
		} else {
			ex.refence(m)
		}
	}
}

// StartRequired begins the replacement of nodes that have to go whatever it costs while pods are still being counted:
// only fences are put up, which can be taken down again. Where the pods that are counted go is not known yet, so that
// everything else waits; but where pods come and go all the time, whoever waits for a budget would hardly ever find a
// moment otherwise.
func StartRequired(s *cluster.Snapshot, set disrupt.Settings, o Input) disrupt.Result {
	if !anyRequired(s, o) { // there are rushes in which every pass counts
		return disrupt.Result{}
	}
	o.Proposal, o.Placement = nil, destination.PlacementOfPending(s)
	x := newExecutor(s, set, o)
	x.gather()
	x.revalidate()
	x.fitBudgets()
	under := len(x.Moves)
	x.beginRequired()
	if len(x.Moves) > under {
		x.verify()
	}
	for _, m := range x.Moves[under:] {
		if m.IsStatic || m.Farthest() != destination.Nowhere {
			x.fence(m)
		}
	}
	return disrupt.Result{Commands: x.Commands, Begun: x.Begun, WakeAt: x.WakeAt, PlanSoon: x.PlanSoon}
}

// anyRequired reports whether there may be nodes that have to go whatever it costs.
func anyRequired(s *cluster.Snapshot, o Input) bool {
	return o.Repair.Enabled || slices.ContainsFunc(s.Pools, func(p *cluster.Pool) bool {
		return p.Overrides.SoftExpiry > 0
	}) ||
		slices.ContainsFunc(s.Claims, func(c *cluster.Claim) bool {
			return c.Is(cluster.Drifted) && c.Move == "" && c.Deleting.IsZero()
		})
}
