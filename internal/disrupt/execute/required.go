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

// proceed takes every move a step further.
func (ex *executor) proceed() {
	ex.proceedRequired()
	ex.proceedSaving()
	ex.proceedStatic()
	ex.departReady()
	ex.reopenExcluded()
	for _, m := range ex.moves {
		if m.giveUpReason != "" {
			ex.reopenNodes(m)
		} else {
			ex.refence(m)
		}
	}
}

// refence puts fences up again that did not go up.
func (ex *executor) refence(m *activeMove) {
	for _, i := range m.unfenced {
		c := &m.nodes[i]
		ex.emit(command.Fence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.reason, Move: m.id})
	}
}

// proceedRequired is about the moves that have to be, each by itself.
func (ex *executor) proceedRequired() {
	made := make(map[int]int)
	for _, m := range ex.moves {
		if m.giveUpReason != "" || m.isStatic || disrupt.SavesMoney(m.reason) {
			continue
		}
		switch farthest := m.farthest(); {
		case farthest == nowhere:
			ex.giveUpStranded(m)
		case m.hasNotBegun():
			ex.fence(m)
		case ex.isHeldUp(m):
			ex.mayWait(m)
		case farthest == atReadyNode && ex.lacksReplacement(m):
			ex.mayWait(m)
		case farthest == atReadyNode:
			ex.departures = append(ex.departures, departure{[]*activeMove{m}, ex.deleteMessage(m)})
		case !ex.mayWait(m):
		case farthest == atNewNode:
			ex.requestBins(m, ex.requiredPlacement.Bins, made)
		}
	}
}

// lacksReplacement reports whether something that was made for the move is not up yet. Its pods may have places without
// that, too; but a pod that has just been evicted, and which its owner has not made again yet, is one that nobody sees:
// the place may be meant for it.
func (ex *executor) lacksReplacement(m *activeMove) bool {
	if ex.awaitingReplacements == nil {
		ex.awaitingReplacements = make(map[string]bool)
		for _, c := range ex.s.Claims {
			if c.Replaces != "" && c.Deleting.IsZero() && !c.Is(cluster.Initialized) && ex.s.IsReplacement(c) {
				ex.awaitingReplacements[c.Replaces] = true
			}
		}
	}
	return ex.awaitingReplacements[m.id]
}

// requestBins asks for the new nodes that the move's pods need. Where another move has asked for one, it says that this
// one needs it, too. made are the requests so far, by the number of the node.
func (ex *executor) requestBins(m *activeMove, bins []schedule.Bin, made map[int]int) {
	for i := range m.destinations {
		dest := &m.destinations[i]
		if dest.distance != atNewNode {
			continue
		}
		at, known := made[dest.bin]
		if !known {
			made[dest.bin] = len(ex.Replacements)
			ex.Replacements = append(ex.Replacements, disrupt.ReplacementRequest{Bin: bins[dest.bin], Replaces: m.id,
				Reason: m.reason})
			continue
		}
		if w := &ex.Replacements[at]; w.Replaces != m.id && !slices.Contains(w.SharedWith, m.id) {
			w.SharedWith = append(w.SharedWith, m.id)
		}
	}
}

// giveUpStranded gives a move up some pod of which has no place.
func (ex *executor) giveUpStranded(m *activeMove) {
	if m.budgetReserved {
		ex.budgets.Return(m.nodes[0].Claim.Pool, 1)
	}
	m.giveUp(disrupt.PodsStranded, true)
}

// fence begins a move.
func (ex *executor) fence(m *activeMove) {
	for i := range m.nodes {
		c := &m.nodes[i]
		ex.emit(command.Fence{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.reason, Move: m.id})
	}
	ex.Begun = append(ex.Begun, m.describe())
}

// isHeldUp reports whether a move can't go on at this moment.
func (ex *executor) isHeldUp(m *activeMove) bool {
	return m.changePending || m.waiting || len(m.unfenced) > 0 || ex.fencePending &&
		ex.s.Now.Before(m.fencedAt.Add(fenceSpread))
}

// deleteNodes lets the nodes of a move go, together with those of the departure.
func (ex *executor) deleteNodes(m *activeMove, departure, message string) {
	if disrupt.SavesMoney(m.reason) {
		message = ex.describeDestinations(m) + ", " + message
	}
	for i := range m.nodes {
		c := &m.nodes[i]
		cmd := command.DeleteClaim{Claim: c.Claim.Name, UID: c.Claim.UID, Node: c.Node.Name, Reason: m.reason,
			Message: message, Departure: departure}
		if m.reason == command.Unhealthy {
			condition := ex.unhealthy[c.Claim.Name]
			cmd.Condition, cmd.Message = condition.Policy.Type, condition.Message(c.Node)
			if grace, has := ex.health.Grace(c.Claim); has {
				cmd.Deadline = ex.s.Now.Add(grace)
			}
		}
		ex.emit(cmd)
	}
}

// deleteMessage says why the node of a move goes that has to.
func (ex *executor) deleteMessage(m *activeMove) string {
	c := &m.nodes[0]
	what := ""
	switch m.reason {
	case command.Drifted:
		what = fmt.Sprintf("it is no longer what its NodePool and NodeClass ask for (%s)", drift.Of(ex.s, c.Claim))
	case command.Expired:
		what = fmt.Sprintf("it comes to the end of its expireAfter of %s", c.Claim.ExpireAfter.For)
	}
	return what + "; " + ex.describeDestinations(m)
}

// describeDestinations says where the pods of a move go.
func (ex *executor) describeDestinations(m *activeMove) string {
	var names []string
	for i := range m.destinations {
		c := ex.s.ClaimOf(m.destinations[i].host)
		if c != nil && !slices.Contains(names, c.Name) && len(ex.s.MoveClaims(c.Replaces)) > 0 {
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
func (ex *executor) reopenNodes(m *activeMove) {
	for i := range m.nodes {
		ex.unfence(&m.nodes[i], m.giveUpReason, m.restAfter) // where something is being done that shows first
	}
	ex.GivenUp = append(ex.GivenUp, disrupt.GivenUp{ID: m.id, Reason: m.reason, Claims: m.claims(),
		BlockReason: m.giveUpReason})
}
