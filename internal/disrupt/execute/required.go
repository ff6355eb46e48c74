package execute

import (
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/disrupt/static"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/reason"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// refence puts fences up again that did not go up.
func (fs *fences) refence(m *destination.Move) {
	for _, i := range m.Unfenced {
		c := &m.Nodes[i]
		fs.Emit(command.Fence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.Reason, Move: m.ID})
	}
}

// requiredMoves are the moves that have to be.
type requiredMoves struct {
	*frame
	*waits
	*fences
}

// proceedRequired is about the moves that have to be, each by itself.
func (rm *requiredMoves) proceedRequired() {
	made := make(map[int]int)
	for _, m := range rm.Moves {
		if m.GiveUpReason != "" || m.IsStatic || disrupt.SavesMoney(m.Reason) {
			continue
		}
		switch farthest := m.Farthest(); {
		case farthest == destination.Nowhere:
			rm.giveUpStranded(m)
		case m.HasNotBegun():
			rm.fence(m)
		case rm.isHeldUp(m):
			rm.mayWait(m)
		case farthest == destination.AtReadyNode && rm.lacksReplacement(m):
			rm.mayWait(m)
		case farthest == destination.AtReadyNode:
			rm.departures = append(rm.departures, departure{[]*destination.Move{m}, rm.deleteText(m)})
		case !rm.mayWait(m):
		case farthest == destination.AtNewNode:
			rm.requestBins(m, rm.requiredPlacement.Bins, made)
		}
	}
}

// requestBins asks for the new nodes that the move's pods need. Where another move has asked for one, it says that this
// one needs it, too. made are the requests so far, by the number of the node.
func (rm *requiredMoves) requestBins(m *destination.Move, bins []market.Bin, made map[int]int) {
	for i := range m.Destinations {
		dest := &m.Destinations[i]
		if dest.Distance != destination.AtNewNode {
			continue
		}
		at, known := made[dest.Bin]
		if !known {
			made[dest.Bin] = len(rm.Replacements)
			rm.Replacements = append(rm.Replacements, disrupt.ReplacementRequest{Bin: bins[dest.Bin], Replaces: m.ID,
				Reason: m.Reason})
			continue
		}
		if w := &rm.Replacements[at]; w.Replaces != m.ID && !slices.Contains(w.SharedWith, m.ID) {
			w.SharedWith = append(w.SharedWith, m.ID)
		}
	}
}

// giveUpStranded gives a move up some pod of which has no place.
func (rm *requiredMoves) giveUpStranded(m *destination.Move) {
	if m.BudgetReserved {
		rm.budgets.Return(m.Nodes[0].Claim.Pool, 1)
	}
	m.GiveUp(disrupt.PodsStranded, true)
}

// fence begins a move.
func (fs *fences) fence(m *destination.Move) {
	for i := range m.Nodes {
		c := &m.Nodes[i]
		fs.Emit(command.Fence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.Reason, Move: m.ID})
	}
	fs.Begun = append(fs.Begun, m.Describe())
}

// deleteNodes lets the nodes of a move go, together with those of the departure.
func (fs *fences) deleteNodes(m *destination.Move, departure string, text reason.Text) {
	if disrupt.SavesMoney(m.Reason) {
		text = reason.Of(reason.Then, fs.describeDestinations(m), text)
	}
	for i := range m.Nodes {
		c := &m.Nodes[i]
		cmd := command.DeleteClaim{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.Reason,
			Text: text, Departure: departure}
		if m.Reason == command.Unhealthy {
			condition, _ := fs.health.Unhealthy(c.Claim)
			cmd.Condition, cmd.Text = condition.Policy.Type, condition.Text(c.Node)
			if grace, has := fs.health.Grace(c.Claim); has {
				cmd.Deadline = fs.s.Now.Add(grace)
			}
		}
		fs.Emit(cmd)
	}
}

// deleteText says why the node of a move goes that has to.
func (fs *fences) deleteText(m *destination.Move) reason.Text {
	c := &m.Nodes[0]
	var what reason.Text
	switch m.Reason {
	case command.Drifted:
		what = reason.Of(reason.NodeDrifted, drift.Of(fs.s, c.Claim))
	case command.Expired:
		what = reason.Of(reason.NodeExpires, c.Claim.ExpireAfter.For)
	}
	return reason.Join(what, fs.describeDestinations(m))
}

