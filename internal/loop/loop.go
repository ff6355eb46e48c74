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
	// breath is the least time between two plans, so that a burst of events shares one.
	breath = 10 * time.Millisecond
	// longestGather is the longest that news wait after a plan that did nothing, for whoever has just been left without a node.
	longestGather = 2 * time.Second
	// eagerGather is the longest if something would go on at once: on a busy machine a plan takes long because it has to wait itself.
	eagerGather = 200 * time.Millisecond
	// heartbeat is how long to go without planning when nothing happens.
	heartbeat = 10 * time.Second
	// hands is how many commands are carried out at the same time. Where the API server is busy each takes seconds, most of
	// which are spent waiting: with few hands a thousand nodes would wait for each other.
	hands = 160
	// ushers is how many of those that bring pods to their nodes are: each takes little, and must not queue behind others.
	ushers = 64
	// launchers and enders is how many launches and ends of instances are: they last as long as the cloud likes, and whoever
	// has to leave a node in time must not queue behind them. Launches wait for nothing else, and the more of them are out at the
	// same time, the more a cloud can answer together. rescuers launch what takes the place of nodes that the cloud takes away:
	// these have minutes, and need not wait for a hand. Only the hands are their own: a provider that has to gather or slow down its
	// calls does not know of the hurry, and they wait there like all others.
	launchers = 400
	enders    = 160
	rescuers  = 160
	// longestTry bounds how long one try of a command may take: whoever does not answer must not keep a hand for ever.
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
	// Broke says that something has failed that should never fail, and what was done about it; Saved that a snapshot file was
	// written which shows it, or why it could not be.
	Broke(plan.Breakdown)
	Saved(path string, err error)
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
	// Pulse is told of every pass; nil if nobody wants to know.
	Pulse *Pulse
	// Leads reports whether this replica may act; nil if there is no other. It is asked before every command, since a process
	// may be frozen between any two instructions.
	Leads func() bool
	// Wait lets time pass; nil for the clock on the wall.
	Wait func(context.Context, time.Duration) error
	// Now is the clock that snapshots go by; nil for the clock on the wall.
	Now func() time.Time

	crew  crew
	notes *anteroom
	acts  sync.WaitGroup
	// last is the last plan that placed pods. It only saves work: without it the next plan comes out the same.
	last *plan.Plan
	// bareUntil is until when nobody looks for what plans fail on, because that has just been done in vain.
	bareUntil time.Time
	// desk is where cheaper nodes are looked for; findings is how a search in the background ends, nil if there are none.
	desk     desk
	findings chan finding
	saved    records
	// newest is the last snapshot, for commands that are tried again.
	newest atomic.Pointer[cluster.Snapshot]
}

// Run is the main loop. It returns when the context ends and every command and search under way has come to its end.
func (l *Loop) Run(ctx context.Context) error {
	l.crew, l.notes = newCrew(), &anteroom{}
	l.findings = make(chan finding, 1)
	defer func() {
		l.acts.Wait()
		l.desk.searching, l.findings = false, nil // nobody waits for what was found last
	}()
	l.Pulse.beat()
	defer l.Pulse.stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		// 1. Wait until something has changed or is due.
		select {
		case <-ctx.Done():
			return nil
		case <-l.World.Changed():
		case f := <-l.findings:
			l.desk.done(f, f.took)
		case <-wake.C:
		}

		// 2. Plan on a snapshot, check on a newer one if there is one, and act.
		began := time.Now()
		p, finished := plan.Plan{}, true
		if l.Leads == nil || l.Leads() {
			p, finished = l.guardedPass(ctx)
		}
		if finished {
			l.Pulse.beat()
		}

		// 3. Let what comes next gather.
		if !pause(ctx, gather(time.Since(began), UntilNext(p.WakeAt, l.now()), acts(p.Commands), p.Eager)) {
			return nil
		}
		wake.Reset(UntilNext(p.WakeAt, l.now()))
	}
}

