package search

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/render"
)

// Result is what the last search for cheaper nodes came to. It never changes.
type Result struct {
	At        time.Time
	Took      time.Duration
	Truncated bool // it has used up its steps
	Moves     []foundMove
	Blocked   []Blocked // sorted by claim
	// NotBegun are those of them that a move was found for which was not begun; earlierNotBegun are the last search's.
	NotBegun, earlierNotBegun []Blocked
	// budgets are what the budgets of pools say that are a reason.
	budgets map[string]string
}

// Blocked is a node that stays, and since when for this reason.
type Blocked struct {
	disrupt.BlockedNode
	Pool  string
	Since time.Time
	// found says that it is in a move that was found and not begun.
	found bool
}

// foundMove is a move that was found.
type foundMove struct {
	disrupt.Move
	Nodes, Pools []string
	DryRun       bool
}

// NewResult takes in a proposal; last is what the search before it came to, or nil.
func NewResult(s *cluster.Snapshot, p *disrupt.Proposal, took time.Duration, at time.Time,
	last *Result) *Result {
	out := &Result{At: at, Took: took, Truncated: p.Truncated, budgets: make(map[string]string)}
	if last != nil {
		out.earlierNotBegun = last.NotBegun
	}
	for _, m := range p.Moves {
		f := foundMove{Move: m}
		f.Nodes, f.Pools = NodesAndPools(s, m.Claims)
		f.DryRun = slices.ContainsFunc(f.Pools, func(name string) bool {
			p := s.Pool(name)
			return p != nil && p.Overrides.DryRun
		})
		out.Moves = append(out.Moves, f)
	}
	for _, st := range p.Blocked {
		one := Blocked{BlockedNode: st, Since: at}
		if last != nil {
			one.Since = since(last.Blocked, &st, at)
		}
		out.add(s, one)
	}
	slices.SortFunc(out.Blocked, byClaim)
	return out
}

func byClaim(a, b Blocked) int { return strings.Compare(a.Claim, b.Claim) }

// add adds a node that stays.
func (ls *Result) add(s *cluster.Snapshot, one Blocked) {
	if c := s.Claim(one.Claim); c != nil {
		one.Pool, one.Estimated = c.Pool, one.Estimated || c.Estimated
	}
	if one.Reason == disrupt.BudgetBlocks && ls.budgets[one.Pool] == "" {
		if pool := s.Pool(one.Pool); pool != nil {
			ls.budgets[one.Pool] = render.Text(disrupt.AllowedNow(s, pool, command.Underutilized))
		}
	}
	ls.Blocked = append(ls.Blocked, one)
}

// since is since when the node has stayed for the same reason: now, unless it did already.
func since(before []Blocked, st *disrupt.BlockedNode, now time.Time) time.Time {
	i, ok := slices.BinarySearchFunc(before, st.Claim, func(a Blocked, claim string) int {
		return strings.Compare(a.Claim, claim)
	})
	if ok && before[i].Reason == st.Reason {
		return before[i].Since
	}
	return now
}

// Text says in words why the node stays.
func (ls *Result) Text(st *Blocked) string {
	return Describe(Block{BlockedNode: st.BlockedNode, Pool: st.Pool, Budget: ls.budgets[st.Pool]})
}

// Saving is what all moves that were found would save per hour.
func (ls *Result) Saving() float64 {
	sum := 0.0
	for i := range ls.Moves {
		sum += ls.Moves[i].Before - ls.Moves[i].After
	}
	return sum
}

// Candidates counts the nodes that people and pods would have let go.
func (ls *Result) Candidates() int {
	count := 0
	for i := range ls.Moves {
		count += len(ls.Moves[i].Claims)
	}
	for i := range ls.Blocked {
		if !ls.Blocked[i].found && wasCandidate(ls.Blocked[i].Reason) {
			count++
		}
	}
	return count
}

// NodesAndPools names the nodes of claims, and the pools that they are of.
func NodesAndPools(s *cluster.Snapshot, claims []string) (nodes, pools []string) {
	for _, name := range claims {
		c := s.Claim(name)
		if c == nil {
			continue
		}
		if n := s.NodeOf(name); n != nil {
			nodes = append(nodes, n.Name)
		}
		if !slices.Contains(pools, c.Pool) {
			pools = append(pools, c.Pool)
		}
	}
	slices.Sort(pools)
	return nodes, pools
}

// Without is the search with the nodes of moves that were not begun among those that stay.
func (ls *Result) Without(s *cluster.Snapshot, list []disrupt.GivenUp) *Result {
	out := *ls
	out.Blocked, out.NotBegun, out.budgets = slices.Clone(ls.Blocked), nil, maps.Clone(ls.budgets)
	found := make(map[string]*disrupt.Move, len(ls.Moves))
	for i := range ls.Moves {
		found[ls.Moves[i].ID] = &ls.Moves[i].Move
	}
	for _, g := range list {
		m := found[g.ID]
		if m == nil {
			continue // it is of another search
		}
		for _, name := range g.Claims {
			one := Blocked{BlockedNode: disrupt.BlockedNode{Claim: name, Reason: g.BlockReason,
				Saving: m.Before - m.After, NeededSaving: m.NeededSaving}, found: true}
			if g.NeededSaving > 0 { // what was found has been worked out again
				one.Saving, one.CertainSaving, one.NeededSaving = g.Saving, g.CertainSaving, g.NeededSaving
			}
			if n := s.NodeOf(name); n != nil {
				one.Node = n.Name
			}
			one.Since = since(ls.earlierNotBegun, &one.BlockedNode, ls.At)
			out.add(s, one)
		}
	}
	slices.SortFunc(out.Blocked, byClaim)
	for i := range out.Blocked {
		if out.Blocked[i].found {
			out.NotBegun = append(out.NotBegun, out.Blocked[i])
		}
	}
	return &out
}
