package loop

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

// checking is a trial of plan.Check: on plans that are made from one snapshot and checked on a newer one.
type checking struct {
	*trial
	l           *Loop
	made        plan.Plan
	from, newer *cluster.Snapshot
	found       *disrupt.Proposal
	// plan is the last that could be checked.
	plan plan.Plan
}

// check keeps of a plan what still makes sense on a newer snapshot, and goes without what that fails on. It returns the
// snapshot that the plan holds for.
func (l *Loop) check(
	p plan.Plan,
	from, newer *cluster.Snapshot,
	found *disrupt.Proposal,
) (plan.Plan, *cluster.Snapshot) {
	var out plan.Plan
	b := guard(plan.StepCheck, func() { out = l.planner().Check(p, newer) })
	if b == nil {
		return out, newer
	}
	l.save(b, &replay.Case{Step: replay.Check, Snapshot: from, Newer: newer, Found: found})
	trial := l.newTrial(b.Panic, newer.Now, longestTrial)
	c := &checking{trial: trial, l: l, made: p, from: from, newer: newer, found: found}
	s := newer
	if left := c.classesOf(); left.Any() {
		b.Left = left
		out, s = l.leaveOut(left, c.plan, newer, nil)
		b.Pods = leaves(s, left)
		out, s = l.checkAgain(out, c.plan, s)
	} else if guilty, ok := c.commands(); ok {
		b.Commands = guilty
		out = c.plan
	} else {
		b.Unchecked = true
		out, s = l.unchecked(p, newer)
	}
	b.Tries = c.tries
	l.broke(b)
	return out, s
}

// classesOf finds the classes of pods that have to be left out of both snapshots; none if that does not help.
func (c *checking) classesOf() cluster.Quarantine {
	c.base, c.kept = c.newer.Quarantine, pairTries
	c.ask = func(q cluster.Quarantine) bool {
		var p plan.Plan
		if guard(plan.StepCheck, func() {
			p = c.l.planner().Make(c.from.Except(q), c.l.Policy, nil, c.found)
			p = c.l.planner().Check(p, c.newer.Except(q))
		}) != nil {
			return false
		}
		c.plan = p
		return true
	}
	all := classes(c.newer, slices.Concat(c.newer.Seeking(), c.from.Seeking()))
	if len(all) == 0 || !c.passes(c.classes(all)) {
		return cluster.Quarantine{}
	}
	b := &blamed{}
	b.guilty, b.open = c.isolate([]group{{of: all, fails: true}}, func(out []candidate) bool {
		return c.passes(c.classes(out))
	})
	keep := c.plan
	c.pair(b, all)
	c.plan = keep
	return cluster.Quarantine{Classes: c.failures(b)}
}

// commands finds the commands that the check fails on, whoever looks for a place; ok is false if it fails without any.
func (c *checking) commands() (guilty []string, ok bool) {
	passes := func(out []candidate) bool {
		c.tries++
		var p plan.Plan
		if guard(plan.StepCheck, func() { p = c.l.planner().Check(c.made.Without(keys(out)), c.newer) }) != nil {
			return false
		}
		c.plan = p
		return true
	}
	all := orders(c.made.Commands)
	if !passes(all) {
		return nil, false
	}
	found, open := c.isolate([]group{{of: all, fails: true}}, passes)
	rest := c.plan
	for _, o := range slices.Concat(found, flat(open)) {
		if kept := c.alone(o.key); kept != nil {
			rest.Commands = append(slices.Clip(rest.Commands), kept)
			continue
		}
		guilty = append(guilty, o.key)
	}
	c.plan = rest
	slices.Sort(guilty)
	return guilty, true
}

// alone checks a command that the check fails on together with others. None is kept that takes a node away: what may go
// together is for a look at all of them.
func (c *checking) alone(key string) command.Command {
	at := slices.IndexFunc(c.made.Commands, func(o command.Command) bool { return o.Key() == key })
	if c.spent(0) || takesAway(c.made.Commands[at]) {
		return nil
	}
	c.tries++
	one := c.made
	one.Commands = c.made.Commands[at : at+1]
	kept := false
	guard(plan.StepCheck, func() { kept = len(c.l.planner().Check(one, c.newer).Commands) > 0 })
	if !kept {
		return nil
	}
	return c.made.Commands[at]
}

func keys(of []candidate) map[string]bool {
	out := make(map[string]bool, len(of))
	for i := range of {
		out[of[i].key] = true
	}
	return out
}

// checkAgain checks a plan that was made after something was left out, if the world has moved on meanwhile. before is
// an older plan that was checked.
func (l *Loop) checkAgain(p, before plan.Plan, s *cluster.Snapshot) (plan.Plan, *cluster.Snapshot) {
	l.last = nil
	if l.World.Rev() == s.Rev {
		return p, s
	}
	newer, ok := l.snapshot()
	if !ok || guard(plan.StepCheck, func() { p = l.planner().Check(p, newer) }) != nil {
		return before, s
	}
	return p, newer
}

// unchecked is what may be done if plans can't be checked at all. A plan is made anew: if nothing has changed
// meanwhile, all of it holds; otherwise what takes a node away has to wait, unless the cloud takes it anyway, and no
// pod is bound: others may have come to the node meanwhile.
func (l *Loop) unchecked(p plan.Plan, s *cluster.Snapshot) (plan.Plan, *cluster.Snapshot) {
	var again plan.Plan
	if guard(plan.StepMake, func() { again = l.planner().Make(s, l.Policy, nil, nil) }) == nil {
		p = again
		if l.World.Rev() == s.Rev {
			return p, s
		}
	}
	wait := make(map[string]bool)
	for _, c := range p.Commands {
		if _, binds := c.(command.Bind); binds || takesAway(c) {
			wait[c.Key()] = true
		}
	}
	return p.Without(wait), s
}

// takesAway reports whether a command is part of taking a node away that would stay otherwise.
func takesAway(c command.Command) bool {
	switch c := c.(type) {
	case command.Fence:
		return c.Reason != command.Interrupted && c.Reason != command.Requested
	case command.DeleteClaim:
		return c.Reason != command.Interrupted || c.Party != ""
	case command.DeleteNode:
		return true
	case command.Terminate:
		return c.Claim == "" // no claim accounts for it, and what has changed may
	case command.CreateClaim:
		return c.Replaces != "" && disrupt.ReasonOf(c.Replaces) != command.Interrupted
	}
	return false
}
