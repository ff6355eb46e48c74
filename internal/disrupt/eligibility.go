package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Candidates are the nodes that may be disrupted for the reason, budgets aside, in the order of Compare; stays says of
// the others why not, and wake when that may change by itself. Idle nodes are among them: whoever repacks the rest must
// know that they go, and that is the business of package empty.
func Candidates(s *cluster.Snapshot, set Settings, reason command.Reason) (candidates []Candidate,
	blocked []BlockedNode, wake time.Time) {
	e := NewEligibility(s, set)
	for _, c := range s.Claims {
		candidate, stay := e.MayDisrupt(c, reason)
		switch {
		case stay == nil:
			candidates = append(candidates, candidate)
		case stay.Reason != NotManaged: // what is not ours is nobody's news
			blocked = append(blocked, *stay)
			wake = cluster.Earlier(wake, stay.Until)
		}
	}
	Sort(candidates)
	return candidates, blocked, wake
}

// Eligibility answers which nodes of one snapshot may go. It keeps what the answers have in common.
type Eligibility struct {
	s   *cluster.Snapshot
	set Settings
	// pdbsByLabels are the disruption budgets that count pods with the same labels.
	pdbsByLabels map[podLabelsKey][]*cluster.PDB
	// nominatedNodes are the nodes to which pending pods have been told to go; pendingClasses are the classes of
	// pending pods.
	nominatedNodes map[string]bool
	pendingClasses map[string]*cluster.PodClass
	evictionRates  *EvictionRates
	// unusedNodes are nodes that pods can't use which they were made for.
	unusedNodes UnusedNodes
}

// podLabelsKey tells pods of a namespace apart by their labels: those with equal labels share one value, and so its
// address.
type podLabelsKey struct {
	namespace  string
	firstLabel *cluster.Label
	count      int
}

// NewEligibility takes in what concerns all nodes.
func NewEligibility(s *cluster.Snapshot, set Settings) *Eligibility {
	e := &Eligibility{s: s, set: set, pdbsByLabels: make(map[podLabelsKey][]*cluster.PDB),
		nominatedNodes: make(map[string]bool), pendingClasses: make(map[string]*cluster.PodClass),
		evictionRates: NewEvictionRates(s, set)}
	e.unusedNodes = FindUnusedNodes(s)
	for _, p := range s.Pending() {
		e.pendingClasses[p.Class.Key] = p.Class
		if p.Nominated != "" {
			e.nominatedNodes[p.Nominated] = true
		}
	}
	return e
}

// MayDisrupt says whether a node may be disrupted for the reason, budgets aside, and if not why.
func (e *Eligibility) MayDisrupt(c *cluster.Claim, reason command.Reason) (Candidate, *BlockedNode) {
	return e.check(c, reason, false)
}

// MayStillDisrupt is MayDisrupt for a node that has been fenced for the reason: people and pods may have changed their
// minds since, but how long it has been quiet is not asked again, and neither is whether it is fenced.
func (e *Eligibility) MayStillDisrupt(c *cluster.Claim, reason command.Reason) (Candidate, *BlockedNode) {
	return e.check(c, reason, true)
}

// check asks one question after the other; the first no stands.
func (e *Eligibility) check(c *cluster.Claim, reason command.Reason, begun bool) (Candidate, *BlockedNode) {
	v := &eligibilityCheck{Eligibility: e, reason: reason, alreadyFenced: begun,
		candidate: Candidate{Claim: c, Node: e.s.NodeOf(c.Name), Pool: e.s.Pool(c.Pool)}}
	for _, ask := range []func(*eligibilityCheck) bool{(*eligibilityCheck).isManaged,
		(*eligibilityCheck).isNotQuarantined, (*eligibilityCheck).isUp, (*eligibilityCheck).isNotProtected,
		(*eligibilityCheck).hasPrice,
		(*eligibilityCheck).policyAllows, (*eligibilityCheck).isQuiet, (*eligibilityCheck).expectsNoPods,
		(*eligibilityCheck).podsAllow, (*eligibilityCheck).evictionRateAllows} {
		if !ask(v) {
			v.blocked.Claim = c.Name
			if v.candidate.Node != nil {
				v.blocked.Node = v.candidate.Node.Name
			}
			return Candidate{}, &v.blocked
		}
	}
	return v.candidate, nil
}

