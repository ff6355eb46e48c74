package search

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/whatif"
)

// Find looks at every candidate for a cheaper way to run its pods.
//
// The cluster is taken in once. What pods are worth, which is what it costs at least to run them whatever is bought,
// tells which nodes are wasteful. First nodes go whose pods have room elsewhere, the most wasteful for the disturbance
// first; then nodes whose pods can be had for less on new ones, in groups. Whatever is found builds on what was found
// before, so that all moves can be made at the same time.
func Find(s *cluster.Snapshot, set disrupt.Settings) disrupt.Proposal {
	return find(s, set, mostSteps)
}

// find is Find with another bound of steps.
func find(s *cluster.Snapshot, set disrupt.Settings, steps int) disrupt.Proposal {
	out := disrupt.Proposal{Rev: s.Rev, Now: s.Now}
	candidates, blocked, wake := disrupt.Candidates(s, set, command.Underutilized)
	out.Blocked, out.WakeAt = blocked, wake
	busy := slices.DeleteFunc(slices.Clone(candidates), func(c disrupt.Candidate) bool { return c.Empty })
	busy, cut := splitByRules(s, set, busy)
	for i := range cut {
		out.Blocked = append(out.Blocked, disrupt.BlockedNode{Claim: cut[i].Claim.Name, Node: cut[i].Node.Name,
			Reason: disrupt.SearchCut})
	}
	if len(busy) > 0 {
		sr := newSearcher(s, set, candidates, busy, steps)
		sr.findDeletions()
		sr.updateWorth()
		sr.findSwaps(goodSwapShare)
		sr.findGroups()
		sr.findSwaps(0)
		sr.findPairs()
		moves, refused := sr.checkBegin(sr.found.moves(sr.candidates))
		out.Moves, out.Faults = moves, sr.whatIf.Faults()
		out.Blocked = append(append(out.Blocked, sr.candidates.blockedNodes()...), refused...)
		out.WakeAt = cluster.Earlier(out.WakeAt, sr.wakeAt)
		out.Truncated = sr.isOutOfSteps() || slices.ContainsFunc(sr.candidates, func(c searchCandidate) bool {
			return c.skipped
		})
	}
	out.Truncated = out.Truncated || len(cut) > 0
	slices.SortFunc(out.Blocked, func(a, b disrupt.BlockedNode) int { return strings.Compare(a.Claim, b.Claim) })
	return out
}

// searcher is one search.
type searcher struct {
	s             *cluster.Snapshot
	set           disrupt.Settings
	whatIf        *whatif.WhatIf
	budgets       *disrupt.BudgetTracker
	evictionRates *disrupt.EvictionRates
	totals        disrupt.PoolTotals
	candidates    searchCandidates
	// packingBudget is how many pods may still be packed anew to find out whether it pays, maxSteps how often it may
	// look at rules between pods.
	packingBudget, maxSteps int
	found                   stepBook
	byNode                  map[string]int
	// emptyNodes are the nodes that carry nothing and are about to go by themselves.
	emptyNodes map[string]bool
	// wakeAt is when the answer may change by itself.
	wakeAt time.Time
}

// minPackingBudget is how many pods are packed anew at least, however small the cluster, if it takes that many to find
// out.
const minPackingBudget = 6_000

func newSearcher(s *cluster.Snapshot, set disrupt.Settings, candidates, busy []disrupt.Candidate, steps int) *searcher {
	sr := &searcher{s: s, set: set, budgets: disrupt.NewBudgetTracker(s),
		evictionRates: disrupt.NewEvictionRates(s, set),
		totals:        disrupt.NewPoolTotals(s), found: newStepBook(len(busy)),
		byNode: make(map[string]int), emptyNodes: make(map[string]bool)}
	sr.packingBudget, sr.maxSteps = minPackingBudget, steps
	for _, p := range s.Pools {
		for i := range p.Budgets {
			sr.wakeAt = cluster.Earlier(sr.wakeAt, p.Budgets[i].ChangesAt)
		}
	}
	departures := make([]whatif.RemovableNode, len(busy))
	for i, c := range busy {
		sr.candidates = append(sr.candidates, searchCandidate{Candidate: c,
			blocked: disrupt.BlockedNode{Claim: c.Claim.Name,
				Node: c.Node.Name, Reason: disrupt.NothingCheaper}})
		sr.packingBudget += len(c.Pods) / 4
		sr.byNode[c.Node.Name] = i
		departures[i] = whatif.RemovableNode{Host: c.Node.Name, Pods: c.Pods}
	}
	for i := range candidates {
		if candidates[i].Empty { // it is about to go by itself
			sr.emptyNodes[candidates[i].Node.Name] = true
		}
	}
	sr.whatIf = whatif.New(withoutLeaving(s), set.Schedule, departures, func(h *cluster.Host) bool {
		return !sr.emptyNodes[h.Name] && sr.mayReceivePods(h)
	})
	for i := range sr.candidates {
		sr.candidates[i].ownWorth = sr.whatIf.Worth(i)
	}
	sr.skipCostly()
	sr.updateWorth()
	return sr
}

