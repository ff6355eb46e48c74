package destination

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// Move is a move that is under way or about to begin, as the snapshot shows it.
type Move struct {
	ID     string
	Reason command.Reason
	// Nodes are those of its nodes that are there and not on their way out; Leaving are those that are, as far as they
	// are known.
	Nodes, Leaving []disrupt.Candidate
	// FencedAt is when the first of them was fenced; zero for a move that has not begun.
	FencedAt time.Time
	// ChangePending says that something is being done to one of its nodes; Unfenced are those whose fence did not go
	// up.
	ChangePending bool
	Unfenced      []int
	// Waiting says that the nodes may not go now and will again, presumably.
	Waiting bool
	// BudgetReserved says that the node of a move that has not begun was taken from its budget.
	BudgetReserved bool
	// IsStatic moves are of a pool with a fixed number of nodes.
	IsStatic bool
	// PlacesOnly moves are of a node that goes already; only places are made for its pods.
	PlacesOnly bool
	// GiveUpReason is why the move is given up, if it is; RestAfter says that it would fail again if it were tried at
	// once.
	GiveUpReason disrupt.BlockReason
	RestAfter    bool
	// ExpectedPods are pods that have been sent to its nodes and are not there; Destinations are where they and its
	// pods go.
	ExpectedPods []*cluster.Pod
	Destinations []Place
}

// HasNotBegun reports whether the move has not begun.
func (am *Move) HasNotBegun() bool { return am.FencedAt.IsZero() }

// Claims are the claims of its nodes.
func (am *Move) Claims() []string {
	out := make([]string, len(am.Nodes))
	for i := range am.Nodes {
		out[i] = am.Nodes[i].Claim.Name
	}
	return out
}

// GiveUp notes why the move does not go on; the first reason stands.
func (am *Move) GiveUp(reason disrupt.BlockReason, rest bool) {
	if am.GiveUpReason == "" {
		am.GiveUpReason, am.RestAfter = reason, rest
	}
}

// Describe describes the move for people.
func (am *Move) Describe() disrupt.Move {
	return disrupt.MoveOf(am.ID, am.Reason, am.Nodes)
}

// CompareMoves puts the oldest first, and those that have not begun last.
func CompareMoves(a, b *Move) int {
	return cmp.Or(disrupt.TrueFirst(!a.HasNotBegun(), !b.HasNotBegun()), a.FencedAt.Compare(b.FencedAt),
		strings.Compare(a.ID, b.ID))
}

// Farthest is the farthest place of the move's pods; ready if it has none.
func (am *Move) Farthest() Distance {
	out := AtReadyNode
	for i := range am.Destinations {
		out = max(out, am.Destinations[i].Distance)
	}
	return out
}

// retryWaitFactor is how many times as long a move waits for replacements that have been launched, if one of its nodes
// rests or has rested a short while ago. Where machines take a little longer than the timeout each try would come to
// nothing otherwise, and each would buy machines that are thrown away.
const retryWaitFactor = 2

// LongestWait is how long a move lasts at most until its nodes go.
func (am *Move) LongestWait(set disrupt.Settings) time.Duration {
	if slices.ContainsFunc(am.Nodes, am.gaveUpBefore) {
		return retryWaitFactor * set.ReplacementWait()
	}
	return set.ReplacementWait()
}

// gaveUpBefore reports whether a move of the node was given up not long before this one began.
func (am *Move) gaveUpBefore(c disrupt.Candidate) bool {
	if disrupt.SavesMoney(am.Reason) && c.Claim.SavingRests > 0 &&
		!am.FencedAt.After(c.Claim.SavingRestUntil.Add(disrupt.LongestRest)) {
		return true
	}
	return c.Claim.Rests > 0 && !am.FencedAt.After(c.Claim.RestUntil.Add(disrupt.LongestRest))
}

// HostsOf are the nodes of moves.
func HostsOf(moves []*Move) []string {
	var out []string
	for _, m := range moves {
		for i := range m.Nodes {
			out = append(out, m.Nodes[i].Node.Name)
		}
	}
	return out
}
