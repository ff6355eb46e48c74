// Package loop is the heartbeat: when to look, when to plan, what to run.
//
// Floor 4: it owns the goroutines and the order of things, and knows nothing of Kubernetes.
package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

const (
	// leastInterval is the least time between two plans, so that a burst of events shares one.
	leastInterval = 10 * time.Millisecond
	// longestGather is the longest that news wait after a plan that did nothing, for whoever has just been left without
	// a node.
	longestGather = 2 * time.Second
	// soonGather is the longest if something would go on at once: on a busy machine a plan takes long because it has to
	// wait itself.
	soonGather = 200 * time.Millisecond
	// heartbeat is how long to go without planning when nothing happens.
	heartbeat = 10 * time.Second
	// workers is how many commands are carried out at the same time. Where the API server is busy each takes seconds,
	// most of which are spent waiting: with few workers a thousand nodes would wait for each other.
	workers = 160
	// placementWorkers is how many of those that bring pods to their nodes are: each takes little, and must not queue
	// behind others.
	placementWorkers = 64
	// launchWorkers and terminateWorkers is how many launches and ends of instances are: they last as long as the cloud
	// likes, and whoever has to leave a node in time must not queue behind them. Launches wait for nothing else, and
	// the more of them are out at the same time, the more a cloud can answer together. rescuers launch what takes the
	// place of nodes that the cloud takes away: these have minutes, and need not wait for a worker. Only the workers
	// are their own: a provider that has to gather or slow down its calls does not know of the hurry, and they wait
	// there like all others.
	launchWorkers       = 400
	terminateWorkers    = 160
	interruptionWorkers = 160
	// longestTry bounds how long one try of a command may take: whoever does not answer must not keep a worker for
	// ever.
	longestTry = time.Minute
	// A command of which it is not known whether it was done is repeated after firstWait, and then less and less often.
	firstWait = 50 * time.Millisecond
	lastWait  = 5 * time.Second
)

// World is what is known: package ingest.
type World interface {
	Changed() <-chan struct{}
	Rev() uint64
	Snapshot() *cluster.Snapshot
	Begin(command.Command)
	Record(command.Outcome)
	Abandon(command.Command)
	Planned(at time.Time)
	// Quarantine notes what the planner fails on; from then on snapshots say that it is to be left out.
	Quarantine(cluster.Quarantine)
}

// Actor carries commands out: package actuate.
type Actor interface {
	Do(context.Context, command.Command) command.Outcome
}

// Observer tells what happens: package observe.
type Observer interface {
	// Planning says that a plan is about to be made, Planned that it is there.
	Planning()
	Planned(*cluster.Snapshot, *plan.Plan, time.Duration)
	Done(*cluster.Snapshot, command.Outcome, time.Duration)
	// Searched says what a search for cheaper nodes came to on a snapshot, just before a plan is made from it.
	Searched(*cluster.Snapshot, *disrupt.Proposal, time.Duration)
	// PlannerFailed says that something has failed that should never fail, and what was done about it; SnapshotSaved
	// that a snapshot file was written which shows it, or why it could not be.
	PlannerFailed(plan.PlannerFailure)
	SnapshotSaved(path string, err error)
}

// Loop plans and acts until it is told to stop.
type Loop struct {
	World    World
	Actor    Actor
	Observer Observer
	Policy   plan.Policy
	// Planner is who decides; the zero value is package plan.
	Planner Planner
	// Recorder keeps files of what the planner fails on; nil for none. Version is the program's.
	Recorder Recorder
	Version  string
	// Liveness is told of every pass; nil if nobody wants to know.
	Liveness *Liveness
	// IsLeader reports whether this replica may act; nil if there is no other. It is asked before every command, since
	// a process may be frozen between any two instructions.
	IsLeader func() bool
	// Wait lets time pass; nil for the clock on the wall.
	Wait func(context.Context, time.Duration) error
	// Now is the clock that snapshots go by; nil for the clock on the wall.
	Now func() time.Time

	pools       workerPools
	statusQueue *statusQueue
	running     sync.WaitGroup
	// lastPlan is the last plan that placed pods. It only saves work: without it the next plan comes out the same.
	lastPlan *plan.Plan
	// minimalUntil is until when nobody looks for what plans fail on, because that has just been done in vain.
	minimalUntil time.Time
	// searches is where cheaper nodes are looked for; searchResults is how a search in the background ends, nil if
	// there are none.
	searches      searchScheduler
	searchResults chan searchResult
	savedFailures saveLog
	// newestSnapshot is the last snapshot, for commands that are tried again.
	newestSnapshot atomic.Pointer[cluster.Snapshot]
}

