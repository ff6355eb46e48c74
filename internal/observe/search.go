package observe

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
)

// search is what the last search for cheaper nodes came to. It never changes.
type search struct {
	at    time.Time
	took  time.Duration
	cut   bool // it has used up its steps
	moves []found
	stays []stayed // sorted by claim
	// passed are those of them that a move was found for which was not begun; earlier are the last search's.
	passed, earlier []stayed
	// budgets are what the budgets of pools say that are a reason.
	budgets map[string]string
}

// stayed is a node that stays, and since when for this reason.
type stayed struct {
	disrupt.Stay
	pool  string
	since time.Time
	// found says that it is in a move that was found and not begun.
	found bool
}

// found is a move that was found.
type found struct {
	disrupt.Move
	nodes, pools []string
	dryRun       bool
}

// newSearch takes in a proposal; last is what the search before it came to, or nil.
func newSearch(s *cluster.Snapshot, p *disrupt.Proposal, took time.Duration, at time.Time, last *search) *search {
	out := &search{at: at, took: took, cut: p.Cut, budgets: make(map[string]string)}
	if last != nil {
		out.earlier = last.passed
	}
	for _, m := range p.Moves {
		f := found{Move: m}
		f.nodes, f.pools = whoGoes(s, m.Claims)
		f.dryRun = slices.ContainsFunc(f.pools, func(name string) bool { p := s.Pool(name); return p != nil && p.Care.DryRun })
		out.moves = append(out.moves, f)
	}
	for _, st := range p.Stays {
		one := stayed{Stay: st, since: at}
		if last != nil {
			one.since = since(last.stays, &st, at)
		}
		out.add(s, one)
	}
	slices.SortFunc(out.stays, byClaim)
	return out
}

func byClaim(a, b stayed) int { return strings.Compare(a.Claim, b.Claim) }

// add adds a node that stays.
func (sr *search) add(s *cluster.Snapshot, one stayed) {
	if c := s.Claim(one.Claim); c != nil {
		one.pool, one.Estimated = c.Pool, one.Estimated || c.Estimated
	}
	if one.Why == disrupt.BudgetBlocks && sr.budgets[one.pool] == "" {
		if pool := s.Pool(one.pool); pool != nil {
			sr.budgets[one.pool] = disrupt.BudgetLine(s, pool, command.Underutilized)
		}
	}
	sr.stays = append(sr.stays, one)
}

// since is since when the node has stayed for the same reason: now, unless it did already.
func since(before []stayed, st *disrupt.Stay, now time.Time) time.Time {
	i, ok := slices.BinarySearchFunc(before, st.Claim, func(a stayed, claim string) int { return strings.Compare(a.Claim, claim) })
	if ok && before[i].Why == st.Why {
		return before[i].since
	}
	return now
}

// text says in words why the node stays.
func (sr *search) text(st *stayed) string {
	return explained(reasoned{Stay: st.Stay, pool: st.pool, budget: sr.budgets[st.pool]})
}

// saving is what all moves that were found would save per hour.
func (sr *search) saving() float64 {
	sum := 0.0
	for i := range sr.moves {
		sum += sr.moves[i].Before - sr.moves[i].After
	}
	return sum
}

// candidates counts the nodes that people and pods would have let go.
func (sr *search) candidates() int {
	count := 0
	for i := range sr.moves {
		count += len(sr.moves[i].Claims)
	}
	for i := range sr.stays {
		if !sr.stays[i].found && weighed(sr.stays[i].Why) {
			count++
		}
	}
	return count
}

// whoGoes names the nodes of claims, and the pools that they are of.
func whoGoes(s *cluster.Snapshot, claims []string) (nodes, pools []string) {
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
