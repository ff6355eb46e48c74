package loop

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

const (
	// A search begins when nothing that matters has happened for calm, or longestUnquiet after the first thing that
	// has: a plan over half of a scale-down would move pods that are about to be deleted.
	quietBeforeSearch = time.Second
	longestUnquiet    = 10 * time.Second
	// A search is followed by a pause of at least firstPause, twice as long after each that led to nothing, and at most
	// lastPause: pods that come and go all the time must not keep a large cluster searching.
	firstPause = 500 * time.Millisecond
	lastPause  = 5 * time.Second
	// What was found and could not be begun, because of a budget or because people only want to be told, is looked for
	// again after firstRepeat, even if nothing has changed, and then less and less often.
	firstRepeat   = 10 * time.Second
	longestRepeat = 5 * time.Minute
	// podsMovingWait is for how long at most a search waits until the pods that were moved are where they go: only then
	// it is known which nodes they have left with too little.
	podsMovingWait = time.Minute
	// resultLifetime is for how long what was found may wait for a plan that looks at it.
	resultLifetime = 10 * time.Second
	// resultLimit is how long a search may be trusted if anything at all has changed since.
	resultLimit = 10 * time.Minute
)

// searchScheduler decides when the next search begins. A search looks at every node for a cheaper way to run its pods,
// one search at a time, and only if something that matters has changed since the last one or its answer has run out.
// All of it belongs to the goroutine that makes passes. Its clock is the snapshots'.
type searchScheduler struct {
	running   bool
	lastStart time.Time     // when the last search began
	found     *searchResult // not looked at by a plan yet

	last    searchResult // without the snapshot
	seenRev uint64       // what mattered when the last search looked
	next    time.Time
	// latestRev is what mattered last, changedAt is when that was noticed, and firstUnseen is when the first was that
	// no search has seen.
	latestRev              uint64
	changedAt, firstUnseen time.Time
	// againAt is when to search although nothing has changed; zero for never.
	againAt       time.Time
	emptySearches int // searches in a row that led to nothing
}

// searchResult is what a search came to.
type searchResult struct {
	snapshot *cluster.Snapshot
	proposal disrupt.Proposal
	took     time.Duration
	// offeredAt is when it was handed to a pass first.
	offeredAt time.Time
}

// searchRev is the revision of the latest change that a search depends on.
func searchRev(s *cluster.Snapshot) uint64 { return max(s.DemandRev, s.SupplyRev, s.DisruptionRev) }

// noteChanges notes whether something that matters has happened.
func (sched *searchScheduler) noteChanges(s *cluster.Snapshot) {
	if m := searchRev(s); m > sched.latestRev {
		sched.latestRev, sched.changedAt = m, s.Now
		if sched.firstUnseen.IsZero() {
			sched.firstUnseen = s.Now
		}
	}
}

