package loop

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

// checkIsolation is an isolation of plan.Check: on plans that are made from one snapshot and checked on a newer one.
type checkIsolation struct {
	*isolation
	loop        *Loop
	made        plan.Plan
	from, newer *cluster.Snapshot
	proposal    *disrupt.Proposal
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
	f := recoverPanic(plan.StepCheck, func() { out = l.planner().Check(p, newer) })
	if f == nil {
		return out, newer
	}
	l.saveSnapshotFile(f, &replay.Case{Step: replay.Check, Snapshot: from, Newer: newer, Found: found})
	i := l.newIsolation(f.Panic, newer.Now, longestIsolation)
	c := &checkIsolation{isolation: i, loop: l, made: p, from: from, newer: newer, proposal: found}
	s := newer
	if leftOut := c.findClasses(); leftOut.Any() {
		f.LeftOut = leftOut
		out, s = l.leaveOut(leftOut, c.plan, newer, nil)
		f.Pods = countLeftOut(s, leftOut)
		out, s = l.checkAgain(out, c.plan, s)
	} else if causes, ok := c.findCommands(); ok {
		f.Commands = causes
		out = c.plan
	} else {
		f.Unchecked = true
		out, s = l.withoutCheck(p, newer)
	}
	f.Tries = c.tries
	l.reportFailure(f)
	return out, s
}

// findClasses finds the classes of pods that have to be left out of both snapshots; none if that does not help.
func (c *checkIsolation) findClasses() cluster.Quarantine {
	c.base, c.reservedTries = c.newer.Quarantine, pairTries
	c.asks = func(q cluster.Quarantine) bool {
		var p plan.Plan
		if recoverPanic(plan.StepCheck, func() {
			p = c.loop.planner().Make(c.from.WithOnlyQuarantine(q), c.loop.Policy, nil, c.proposal)
			p = c.loop.planner().Check(p, c.newer.WithOnlyQuarantine(q))
		}) != nil {
			return false
		}
		c.plan = p
		return true
	}
	all := classSuspects(c.newer, slices.Concat(c.newer.PodsSeekingPlace(), c.from.PodsSeekingPlace()))
	if len(all) == 0 || !c.passes(c.withClasses(all)) {
		return cluster.Quarantine{}
	}
	b := &isolationResult{}
	b.causes, b.undecided = c.isolate([]suspectGroup{{suspects: all, mustFail: true}}, func(out []suspect) bool {
		return c.passes(c.withClasses(out))
	})
	keep := c.plan
	c.findPairs(b, all)
	c.plan = keep
	return cluster.Quarantine{Classes: c.failures(b)}
}

// findCommands finds the commands that the check fails on, whoever looks for a place; ok is false if it fails without
// any.
func (c *checkIsolation) findCommands() (causes []string, ok bool) {
	passes := func(out []suspect) bool {
		c.tries++
		var p plan.Plan
		if recoverPanic(plan.StepCheck, func() {
			p = c.loop.planner().Check(c.made.Without(keysOf(out)), c.newer)
		}) != nil {
			return false
		}
		c.plan = p
		return true
	}
	all := commandSuspects(c.made.Commands)
	if !passes(all) {
		return nil, false
	}
	found, open := c.isolate([]suspectGroup{{suspects: all, mustFail: true}}, passes)
	rest := c.plan
	for _, o := range slices.Concat(found, flatten(open)) {
		if kept := c.checkAlone(o.key); kept != nil {
			rest.Commands = append(slices.Clip(rest.Commands), kept)
			continue
		}
		causes = append(causes, o.key)
	}
	c.plan = rest
	slices.Sort(causes)
	return causes, true
}

// checkAlone checks a command that the check fails on together with others. None is kept that takes a node away: what
// may go together is for a look at all of them.
func (c *checkIsolation) checkAlone(key string) command.Command {
	at := slices.IndexFunc(c.made.Commands, func(o command.Command) bool { return o.Key() == key })
	if c.outOfTries(0) || removesNode(c.made.Commands[at]) {
		return nil
	}
	c.tries++
	one := c.made
	one.Commands = c.made.Commands[at : at+1]
	kept := false
	recoverPanic(plan.StepCheck, func() { kept = len(c.loop.planner().Check(one, c.newer).Commands) > 0 })
	if !kept {
		return nil
	}
	return c.made.Commands[at]
}

func keysOf(of []suspect) map[string]bool {
	out := make(map[string]bool, len(of))
	for i := range of {
		out[of[i].key] = true
	}
	return out
}

// checkAgain checks a plan that was made after something was left out, if the world has moved on meanwhile. before is
// an older plan that was checked.
func (l *Loop) checkAgain(p, before plan.Plan, s *cluster.Snapshot) (plan.Plan, *cluster.Snapshot) {
	l.lastPlan = nil
	if l.World.Rev() == s.Rev {
		return p, s
	}
	newer, ok := l.snapshot()
	if !ok || recoverPanic(plan.StepCheck, func() { p = l.planner().Check(p, newer) }) != nil {
		return before, s
	}
	return p, newer
}

// withoutCheck is what may be done if plans can't be checked at all. A plan is made anew: if nothing has changed
// meanwhile, all of it holds; otherwise what takes a node away has to wait, unless the cloud takes it anyway, and no
// pod is bound: others may have come to the node meanwhile.
func (l *Loop) withoutCheck(p plan.Plan, s *cluster.Snapshot) (plan.Plan, *cluster.Snapshot) {
	var again plan.Plan
	if recoverPanic(plan.StepMake, func() { again = l.planner().Make(s, l.Policy, nil, nil) }) == nil {
		p = again
		if l.World.Rev() == s.Rev {
			return p, s
		}
	}
	wait := make(map[string]bool)
	for _, c := range p.Commands {
		if _, binds := c.(command.Bind); binds || removesNode(c) {
			wait[c.Key()] = true
		}
	}
	return p.Without(wait), s
}

// removesNode reports whether a command is part of taking a node away that would stay otherwise.
func removesNode(c command.Command) bool {
	switch c := c.(type) {
	case command.Fence:
		return c.Reason != command.Interrupted && c.Reason != command.Requested
	case command.DeleteClaim:
		return c.Reason != command.Interrupted || c.Departure != ""
	case command.DeleteNode:
		return true
	case command.Terminate:
		return c.Claim == "" // no claim accounts for it, and what has changed may
	case command.CreateClaim:
		return c.Replaces != "" && disrupt.MoveReason(c.Replaces) != command.Interrupted
	}
	return false
}