// Run is the main loop. It returns when the context ends and every command and search under way has come to its end.
func (l *Loop) Run(ctx context.Context) error {
	l.pools, l.statusQueue = newWorkerPools(), &statusQueue{}
	l.searchResults = make(chan searchResult, 1)
	defer func() {
		l.running.Wait()
		l.searches.running, l.searchResults = false, nil // nobody waits for what was found last
	}()
	l.Liveness.passEnded()
	defer l.Liveness.stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		// 1. Wait until something has changed or is due.
		select {
		case <-ctx.Done():
			return nil
		case <-l.World.Changed():
		case f := <-l.searchResults:
			l.searches.done(f, f.took)
		case <-wake.C:
		}

		// 2. Plan on a snapshot, check on a newer one if there is one, and act.
		began := time.Now()
		p, finished := plan.Plan{}, true
		if l.IsLeader == nil || l.IsLeader() {
			p, finished = l.recoveredPass(ctx)
		}
		if finished {
			l.Liveness.passEnded()
		}

		// 3. Let what comes next gather.
		if !sleep(ctx, gatherTime(time.Since(began), WaitUntilNext(p.WakeAt, l.now()), hasActs(p.Commands),
			p.PlanSoon)) {
			return nil
		}
		wake.Reset(WaitUntilNext(p.WakeAt, l.now()))
	}
}

// recoveredPass is one pass; finished is false if it could not be made to its end, which has then been told.
func (l *Loop) recoveredPass(ctx context.Context) (p plan.Plan, finished bool) {
	f := recoverPanic(plan.StepPass, func() {
		p, finished = l.pass(func(s *cluster.Snapshot, c command.Command) { l.start(ctx, s, c) })
	})
	if f != nil {
		l.reportFailure(f)
		return plan.Plan{}, false
	}
	return p, finished
}

// gatherTime is how long to let news gather after a plan that took so long: in a rush the rest of the cluster needs the
// machine, too. Planning takes a tenth of the time; if the plan had nothing to do in the cluster, which is what most
// news of a large one come to, a twentieth. Where somebody would have to wait for long, something is due before, or the
// next step waits for the news (eager), it may take up to a quarter; and where plans take very long, the pause is still
// bounded.
func gatherTime(took, due time.Duration, acted, eager bool) time.Duration {
	wait := min(9*took, longestGather/2)
	switch {
	case eager:
		return max(leastInterval, min(3*took, soonGather))
	case !acted:
		wait = min(19*took, due, longestGather)
	}
	return max(leastInterval, min(3*took, 2*longestGather), wait)
}

// hasActs reports whether some command does more than write down what has been seen.
func hasActs(commands []command.Command) bool {
	return slices.ContainsFunc(commands, func(c command.Command) bool { return !command.IsStatusUpdate(c) })
}

// Pass makes one plan and hands its commands to begin, which must not wait for their end. Whoever has a clock of their
// own drives the loop by Pass and Carry instead of Run; a search for cheaper nodes is then made at the end of a pass,
// and what it found is in the next.
func (l *Loop) Pass(begin func(*cluster.Snapshot, command.Command)) plan.Plan {
	p, _ := l.pass(begin)
	return p
}

// pass is Pass; finished is false if there was no snapshot to plan on, or no plan at all could be made. It is tried
// again when something has changed, or at the next heartbeat.
func (l *Loop) pass(begin func(*cluster.Snapshot, command.Command)) (p plan.Plan, finished bool) {
	l.observe(l.Observer.Planning)
	found := l.searches.take()
	var proposal *disrupt.Proposal
	if found != nil {
		proposal = &found.proposal
		if found.offeredAt.IsZero() {
			l.observe(func() { l.Observer.Searched(found.snapshot, proposal, found.took) })
		}
	}
	began := time.Now()
	s, ok := l.snapshot()
	if !ok {
		l.searches.putBack(found, l.now())
		return p, false
	}
	p, s, made := l.makePlan(s, proposal)
	if l.lastPlan == nil && found != nil { // the planner has failed, and what was found may be why
		l.searches.noteUsed(found, &plan.Plan{}, s.Now)
		found = nil
	}
	took := time.Since(began)
	last := p
	l.lastPlan = &last
	if p.Provisioned {
		l.World.Planned(p.Now)
	}
	if len(p.Commands) > 0 && l.World.Rev() != s.Rev {
		newer, ok := l.snapshot()
		if !ok {
			l.searches.putBack(found, l.now())
			return plan.Plan{}, false
		}
		p, s = l.check(p, s, newer, proposal)
	}
	l.observe(func() { l.Observer.Planned(s, &p, took) })
	for _, c := range p.Commands {
		l.World.Begin(c)
		begin(s, c)
	}
	switch {
	case found == nil:
	case p.ProposalUsed:
		l.searches.noteUsed(found, &p, s.Now)
	default: // pods are being counted, or pools wait for what they can buy
		l.searches.putBack(found, s.Now)
	}
	if !s.Now.Before(l.minimalUntil) { // what a search finds could not be begun
		l.scheduleSearch(s, &p)
	}
	return p, made
}

