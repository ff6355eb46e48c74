// Package plan makes a plan from a snapshot and checks it against a newer one.
//
// Floor 2: pure. Make is the whole of what Tenon decides; reading it from top to bottom is reading the program.
package plan

import (
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/disrupt/empty"
	"github.com/tenon-sh/tenon/internal/disrupt/execute"
	"github.com/tenon-sh/tenon/internal/disrupt/repair"
	"github.com/tenon-sh/tenon/internal/disrupt/search"
	"github.com/tenon-sh/tenon/internal/disrupt/static"
	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/nominate"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Policy is what a plan depends on besides the snapshot.
type Policy struct {
	// BatchIdle and BatchMax bound how long to wait for more pods before planning for those that are there.
	BatchIdle, BatchMax time.Duration
	Lifecycle           lifecycle.Settings
	// Schedule says what is made of preferences and of minValues.
	Schedule schedule.Settings
	// Placement is how pods get to the nodes that were made for them.
	Placement PlacementMode
	// StaticCapacity serves pools that keep a fixed number of nodes.
	StaticCapacity bool
	// Repair says which nodes are beyond hope.
	Repair disrupt.RepairSettings
	// Disrupt says how much a disruption must save, and how it goes about it.
	Disrupt disrupt.Settings
}

// PlacementMode is how pods get to the nodes that were made for them.
type PlacementMode string

// The modes: kube-scheduler is told where a pod is expected, or the pod is bound as soon as the node is registered, or
// an event is all that is said.
const (
	PlaceByNomination PlacementMode = "nominate"
	PlaceByBinding    PlacementMode = "bind"
	PlaceByEvent      PlacementMode = "event"
)

// nomination is how long a new node is kept for the pods it was made for.
func (p Policy) nomination() time.Duration { return max(2*p.BatchMax, 10*time.Second) }

// disruption completes the settings of disruption with what it shares with the rest.
func (p Policy) disruption() disrupt.Settings {
	set := p.Disrupt
	set.Schedule, set.Nomination = p.Schedule, p.nomination()
	return set
}

// Search looks at every node for a cheaper way to run its pods. It may take seconds where there are thousands of nodes,
// so it is not part of a plan; what it finds goes into one.
func Search(s *cluster.Snapshot, policy Policy) disrupt.Proposal {
	return search.Find(s, policy.disruption())
}

// Plan is what should happen now. Its commands don't depend on each other: each may be carried out, or fail, alone.
// What is to be done comes before what is only to be written down.
type Plan struct {
	// Rev and Now of the snapshot it was made from.
	Rev uint64
	Now time.Time
	// Commands to carry out.
	Commands []command.Command
	// Provisioned says that pending pods were planned for; Placement is where they go, or why they can't.
	Provisioned bool
	Placement   schedule.Placement
	// Begun are the moves of nodes that begin with this plan, GivenUp those that don't come about, DryRuns those of
	// which a dry run only tells.
	Begun   []disrupt.Move
	GivenUp []disrupt.GivenUp
	DryRuns []disrupt.Move
	// ProposalUsed says that the plan has looked at what a search has found. NotBegun are the moves of it that are not
	// begun.
	ProposalUsed bool
	NotBegun     []disrupt.GivenUp
	// settings is how disruption goes about it; demand and supply are the snapshot's.
	settings disrupt.Settings
	// staticCapacity says that static pools are served.
	staticCapacity bool
	demand, supply uint64
	memo           planMemo
	// claimAdmission is what every claim for pods has to pass.
	claimAdmission *claimAdmission
	// interruptedPlacement is where the pods of nodes go that the cloud takes away.
	interruptedPlacement *schedule.Placement
	// repair is by what nodes were found to be beyond hope.
	repair disrupt.RepairSettings
	// WakeAt is when to plan again even if nothing changes; zero for never.
	WakeAt time.Time
	// PlanSoon says that something waits for what is happening already and would go on at once: it is worth looking
	// soon.
	PlanSoon bool
	// Notes are what stands in the way, for people.
	Notes []cluster.Note
	// Orphans counts the instances that nobody claims, if OrphansChecked says that they were looked for.
	Orphans        lifecycle.OrphanStatus
	OrphansChecked bool
}

// planMemo is what the next plan need not work out again if nothing has changed: the last placement of pods, with the
// revisions of the snapshot that it was made from, and that of the moves.
type planMemo struct {
	known          bool
	placement      schedule.Placement
	heldPods       map[string]schedule.PodHold
	demand, supply uint64
	moves          *destination.Memo
	interrupted    *destination.Memo
}

// deferredWait is when pods are planned for that had to wait for others to be planned for.
const deferredWait = time.Second

// Make decides what should happen now. before is the last plan, or nil: what has not changed since then is not worked
// out again. It never changes the answer. found is what a search for cheaper nodes has found since the last plan, or
// nil; it may be a little older than the snapshot, and is verified like everything else. While pods are being counted
// it is not looked at.
func Make(s *cluster.Snapshot, policy Policy, before *Plan, found *disrupt.Proposal) Plan {
	p := newPlan(s, policy)
	if before != nil {
		p.memo = before.memo
	}
	q := &s.Quarantine

	// 1. Every claim, and every node that lost its claim, moves a step further.
	p.advanceClaims(s, policy)

	// 2. Pods without a place get one, as soon as waiting for more of their kind is pointless.
	closed, wake := batchClosed(s, policy)
	closed = closed && !slices.ContainsFunc(s.Pools, (*cluster.Pool).AwaitsCatalog)
	p.WakeAt = cluster.Earlier(p.WakeAt, wake)
	if closed && !q.LeavesOut(cluster.Placing) {
		p.provision(s, policy)
	}

	// Nodes that the cloud takes away are replaced first, for nobody can make it wait. Who has a place is told of it
	// then.
	if !q.LeavesOut(cluster.Interrupting) {
		p.handleInterruptions(s, policy, !closed)
	}
	if !q.LeavesOut(cluster.Nominating) {
		p.addNominations(s, policy)
	}

	// 3. Nodes that nobody needs go, and those that are unhealthy, drifted, near their end or too dear are replaced;
	// unless pods that are still being counted might want them. Sick nodes of no pool go, and static pools get the
	// nodes that they ask for.
	p.addResult(empty.ReopenQuarantined(s, q.LeavesOut(cluster.Disrupting)))
	if !q.LeavesOut(cluster.Disrupting) {
		p.removeNodes(s, policy, found, closed)
	}
	p.dropNeedlessLaunches()

	// 4. Claims and pools tell what there is and what is wrong.
	if !q.LeavesOut(cluster.WritingStatus) {
		p.writeStatus(s, policy)
	}
	p.tellFailures(s)

	// 5. What is under way is left alone; what failed waits for its turn, and keeps nobody else from a pool's limits.
	p.dropBusy(s)
	p.keepLimits(s)
	return p
}

// provision finds places for pods that have none, and asks for the nodes that it takes.
func (p *Plan) provision(s *cluster.Snapshot, policy Policy) {
	overlay := s.SchedulerView()
	if len(overlay.Pending()) == 0 {
		return
	}
	p.Provisioned = true
	p.place(overlay, policy.Schedule)
	p.tellDaemons(s)
	if p.Placement.Deferred > 0 {
		p.WakeAt = cluster.Earlier(p.WakeAt, s.Now.Add(deferredWait))
	}
	p.createClaims(s, policy)
}

// removeNodes takes nodes away for all reasons but interruptions, and gives static pools theirs.
func (p *Plan) removeNodes(s *cluster.Snapshot, policy Policy, found *disrupt.Proposal, closed bool) {
	if policy.StaticCapacity {
		defer func() { p.addResult(static.KeepReplicas(s, policy.Schedule)) }()
	}
	orders := execute.Input{Placement: p.takenPlaces(), Commands: p.Commands, Proposal: found,
		Repair: policy.Repair, Static: policy.StaticCapacity, LastMemo: p.memo.moves}
	if closed {
		p.ProposalUsed = found != nil
		p.disrupt(s, policy, orders)
	} else {
		p.addResult(execute.StartRequired(s, policy.disruption(), orders))
	}
	p.addResult(repair.EndUnhealthy(s, policy.Repair))
}

// disrupt takes nodes away. All that do so draw on the same budgets.
func (p *Plan) disrupt(s *cluster.Snapshot, policy Policy, o execute.Input) {
	o.Budgets = disrupt.NewBudgetTracker(s)
	p.addResult(empty.Remove(s, o.Budgets, podDemand(s, p.takenPlaces()), policy.disruption()))
	o.Commands = p.Commands
	result, memo := execute.Moves(s, policy.disruption(), o)
	p.memo.moves = memo
	p.addResult(result)
	p.createReplacements(s, result.Replacements)
}

// writeStatus writes down what has changed about claims and pools.
func (p *Plan) writeStatus(s *cluster.Snapshot, policy Policy) {
	p.Commands = append(p.Commands, drift.TemplateHashes(s)...)
	rollouts := drift.NewRollouts(s, policy.disruption())
	commands, wake := drift.ClaimConditions(s, rollouts, p.Commands)
	p.Commands, p.WakeAt = commands, cluster.Earlier(p.WakeAt, wake)
	p.PlanSoon = p.PlanSoon || slices.ContainsFunc(commands, writesDrift)
	for _, pool := range s.Pools {
		status := poolStatus(s, pool, policy, rollouts)
		p.tellOrphans(s, pool, &status)
		if !sameStatus(&status, &pool.Status) {
			p.Commands = append(p.Commands, command.SetPool{Pool: pool.Name, Status: status})
		}
		if class := pool.NodeClass; class.Pending && class.Until.After(s.Now) {
			p.WakeAt = cluster.Earlier(p.WakeAt, class.Until)
		}
	}
}

// writesDrift reports whether a command writes down that a node has drifted: it may be replaced as soon as that is
// there.
func writesDrift(c command.Command) bool {
	tell, ok := c.(command.SetClaim)
	return ok && slices.ContainsFunc(tell.Conditions, func(c command.Condition) bool {
		return c.Type == cluster.Drifted && c.Status == cluster.True
	})
}

// place finds places for the pods, or takes the answer over if the question is the same.
func (p *Plan) place(o *cluster.Overlay, settings schedule.Settings) {
	m := &p.memo
	demand, supply := o.Base.DemandRev, o.Base.SupplyRev
	settings.HeldPods, settings.AllowSqueeze = heldPods(o), true
	if m.known {
		if demand != 0 && supply != 0 && m.demand == demand && m.supply == supply &&
			m.placement.Deferred == 0 && sameHolds(m.heldPods, settings.HeldPods) {
			p.Placement = m.placement
			return
		}
		before := m.placement
		settings.LastPlacement = &before
	}
	p.Placement = trustVerifiedMoves(o, settings, schedule.Place(o, settings))
	m.known, m.placement, m.heldPods, m.demand, m.supply = true, p.Placement, settings.HeldPods, demand, supply
}

// addNominations has pods told of the nodes that were made for them.
func (p *Plan) addNominations(s *cluster.Snapshot, policy Policy) {
	if policy.Placement != PlaceByNomination && policy.Placement != PlaceByBinding {
		return
	}
	in := nominate.Input{Snapshot: s, Placement: &p.Placement, Binding: policy.Placement == PlaceByBinding,
		Lifecycle: policy.Lifecycle}
	if !p.Provisioned {
		if !nominate.IsDue(s, in.Binding) {
			return
		}
		draft := Plan{memo: p.memo} // by which pods are told; no claim is made from it
		draft.place(s.SchedulerView(), policy.Schedule)
		in.Placement = &draft.Placement
	}
	for _, c := range p.Commands {
		if r, ok := c.(command.Register); ok {
			in.Registered = append(in.Registered, r)
		}
	}
	told := nominate.Pods(in)
	p.Commands = append(slices.DeleteFunc(p.Commands, func(c command.Command) bool {
		r, ok := c.(command.Register)
		return ok && told.KeptClosed[r.Node]
	}), told.Commands...)
	p.WakeAt = cluster.Earlier(p.WakeAt, told.WakeAt)
}

// advanceClaims has everything that is on its way take its next step.
func (p *Plan) advanceClaims(s *cluster.Snapshot, policy Policy) {
	p.addStep(lifecycle.Next(s, policy.Lifecycle))
	if !s.Quarantine.LeavesOut(cluster.Collecting) {
		p.endOrphans(s)
	}
	p.shareEvictions(s)
	p.largestFirst(s)
}

// endOrphans ends what has no claim: instances, and nodes that are being deleted.
func (p *Plan) endOrphans(s *cluster.Snapshot) {
	step, hold := lifecycle.Orphans(s)
	p.Orphans, p.OrphansChecked = hold, true
	for _, n := range s.Nodes {
		if _, quarantined := s.Quarantine.Claims[n.Name]; !quarantined && !hold.IsHeld(n.Name) {
			p.addStep(lifecycle.EndNode(s, n, s.InstancesGone[n.ProviderID]))
		}
	}
	p.addStep(step)
	if text := hold.Text(); !text.IsZero() {
		p.Notes = append(p.Notes, cluster.Note{Kind: "Namespace", Name: "kube-system", UID: s.Cluster,
			Reason: "OrphansHeld", Text: text, Warning: true})
	}
}

func (p *Plan) addStep(step lifecycle.Step) {
	p.Commands = append(p.Commands, step.Commands...)
	p.WakeAt = cluster.Earlier(p.WakeAt, step.WakeAt)
	p.Notes = append(p.Notes, step.Notes...)
}

func (p *Plan) addResult(r disrupt.Result) {
	p.Commands = append(p.Commands, r.Commands...)
	p.WakeAt = cluster.Earlier(p.WakeAt, r.WakeAt)
	p.Notes = append(p.Notes, r.Notes...)
	p.Begun = append(p.Begun, r.Begun...)
	p.GivenUp = append(p.GivenUp, r.GivenUp...)
	p.DryRuns = append(p.DryRuns, r.DryRuns...)
	p.NotBegun = append(p.NotBegun, r.NotBegun...)
	p.PlanSoon = p.PlanSoon || r.PlanSoon
}

// createClaims asks for a claim for every new node.
func (p *Plan) createClaims(s *cluster.Snapshot, policy Policy) {
	nameTaken, probed := make(map[string]bool, len(p.Placement.Bins)), make(map[*cluster.Pool]bool)
	for _, pool := range s.Pools {
		if pool.InBackoff && pool.BackoffUntil.After(s.Now) {
			p.WakeAt = cluster.Earlier(p.WakeAt, pool.BackoffUntil)
		}
	}
	filling := newFillingNodes(s, &p.Placement, policy)
	p.wakeForTries(s)
	for i := range p.Placement.Bins {
		if wake, wait := filling.mayWait(&p.Placement.Bins[i]); wait {
			p.WakeAt = cluster.Earlier(p.WakeAt, wake)
			continue
		}
		if pool := p.Placement.Bins[i].Pool; pool.Probing { // one finds out; the others are made when it is known
			if probed[pool] || market.HasUnlaunchedClaim(s, pool) {
				continue
			}
			probed[pool] = true
		}
		if !p.claimAdmission.admit(p.Placement.Bins[i].Pods) {
			continue
		}
		c := createClaim(s, &p.Placement.Bins[i], func(name string) bool {
			return nameTaken[name] || s.Claim(name) != nil
		})
		nameTaken[c.Name] = true
		p.Commands = append(p.Commands, c)
	}
}

// dropBusy leaves out what is under way or waits for another try, and what makes no sense without it. What is left is
// put in order: nodes and pods wait for acts, and hundreds of notes before them would keep them waiting.
func (p *Plan) dropBusy(s *cluster.Snapshot) {
	ready, lost := p.Commands[:0], newDroppedCommands()
	asked := make(map[string]bool, len(p.Commands))
	for _, c := range p.Commands {
		key := c.Key()
		if s.InFlight[key] || asked[key] { // of two reasons for the same act the first stands
			lost.fence(c)
			continue
		}
		asked[key] = true
		if retry, failed := s.Retry[key]; failed && s.Now.Before(retry.NotBefore) {
			p.WakeAt = cluster.Earlier(p.WakeAt, retry.NotBefore)
			lost.holdBack(c, s)
			continue
		}
		ready = append(ready, c)
	}
	slices.SortStableFunc(ready, func(a, b command.Command) int {
		switch {
		case command.IsStatusUpdate(a) == command.IsStatusUpdate(b):
			return 0
		case command.IsStatusUpdate(a):
			return 1
		}
		return -1
	})
	p.Commands = ready
	p.dropDependents(lost)
	p.dropNeedlessReplacements(s)
	p.correctMoves()
}

// podDemand is what pods without a place want of the nodes that are there. Those whose own nodes are unused don't ask
// for these to go: when they go is a matter of the next try.
func podDemand(s *cluster.Snapshot, placement *schedule.Placement) empty.Demand {
	out := empty.Demand{Hosts: make(map[string]bool), LimitedPools: make(map[string]bool)}
	for _, a := range placement.Assigned {
		out.Hosts[a.Host] = true
	}
	for i := range placement.Unplaced {
		if own, _ := s.TriesHolding(placement.Unplaced[i].Pod); own != nil {
			continue
		}
		for _, miss := range placement.Unplaced[i].Pools {
			if miss.ByLimit > 0 {
				out.LimitedPools[miss.Pool] = true
			}
		}
	}
	return out
}
