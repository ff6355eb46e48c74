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
	// A search begins when nothing that matters has happened for calm, or longestStir after the first thing that has: a plan over
	// half of a scale-down would move pods that are about to be deleted.
	calm        = time.Second
	longestStir = 10 * time.Second
	// A search is followed by a pause of at least firstPause, twice as long after each that led to nothing, and at most
	// lastPause: pods that come and go all the time must not keep a large cluster searching.
	firstPause = 500 * time.Millisecond
	lastPause  = 5 * time.Second
	// What was found and could not be begun, because of a budget or because people only want to be told, is looked for again
	// after firstRound, even if nothing has changed, and then less and less often.
	firstRound = 10 * time.Second
	lastRound  = 5 * time.Minute
	// landing is for how long at most a search waits until the pods that were moved are where they go: only then it is known
	// which nodes they have left with too little.
	landing = time.Minute
	// shelfLife is for how long what was found may wait for a plan that looks at it.
	shelfLife = 10 * time.Second
	// lastResort is how long a search may be trusted if anything at all has changed since.
	lastResort = 10 * time.Minute
)

// desk is the slow desk: it looks at every node for a cheaper way to run its pods, one search at a time, and only if something
// that matters has changed since the last one or its answer has run out. All of it belongs to the goroutine that makes
// passes. Its clock is the snapshots'.
type desk struct {
	searching bool
	asked     time.Time // when the last search began
	found     *finding  // not looked at by a plan yet

	last finding // without the snapshot
	seen uint64  // what mattered when the last search looked
	next time.Time
	// latest is what mattered last, stirred is when that was noticed, and since is when the first was that no search has seen.
	latest         uint64
	stirred, since time.Time
	// again is when to search although nothing has changed; zero for never.
	again time.Time
	idle  int // searches in a row that led to nothing
}

// finding is what a search came to.
type finding struct {
	snapshot *cluster.Snapshot
	proposal disrupt.Proposal
	took     time.Duration
	// offered is when it was handed to a pass first.
	offered time.Time
}

// matters is the revision of the latest change that a search depends on.
func matters(s *cluster.Snapshot) uint64 { return max(s.Demand, s.Supply, s.Stakes) }

// watch notes whether something that matters has happened.
func (d *desk) watch(s *cluster.Snapshot) {
	if m := matters(s); m > d.latest {
		d.latest, d.stirred = m, s.Now
		if d.since.IsZero() {
			d.since = s.Now
		}
	}
}

