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

// make makes a plan, and goes without what the planner fails on. It returns the snapshot that the plan is made from; ok is
// false if no plan at all could be made.
func (l *Loop) make(s *cluster.Snapshot, found *disrupt.Proposal) (p plan.Plan, from *cluster.Snapshot, ok bool) {
	s = l.freePairs(s)
	b := guard(plan.StepMake, func() { p = l.planner().Make(s, l.Policy, l.last, found) })
	switch {
	case b == nil && unsettled(s.Quarantine.Classes, s.Quarantine.Claims):
		p, s = l.tellApart(p, s, found)
		return p, s, true
	case b == nil:
		return p, s, true
	}
	remembered := l.last != nil || found != nil
	l.last = nil
	l.save(b, &replay.Case{Step: replay.Make, Snapshot: s, Found: found})
	if s.Now.Before(l.bareUntil) { // it was found out a moment ago that leaving out does not help
		return l.bare(b, s)
	}
	m := l.newMaking(s, l.newTrial(b.Panic, s.Now, longestTrial))
	left, ok := m.find(remembered)
	b.Tries = m.tries
	if !ok {
		l.bareUntil = s.Now.Add(bareFor)
		return l.bare(b, s)
	}
	b.Left, p = inForce(left, s), m.plan
	if left.Any() {
		p, s = l.leaveOut(left, p, s, nil)
	}
	b.Pods = leaves(s, b.Left)
	l.broke(b)
	return p, s, true
}

// bareFor is how long after a plan that fails whatever is left out nobody looks again for what it fails on.
const bareFor = time.Minute

// bare makes the plan that is left when plan.Make fails whatever is left out: claims and interrupted nodes go on. What
// that fails on is looked for in the same way, and left out of this plan. It tells of the failure.
func (l *Loop) bare(b *plan.Breakdown, s *cluster.Snapshot) (p plan.Plan, from *cluster.Snapshot, ok bool) {
	m := &making{trial: l.newTrial(b.Panic, s.Now, longestTrial), s: s}
	m.base = s.Quarantine
	m.ask = func(q cluster.Quarantine) bool {
		at := s.Except(q)
		return guard(plan.StepMake, func() { m.plan = l.planner().Bare(at, l.Policy) }) == nil
	}
	var left cluster.Quarantine
	if ok = m.passes(left); !ok {
		left, ok = m.beyondClasses(left)
	}
	if ok && left.Any() {
		l.World.Quarantine(left) // the next passes need not look for it again
	}
	b.Bare, b.Helpless, b.Left = true, !ok, inForce(left, s)
	b.Tries += m.tries
	if p = m.plan; !ok {
		p = plan.Plan{Rev: s.Rev, Now: s.Now}
	}
	p.WakeAt = cluster.Earlier(p.WakeAt, l.bareUntil)
	l.broke(b)
	return p, s.LeavingOut(b.Left), ok
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
	if ok && guard(plan.StepMake, func() { again = l.planner().Make(newer, l.Policy, nil, found) }) == nil {
		p, s = again, newer
	} else {
		s = s.LeavingOut(inForce(q, s))
	}
	if unsettled(q.Classes, q.Claims) {
		p.WakeAt = cluster.Earlier(p.WakeAt, s.Now) // the next pass goes on with it
	}
	return p, s
}

// inForce is what of a quarantine is left out, and not let in again.
func inForce(q cluster.Quarantine, s *cluster.Snapshot) cluster.Quarantine {
	over := func(_ string, f cluster.Failure) bool { return !f.Until.IsZero() && !s.Now.Before(f.Until) }
	for _, of := range []*map[string]cluster.Failure{&q.Classes, &q.Claims, &q.SearchClasses, &q.SearchClaims} {
		*of = maps.Clone(*of)
		maps.DeleteFunc(*of, over)
	}
	return q
}

// leaves counts the pods that have no place because their class is left out.
func leaves(s *cluster.Snapshot, q cluster.Quarantine) int {
	n := 0
	for _, pod := range s.Refused() {
		if _, new := q.Classes[pod.Class.Key]; new {
			n++
		}
	}
	return n
}

