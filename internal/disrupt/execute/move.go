package execute

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// activeMove is a move that is under way or about to begin, as the snapshot shows it.
type activeMove struct {
	id     string
	reason command.Reason
	// nodes are those of its nodes that are there and not on their way out; leaving are those that are, as far as they
	// are known.
	nodes, leaving []disrupt.Candidate
	// fencedAt is when the first of them was fenced; zero for a move that has not begun.
	fencedAt time.Time
	// changePending says that something is being done to one of its nodes; unfenced are those whose fence did not go
	// up.
	changePending bool
	unfenced      []int
	// waiting says that the nodes may not go now and will again, presumably.
	waiting bool
	// budgetReserved says that the node of a move that has not begun was taken from its budget.
	budgetReserved bool
	// isStatic moves are of a pool with a fixed number of nodes.
	isStatic bool
	// placesOnly moves are of a node that goes already; only places are made for its pods.
	placesOnly bool
	// giveUpReason is why the move is given up, if it is; restAfter says that it would fail again if it were tried at
	// once.
	giveUpReason disrupt.BlockReason
	restAfter    bool
	// expectedPods are pods that have been sent to its nodes and are not there; destinations are where they and its
	// pods go.
	expectedPods []*cluster.Pod
	destinations []destination
}

// hasNotBegun reports whether the move has not begun.
func (am *activeMove) hasNotBegun() bool { return am.fencedAt.IsZero() }

func (am *activeMove) claims() []string {
	out := make([]string, len(am.nodes))
	for i := range am.nodes {
		out[i] = am.nodes[i].Claim.Name
	}
	return out
}

// giveUp notes why the move does not go on; the first reason stands.
func (am *activeMove) giveUp(reason disrupt.BlockReason, rest bool) {
	if am.giveUpReason == "" {
		am.giveUpReason, am.restAfter = reason, rest
	}
}

// describe describes the move for people.
func (am *activeMove) describe() disrupt.Move {
	return disrupt.MoveOf(am.id, am.reason, am.nodes)
}

// compareMoves puts the oldest first, and those that have not begun last.
func compareMoves(a, b *activeMove) int {
	if a.hasNotBegun() != b.hasNotBegun() {
		if b.hasNotBegun() {
			return -1
		}
		return 1
	}
	return cmp.Or(a.fencedAt.Compare(b.fencedAt), strings.Compare(a.id, b.id))
}

// farthest is the farthest place of the move's pods; ready if it has none.
func (am *activeMove) farthest() distance {
	out := atReadyNode
	for i := range am.destinations {
		out = max(out, am.destinations[i].distance)
	}
	return out
}

// retryWaitFactor is how many times as long a move waits for replacements that have been launched, if one of its nodes
// rests or has rested a short while ago. Where machines take a little longer than the timeout each try would come to
// nothing otherwise, and each would buy machines that are thrown away.
const retryWaitFactor = 2

// longestWait is how long a move lasts at most until its nodes go.
func (am *activeMove) longestWait(set disrupt.Settings) time.Duration {
	if slices.ContainsFunc(am.nodes, am.gaveUpBefore) {
		return retryWaitFactor * set.ReplacementWait()
	}
	return set.ReplacementWait()
}

// gaveUpBefore reports whether a move of the node was given up not long before this one began.
func (am *activeMove) gaveUpBefore(c disrupt.Candidate) bool {
	if disrupt.SavesMoney(am.reason) && c.Claim.SavingRests > 0 &&
		!am.fencedAt.After(c.Claim.SavingRestUntil.Add(disrupt.LongestRest)) {
		return true
	}
	return c.Claim.Rests > 0 && !am.fencedAt.After(c.Claim.RestUntil.Add(disrupt.LongestRest))
}

// hostsOf are the nodes of moves.
func hostsOf(moves []*activeMove) []string {
	var out []string
	for _, m := range moves {
		for i := range m.nodes {
			out = append(out, m.nodes[i].Node.Name)
		}
	}
	return out
}
