package disrupt

import (
	"cmp"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/reason"
)

// Result is what to do now, and when to look again if nothing happens before.
type Result struct {
	Commands []command.Command
	WakeAt   time.Time
	// Notes are what stands in the way, for people.
	Notes []cluster.Note
	// Replacements are new nodes for moves. Begun are the moves that begin now, GivenUp those that don't come about,
	// DryRuns those of which a dry run only tells.
	Replacements []ReplacementRequest
	Begun        []Move
	GivenUp      []GivenUp
	DryRuns      []Move
	// NotBegun are moves that a search has found and that are not begun.
	NotBegun []GivenUp
	// PlanSoon says that nodes wait only for others to be gone: as soon as one is, the next may begin.
	PlanSoon bool
}

// Wake asks to look again at that time; not if it is zero.
func (r *Result) Wake(at time.Time) { r.WakeAt = cluster.Earlier(r.WakeAt, at) }

// Emit adds a command.
func (r *Result) Emit(c command.Command) { r.Commands = append(r.Commands, c) }

// Due are nodes of a pool that have to be replaced whatever it costs, and may be now, in the order in which they go.
type Due struct {
	Pool       *cluster.Pool
	Reason     command.Reason
	Candidates []Candidate
}

// ReplacementRequest is a new node for a move. Name is set if it is not to follow from the node's content.
type ReplacementRequest struct {
	Bin      market.Bin
	Name     string
	Slot     cluster.Slot // of a static pool
	Replaces string
	Reason   command.Reason
	// LinkedWith is the move with which the one that it is for shares new nodes, if they save money; empty if it shares
	// none.
	LinkedWith string
	// SharedWith are the other moves whose pods need the node, if they have to be. Unlike moves that save money, each
	// of them goes by itself.
	SharedWith []string
}

// LinkID is the name of all moves that save money and share new nodes with the one that the node is for.
func (w *ReplacementRequest) LinkID() string { return cmp.Or(w.LinkedWith, w.Replaces) }

// For is the request with another of the moves that share the node as the one that it is for.
func (w *ReplacementRequest) For(move string) ReplacementRequest {
	out := *w
	out.Replaces, out.Reason, out.SharedWith = move, MoveReason(move), nil
	return out
}

// GivenUp is a move that does not come about.
type GivenUp struct {
	ID          string
	Reason      command.Reason
	Claims      []string
	BlockReason BlockReason
	// Saving, CertainSaving and NeededSaving are as in a BlockedNode, where it is about money and was worked out again.
	Saving, CertainSaving, NeededSaving float64
}

// AddDryRun tells what a dry run keeps from being done.
func (r *Result) AddDryRun(m Move, candidates []Candidate) {
	r.DryRuns = append(r.DryRuns, m)
	var what reason.Text
	switch {
	case m.Reason == command.Underutilized && len(m.Bins) == 0:
		what = reason.Of(reason.PodsFit)
	case m.Reason == command.Underutilized && len(m.Bins) == 1:
		what = reason.Of(reason.OneCheaperNode)
	case m.Reason == command.Underutilized:
		what = reason.Of(reason.CheaperNodes, len(m.Bins))
	case m.Reason == command.Drifted:
		what = reason.Of(reason.NoLongerAsAsked)
	case m.Reason == command.Expired:
		what = reason.Of(reason.EndOfLife)
	case m.Reason == command.Unhealthy:
		what = reason.Of(reason.Unhealthy)
	}
	if len(candidates) > 1 {
		what = reason.Of(reason.TogetherWith, what, len(candidates)-1)
	}
	text := reason.Of(reason.DryRunMove, m.Reason, what, m.Evicted)
	if m.Reason == command.Underutilized {
		text = reason.Of(reason.DryRunSaving, m.Reason, what, m.Evicted, (m.Before-m.After)*HoursPerMonth)
	}
	for i := range candidates {
		r.Notes = append(r.Notes, dryRunNotes(&candidates[i], text)...)
	}
}

func dryRunNotes(c *Candidate, text reason.Text) []cluster.Note {
	return []cluster.Note{c.Node.Note(string(DryRun), text), c.Claim.Note(string(DryRun), text)}
}

// HoursPerMonth is how prices per hour become prices per month.
const HoursPerMonth = 730