// guardedPass is one pass; finished is false if it could not be made to its end, which has then been told.
func (l *Loop) guardedPass(ctx context.Context) (p plan.Plan, finished bool) {
	b := guard(plan.StepPass, func() {
		p, finished = l.pass(func(s *cluster.Snapshot, c command.Command) { l.act(ctx, s, c) })
	})
	if b != nil {
		l.broke(b)
		return plan.Plan{}, false
	}
	return p, finished
}

// gather is how long to let news gather after a plan that took so long: in a rush the rest of the cluster needs the machine,
// too. Planning takes a tenth of the time; if the plan had nothing to do in the cluster, which is what most news of a large one
// come to, a twentieth. Where somebody would have to wait for long, something is due before, or the next step waits for the news
// (eager), it may take up to a quarter; and where plans take very long, the pause is still bounded.
func gather(took, due time.Duration, acted, eager bool) time.Duration {
	wait := min(9*took, longestGather/2)
	switch {
	case eager:
		return max(breath, min(3*took, eagerGather))
	case !acted:
		wait = min(19*took, due, longestGather)
	}
	return max(breath, min(3*took, 2*longestGather), wait)
}

// acts reports whether some command does more than write down what has been seen.
func acts(commands []command.Command) bool {
	return slices.ContainsFunc(commands, func(c command.Command) bool { return !command.IsNote(c) })
}

// Pass makes one plan and hands its commands to begin, which must not wait for their end. Whoever has a clock of their own
// drives the loop by Pass and Carry instead of Run; a search for cheaper nodes is then made at the end of a pass, and what it
// found is in the next.
func (l *Loop) Pass(begin func(*cluster.Snapshot, command.Command)) plan.Plan {
	p, _ := l.pass(begin)
	return p
}

// pass is Pass; finished is false if there was no snapshot to plan on, or no plan at all could be made. It is tried again
// when something has changed, or at the next heartbeat.
func (l *Loop) pass(begin func(*cluster.Snapshot, command.Command)) (p plan.Plan, finished bool) {
	l.observe(l.Observer.Planning)
	found := l.desk.take()
	var proposal *disrupt.Proposal
	if found != nil {
		proposal = &found.proposal
		if found.offered.IsZero() {
			l.observe(func() { l.Observer.Searched(found.snapshot, proposal, found.took) })
		}
	}
	began := time.Now()
	s, ok := l.snapshot()
	if !ok {
		l.desk.keep(found, l.now())
		return p, false
	}
	p, s, made := l.make(s, proposal)
	if l.last == nil && found != nil { // the planner has failed, and what was found may be why
		l.desk.used(found, &plan.Plan{}, s.Now)
		found = nil
	}
	took := time.Since(began)
	last := p
	l.last = &last
	if p.Provisioned {
		l.World.Planned(p.Now)
	}
	if len(p.Commands) > 0 && l.World.Rev() != s.Rev {
		newer, ok := l.snapshot()
		if !ok {
			l.desk.keep(found, l.now())
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
	case p.Looked:
		l.desk.used(found, &p, s.Now)
	default: // pods are being counted, or pools wait for what they can buy
		l.desk.keep(found, s.Now)
	}
	if !s.Now.Before(l.bareUntil) { // what a search finds could not be begun
		l.search(s, &p)
	}
	return p, made
}

// act carries a command out in the background.
func (l *Loop) act(ctx context.Context, s *cluster.Snapshot, c command.Command) {
	if command.IsNote(c) {
		turn := l.notes.enter(time.Now())
		l.acts.Go(func() { l.carry(ctx, s, c, turn) })
		return
	}
	l.notes.act(1, time.Now())
	l.acts.Go(func() {
		defer func() { l.notes.act(-1, time.Now()) }()
		l.carry(ctx, s, c, nil)
	})
}

// Carry carries a command out; its outcome goes back into the world. One of which it is not sure whether it was done is
// repeated until it is.
func (l *Loop) Carry(ctx context.Context, s *cluster.Snapshot, c command.Command) {
	l.carry(ctx, s, c, nil)
}

// carry is Carry; turn is when a note may be written first, nil for at once.
func (l *Loop) carry(ctx context.Context, s *cluster.Snapshot, c command.Command, turn *caller) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		out, took, done := l.try(ctx, s, c, turn)
		if !done {
			return // we are being stopped, which is no news about the command, or are not to act any more
		}
		if create, ok := out.Command.(command.CreateClaim); ok && create.Confirm && out.Gone {
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
		c = l.again(c)
		if turn != nil {
			turn = l.notes.enter(time.Now())
		}
	}
}

