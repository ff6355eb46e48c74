package execute

import (
	"fmt"
	"slices"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/destination"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
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
			rm.departures = append(rm.departures, departure{[]*destination.Move{m}, rm.deleteMessage(m)})
		case !rm.mayWait(m):
		case farthest == destination.AtNewNode:
			rm.requestBins(m, rm.requiredPlacement.Bins, made)
		}
	}
}

// requestBins asks for the new nodes that the move's pods need. Where another move has asked for one, it says that this
// one needs it, too. made are the requests so far, by the number of the node.
func (rm *requiredMoves) requestBins(m *destination.Move, bins []schedule.Bin, made map[int]int) {
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
func (fs *fences) deleteNodes(m *destination.Move, departure, message string) {
	if disrupt.SavesMoney(m.Reason) {
		message = fs.describeDestinations(m) + ", " + message
	}
	for i := range m.Nodes {
		c := &m.Nodes[i]
		cmd := command.DeleteClaim{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.Reason,
			Message: message, Departure: departure}
		if m.Reason == command.Unhealthy {
			condition, _ := fs.health.Unhealthy(c.Claim)
			cmd.Condition, cmd.Message = condition.Policy.Type, condition.Message(c.Node)
			if grace, has := fs.health.Grace(c.Claim); has {
				cmd.Deadline = fs.s.Now.Add(grace)
			}
		}
		fs.Emit(cmd)
	}
}

// deleteMessage says why the node of a move goes that has to.
func (fs *fences) deleteMessage(m *destination.Move) string {
	c := &m.Nodes[0]
	what := ""
	switch m.Reason {
	case command.Drifted:
		what = fmt.Sprintf("it is no longer what its NodePool and NodeClass ask for (%s)", drift.Of(fs.s, c.Claim))
	case command.Expired:
		what = fmt.Sprintf("it comes to the end of its expireAfter of %s", c.Claim.ExpireAfter.For)
	}
	return what + "; " + fs.describeDestinations(m)
}

// describeDestinations says where the pods of a move go.
func (fs *fences) describeDestinations(m *destination.Move) string {
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
		return "it has no pods that move"
	case len(names) == 0:
		return "its pods fit on nodes that are there"
	case len(names) == 1:
		return "its pods go to " + names[0]
	case len(names) > 3:
		return fmt.Sprintf("its pods go to %d new nodes", len(names))
	}
	return fmt.Sprintf("its pods go to %s", joinNames(names))
}

// joinNames lists names as people do.
func joinNames(names []string) string {
	out := names[0]
	for _, name := range names[1 : len(names)-1] {
		out += ", " + name
	}
	return out + " and " + names[len(names)-1]
}

// reopenNodes opens the nodes of a move again.
func (fs *fences) reopenNodes(m *destination.Move) {
	for i := range m.Nodes {
		fs.unfence(&m.Nodes[i], m.GiveUpReason, m.RestAfter) // where something is being done that shows first
	}
	fs.GivenUp = append(fs.GivenUp, disrupt.GivenUp{ID: m.ID, Reason: m.Reason, Claims: m.Claims(),
		BlockReason: m.GiveUpReason})
}
