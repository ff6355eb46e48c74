package disrupt

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Search looks at every candidate for a cheaper way to run its pods.
//
// The cluster is taken in once. What pods are worth, which is what it costs at least to run them whatever is bought, tells
// which nodes are wasteful. First nodes go whose pods have room elsewhere, the most wasteful for the disturbance first; then
// nodes whose pods can be had for less on new ones, in groups. Whatever is found builds on what was found before, so that all
// moves can be made at the same time.
func Search(s *cluster.Snapshot, set Settings) Proposal { return search(s, set, mostSteps) }

// search is Search with another bound of steps.
func search(s *cluster.Snapshot, set Settings, steps int) Proposal {
	out := Proposal{Rev: s.Rev, Now: s.Now}
	candidates, stays, wake := Candidates(s, set, command.Underutilized)
	out.Stays, out.WakeAt = stays, wake
	busy := slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool { return c.Idle })
	busy, cut := takeOn(s, set, busy)
	for i := range cut {
		out.Stays = append(out.Stays, Stay{Claim: cut[i].Claim.Name, Node: cut[i].Node.Name, Why: SearchCut})
	}
	if len(busy) > 0 {
		sr := newSearcher(s, set, candidates, busy, steps)
		sr.deletions()
		sr.reappraise()
		sr.swaps(good)
		sr.groups()
		sr.swaps(0)
		sr.pairs()
		moves, refused := sr.rehearse(sr.moves())
		out.Moves, out.Faults = moves, sr.stage.Faults()
		out.Stays = append(append(out.Stays, sr.stays()...), refused...)
		out.WakeAt = cluster.Earlier(out.WakeAt, sr.wake)
		out.Cut = sr.spent() || slices.ContainsFunc(sr.all, func(p prospect) bool { return p.left })
	}
	out.Cut = out.Cut || len(cut) > 0
	slices.SortFunc(out.Stays, func(a, b Stay) int { return strings.Compare(a.Claim, b.Claim) })
	return out
}

// searcher is one search.
type searcher struct {
	s        *cluster.Snapshot
	set      Settings
	stage    *schedule.Stage
	budgets  *Ledger
	patience *Patience
	totals   Totals
	all      []prospect
	// work is how many pods may still be packed anew to find out whether it pays, steps how often it may look at rules between pods.
	work, steps int
	// deals are what has been found, in that order. party joins candidates whose deals hang together, crowd is how many they
	// are. homes are where pods go that need no new node.
	deals        []deal
	party, crowd []int
	homes        map[string]schedule.Assignment
	byNode       map[string]int
	// idle are the nodes that carry nothing and are about to go by themselves.
	idle map[string]bool
	// wake is when the answer may change by itself.
	wake time.Time
}

// prospect is a candidate in a search.
type prospect struct {
	Candidate
	// own is what its pods are worth, worth the same with those who are to come.
	own, worth float64
	taken      bool
	// looked says that something was tried with it, left that there are no steps for it.
	looked, left bool
	// stay is why it stays, as far as that is known: the best that was found for it, if anything was noted.
	stay  Stay
	noted bool
}

// leastWork is how many pods are packed anew at least, however small the cluster, if it takes that many to find out.
const leastWork = 6_000

// waste is what the node costs beyond what its pods are worth.
func (p *prospect) waste() float64 { return p.Price - p.worth }