// record tells the world what became of a command. If that fails, the command is at least not under way any more, so
// that it can be planned anew.
func (l *Loop) record(out command.Outcome) {
	if b := guard(plan.StepCommand, func() { l.World.Record(out) }); b != nil {
		l.broke(b)
		l.abandon(out.Command)
	}
}

// abandon tells the world that a command is not under way any more.
func (l *Loop) abandon(c command.Command) {
	if b := guard(plan.StepCommand, func() { l.World.Abandon(c) }); b != nil {
		l.broke(b)
	}
}

// try does it once, as soon as a hand is free.
func (l *Loop) try(ctx context.Context, s *cluster.Snapshot, c command.Command, turn *caller) (out command.Outcome, took time.Duration, done bool) {
	if turn != nil {
		if !l.notes.await(ctx, turn) {
			return out, 0, false
		}
		defer func() { l.notes.leave(time.Now()) }()
	} else if free := l.crew.of(s, c); free != nil {
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
		case <-ctx.Done():
			return out, 0, false
		}
	}
	if l.Leads != nil && !l.Leads() {
		l.abandon(c) // it is another replica's to decide now, or will be planned anew
		return out, 0, false
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, longestTry)
	defer cancel()
	if b := guard(plan.StepCommand, func() { out = l.Actor.Do(bounded, c) }); b != nil {
		l.broke(b)
		out = command.Outcome{Command: c, At: l.now(), Err: fmt.Errorf("carrying out %s failed, which is a mistake in Tenon: %s", c.Key(), cut(b.Panic))}
	}
	return out, time.Since(began), ctx.Err() == nil || out.Err == nil
}

// crew are those who carry commands out, each with its own kind of work. Without them (Carry) nobody has to wait.
type crew struct{ hands, ushers, launchers, enders, rescuers chan struct{} }

func newCrew() crew {
	return crew{make(chan struct{}, hands), make(chan struct{}, ushers), make(chan struct{}, launchers), make(chan struct{}, enders), make(chan struct{}, rescuers)}
}

// of is where a command gets its hand from.
func (w crew) of(s *cluster.Snapshot, c command.Command) chan struct{} {
	switch c := c.(type) {
	case command.Nominate, command.Bind, command.Register, command.Open:
		return w.ushers
	case command.LaunchInstance:
		if claim := s.Claim(c.Claim); claim != nil && disrupt.ReasonOf(claim.Replaces) == command.Interrupted {
			return w.rescuers
		}
		return w.launchers
	case command.Terminate:
		return w.enders
	}
	return w.hands
}

func (l *Loop) wait(ctx context.Context, d time.Duration) bool {
	if l.Wait != nil {
		return l.Wait(ctx, d) == nil
	}
	return pause(ctx, d)
}

// pause waits unless the context ends first.
func pause(ctx context.Context, d time.Duration) bool {
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

// UntilNext is how long to go without a plan if nothing changes before.
func UntilNext(at, now time.Time) time.Duration {
	if at.IsZero() {
		return heartbeat
	}
	return min(max(at.Sub(now), time.Millisecond), heartbeat)
}