// start carries a command out in the background.
func (l *Loop) start(ctx context.Context, s *cluster.Snapshot, c command.Command) {
	if command.IsStatusUpdate(c) {
		queued := l.statusQueue.join(time.Now())
		l.running.Go(func() { l.execute(ctx, s, c, queued) })
		return
	}
	l.statusQueue.noteActive(1, time.Now())
	l.running.Go(func() {
		defer func() { l.statusQueue.noteActive(-1, time.Now()) }()
		l.execute(ctx, s, c, nil)
	})
}

// Execute carries a command out; its outcome goes back into the world. One of which it is not sure whether it was done
// is repeated until it is.
func (l *Loop) Execute(ctx context.Context, s *cluster.Snapshot, c command.Command) {
	l.execute(ctx, s, c, nil)
}

// execute is Execute; queued is when a status command may be written first, nil for at once.
func (l *Loop) execute(ctx context.Context, s *cluster.Snapshot, c command.Command, queued *queuedStatus) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		out, took, done := l.attempt(ctx, s, c, queued)
		if !done {
			return // we are being stopped, which is no news about the command, or are not to act any more
		}
		if create, ok := out.Command.(command.CreateClaim); ok && create.ConfirmOnly && out.InstanceGone {
			l.abandon(c)
			return
		}
		if !out.Unsure {
			l.record(out)
		}
		l.observe(func() { l.Observer.Done(s, out, took) })
		if !out.Unsure || !l.wait(ctx, wait) {
			return
		}
		c = l.asRetry(c)
		if queued != nil {
			queued = l.statusQueue.join(time.Now())
		}
	}
}

// record tells the world what became of a command. If that fails, the command is at least not under way any more, so
// that it can be planned anew.
func (l *Loop) record(out command.Outcome) {
	if f := recoverPanic(plan.StepCommand, func() { l.World.Record(out) }); f != nil {
		l.reportFailure(f)
		l.abandon(out.Command)
	}
}

// abandon tells the world that a command is not under way any more.
func (l *Loop) abandon(c command.Command) {
	if f := recoverPanic(plan.StepCommand, func() { l.World.Abandon(c) }); f != nil {
		l.reportFailure(f)
	}
}

// attempt does it once, as soon as a worker is free.
func (l *Loop) attempt(ctx context.Context, s *cluster.Snapshot, c command.Command,
	queued *queuedStatus) (out command.Outcome, took time.Duration, done bool) {
	if queued != nil {
		if !l.statusQueue.await(ctx, queued) {
			return out, 0, false
		}
		defer func() { l.statusQueue.leave(time.Now()) }()
	} else if free := l.pools.poolFor(s, c); free != nil {
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
		case <-ctx.Done():
			return out, 0, false
		}
	}
	if l.IsLeader != nil && !l.IsLeader() {
		l.abandon(c) // it is another replica's to decide now, or will be planned anew
		return out, 0, false
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, longestTry)
	defer cancel()
	if f := recoverPanic(plan.StepCommand, func() { out = l.Actor.Do(bounded, c) }); f != nil {
		l.reportFailure(f)
		out = command.Outcome{Command: c, At: l.now(), Err: fmt.Errorf("carrying out %s failed, which is a mistake "+
			"in Tenon: %s", c.Key(), cut(f.Panic))}
	}
	return out, time.Since(began), ctx.Err() == nil || out.Err == nil
}

// workerPools are those who carry commands out, each with its own kind of work. Without them (Execute) nobody has to
// wait.
type workerPools struct{ general, placement, launch, terminate, interruption chan struct{} }

func newWorkerPools() workerPools {
	return workerPools{make(chan struct{}, workers), make(chan struct{}, placementWorkers), make(chan struct{},
		launchWorkers), make(chan struct{}, terminateWorkers), make(chan struct{}, interruptionWorkers)}
}

// poolFor is where a command gets its hand from.
func (p workerPools) poolFor(s *cluster.Snapshot, c command.Command) chan struct{} {
	switch c := c.(type) {
	case command.Nominate, command.Bind, command.Register, command.Open:
		return p.placement
	case command.LaunchInstance:
		if claim := s.Claim(c.Claim); claim != nil && disrupt.MoveReason(claim.Replaces) == command.Interrupted {
			return p.interruption
		}
		return p.launch
	case command.Terminate:
		return p.terminate
	}
	return p.general
}

func (l *Loop) wait(ctx context.Context, d time.Duration) bool {
	if l.Wait != nil {
		return l.Wait(ctx, d) == nil
	}
	return sleep(ctx, d)
}

// sleep waits unless the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (l *Loop) now() time.Time {
	if l.Now == nil {
		return time.Now()
	}
	return l.Now()
}

// WaitUntilNext is how long to go without a plan if nothing changes before.
func WaitUntilNext(at, now time.Time) time.Duration {
	if at.IsZero() {
		return heartbeat
	}
	return min(max(at.Sub(now), time.Millisecond), heartbeat)
}