// updateWorth works out what the pods of each node are worth that stays so far, those included that are to come.
func (sr *searcher) updateWorth() {
	for i := range sr.candidates {
		if !sr.candidates[i].taken {
			sr.candidates[i].worth = sr.whatIf.Worth(i)
		}
	}
}

// withoutLeaving is the snapshot as it will be when what has been decided is done: without the nodes that go, and those
// that are fenced.
func withoutLeaving(s *cluster.Snapshot) *cluster.Overlay { return s.Without(leavingHosts(s)...) }

// leavingHosts are the hosts that go, and those that are fenced.
func leavingHosts(s *cluster.Snapshot) []string {
	var gone []string
	for _, c := range s.Claims {
		n := s.NodeOf(c.Name)
		if !c.Deleting.IsZero() || n != nil && (!n.Deleting.IsZero() || disrupt.Fenced(c, n)) {
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

// mayReceivePods reports whether pods may be moved to the host for money's sake: it is there, at work, and neither
// expects others nor is still being filled.
func (sr *searcher) mayReceivePods(h *cluster.Host) bool {
	n := sr.s.Node(h.Name)
	if n == nil || !h.Initialized || h.Fenced || !n.Ready || disrupt.HasFence(n) || sr.s.HasNominatedPod(h.Name) {
		return false
	}
	c := sr.s.ClaimOf(h.Name)
	if c == nil {
		return !n.Ours // one of ours has lost its claim and goes, or is to be found by it
	}
	if disrupt.NeverUsed(c) && disrupt.NoWorkload(sr.s.PodsOn(h.Name)) { // it is kept for a move, or about to go
		return false
	}
	if !disrupt.IsQuietTarget(sr.s, sr.set, c) {
		wait, _ := disrupt.QuietPeriod(sr.s.Pool(c.Pool), command.Underutilized)
		sr.wakeAt = cluster.Earlier(sr.wakeAt, disrupt.QuietAt(wait, c, sr.set.Nomination))
		return false
	}
	return !disrupt.HasCommandUnderWay(sr.s, c, n)
}

const (
	// mostSteps is how often a search looks at rules between pods: 2,000 nodes with 40,000 pods of ordinary workloads
	// take less than
	// 0.2 % of it, thousands of pods that each have rules about all the others would take hours.
	mostSteps = 150_000_000
	// stepsPerCandidate is about how many nodes are looked at for a pod whose rules stand in the way, in all that is
	// tried with it.
	stepsPerCandidate = 1_000
	// rotationPeriod is how long a search that can't come to all nodes begins with the same one, and rotationStride by
	// how many it then goes on.
	rotationPeriod = time.Minute
	rotationStride = 31
)

// isOutOfSteps reports whether the search has used up its steps.
func (sr *searcher) isOutOfSteps() bool { return sr.whatIf.Steps() >= sr.maxSteps }

// rotationStart is with which of n nodes a search begins that can't come to all: another one each minute, so that all
// come in turn. It is the snapshot's time that says so, and the same snapshot gives the same answer.
func rotationStart(s *cluster.Snapshot, n int) int {
	return int(uint64(s.Now.Unix()/int64(rotationPeriod.Seconds())) * rotationStride % uint64(n))
}

// splitByRules tells the candidates that a search takes on from those that are left out because their pods have too
// many rules.
func splitByRules(s *cluster.Snapshot, set disrupt.Settings, busy []disrupt.Candidate) (taken,
	cut []disrupt.Candidate) {
	if len(busy) == 0 {
		return nil, nil
	}
	departures := make([]whatif.RemovableNode, len(busy))
	for i := range busy {
		departures[i] = whatif.RemovableNode{Host: busy[i].Node.Name, Pods: busy[i].Pods}
	}
	for i, in := range whatif.WithinRuleBounds(s, set.Schedule, departures, rotationStart(s, len(busy))) {
		if in {
			taken = append(taken, busy[i])
		} else {
			cut = append(cut, busy[i])
		}
	}
	return taken, cut
}

// skipCostly leaves those out that there will be no steps for, if pods have so many rules that it is certain that they
// won't do. The steps would else go to the most wasteful nodes again and again.
func (sr *searcher) skipCostly() {
	left, first := sr.maxSteps, rotationStart(sr.s, len(sr.candidates))
	for n := range sr.candidates {
		i := (first + n) % len(sr.candidates)
		looks := sr.whatIf.RuleSteps(i) * stepsPerCandidate
		if left -= looks; left < 0 && looks > 0 {
			sr.candidates[i].skipped, sr.candidates[i].blocked.Reason = true, disrupt.SearchCut
		}
	}
}
