package observe

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

// lastSearch is what the last search for cheaper nodes came to. It never changes.
type lastSearch struct {
	at        time.Time
	took      time.Duration
	truncated bool // it has used up its steps
	moves     []foundMove
	blocked   []blockedSince // sorted by claim
	// notBegun are those of them that a move was found for which was not begun; earlierNotBegun are the last search's.
	notBegun, earlierNotBegun []blockedSince
	// budgets are what the budgets of pools say that are a reason.
	budgets map[string]string
}

// blockedSince is a node that stays, and since when for this reason.
type blockedSince struct {
	disrupt.BlockedNode
	pool  string
	since time.Time
	// found says that it is in a move that was found and not begun.
	found bool
}

// foundMove is a move that was found.
type foundMove struct {
	disrupt.Move
	nodes, pools []string
	dryRun       bool
}

// newLastSearch takes in a proposal; last is what the search before it came to, or nil.
func newLastSearch(s *cluster.Snapshot, p *disrupt.Proposal, took time.Duration, at time.Time,
	last *lastSearch) *lastSearch {
	out := &lastSearch{at: at, took: took, truncated: p.Truncated, budgets: make(map[string]string)}
	if last != nil {
		out.earlierNotBegun = last.notBegun
	}
	for _, m := range p.Moves {
		f := foundMove{Move: m}
		f.nodes, f.pools = nodesAndPools(s, m.Claims)
		f.dryRun = slices.ContainsFunc(f.pools, func(name string) bool {
			p := s.Pool(name)
			return p != nil && p.Overrides.DryRun
		})
		out.moves = append(out.moves, f)
	}
	for _, st := range p.Blocked {
		one := blockedSince{BlockedNode: st, since: at}
		if last != nil {
			one.since = since(last.blocked, &st, at)
		}
		out.add(s, one)
	}
	slices.SortFunc(out.blocked, byClaim)
	return out
}

func byClaim(a, b blockedSince) int { return strings.Compare(a.Claim, b.Claim) }

// add adds a node that stays.
func (ls *lastSearch) add(s *cluster.Snapshot, one blockedSince) {
	if c := s.Claim(one.Claim); c != nil {
		one.pool, one.Estimated = c.Pool, one.Estimated || c.Estimated
	}
	if one.Reason == disrupt.BudgetBlocks && ls.budgets[one.pool] == "" {
		if pool := s.Pool(one.pool); pool != nil {
			ls.budgets[one.pool] = render.Text(disrupt.AllowedNow(s, pool, command.Underutilized))
		}
	}
	ls.blocked = append(ls.blocked, one)
}

// since is since when the node has stayed for the same reason: now, unless it did already.
func since(before []blockedSince, st *disrupt.BlockedNode, now time.Time) time.Time {
	i, ok := slices.BinarySearchFunc(before, st.Claim, func(a blockedSince, claim string) int {
		return strings.Compare(a.Claim, claim)
	})
	if ok && before[i].Reason == st.Reason {
		return before[i].since
	}
	return now
}

// text says in words why the node stays.
func (ls *lastSearch) text(st *blockedSince) string {
	return describeBlock(blockDetail{BlockedNode: st.BlockedNode, pool: st.pool, budget: ls.budgets[st.pool]})
}

// saving is what all moves that were found would save per hour.
func (ls *lastSearch) saving() float64 {
	sum := 0.0
	for i := range ls.moves {
		sum += ls.moves[i].Before - ls.moves[i].After
	}
	return sum
}

// candidates counts the nodes that people and pods would have let go.
func (ls *lastSearch) candidates() int {
	count := 0
	for i := range ls.moves {
		count += len(ls.moves[i].Claims)
	}
	for i := range ls.blocked {
		if !ls.blocked[i].found && wasCandidate(ls.blocked[i].Reason) {
			count++
		}
	}
	return count
}

// nodesAndPools names the nodes of claims, and the pools that they are of.
func nodesAndPools(s *cluster.Snapshot, claims []string) (nodes, pools []string) {
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

// without is the search with the nodes of moves that were not begun among those that stay.
func (ls *lastSearch) without(s *cluster.Snapshot, list []disrupt.GivenUp) *lastSearch {
	out := *ls
	out.blocked, out.notBegun, out.budgets = slices.Clone(ls.blocked), nil, maps.Clone(ls.budgets)
	found := make(map[string]*disrupt.Move, len(ls.moves))
	for i := range ls.moves {
		found[ls.moves[i].ID] = &ls.moves[i].Move
	}
	for _, g := range list {
		m := found[g.ID]
		if m == nil {
			continue // it is of another search
		}
		for _, name := range g.Claims {
			one := blockedSince{BlockedNode: disrupt.BlockedNode{Claim: name, Reason: g.BlockReason,
				Saving: m.Before - m.After, NeededSaving: m.NeededSaving}, found: true}
			if g.NeededSaving > 0 { // what was found has been worked out again
				one.Saving, one.CertainSaving, one.NeededSaving = g.Saving, g.CertainSaving, g.NeededSaving
			}
			if n := s.NodeOf(name); n != nil {
				one.Node = n.Name
			}
			one.since = since(ls.earlierNotBegun, &one.BlockedNode, ls.at)
			out.add(s, one)
		}
	}
	slices.SortFunc(out.blocked, byClaim)
	for i := range out.blocked {
		if out.blocked[i].found {
			out.notBegun = append(out.notBegun, out.blocked[i])
		}
	}
	return &out
}