// eligibilityCheck is the answer about one node while it is being found.
type eligibilityCheck struct {
	*Eligibility
	reason        command.Reason
	alreadyFenced bool // the node is fenced for the reason already
	candidate     Candidate
	blocked       BlockedNode
}

func (ec *eligibilityCheck) block(reason BlockReason) bool {
	ec.blocked.Reason = reason
	return false
}

// blockUntil is a no that time alone may turn.
func (ec *eligibilityCheck) blockUntil(reason BlockReason, until time.Time) bool {
	ec.blocked.Until = until
	return ec.block(reason)
}

// SavesMoney reports whether the disruption is for money: then the pool's consolidation policy has a say.
func SavesMoney(reason command.Reason) bool {
	return reason == command.Underutilized || reason == command.Empty
}

// isManaged: nothing is done to nodes that a person made by hand. The nodes of a pool that is being
// deleted go with it; and by a pool that can't be read only unhealthy nodes are replaced, since nobody knows what else
// it says.
func (ec *eligibilityCheck) isManaged() bool {
	c, p := ec.candidate.Claim, ec.candidate.Pool
	switch {
	case c.IsStandalone():
		return ec.block(NotManaged)
	case p == nil || p.Deleting || len(p.Problems) > 0 && ec.reason != command.Unhealthy:
		return ec.block(PoolUnknown)
	case SavesMoney(ec.reason) && p.Static:
		return ec.block(PoolUnknown)
	}
	return true
}

// isNotQuarantined: what the planner fails on is left as it is.
func (ec *eligibilityCheck) isNotQuarantined() bool {
	return !ec.s.IsLeftAlone(ec.candidate.Claim) || ec.block(PlannerFails)
}

// isUp: the node has come up, and is not on its way out. What is unhealthy may be replaced before it is up.
func (ec *eligibilityCheck) isUp() bool {
	c, n := ec.candidate.Claim, ec.candidate.Node
	up := c.Is(cluster.Initialized) || ec.reason == command.Unhealthy && c.Is(cluster.Registered)
	switch {
	case !c.Deleting.IsZero() || n != nil && !n.Deleting.IsZero() || c.Is(cluster.InstanceTerminating):
		return ec.block(BeingDisrupted)
	case n == nil || !up:
		return ec.block(NotInitialized)
	case !ec.alreadyFenced && (HasFence(n) || c.Move != "" || HasCommandUnderWay(ec.s, c, n)):
		return ec.block(BeingDisrupted)
	}
	return true
}

// isNotProtected: people may keep a node. What keeps it from being replaced for its health is another word of theirs.
func (ec *eligibilityCheck) isNotProtected() bool {
	c, n := ec.candidate.Claim, ec.candidate.Node
	if ec.reason == command.Unhealthy {
		if c.DoNotRepair || n.DoNotRepair {
			return ec.block(NodeDoNotDisrupt)
		}
		return true
	}
	if c.DoNotDisrupt || n.DoNotDisrupt {
		return ec.block(NodeDoNotDisrupt)
	}
	return true
}

// hasPrice: what a node costs must be known where prices are compared.
func (ec *eligibilityCheck) hasPrice() bool {
	c, n := ec.candidate.Claim, ec.candidate.Node
	ec.candidate.Type = LabelOf(c, n, cluster.InstanceTypeLabel)
	ec.candidate.CapacityType = LabelOf(c, n, cluster.CapacityTypeLabel)
	price, sold := 0.0, false
	if catalog := ec.candidate.Pool.Catalog; catalog != nil {
		price, sold = catalog.Price(ec.candidate.Type, LabelOf(c, n, cluster.ZoneLabel), ec.candidate.CapacityType)
	}
	ec.candidate.Price = price
	return sold || ec.reason != command.Underutilized || ec.block(PriceUnknown)
}

// LabelOf is a label of the claim or, where that says nothing, of its node.
func LabelOf(c *cluster.Claim, n *cluster.Node, key string) string {
	value, ok := c.Labels.Get(key)
	if !ok && n != nil {
		value, _ = n.Labels.Get(key)
	}
	return value
}

