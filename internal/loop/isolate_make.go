package loop

import (
	"maps"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

// makePlan makes a plan, and goes without what the planner fails on. It returns the snapshot that the plan is made
// from; ok is false if no plan at all could be made.
func (l *Loop) makePlan(s *cluster.Snapshot, found *disrupt.Proposal) (p plan.Plan, from *cluster.Snapshot, ok bool) {
	s = l.releasePairs(s)
	f := recoverPanic(plan.StepMake, func() { p = l.planner().Make(s, l.Policy, l.lastPlan, found) })
	switch {
	case f == nil && anyUndecided(s.Quarantine.Classes, s.Quarantine.Claims):
		p, s = l.continueIsolation(p, s, found)
		return p, s, true
	case f == nil:
		return p, s, true
	}
	remembered := l.lastPlan != nil || found != nil
	l.lastPlan = nil
	l.saveSnapshotFile(f, &replay.Case{Step: replay.Make, Snapshot: s, Found: found})
	if s.Now.Before(l.minimalUntil) { // it was found out a moment ago that leaving out does not help
		return l.makeMinimal(f, s)
	}
	m := l.newMakeIsolation(s, l.newIsolation(f.Panic, s.Now, longestIsolation))
	leftOut, ok := m.find(remembered)
	f.Tries = m.tries
	if !ok {
		l.minimalUntil = s.Now.Add(minimalFor)
		return l.makeMinimal(f, s)
	}
	f.LeftOut, p = stillOut(leftOut, s), m.plan
	if leftOut.Any() {
		p, s = l.leaveOut(leftOut, p, s, nil)
	}
	f.Pods = countLeftOut(s, f.LeftOut)
	l.reportFailure(f)
	return p, s, true
}

// minimalFor is how long after a plan that fails whatever is left out nobody looks again for what it fails on.
const minimalFor = time.Minute

// makeMinimal makes the plan that is left when plan.Make fails whatever is left out: claims and interrupted nodes go
// on. What that fails on is looked for in the same way, and left out of this plan. It tells of the failure.
func (l *Loop) makeMinimal(f *plan.PlannerFailure, s *cluster.Snapshot) (p plan.Plan, from *cluster.Snapshot, ok bool) {
	m := &makeIsolation{isolation: l.newIsolation(f.Panic, s.Now, longestIsolation), s: s}
	m.base = s.Quarantine
	m.asks = func(q cluster.Quarantine) bool {
		at := s.WithOnlyQuarantine(q)
		return recoverPanic(plan.StepMake, func() { m.plan = l.planner().Minimal(at, l.Policy) }) == nil
	}
	var leftOut cluster.Quarantine
	if ok = m.passes(leftOut); !ok {
		leftOut, ok = m.beyondClasses(leftOut)
	}
	if ok && leftOut.Any() {
		l.World.Quarantine(leftOut) // the next passes need not look for it again
	}
	f.Minimal, f.MinimalFailed, f.LeftOut = true, !ok, stillOut(leftOut, s)
	f.Tries += m.tries
	if p = m.plan; !ok {
		p = plan.Plan{Rev: s.Rev, Now: s.Now}
	}
	p.WakeAt = cluster.Earlier(p.WakeAt, l.minimalUntil)
	l.reportFailure(f)
	return p, s.WithQuarantine(f.LeftOut), ok
}

// leaveOut puts into quarantine what the planner fails on and plans for everything else. p is such a plan, in case it
// fails now after all.
func (l *Loop) leaveOut(
	q cluster.Quarantine,
	p plan.Plan,
	s *cluster.Snapshot,
	found *disrupt.Proposal,
) (plan.Plan, *cluster.Snapshot) {
	l.World.Quarantine(q)
	again := p
	newer, ok := l.snapshot()
	if ok && recoverPanic(plan.StepMake, func() { again = l.planner().Make(newer, l.Policy, nil, found) }) == nil {
		p, s = again, newer
	} else {
		s = s.WithQuarantine(stillOut(q, s))
	}
	if anyUndecided(q.Classes, q.Claims) {
		p.WakeAt = cluster.Earlier(p.WakeAt, s.Now) // the next pass goes on with it
	}
	return p, s
}

// stillOut is what of a quarantine is left out, and not let in again.
func stillOut(q cluster.Quarantine, s *cluster.Snapshot) cluster.Quarantine {
	over := func(_ string, f cluster.Failure) bool { return !f.Until.IsZero() && !s.Now.Before(f.Until) }
	for _, of := range []*map[string]cluster.Failure{&q.Classes, &q.Claims, &q.SearchClasses, &q.SearchClaims} {
		*of = maps.Clone(*of)
		maps.DeleteFunc(*of, over)
	}
	return q
}

// countLeftOut counts the pods that have no place because their class is left out.
func countLeftOut(s *cluster.Snapshot, q cluster.Quarantine) int {
	n := 0
	for _, pod := range s.QuarantinedPods() {
		if _, new := q.Classes[pod.Class.Key]; new {
			n++
		}
	}
	return n
}

// releasePairs lets classes in again that the planner fails on only together with one that looks for no place any more.
func (l *Loop) releasePairs(s *cluster.Snapshot) *cluster.Snapshot {
	freed, seeking := make(map[string]cluster.Failure), map[string]bool(nil)
	for key, f := range s.Quarantine.Classes {
		if f.PairedWith == "" {
			continue
		}
		if seeking == nil {
			seeking = make(map[string]bool)
			for _, p := range s.PodsSeekingPlace() {
				seeking[p.Class.Key] = true
			}
		}
		if !seeking[f.PairedWith] {
			f.Until = s.Now
			freed[key] = f
		}
	}
	if len(freed) == 0 {
		return s
	}
	l.World.Quarantine(cluster.Quarantine{Classes: freed})
	if newer, ok := l.snapshot(); ok {
		return newer
	}
	return s
}

// continueIsolation goes on with what an earlier pass had no time to tell apart. p is the plan without all of that.
func (l *Loop) continueIsolation(p plan.Plan, s *cluster.Snapshot, found *disrupt.Proposal) (plan.Plan,
	*cluster.Snapshot) {
	m := l.newMakeIsolation(s, l.newIsolation("", s.Now, laterIsolation))
	m.plan, m.alsoCheck = p, true
	var leftOut cluster.Quarantine
	if groups := m.groups(); len(groups) > 0 {
		m.message = s.Quarantine.Classes[groups[0].suspects[0].key].Message
		leftOut.Classes = m.failures(m.amongGroups(groups))
		m.base.Classes = mergeFailures(m.base.Classes, stillOut(leftOut, s).Classes)
	}
	if groups := undecidedGroups(s.Quarantine.Claims, claimSuspects(s, &cluster.Quarantine{})); len(groups) > 0 &&
		!m.outOfTries(0) {
		m.message = s.Quarantine.Claims[groups[0].suspects[0].key].Message
		m.base.Claims, m.reservedTries = decidedFailures(m.base.Claims), 0
		causes, open := m.isolate(groups, func(out []suspect) bool { return m.passes(m.withClaims(out)) })
		m.foundCause = m.foundCause || len(causes) > 0
		cleared := clearedSuspects(s.Quarantine.Claims, flatten(groups), causes, open)
		leftOut.Claims = m.failures(&isolationResult{causes: causes, undecided: open, cleared: cleared})
	}
	p, s = l.leaveOut(leftOut, m.plan, s, found)
	if f := m.failure; f != nil && m.foundCause {
		f.Tries, f.LeftOut = m.tries, stillOut(leftOut, s)
		f.Pods = countLeftOut(s, f.LeftOut)
		l.reportFailure(f)
	}
	return p, s
}

func mergeFailures(a, b map[string]cluster.Failure) map[string]cluster.Failure {
	return cluster.Quarantine{Classes: a}.With(cluster.Quarantine{Classes: b}).Classes
}

// makeIsolation is an isolation of plan.Make on a snapshot.
type makeIsolation struct {
	*isolation
	s *cluster.Snapshot
	// plan is the last that could be made, failure the last failure; foundCause says that something was found guilty.
	plan       plan.Plan
	failure    *plan.PlannerFailure
	foundCause bool
	// alsoCheck says that plans have to be checked as well: what is to be told apart may have failed there.
	alsoCheck bool
}

func (l *Loop) newMakeIsolation(s *cluster.Snapshot, i *isolation) *makeIsolation {
	m := &makeIsolation{isolation: i, s: s}
	m.base, m.reservedTries = s.Quarantine, pairTries
	m.base.Classes = decidedFailures(s.Quarantine.Classes)
	m.asks = func(q cluster.Quarantine) bool {
		at := s.WithOnlyQuarantine(q)
		var made plan.Plan
		f := recoverPanic(plan.StepMake, func() { made = l.planner().Make(at, l.Policy, nil, nil) })
		if f == nil && m.alsoCheck {
			f = recoverPanic(plan.StepCheck, func() { l.planner().Check(made, at) })
		}
		if f != nil {
			m.failure = f
			return false
		}
		m.plan = made
		return true
	}
	return m
}

// groups are the classes that are still to be told apart.
func (m *makeIsolation) groups() []suspectGroup {
	leftOut := m.s.Quarantine.Classes
	if !anyUndecided(leftOut) {
		return nil
	}
	var pods []*cluster.Pod
	for _, p := range m.s.Pods {
		if leftOut[p.Class.Key].Group > 0 {
			pods = append(pods, p)
		}
	}
	return undecidedGroups(leftOut, classSuspects(m.s, pods))
}

// find looks for what fails: among what earlier plans and searches have left behind, then among the pods that look for
// a place, then among the parts of planning and among claims. ok is false if the planner fails whatever is left out.
// remembered says that there is something left behind.
func (m *makeIsolation) find(remembered bool) (leftOut cluster.Quarantine, ok bool) {
	groups := m.groups()
	suspected := m.withClasses(flatten(groups))
	if remembered && m.passes(suspected) {
		return leftOut, true
	}
	groups = append([]suspectGroup{{suspects: classSuspects(m.s, m.s.PodsSeekingPlace()), mustFail: true}}, groups...)
	everybody := m.withClasses(flatten(groups))
	if !m.passes(everybody) {
		if leftOut, ok = m.beyondClasses(everybody); !ok {
			return cluster.Quarantine{}, false
		}
		if m.base = m.base.With(stillOut(leftOut, m.s)); m.passes(suspected) {
			return leftOut, true
		}
	}
	leftOut.Classes = m.failures(m.amongGroups(groups))
	return leftOut, true
}

// amongGroups finds the guilty among classes.
func (m *makeIsolation) amongGroups(groups []suspectGroup) *isolationResult {
	all := flatten(groups)
	causes, open := m.isolate(groups, func(out []suspect) bool { return m.passes(m.withClasses(out)) })
	m.foundCause = m.foundCause || len(causes) > 0
	b := &isolationResult{causes: causes, undecided: open}
	keep := m.plan
	m.findPairs(b, append(without(classSuspects(m.s, m.s.PodsSeekingPlace()), all), all...))
	m.plan = keep
	m.preferUnplaced(b, func(key string) bool { return hasPlaceFor(&m.plan, key) })
	b.cleared = clearedSuspects(m.s.Quarantine.Classes, all, b.causes, open)
	return b
}

// hasPlaceFor reports whether a plan has a place for some pod of a class, or has not looked for one.
func hasPlaceFor(p *plan.Plan, key string) bool {
	for i := range p.Placement.Assigned {
		if p.Placement.Assigned[i].Pod.Class.Key == key {
			return true
		}
	}
	for i := range p.Placement.Bins {
		if slices.ContainsFunc(p.Placement.Bins[i].Pods, func(pod *cluster.Pod) bool { return pod.Class.Key == key }) {
			return true
		}
	}
	for i := range p.Placement.Unplaced {
		if p.Placement.Unplaced[i].Pod.Class.Key == key {
			return false
		}
	}
	return true
}

// beyondClasses finds the parts of planning and the claims that have to be left out even if all classes are.
func (m *makeIsolation) beyondClasses(classes cluster.Quarantine) (leftOut cluster.Quarantine, ok bool) {
	out := classes.With(m.withParts(cluster.Parts()))
	if !m.passes(out) {
		all := suspectGroup{suspects: claimSuspects(m.s, &m.s.Quarantine), mustFail: true}
		if len(all.suspects) == 0 || !m.passes(out.With(m.withClaims(all.suspects))) {
			return leftOut, false
		}
		causes, open := m.isolate([]suspectGroup{all}, func(some []suspect) bool {
			return m.passes(out.With(m.withClaims(some)))
		})
		leftOut.Claims = m.failures(&isolationResult{causes: causes, undecided: open})
	}
	return leftOut.With(m.withParts(m.restore(classes.With(leftOut)))), true
}

// restore takes as many parts of planning in again as it can, those first that people miss first. It returns the
// others.
func (m *makeIsolation) restore(rest cluster.Quarantine) []cluster.Part {
	out := cluster.Parts()
	for _, part := range cluster.Parts() {
		fewer := slices.DeleteFunc(slices.Clone(out), func(other cluster.Part) bool { return other == part })
		if m.passes(rest.With(m.withParts(fewer))) {
			out = fewer
		}
	}
	return out
}
