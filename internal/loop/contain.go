package loop

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

const (
	// mostTries and longestTrial bound the search for what the planner fails on.
	mostTries    = 64
	longestTrial = 5 * time.Second
	// brief is how long classes are left out that there was no time to tell apart.
	brief = time.Minute
	// sameAgain is for how long no second file is written about the same failure; mostSaved bounds how many are
	// remembered.
	sameAgain = 10 * time.Minute
	mostSaved = 100
	// longestMessage is how much of a panic people are told in an event.
	longestMessage = 200
)

// Planner is who decides: package plan, unless a field says otherwise. Tests have one that fails.
type Planner struct {
	Make   func(*cluster.Snapshot, plan.Policy, *plan.Plan, *disrupt.Proposal) plan.Plan
	Search func(*cluster.Snapshot, plan.Policy) disrupt.Proposal
	Check  func(plan.Plan, *cluster.Snapshot) plan.Plan
}

func (l *Loop) planner() Planner {
	p := l.Planner
	if p.Make == nil {
		p.Make = plan.Make
	}
	if p.Search == nil {
		p.Search = plan.Search
	}
	if p.Check == nil {
		p.Check = plan.Check
	}
	return p
}

// Recorder keeps snapshot files.
type Recorder interface {
	Save(*replay.Case) (path string, err error)
}

// guard runs f; if it panics, it returns what it knows of it. What Go can't recover from (no memory, no stack, a map
// written by two at the same time) still ends the process.
func guard(step string, f func()) (broken *plan.Breakdown) {
	defer func() {
		if r := recover(); r != nil {
			broken = &plan.Breakdown{Step: step, Panic: fmt.Sprint(r), Stack: string(debug.Stack())}
		}
	}()
	f()
	return nil
}

// broke tells that something has failed.
func (l *Loop) broke(b *plan.Breakdown) {
	guard(plan.StepObserve, func() { l.Observer.Broke(*b) })
}

// observe tells something. Who tells people must not keep others from their nodes.
func (l *Loop) observe(tell func()) {
	if b := guard(plan.StepObserve, tell); b != nil {
		l.broke(b)
	}
}

// make makes a plan, and goes without what the planner fails on. It returns the snapshot that the plan is made from.
func (l *Loop) make(s *cluster.Snapshot, found *disrupt.Proposal) (plan.Plan, *cluster.Snapshot) {
	var p plan.Plan
	b := guard(plan.StepMake, func() { p = l.planner().Make(s, l.Policy, l.last, found) })
	if b == nil {
		return p, s
	}
	l.last = nil
	l.save(b, &replay.Case{Step: replay.Make, Snapshot: s, Found: found})
	t := &trial{l: l, s: s, message: cut(b.Panic)}
	if l.Wait == nil { // whoever has a clock of their own has the same answer however busy the machine is
		t.end = time.Now().Add(longestTrial)
	}
	p, ok := t.find()
	b.Tries, b.Left, b.Helpless = t.tries, t.left, !ok
	if ok && t.left.Any() {
		p, s = l.leaveOut(t.left, p, s)
		for _, pod := range s.Refused() {
			if _, new := t.left.Classes[pod.Class.Key]; new {
				b.Pods++
			}
		}
	}
	l.broke(b)
	return p, s
}

// leaveOut puts into quarantine what the planner fails on and plans for everything else. p is such a plan, in case it
// fails now after all.
func (l *Loop) leaveOut(q cluster.Quarantine, p plan.Plan, s *cluster.Snapshot) (plan.Plan, *cluster.Snapshot) {
	l.World.Quarantine(q)
	newer := l.World.Snapshot()
	again := p
	if guard(plan.StepMake, func() { again = l.planner().Make(newer, l.Policy, nil, nil) }) == nil {
		return again, newer
	}
	return p, s.LeavingOut(q)
}