// policyAllows: a pool's policy may spare every node that carries anything.
func (ec *eligibilityCheck) policyAllows() bool {
	ec.candidate.Empty = NoWorkload(ec.s.PodsOn(ec.candidate.Node.Name))
	if SavesMoney(ec.reason) && ec.candidate.Pool.Policy == cluster.WhenEmpty && !ec.candidate.Empty {
		return ec.block(PolicyForbids)
	}
	return true
}

// isQuiet: a node is left alone for a while after pods came or went, and after a disruption of it was given up.
func (ec *eligibilityCheck) isQuiet() bool {
	c := ec.candidate.Claim
	wait, has := QuietPeriod(ec.candidate.Pool, ec.reason)
	if has && wait.Never {
		return ec.block(ConsolidationsOff)
	}
	if ec.alreadyFenced {
		return true
	}
	if has {
		if at := QuietAt(wait, c, ec.set.Nomination); ec.s.Now.Before(at) {
			return ec.blockUntil(TooSoon, at)
		}
	}
	// Pods of others may have come first. Whether they stay says when the next try may be made.
	if at := ec.s.ObservedUntil(c); SavesMoney(ec.reason) && ec.s.Now.Before(at) {
		return ec.blockUntil(TooSoon, at)
	}
	if ec.s.Now.Before(c.RestUntil) {
		return ec.blockUntil(MoveFailedLately, c.RestUntil)
	}
	if SavesMoney(ec.reason) && ec.s.Now.Before(c.SavingRestUntil) {
		return ec.blockUntil(MoveFailedLately, c.SavingRestUntil)
	}
	return true
}

// expectsNoPods: pods may be on their way to the node.
func (ec *eligibilityCheck) expectsNoPods() bool {
	n := ec.candidate.Node
	if until, fresh := ec.unusedNodes.YoungUntil[ec.candidate.Claim.Name]; SavesMoney(ec.reason) && fresh {
		return ec.blockUntil(TooSoon, until)
	}
	if SavesMoney(ec.reason) && ec.unusedNodes.Retained[ec.candidate.Claim.Name] {
		return ec.block(ShowsCause)
	}
	if ec.s.HasNominatedPod(n.Name) || ec.nominatedNodes[n.Name] || ec.s.IsReplacement(ec.candidate.Claim) {
		return ec.block(PodsExpected)
	}
	return ec.hasNoAwaitedSeat()
}

// hasNoAwaitedSeat: the node may keep a seat for a pod that is looking for a place. If others have taken the room
// meanwhile there is no seat any more, or a pod that fits nowhere would keep the node for ever; and what has to be done
// whatever it costs waits only as long as a new node is kept for its pods.
func (ec *eligibilityCheck) hasNoAwaitedSeat() bool {
	until := ec.candidate.Claim.Condition(cluster.Initialized).Since.Add(ec.set.Nomination)
	switch {
	case SavesMoney(ec.reason):
		return !ec.hasAwaitedSeat() || ec.block(PodsExpected)
	case ec.s.Now.Before(until):
		return !ec.hasAwaitedSeat() || ec.blockUntil(PodsExpected, until)
	}
	return true
}

// hasAwaitedSeat reports whether there is a seat, with room, for a pod that is looking for a place.
func (ec *eligibilityCheck) hasAwaitedSeat() bool {
	c, n := ec.candidate.Claim, ec.candidate.Node
	free := n.Allocatable
	for _, p := range ec.s.PodsOn(n.Name) {
		free = free.Sub(p.Class.Requests)
	}
	for _, seat := range c.Seats {
		class := ec.pendingClasses[seat.Class]
		if class == nil || !class.Requests.Fits(free) {
			continue
		}
		taken := 0
		for _, p := range ec.s.PodsOn(n.Name) {
			if p.Class.Key == seat.Class {
				taken++
			}
		}
		if taken < seat.Count {
			return true
		}
	}
	return false
}

// evictionRateAllows: a workload whose pods have been evicted often enough is left alone. What has to be done in any
// case is done.
func (ec *eligibilityCheck) evictionRateAllows() bool {
	if ec.alreadyFenced || ec.reason != command.Underutilized {
		return true
	}
	pod, until, ok := ec.evictionRates.Allow(ec.candidate)
	if !ok {
		ec.blocked.Pod = pod.ID()
		return ec.blockUntil(WorkloadResting, until)
	}
	return true
}
