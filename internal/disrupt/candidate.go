package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Candidates are the nodes that may be disrupted for the reason, budgets aside, in the order of Compare; stays says of the
// others why not, and wake when that may change by itself. Idle nodes are among them: whoever repacks the rest must know
// that they go, and that is the business of Empty.
func Candidates(s *cluster.Snapshot, set Settings, reason command.Reason) (candidates []Candidate, stays []Stay, wake time.Time) {
	j := NewJudge(s, set)
	for _, c := range s.Claims {
		candidate, stay := j.MayGo(c, reason)
		switch {
		case stay == nil:
			candidates = append(candidates, candidate)
		case stay.Why != NotManaged: // what is not ours is nobody's news
			stays = append(stays, *stay)
			wake = cluster.Earlier(wake, stay.Until)
		}
	}
	Sort(candidates)
	return candidates, stays, wake
}

// Judge answers which nodes of one snapshot may go. It keeps what the answers have in common.
type Judge struct {
	s   *cluster.Snapshot
	set Settings
	// kept are the disruption budgets that count pods with the same labels.
	kept map[labelled][]*cluster.Guard
	// nominated are the nodes to which pending pods have been told to go; wanted are the classes of pending pods.
	nominated map[string]bool
	wanted    map[string]*cluster.PodClass
	patience  *Patience
	// unused are nodes that pods can't use which they were made for.
	unused vainNodes
}

// labelled tells pods of a namespace apart by their labels: those with equal labels share one value, and so its address.
type labelled struct {
	namespace string
	first     *cluster.Label
	count     int
}

// NewJudge takes in what concerns all nodes.
func NewJudge(s *cluster.Snapshot, set Settings) *Judge {
	j := &Judge{s: s, set: set, kept: make(map[labelled][]*cluster.Guard),
		nominated: make(map[string]bool), wanted: make(map[string]*cluster.PodClass), patience: NewPatience(s, set)}
	j.unused = inVain(s)
	for _, p := range s.Pending() {
		j.wanted[p.Class.Key] = p.Class
		if p.Nominated != "" {
			j.nominated[p.Nominated] = true
		}
	}
	return j
}

// MayGo says whether a node may be disrupted for the reason, budgets aside, and if not why.
func (j *Judge) MayGo(c *cluster.Claim, reason command.Reason) (Candidate, *Stay) {
	return j.judge(c, reason, false)
}

// MayStillGo is MayGo for a node that has been fenced for the reason: people and pods may have changed their minds since,
// but how long it has been quiet is not asked again, and neither is whether it is fenced.
func (j *Judge) MayStillGo(c *cluster.Claim, reason command.Reason) (Candidate, *Stay) {
	return j.judge(c, reason, true)
}

// judge asks one question after the other; the first no stands.
func (j *Judge) judge(c *cluster.Claim, reason command.Reason, begun bool) (Candidate, *Stay) {
	v := &verdict{Judge: j, reason: reason, begun: begun,
		candidate: Candidate{Claim: c, Node: j.s.NodeOf(c.Name), Pool: j.s.Pool(c.Pool)}}
	for _, ask := range []func(*verdict) bool{(*verdict).ours, (*verdict).understood, (*verdict).there, (*verdict).willing, (*verdict).priced,
		(*verdict).permitted, (*verdict).quiet, (*verdict).unpromised, (*verdict).pods, (*verdict).rested} {
		if !ask(v) {
			v.stay.Claim = c.Name
			if v.candidate.Node != nil {
				v.stay.Node = v.candidate.Node.Name
			}
			return Candidate{}, &v.stay
		}
	}
	return v.candidate, nil
}

// verdict is the answer about one node while it is being found.
type verdict struct {
	*Judge
	reason    command.Reason
	begun     bool // the node is fenced for the reason already
	candidate Candidate
	stay      Stay
}

func (v *verdict) no(why Why) bool {
	v.stay.Why = why
	return false
}

// noUntil is a no that time alone may turn.
func (v *verdict) noUntil(why Why, until time.Time) bool {
	v.stay.Until = until
	return v.no(why)
}

// saves reports whether the disruption is for money: then the pool's consolidation policy has a say.
func saves(reason command.Reason) bool {
	return reason == command.Underutilized || reason == command.Empty
}

// ours: nothing is done to nodes that a person made by hand. The nodes of a pool that is being
// deleted go with it; and by a pool that can't be read only sick nodes are replaced, since nobody knows what else it says.
func (v *verdict) ours() bool {
	c, p := v.candidate.Claim, v.candidate.Pool
	switch {
	case c.Standalone():
		return v.no(NotManaged)
	case p == nil || p.Deleting || len(p.Problems) > 0 && v.reason != command.Unhealthy:
		return v.no(PoolUnknown)
	case saves(v.reason) && p.Static:
		return v.no(PoolUnknown)
	}
	return true
}

// understood: what the planner fails on is left as it is.
func (v *verdict) understood() bool {
	return !v.s.LeftAlone(v.candidate.Claim) || v.no(PlannerFails)
}