// check keeps what still makes sense on a newer snapshot. If that fails, each command is looked at alone, and none is
// kept that takes a node away: what may go together is for a look at all of them.
func (l *Loop) check(p plan.Plan, from, s *cluster.Snapshot, found *disrupt.Proposal) plan.Plan {
	var out plan.Plan
	b := guard(plan.StepCheck, func() { out = l.planner().Check(p, s) })
	if b == nil {
		return out
	}
	l.save(b, &replay.Case{Step: replay.Check, Snapshot: from, Newer: s, Found: found})
	l.broke(b)
	kept := []command.Command{}
	for _, c := range p.Commands {
		if takesAway(c) {
			continue
		}
		alone := p
		alone.Commands = []command.Command{c}
		guard(plan.StepCheck, func() { kept = append(kept, l.planner().Check(alone, s).Commands...) })
	}
	p.Commands, p.Begun, p.GivenUp = kept, nil, nil
	return p
}

// takesAway reports whether a command is part of taking a node away.
func takesAway(c command.Command) bool {
	switch c := c.(type) {
	case command.Fence, command.DeleteClaim, command.DeleteNode:
		return true
	case command.CreateClaim:
		return c.Replaces != ""
	}
	return false
}

// find is one search for cheaper nodes. After one that failed there is none for a while.
func (l *Loop) find(s *cluster.Snapshot) (found disrupt.Proposal) {
	b := guard(plan.StepSearch, func() { found = l.planner().Search(s, l.Policy) })
	if b == nil {
		return found
	}
	l.save(b, &replay.Case{Step: replay.Search, Snapshot: s})
	b.Left = cluster.Quarantine{Parts: map[cluster.Part]cluster.Failure{cluster.Searching: {Message: cut(b.Panic)}}}
	l.World.Quarantine(b.Left)
	l.broke(b)
	return disrupt.Proposal{Rev: s.Rev, Now: s.Now}
}

// save writes a file from which the failure can be seen again, once for each.
func (l *Loop) save(b *plan.Breakdown, c *replay.Case) {
	if l.Recorder == nil || !l.fresh(b.Step+b.Panic, c.Snapshot.Now) {
		return
	}
	c.Engine, c.Taken, c.Policy, c.Panic, c.Stack = l.Version, c.Snapshot.Now, l.Policy, b.Panic, b.Stack
	write := func() {
		var path string
		var err error
		if broken := guard(plan.StepObserve, func() { path, err = l.Recorder.Save(c) }); broken != nil {
			err = fmt.Errorf("writing a snapshot file: %s", broken.Panic)
		}
		l.observe(func() { l.Observer.Saved(path, err) })
	}
	if l.findings == nil {
		write() // whose clock it is decides how long things take
		return
	}
	l.acts.Go(write) // the snapshot does not change any more
}

// fresh reports whether no file has been written about the same lately.
func (l *Loop) fresh(what string, now time.Time) bool {
	l.savedMu.Lock()
	defer l.savedMu.Unlock()
	if at, known := l.saved[what]; known && now.Before(at.Add(sameAgain)) {
		return false
	}
	if l.saved == nil || len(l.saved) >= mostSaved {
		l.saved = make(map[string]time.Time)
	}
	l.saved[what] = now
	return true
}

func cut(text string) string {
	if runes := []rune(text); len(runes) > longestMessage {
		return string(runes[:longestMessage]) + "…"
	}
	return text
}

// trial is the search for the least that has to be left out so that the planner does not fail.
type trial struct {
	l       *Loop
	s       *cluster.Snapshot
	message string
	end     time.Time
	tries   int
	left    cluster.Quarantine // what was found
}

