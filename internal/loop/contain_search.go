package loop

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

// searching is a trial of plan.Search on a snapshot.
type searching struct {
	*trial
	s *cluster.Snapshot
	// found is the last that could be found.
	found disrupt.Proposal
	// broken is the last failure.
	broken *plan.Breakdown
}

// find is one search for cheaper nodes. It goes without the classes of pods, or the nodes, that it fails on; plans
// leave nothing of that out. If it fails whatever is left out, there is no search for a while.
func (l *Loop) find(s *cluster.Snapshot) disrupt.Proposal {
	t := &searching{s: s, found: disrupt.Proposal{Rev: s.Rev, Now: s.Now}}
	sight, q := s.ForSearch(), &s.Quarantine
	b := guard(plan.StepSearch, func() { t.found = l.planner().Search(sight, l.Policy) })
	if b == nil && !unsettled(q.SearchClasses, q.SearchClaims) {
		return t.found
	}
	t.begin(l, b)
	var left cluster.Quarantine
	if b == nil {
		left = t.goOn()
	} else {
		l.save(b, &replay.Case{Step: replay.Search, Snapshot: sight})
		left = t.blame()
	}
	l.World.Quarantine(left)
	if b == nil {
		b = t.broken
	}
	if b != nil {
		b.Left, b.Tries = inForce(left, s), t.tries
		l.broke(b)
	}
	return t.found
}

// begin makes the trial ready; b is what the search failed with, or nil if it goes on with what is to be told apart.
func (t *searching) begin(l *Loop, b *plan.Breakdown) {
	q, message := &t.s.Quarantine, ""
	if b != nil {
		message = b.Panic
	}
	t.trial = l.newTrial(message, t.s.Now, longestTrial)
	t.base = cluster.Quarantine{
		Classes: joined(q.Classes, settled(q.SearchClasses)),
		Claims:  joined(q.Claims, settled(q.SearchClaims)),
		Parts:   q.Parts,
	}
	t.ask = func(q cluster.Quarantine) bool {
		at := t.s.Except(q)
		var found disrupt.Proposal
		if b := guard(plan.StepSearch, func() { found = l.planner().Search(at, l.Policy) }); b != nil {
			t.broken = b
			return false
		}
		t.found = found
		return true
	}
}

// present lists the pods that a search looks at.
func (t *searching) present() []*cluster.Pod {
	out := t.s.Seeking()
	for _, p := range t.s.Pods {
		if _, left := t.base.Classes[p.Class.Key]; !left && !p.Done && p.Node != "" && t.s.ClaimOf(p.Node) != nil {
			out = append(out, p)
		}
	}
	return out
}

// blame finds what the search fails on: classes of pods, or else claims and nodes, or else all of it.
func (t *searching) blame() cluster.Quarantine {
	q := &t.s.Quarantine
	some := group{of: classes(t.s, t.present()), fails: true}
	doubtful := suspects(q.SearchClasses, some.of)
	some.of = without(some.of, flat(doubtful))
	all := append([]group{some}, doubtful...)
	machinesOut := t.claims(flat(suspects(q.SearchClaims, nil)))
	if t.passes(t.classes(flat(all)).And(machinesOut)) {
		found := t.isolated(q.SearchClasses, all, func(out []candidate) bool {
			return t.passes(t.classes(out).And(machinesOut))
		})
		return cluster.Quarantine{SearchClasses: found}
	}
	claims := []group{{of: machines(t.s, &t.base), fails: true}}
	classesOut := t.classes(flat(doubtful))
	if t.passes(t.claims(flat(claims)).And(classesOut)) {
		found := t.isolated(q.SearchClaims, claims, func(out []candidate) bool {
			return t.passes(t.claims(out).And(classesOut))
		})
		return cluster.Quarantine{SearchClaims: found}
	}
	return t.parts([]cluster.Part{cluster.Searching})
}

// goOn goes on with what an earlier search had no time to tell apart.
func (t *searching) goOn() cluster.Quarantine {
	q := &t.s.Quarantine
	if groups := suspects(q.SearchClasses, classes(t.s, t.present())); len(groups) > 0 {
		t.message = q.SearchClasses[groups[0].of[0].key].Message
		machinesOut := t.claims(flat(suspects(q.SearchClaims, nil)))
		found := t.isolated(q.SearchClasses, groups, func(out []candidate) bool {
			return t.passes(t.classes(out).And(machinesOut))
		})
		return cluster.Quarantine{SearchClasses: found}
	}
	groups := suspects(q.SearchClaims, machines(t.s, &cluster.Quarantine{}))
	t.message = q.SearchClaims[groups[0].of[0].key].Message
	found := t.isolated(q.SearchClaims, groups, func(out []candidate) bool { return t.passes(t.claims(out)) })
	return cluster.Quarantine{SearchClaims: found}
}

// isolated is what is to be remembered of groups of which some have to be left out; left is what was before.
func (t *searching) isolated(
	left map[string]cluster.Failure,
	groups []group,
	passes func([]candidate) bool,
) map[string]cluster.Failure {
	guilty, open := t.isolate(groups, passes)
	return t.failures(&blamed{guilty: guilty, open: open, freed: freed(left, flat(groups), guilty, open)})
}