// due is when the next search is due, as far as the snapshot tells; never is the zero time.
func (d *desk) due(s *cluster.Snapshot) time.Time {
	d.watch(s)
	at := d.again
	switch {
	case d.searching || d.found != nil:
		return time.Time{}
	case d.last.proposal.Now.IsZero(), d.latest > d.seen,
		s.Rev != d.last.proposal.Rev && !s.Now.Before(d.last.proposal.Now.Add(lastResort)):
		at = s.Now
	}
	if at.IsZero() {
		return at
	}
	if !d.since.IsZero() {
		at = later(at, cluster.Earlier(d.stirred.Add(calm), d.since.Add(longestStir)))
	}
	return later(at, d.next)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// done takes in what a search has found. busy is for how long it kept the machine. A search that had no snapshot has
// found nothing, and is made again after a pause.
func (d *desk) done(f finding, busy time.Duration) {
	if f.snapshot == nil {
		d.searching = false
		d.idle++
		d.next = d.asked.Add(growing(firstPause, d.idle, lastPause))
		return
	}
	d.searching, d.found = false, &f
	d.seen = matters(f.snapshot)
	d.since = time.Time{}
	if d.latest > d.seen {
		d.since = f.snapshot.Now
	}
	d.latest = max(d.latest, d.seen)
	d.last = finding{proposal: disrupt.Proposal{Rev: f.snapshot.Rev, Now: f.snapshot.Now}}
	d.next = f.snapshot.Now.Add(4 * busy) // a quarter of the time at most
}

// take hands out what was found.
func (d *desk) take() *finding {
	f := d.found
	d.found = nil
	return f
}

// keep takes back what a plan has not looked at, for the next one. What gets too old is searched for again.
func (d *desk) keep(f *finding, now time.Time) {
	if f == nil {
		return
	}
	if f.offered.IsZero() {
		f.offered = now
	}
	if now.Before(f.offered.Add(shelfLife)) {
		d.found = f
		return
	}
	d.again = now
}

// used takes in what a plan made of a proposal.
func (d *desk) used(f *finding, p *plan.Plan, now time.Time) {
	d.again = f.proposal.WakeAt
	switch {
	case begun(p, f.proposal.Moves):
		d.idle = 0
		d.again = now // there may be more; the search that finds nothing ends it
	case len(f.proposal.Moves) > 0:
		d.again = cluster.Earlier(d.again, now.Add(growing(firstRound, d.idle, lastRound)))
		d.idle++
	default:
		d.idle++
	}
	d.next = later(d.next, f.snapshot.Now.Add(growing(firstPause, d.idle, lastPause)))
}

// growing is a wait that doubles each time, up to the last.
func growing(first time.Duration, times int, last time.Duration) time.Duration {
	return min(first<<min(times, 20), last)
}

// begun reports whether the plan begins one of the moves.
func begun(p *plan.Plan, moves []disrupt.Move) bool {
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

// unplanned reports whether pods wait for a plan, or pools for what the plan would buy from: whatever was found now would be
// out of date at once.
func unplanned(s *cluster.Snapshot, p *plan.Plan) bool {
	for _, pool := range s.Pools {
		if pool.Waiting() {
			return true
		}
	}
	if p.Provisioned {
		return false
	}
	for _, pod := range s.Pending() {
		if s.NewAt(pod).After(s.Planned) {
			return true
		}
	}
	return false
}

// moving reports whether pods are on their way because their nodes are taken away to save money.
func moving(s *cluster.Snapshot) bool {
	for key := range s.Busy {
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
		if n := s.NodeOf(c.Name); n != nil && slices.ContainsFunc(s.PodsOn(n.Name), (*cluster.Pod).Moves) {
			return true
		}
	}
	if len(s.Evicted) == 0 {
		return false
	}
	return slices.ContainsFunc(s.Pods, func(p *cluster.Pod) bool {
		return p.Node == "" && s.Evicted[p.Owner] > 0 && p.Deleting.IsZero() && !p.Done
	})
}

// search has the slow desk look if that is due, in the background if the loop runs by itself. The plan then says when to
// look again.
func (l *Loop) search(s *cluster.Snapshot, p *plan.Plan) {
	at := l.desk.due(s)
	q := &s.Quarantine
	if at.IsZero() || unplanned(s, p) || q.Leaves(cluster.Searching) || q.Leaves(cluster.Disrupting) {
		return
	}
	if landed := l.desk.last.proposal.Now.Add(landing); at.Before(landed) && moving(s) {
		at = landed
	}
	if at.After(s.Now) {
		p.WakeAt = cluster.Earlier(p.WakeAt, at)
		return
	}
	l.desk.searching, l.desk.asked = true, s.Now
	if l.findings != nil {
		l.acts.Go(func() { l.findings <- l.look() }) // there is room for the only one
		return
	}
	l.desk.done(l.look(), 0) // whose clock it is decides how long things take
	p.WakeAt = s.Now
}

// look is one search, on a snapshot of its own: what the last plan has begun is in it. A finding without a snapshot is
// none: that has then been told.
func (l *Loop) look() (out finding) {
	s, ok := l.snapshot()
	if !ok {
		return out
	}
	began := time.Now()
	if b := guard(plan.StepSearch, func() { out = finding{snapshot: s, proposal: l.find(s)} }); b != nil {
		l.broke(b)
		return finding{}
	}
	out.took = time.Since(began)
	return out
}