// find looks for it: among what earlier plans and searches have left behind, then among the pods that look for a place,
// then among the parts of planning, then among claims. ok is false if the planner fails whatever is left out; the plan
// is then empty.
func (t *trial) find() (p plan.Plan, ok bool) {
	if p, ok = t.try(cluster.Quarantine{}); ok {
		return p, true
	}
	if p, ok = t.blame(t.s.Seekers(), t.classes); ok {
		return p, true
	}
	all := t.parts(cluster.Parts())
	if p, ok = t.try(all); !ok {
		if p, ok = t.blame(names(t.s), func(keys []string, until time.Time) cluster.Quarantine {
			return all.And(cluster.Quarantine{Claims: t.failures(keys, until)})
		}); !ok {
			return plan.Plan{Rev: t.s.Rev, Now: t.s.Now}, false
		}
	}
	return t.restore(p), true
}

// try makes a plan with some left out.
func (t *trial) try(q cluster.Quarantine) (p plan.Plan, ok bool) {
	t.tries++
	s := t.s
	if q.Any() {
		s = s.LeavingOut(q)
	}
	return p, guard(plan.StepMake, func() { p = t.l.planner().Make(s, t.l.Policy, nil, nil) }) == nil
}

func (t *trial) spent() bool {
	return t.tries >= mostTries || !t.end.IsZero() && !time.Now().Before(t.end)
}

// blame finds which of the keys have to be left out. It supposes that with more left out the planner fails less: it
// looks for the first key with which it fails, leaves that one out for good, and goes on until it does not fail any
// more. leave is what to leave out for some keys. ok is false if the planner fails even without all of them.
func (t *trial) blame(keys []string, leave func([]string, time.Time) cluster.Quarantine) (p plan.Plan, ok bool) {
	if len(keys) == 0 {
		return p, false
	}
	if p, ok = t.try(leave(keys, time.Time{})); !ok {
		return p, false
	}
	var guilty []string
	rest, fine := slices.Clone(keys), 0 // with the first fine of the rest it does not fail
	for len(rest) > 0 {
		bad := len(rest) // with so many it does
		for bad-fine > 1 {
			if t.spent() {
				t.left = leave(guilty, time.Time{}).And(leave(rest[fine:], t.s.Now.Add(brief)))
				return p, true
			}
			middle := (fine + bad) / 2
			if better, ok := t.try(leave(slices.Concat(guilty, rest[middle:]), time.Time{})); ok {
				p, fine = better, middle
			} else {
				bad = middle
			}
		}
		guilty = append(guilty, rest[bad-1])
		rest = slices.Delete(rest, bad-1, bad)
		if better, ok := t.try(leave(guilty, time.Time{})); ok {
			p = better
			break
		}
	}
	t.left = leave(guilty, time.Time{})
	return p, true
}

// restore takes as many parts of planning in again as it can, those first that people miss first.
func (t *trial) restore(p plan.Plan) plan.Plan {
	out := cluster.Parts()
	for _, part := range cluster.Parts() {
		fewer := slices.DeleteFunc(slices.Clone(out), func(other cluster.Part) bool { return other == part })
		q := t.parts(fewer).And(cluster.Quarantine{Claims: t.left.Claims})
		if better, ok := t.try(q); ok {
			p, out = better, fewer
		}
	}
	t.left = t.parts(out).And(cluster.Quarantine{Claims: t.left.Claims})
	return p
}

func (t *trial) classes(keys []string, until time.Time) cluster.Quarantine {
	return cluster.Quarantine{Classes: t.failures(keys, until)}
}

func (t *trial) parts(parts []cluster.Part) cluster.Quarantine {
	out := make(map[cluster.Part]cluster.Failure, len(parts))
	for _, part := range parts {
		out[part] = cluster.Failure{Message: t.message}
	}
	return cluster.Quarantine{Parts: out}
}

func (t *trial) failures(keys []string, until time.Time) map[string]cluster.Failure {
	out := make(map[string]cluster.Failure, len(keys))
	for _, key := range keys {
		out[key] = cluster.Failure{Message: t.message, Until: until}
	}
	return out
}

// names lists the claims and nodes.
func names(s *cluster.Snapshot) []string {
	var out []string
	for _, c := range s.Claims {
		out = append(out, c.Name)
	}
	for _, n := range s.Nodes {
		out = append(out, n.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