// due is when the next search is due, as far as the snapshot tells; never is the zero time.
func (sched *searchScheduler) due(s *cluster.Snapshot) time.Time {
	sched.noteChanges(s)
	at := sched.againAt
	switch {
	case sched.running || sched.found != nil:
		return time.Time{}
	case sched.last.proposal.Now.IsZero(), sched.latestRev > sched.seenRev,
		s.Rev != sched.last.proposal.Rev && !s.Now.Before(sched.last.proposal.Now.Add(resultLimit)):
		at = s.Now
	}
	if at.IsZero() {
		return at
	}
	if !sched.firstUnseen.IsZero() {
		at = later(at, cluster.Earlier(sched.changedAt.Add(quietBeforeSearch), sched.firstUnseen.Add(longestUnquiet)))
	}
	return later(at, sched.next)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// done takes in what a search has found. busy is for how long it kept the machine. A search that had no snapshot has
// found nothing, and is made again after a pause.
func (sched *searchScheduler) done(f searchResult, busy time.Duration) {
	if f.snapshot == nil {
		sched.running = false
		sched.emptySearches++
		sched.next = sched.lastStart.Add(doubling(firstPause, sched.emptySearches, lastPause))
		return
	}
	sched.running, sched.found = false, &f
	sched.seenRev = searchRev(f.snapshot)
	sched.firstUnseen = time.Time{}
	if sched.latestRev > sched.seenRev {
		sched.firstUnseen = f.snapshot.Now
	}
	sched.latestRev = max(sched.latestRev, sched.seenRev)
	sched.last = searchResult{proposal: disrupt.Proposal{Rev: f.snapshot.Rev, Now: f.snapshot.Now}}
	sched.next = f.snapshot.Now.Add(4 * busy) // a quarter of the time at most
}

// take hands out what was found.
func (sched *searchScheduler) take() *searchResult {
	f := sched.found
	sched.found = nil
	return f
}

// putBack takes back what a plan has not looked at, for the next one. What gets too old is searched for again.
func (sched *searchScheduler) putBack(f *searchResult, now time.Time) {
	if f == nil {
		return
	}
	if f.offeredAt.IsZero() {
		f.offeredAt = now
	}
	if now.Before(f.offeredAt.Add(resultLifetime)) {
		sched.found = f
		return
	}
	sched.againAt = now
}

// noteUsed takes in what a plan made of a proposal.
func (sched *searchScheduler) noteUsed(f *searchResult, p *plan.Plan, now time.Time) {
	sched.againAt = f.proposal.WakeAt
	switch {
	case anyBegun(p, f.proposal.Moves):
		sched.emptySearches = 0
		sched.againAt = now // there may be more; the search that finds nothing ends it
	case len(f.proposal.Moves) > 0:
		sched.againAt = cluster.Earlier(sched.againAt, now.Add(doubling(firstRepeat, sched.emptySearches,
			longestRepeat)))
		sched.emptySearches++
	default:
		sched.emptySearches++
	}
	sched.next = later(sched.next, f.snapshot.Now.Add(doubling(firstPause, sched.emptySearches, lastPause)))
}

// doubling is a wait that doubles each time, up to the last.
func doubling(first time.Duration, times int, last time.Duration) time.Duration {
	return min(first<<min(times, 20), last)
}

// anyBegun reports whether the plan begins one of the moves.
func anyBegun(p *plan.Plan, moves []disrupt.Move) bool {
	ids := make(map[string]bool, len(moves))
	for i := range moves {
		ids[moves[i].ID] = true
	}
	for _, c := range p.Commands {
		if fence, ok := c.(command.Fence); ok && ids[fence.Move] {
			return true
		}
	}
	return false
}

// awaitsPlan reports whether pods wait for a plan, or pools for what the plan would buy from: whatever was found now
// would be out of date at once.
func awaitsPlan(s *cluster.Snapshot, p *plan.Plan) bool {
	for _, pool := range s.Pools {
		if pool.AwaitsCatalog() {
			return true
		}
	}
	if p.Provisioned {
		return false
	}
	for _, pod := range s.Pending() {
		if s.PendingSince(pod).After(s.PlannedAt) {
			return true
		}
	}
	return false
}

// podsMovingToSave reports whether pods are on their way because their nodes are taken away to save money.
func podsMovingToSave(s *cluster.Snapshot) bool {
	for key := range s.InFlight {
		if strings.HasPrefix(key, command.Fence{}.Key()) { // some are about to be
			return true
		}
	}
	for _, c := range s.Claims {
		reason := c.Condition(cluster.DisruptionReason)
		if reason.Status != cluster.True || reason.Reason != string(command.Underutilized) {
			continue
		}
		if c.Deleting.IsZero() {
			return true
		}
		if n := s.NodeOf(c.Name); n != nil && slices.ContainsFunc(s.PodsOn(n.Name), (*cluster.Pod).NeedsNewPlace) {
			return true
		}
	}
	if len(s.EvictedToSave) == 0 {
		return false
	}
	return slices.ContainsFunc(s.Pods, func(p *cluster.Pod) bool {
		return p.Node == "" && s.EvictedToSave[p.Owner] > 0 && p.Deleting.IsZero() && !p.Finished
	})
}

// scheduleSearch has the search scheduler look if that is due, in the background if the loop runs by itself. The plan
// then says when to look again.
func (l *Loop) scheduleSearch(s *cluster.Snapshot, p *plan.Plan) {
	at := l.searches.due(s)
	q := &s.Quarantine
	if at.IsZero() || awaitsPlan(s, p) || q.LeavesOut(cluster.Searching) || q.LeavesOut(cluster.Disrupting) {
		return
	}
	if landed := l.searches.last.proposal.Now.Add(podsMovingWait); at.Before(landed) && podsMovingToSave(s) {
		at = landed
	}
	if at.After(s.Now) {
		p.WakeAt = cluster.Earlier(p.WakeAt, at)
		return
	}
	l.searches.running, l.searches.lastStart = true, s.Now
	if l.searchResults != nil {
		l.running.Go(func() { l.searchResults <- l.runSearch() }) // there is room for the only one
		return
	}
	l.searches.done(l.runSearch(), 0) // whose clock it is decides how long things take
	p.WakeAt = s.Now
}

// runSearch is one search, on a snapshot of its own: what the last plan has begun is in it. A result without a snapshot
// is none: that has then been told.
func (l *Loop) runSearch() (out searchResult) {
	s, ok := l.snapshot()
	if !ok {
		return out
	}
	began := time.Now()
	if f := recoverPanic(plan.StepSearch, func() {
		out = searchResult{snapshot: s, proposal: l.findProposal(s)}
	}); f != nil {
		l.reportFailure(f)
		return searchResult{}
	}
	out.took = time.Since(began)
	return out
}
