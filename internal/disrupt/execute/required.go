package execute

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/drift"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// fenceSpread is how long after the first fence of a move others may be on their way.
const fenceSpread = 30 * time.Second

// refence puts fences up again that did not go up.
func (fs *fences) refence(m *activeMove) {
	for _, i := range m.unfenced {
		c := &m.nodes[i]
		fs.Emit(command.Fence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.reason, Move: m.id})
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
	for _, m := range rm.moves {
		if m.giveUpReason != "" || m.isStatic || disrupt.SavesMoney(m.reason) {
			continue
		}
		switch farthest := m.farthest(); {
		case farthest == nowhere:
			rm.giveUpStranded(m)
		case m.hasNotBegun():
			rm.fence(m)
		case rm.isHeldUp(m):
			rm.mayWait(m)
		case farthest == atReadyNode && rm.lacksReplacement(m):
			rm.mayWait(m)
		case farthest == atReadyNode:
			rm.departures = append(rm.departures, departure{[]*activeMove{m}, rm.deleteMessage(m)})
		case !rm.mayWait(m):
		case farthest == atNewNode:
			rm.requestBins(m, rm.requiredPlacement.Bins, made)
		}
	}
}

// lacksReplacement reports whether something that was made for the move is not up yet. Its pods may have places without
// that, too; but a pod that has just been evicted, and which its owner has not made again yet, is one that nobody sees:
// the place may be meant for it.
func (wt *waits) lacksReplacement(m *activeMove) bool {
	if wt.awaitingReplacements == nil {
		wt.awaitingReplacements = make(map[string]bool)
		for _, c := range wt.s.Claims {
			if c.Replaces != "" && c.Deleting.IsZero() && !c.Is(cluster.Initialized) && wt.s.IsReplacement(c) {
				wt.awaitingReplacements[c.Replaces] = true
			}
		}
	}
	return wt.awaitingReplacements[m.id]
}

// requestBins asks for the new nodes that the move's pods need. Where another move has asked for one, it says that this
// one needs it, too. made are the requests so far, by the number of the node.
func (rm *requiredMoves) requestBins(m *activeMove, bins []schedule.Bin, made map[int]int) {
	for i := range m.destinations {
		dest := &m.destinations[i]
		if dest.distance != atNewNode {
			continue
		}
		at, known := made[dest.bin]
		if !known {
			made[dest.bin] = len(rm.Replacements)
			rm.Replacements = append(rm.Replacements, disrupt.ReplacementRequest{Bin: bins[dest.bin], Replaces: m.id,
				Reason: m.reason})
			continue
		}
		if w := &rm.Replacements[at]; w.Replaces != m.id && !slices.Contains(w.SharedWith, m.id) {
			w.SharedWith = append(w.SharedWith, m.id)
		}
	}
}

// giveUpStranded gives a move up some pod of which has no place.
func (rm *requiredMoves) giveUpStranded(m *activeMove) {
	if m.budgetReserved {
		rm.budgets.Return(m.nodes[0].Claim.Pool, 1)
	}
	m.giveUp(disrupt.PodsStranded, true)
}

// fence begins a move.
func (fs *fences) fence(m *activeMove) {
	for i := range m.nodes {
		c := &m.nodes[i]
		fs.Emit(command.Fence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.reason, Move: m.id})
	}
	fs.Begun = append(fs.Begun, m.describe())
}

// isHeldUp reports whether a move can't go on at this moment.
func (wt *waits) isHeldUp(m *activeMove) bool {
	return m.changePending || m.waiting || len(m.unfenced) > 0 || wt.fencePending &&
		wt.s.Now.Before(m.fencedAt.Add(fenceSpread))
}

// deleteNodes lets the nodes of a move go, together with those of the departure.
func (fs *fences) deleteNodes(m *activeMove, departure, message string) {
	if disrupt.SavesMoney(m.reason) {
		message = fs.describeDestinations(m) + ", " + message
	}
	for i := range m.nodes {
		c := &m.nodes[i]
		cmd := command.DeleteClaim{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.reason,
			Message: message, Departure: departure}
		if m.reason == command.Unhealthy {
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
func (fs *fences) deleteMessage(m *activeMove) string {
	c := &m.nodes[0]
	what := ""
	switch m.reason {
	case command.Drifted:
		what = fmt.Sprintf("it is no longer what its NodePool and NodeClass ask for (%s)", drift.Of(fs.s, c.Claim))
	case command.Expired:
		what = fmt.Sprintf("it comes to the end of its expireAfter of %s", c.Claim.ExpireAfter.For)
	}
	return what + "; " + fs.describeDestinations(m)
}

// describeDestinations says where the pods of a move go.
func (fs *fences) describeDestinations(m *activeMove) string {
	var names []string
	for i := range m.destinations {
		c := fs.s.ClaimOf(m.destinations[i].host)
		if c != nil && !slices.Contains(names, c.Name) && len(fs.s.MoveClaims(c.Replaces)) > 0 {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	switch {
	case len(m.destinations) == 0:
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
func (fs *fences) reopenNodes(m *activeMove) {
	for i := range m.nodes {
		fs.unfence(&m.nodes[i], m.giveUpReason, m.restAfter) // where something is being done that shows first
	}
	fs.GivenUp = append(fs.GivenUp, disrupt.GivenUp{ID: m.id, Reason: m.reason, Claims: m.claims(),
		BlockReason: m.giveUpReason})
}