// describeDestinations says where the pods of a move go.
func (fs *fences) describeDestinations(m *destination.Move) reason.Text {
	var names []string
	for i := range m.Destinations {
		c := fs.s.ClaimOf(m.Destinations[i].Host)
		if c != nil && !slices.Contains(names, c.Name) && len(fs.s.MoveClaims(c.Replaces)) > 0 {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	switch {
	case len(m.Destinations) == 0:
		return reason.Of(reason.NoPodsMove)
	case len(names) == 0:
		return reason.Of(reason.PodsFit)
	case len(names) == 1:
		return reason.Of(reason.PodsGoTo, names[0])
	case len(names) > 3:
		return reason.Of(reason.PodsGoToNew, len(names))
	}
	last := len(names) - 1
	return reason.Of(reason.PodsGoTo, reason.Of(reason.And, strings.Join(names[:last], ", "), names[last]))
}

// reopenNodes opens the nodes of a move again.
func (fs *fences) reopenNodes(m *destination.Move) {
	for i := range m.Nodes {
		fs.unfence(&m.Nodes[i], m.GiveUpReason, m.RestAfter) // where something is being done that shows first
	}
	fs.GivenUp = append(fs.GivenUp, disrupt.GivenUp{ID: m.ID, Reason: m.Reason, Claims: m.Claims(),
		BlockReason: m.GiveUpReason})
}

// staticReplacement is the claim that was made for a move of a static pool, or nil. Such a pool replaces one node by
// one.
func (fr *frame) staticReplacement(m *destination.Move) *cluster.Claim {
	return static.Replacement(fr.s, m.Nodes[0].Claim.Pool, m.ID)
}

// freeStaticNodes is how many nodes a static pool could make beyond those that it has, within its limits.
func (rq *requiredQueue) freeStaticNodes(p *cluster.Pool) int {
	if !p.NodeClass.Ready || p.Catalog == nil || p.InBackoff || p.Probing {
		return 0
	}
	waiting := 0
	for _, m := range rq.Moves {
		if m.GiveUpReason == "" && m.Nodes[0].Pool == p && rq.staticReplacement(m) == nil {
			waiting++
		}
	}
	for _, c := range rq.s.ClaimsOf(p.Name) { // those whose fences are just going up are in no move yet
		if disrupt.BeingFenced(rq.s, c) {
			waiting++
		}
	}
	bins, _ := schedule.EmptyBins(rq.s, p, rq.set.Schedule, rq.budgets.Remaining(p.Name, command.Drifted)+waiting)
	return max(0, len(bins)-waiting)
}

// proceedStatic is about the moves of static pools: each node gets one in its place and goes when that is up, whatever
// runs there: more room than that such a pool does not give. What it has is kept for the pods of the node that goes.
func (rm *requiredMoves) proceedStatic() {
	var missing missingNodes
	for _, m := range rm.Moves {
		if m.GiveUpReason != "" || !m.IsStatic {
			continue
		}
		if m.HasNotBegun() {
			rm.fence(m)
			continue
		}
		c := rm.staticReplacement(m)
		switch {
		case rm.isHeldUp(m):
			rm.mayWait(m)
		case c == nil:
			if rm.mayWait(m) {
				missing.add(m)
			}
		case c.Is(cluster.Initialized):
			rm.departures = append(rm.departures, departure{[]*destination.Move{m}, rm.deleteText(m)})
		default:
			rm.mayWait(m)
		}
	}
	rm.requestStatic(&missing)
}

// missingNodes are moves of static pools for which a node is to be made, by pool, in the order of the first of each.
type missingNodes struct {
	pools []*cluster.Pool
	moves map[*cluster.Pool][]*destination.Move
}

func (mn *missingNodes) add(m *destination.Move) {
	p := m.Nodes[0].Pool
	if mn.moves == nil {
		mn.moves = make(map[*cluster.Pool][]*destination.Move)
	}
	if mn.moves[p] == nil {
		mn.pools = append(mn.pools, p)
	}
	mn.moves[p] = append(mn.moves[p], m)
}

// requestStatic asks for a node in place of each that goes.
func (rm *requiredMoves) requestStatic(missing *missingNodes) {
	for _, p := range missing.pools {
		if len(p.Problems) > 0 || !p.NodeClass.Ready || p.Catalog == nil || p.InBackoff {
			continue
		}
		moves := missing.moves[p]
		bins, _ := schedule.EmptyBins(rm.s, p, rm.set.Schedule, len(moves))
		slots := static.SlotsOf(rm.s, p).NewSlots(len(bins))
		for i := range bins {
			bins[i].Seats = rm.seatsFor(moves[i])
			rm.Replacements = append(rm.Replacements, disrupt.ReplacementRequest{Bin: bins[i], Name: slots[i].Name,
				Slot: slots[i].Slot, Replaces: moves[i].ID, Reason: moves[i].Reason})
		}
	}
}

// seatsFor are seats for the pods of a move.
func (rm *requiredMoves) seatsFor(m *destination.Move) []cluster.Seat {
	count := make(map[string]int)
	for i := range m.Nodes {
		for _, pod := range rm.s.PodsOn(m.Nodes[i].Node.Name) {
			if rm.NeedsPlace(pod) {
				count[pod.Class.Key]++
			}
		}
	}
	var out []cluster.Seat
	for _, class := range slices.Sorted(maps.Keys(count)) {
		out = append(out, cluster.Seat{Class: class, Count: count[class]})
	}
	return out
}