func newSearcher(s *cluster.Snapshot, set Settings, candidates, busy []Candidate, steps int) *searcher {
	sr := &searcher{s: s, set: set, budgets: NewLedger(s), patience: NewPatience(s, set), totals: NewTotals(s),
		homes: make(map[string]schedule.Assignment), byNode: make(map[string]int), idle: make(map[string]bool)}
	sr.work, sr.steps = leastWork, steps
	for _, p := range s.Pools {
		for i := range p.Budgets {
			sr.wake = cluster.Earlier(sr.wake, p.Budgets[i].Changes)
		}
	}
	departures := make([]schedule.Departure, len(busy))
	for i, c := range busy {
		sr.all = append(sr.all, prospect{Candidate: c, stay: Stay{Claim: c.Claim.Name, Node: c.Node.Name, Why: NothingCheaper}})
		sr.work += len(c.Pods) / 4
		sr.party, sr.crowd, sr.byNode[c.Node.Name] = append(sr.party, i), append(sr.crowd, 1), i
		departures[i] = schedule.Departure{Host: c.Node.Name, Pods: c.Pods}
	}
	for i := range candidates {
		if candidates[i].Idle { // it is about to go by itself
			sr.idle[candidates[i].Node.Name] = true
		}
	}
	sr.stage = schedule.NewStage(without(s), set.Schedule, departures, func(h *cluster.Host) bool {
		return !sr.idle[h.Name] && sr.receives(h)
	})
	for i := range sr.all {
		sr.all[i].own = sr.stage.Worth(i)
	}
	sr.ration()
	sr.reappraise()
	return sr
}

// reappraise works out what the pods of each node are worth that stays so far, those included that are to come.
func (sr *searcher) reappraise() {
	for i := range sr.all {
		if !sr.all[i].taken {
			sr.all[i].worth = sr.stage.Worth(i)
		}
	}
}

// without is the snapshot as it will be when what has been decided is done: without the nodes that go, and those that are
// fenced.
func without(s *cluster.Snapshot) *cluster.Overlay { return s.Without(leavingHosts(s)...) }

// leavingHosts are the hosts that go, and those that are fenced.
func leavingHosts(s *cluster.Snapshot) []string {
	var gone []string
	for _, c := range s.Claims {
		n := s.NodeOf(c.Name)
		if !c.Deleting.IsZero() || n != nil && (!n.Deleting.IsZero() || Fenced(c, n)) {
			gone = append(gone, cluster.HostName(c, n))
		}
	}
	for _, n := range s.Nodes {
		if !n.Deleting.IsZero() {
			gone = append(gone, n.Name)
		}
	}
	return gone
}

// receives reports whether pods may be moved to the host for money's sake: it is there, at work, and neither expects others
// nor is still being filled.
func (sr *searcher) receives(h *cluster.Host) bool {
	n := sr.s.Node(h.Name)
	if n == nil || !h.Initialized || h.Fenced || !n.Ready || tainted(n) || sr.s.Awaited(h.Name) {
		return false
	}
	c := sr.s.ClaimOf(h.Name)
	if c == nil {
		return !n.Ours // one of ours has lost its claim and goes, or is to be found by it
	}
	if stray(c) && idle(sr.s.PodsOn(h.Name)) { // it is kept for a move, or about to go
		return false
	}
	if !Settled(sr.s, sr.set, c) {
		wait, _ := WaitFor(sr.s.Pool(c.Pool), command.Underutilized)
		sr.wake = cluster.Earlier(sr.wake, quietAt(wait, c, sr.set.Nomination))
		return false
	}
	return !underWay(sr.s, c, n)
}

// order sorts the candidates by how soon they should go: those that waste the most for the disturbance come first, and what
// is only tried out last.
func (sr *searcher) order() []int {
	order := make([]int, len(sr.all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &sr.all[i], &sr.all[j]
		if a.Pool.Care.DryRun != b.Pool.Care.DryRun {
			if b.Pool.Care.DryRun {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.waste()/b.Cost, a.waste()/a.Cost), Compare(&a.Candidate, &b.Candidate))
	})
	return order
}

// chosen are the candidates of some places.
func (sr *searcher) chosen(places []int) []Candidate {
	out := make([]Candidate, len(places))
	for i, at := range places {
		out[i] = sr.all[at].Candidate
	}
	return out
}

// stays says of each candidate that is in no move why.
func (sr *searcher) stays() []Stay {
	var out []Stay
	for i := range sr.all {
		if !sr.all[i].taken {
			out = append(out, sr.all[i].stay)
		}
	}
	return out
}