// there: the node has come up, and is not on its way out. What is sick may be replaced before it is up.
func (v *verdict) there() bool {
	c, n := v.candidate.Claim, v.candidate.Node
	up := c.Is(cluster.Initialized) || v.reason == command.Unhealthy && c.Is(cluster.Registered)
	switch {
	case !c.Deleting.IsZero() || n != nil && !n.Deleting.IsZero() || c.Is(cluster.InstanceTerminating):
		return v.no(BeingDisrupted)
	case n == nil || !up:
		return v.no(NotInitialized)
	case !v.begun && (tainted(n) || c.Move != "" || underWay(v.s, c, n)):
		return v.no(BeingDisrupted)
	}
	return true
}

// willing: people may keep a node. What keeps it from being replaced for its health is another word of theirs.
func (v *verdict) willing() bool {
	c, n := v.candidate.Claim, v.candidate.Node
	if v.reason == command.Unhealthy {
		if c.DoNotRepair || n.DoNotRepair {
			return v.no(NodeDoNotDisrupt)
		}
		return true
	}
	if c.DoNotDisrupt || n.DoNotDisrupt {
		return v.no(NodeDoNotDisrupt)
	}
	return true
}

// priced: what a node costs must be known where prices are compared.
func (v *verdict) priced() bool {
	c, n := v.candidate.Claim, v.candidate.Node
	v.candidate.Type = labelOf(c, n, cluster.InstanceTypeLabel)
	v.candidate.CapacityType = labelOf(c, n, cluster.CapacityTypeLabel)
	price, sold := 0.0, false
	if catalog := v.candidate.Pool.Catalog; catalog != nil {
		price, sold = catalog.Price(v.candidate.Type, labelOf(c, n, cluster.ZoneLabel), v.candidate.CapacityType)
	}
	v.candidate.Price = price
	return sold || v.reason != command.Underutilized || v.no(PriceUnknown)
}

// labelOf is a label of the claim or, where that says nothing, of its node.
func labelOf(c *cluster.Claim, n *cluster.Node, key string) string {
	value, ok := c.Labels.Get(key)
	if !ok && n != nil {
		value, _ = n.Labels.Get(key)
	}
	return value
}

// permitted: a pool's policy may spare every node that carries anything.
func (v *verdict) permitted() bool {
	v.candidate.Idle = idle(v.s.PodsOn(v.candidate.Node.Name))
	if saves(v.reason) && v.candidate.Pool.Policy == cluster.WhenEmpty && !v.candidate.Idle {
		return v.no(PolicyForbids)
	}
	return true
}

// quiet: a node is left alone for a while after pods came or went, and after a disruption of it was given up.
func (v *verdict) quiet() bool {
	c := v.candidate.Claim
	wait, has := WaitFor(v.candidate.Pool, v.reason)
	if has && wait.Never {
		return v.no(ConsolidationsOff)
	}
	if v.begun {
		return true
	}
	if has {
		if at := quietAt(wait, c, v.set.Nomination); v.s.Now.Before(at) {
			return v.noUntil(TooSoon, at)
		}
	}
	// Pods of others may have come first. Whether they stay says when the next try may be made.
	if at := v.s.TriedUntil(c); saves(v.reason) && v.s.Now.Before(at) {
		return v.noUntil(TooSoon, at)
	}
	if v.s.Now.Before(c.RestUntil) {
		return v.noUntil(MoveFailedLately, c.RestUntil)
	}
	if saves(v.reason) && v.s.Now.Before(c.SavingRestUntil) {
		return v.noUntil(MoveFailedLately, c.SavingRestUntil)
	}
	return true
}

// unpromised: pods may be on their way to the node.
func (v *verdict) unpromised() bool {
	n := v.candidate.Node
	if until, fresh := v.unused.fresh[v.candidate.Claim.Name]; saves(v.reason) && fresh {
		return v.noUntil(TooSoon, until)
	}
	if saves(v.reason) && v.unused.shown[v.candidate.Claim.Name] {
		return v.no(ShowsCause)
	}
	if v.s.Awaited(n.Name) || v.nominated[n.Name] || v.s.Replacing(v.candidate.Claim) {
		return v.no(PodsExpected)
	}
	return v.unseated()
}

// unseated: the node may keep a seat for a pod that is looking for a place. If others have taken the room meanwhile there is no seat
// any more, or a pod that fits nowhere would keep the node for ever; and what has to be done whatever it costs waits only as long
// as a new node is kept for its pods.
func (v *verdict) unseated() bool {
	until := v.candidate.Claim.Condition(cluster.Initialized).Since.Add(v.set.Nomination)
	switch {
	case saves(v.reason):
		return !v.seated() || v.no(PodsExpected)
	case v.s.Now.Before(until):
		return !v.seated() || v.noUntil(PodsExpected, until)
	}
	return true
}

// seated reports whether there is a seat, with room, for a pod that is looking for a place.
func (v *verdict) seated() bool {
	c, n := v.candidate.Claim, v.candidate.Node
	free := n.Allocatable
	for _, p := range v.s.PodsOn(n.Name) {
		free = free.Sub(p.Class.Requests)
	}
	for _, seat := range c.Seats {
		class := v.wanted[seat.Class]
		if class == nil || !class.Requests.Fits(free) {
			continue
		}
		taken := 0
		for _, p := range v.s.PodsOn(n.Name) {
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