// freePairs lets classes in again that the planner fails on only together with one that looks for no place any more.
func (l *Loop) freePairs(s *cluster.Snapshot) *cluster.Snapshot {
	freed, seeking := make(map[string]cluster.Failure), map[string]bool(nil)
	for key, f := range s.Quarantine.Classes {
		if f.With == "" {
			continue
		}
		if seeking == nil {
			seeking = make(map[string]bool)
			for _, p := range s.Seeking() {
				seeking[p.Class.Key] = true
			}
		}
		if !seeking[f.With] {
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

// tellApart goes on with what an earlier pass had no time to tell apart. p is the plan without all of that.
func (l *Loop) tellApart(p plan.Plan, s *cluster.Snapshot, found *disrupt.Proposal) (plan.Plan, *cluster.Snapshot) {
	m := l.newMaking(s, l.newTrial("", s.Now, laterTrial))
	m.plan, m.checks = p, true
	var left cluster.Quarantine
	if groups := m.groups(); len(groups) > 0 {
		m.message = s.Quarantine.Classes[groups[0].of[0].key].Message
		left.Classes = m.failures(m.among(groups))
		m.base.Classes = joined(m.base.Classes, inForce(left, s).Classes)
	}
	if groups := suspects(s.Quarantine.Claims, machines(s, &cluster.Quarantine{})); len(groups) > 0 && !m.spent(0) {
		m.message = s.Quarantine.Claims[groups[0].of[0].key].Message
		m.base.Claims, m.kept = settled(m.base.Claims), 0
		guilty, open := m.isolate(groups, func(out []candidate) bool { return m.passes(m.claims(out)) })
		m.convicted = m.convicted || len(guilty) > 0
		cleared := freed(s.Quarantine.Claims, flat(groups), guilty, open)
		left.Claims = m.failures(&blamed{guilty: guilty, open: open, freed: cleared})
	}
	p, s = l.leaveOut(left, m.plan, s, found)
	if b := m.broken; b != nil && m.convicted {
		b.Tries, b.Left = m.tries, inForce(left, s)
		b.Pods = leaves(s, b.Left)
		l.broke(b)
	}
	return p, s
}

func joined(a, b map[string]cluster.Failure) map[string]cluster.Failure {
	return cluster.Quarantine{Classes: a}.And(cluster.Quarantine{Classes: b}).Classes
}

// making is a trial of plan.Make on a snapshot.
type making struct {
	*trial
	s *cluster.Snapshot
	// plan is the last that could be made, broken the last failure; convicted says that something was found guilty.
	plan      plan.Plan
	broken    *plan.Breakdown
	convicted bool
	// checks says that plans have to be checked as well: what is to be told apart may have failed there.
	checks bool
}

func (l *Loop) newMaking(s *cluster.Snapshot, t *trial) *making {
	m := &making{trial: t, s: s}
	m.base, m.kept = s.Quarantine, pairTries
	m.base.Classes = settled(s.Quarantine.Classes)
	m.ask = func(q cluster.Quarantine) bool {
		at := s.Except(q)
		var made plan.Plan
		b := guard(plan.StepMake, func() { made = l.planner().Make(at, l.Policy, nil, nil) })
		if b == nil && m.checks {
			b = guard(plan.StepCheck, func() { l.planner().Check(made, at) })
		}
		if b != nil {
			m.broken = b
			return false
		}
		m.plan = made
		return true
	}
	return m
}

// groups are the classes that are still to be told apart.
func (m *making) groups() []group {
	left := m.s.Quarantine.Classes
	if !unsettled(left) {
		return nil
	}
	var pods []*cluster.Pod
	for _, p := range m.s.Pods {
		if left[p.Class.Key].Group > 0 {
			pods = append(pods, p)
		}
	}
	return suspects(left, classes(m.s, pods))
}

// find looks for what fails: among what earlier plans and searches have left behind, then among the pods that look for
// a place, then among the parts of planning and among claims. ok is false if the planner fails whatever is left out.
// remembered says that there is something left behind.
func (m *making) find(remembered bool) (left cluster.Quarantine, ok bool) {
	groups := m.groups()
	suspected := m.classes(flat(groups))
	if remembered && m.passes(suspected) {
		return left, true
	}
	groups = append([]group{{of: classes(m.s, m.s.Seeking()), fails: true}}, groups...)
	everybody := m.classes(flat(groups))
	if !m.passes(everybody) {
		if left, ok = m.beyondClasses(everybody); !ok {
			return cluster.Quarantine{}, false
		}
		if m.base = m.base.And(inForce(left, m.s)); m.passes(suspected) {
			return left, true
		}
	}
	left.Classes = m.failures(m.among(groups))
	return left, true
}

// among finds the guilty among classes.
func (m *making) among(groups []group) *blamed {
	all := flat(groups)
	guilty, open := m.isolate(groups, func(out []candidate) bool { return m.passes(m.classes(out)) })
	m.convicted = m.convicted || len(guilty) > 0
	b := &blamed{guilty: guilty, open: open}
	keep := m.plan
	m.pair(b, append(without(classes(m.s, m.s.Seeking()), all), all...))
	m.plan = keep
	m.swap(b, func(key string) bool { return served(&m.plan, key) })
	b.freed = freed(m.s.Quarantine.Classes, all, b.guilty, open)
	return b
}

// served reports whether a plan has a place for some pod of a class, or has not looked for one.
func served(p *plan.Plan, key string) bool {
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
func (m *making) beyondClasses(classes cluster.Quarantine) (left cluster.Quarantine, ok bool) {
	out := classes.And(m.parts(cluster.Parts()))
	if !m.passes(out) {
		all := group{of: machines(m.s, &m.s.Quarantine), fails: true}
		if len(all.of) == 0 || !m.passes(out.And(m.claims(all.of))) {
			return left, false
		}
		guilty, open := m.isolate([]group{all}, func(some []candidate) bool { return m.passes(out.And(m.claims(some))) })
		left.Claims = m.failures(&blamed{guilty: guilty, open: open})
	}
	return left.And(m.parts(m.restore(classes.And(left)))), true
}

// restore takes as many parts of planning in again as it can, those first that people miss first. It returns the
// others.
func (m *making) restore(rest cluster.Quarantine) []cluster.Part {
	out := cluster.Parts()
	for _, part := range cluster.Parts() {
		fewer := slices.DeleteFunc(slices.Clone(out), func(other cluster.Part) bool { return other == part })
		if m.passes(rest.And(m.parts(fewer))) {
			out = fewer
		}
	}
	return out
}
