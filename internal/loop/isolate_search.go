package loop

import (
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

// searchIsolation is an isolation of plan.Search on a snapshot.
type searchIsolation struct {
	*isolation
	s *cluster.Snapshot
	// proposal is the last that could be found.
	proposal disrupt.Proposal
	// failure is the last failure.
	failure *plan.PlannerFailure
}

// findProposal is one search for cheaper nodes. It goes without the classes of pods, or the nodes, that it fails on;
// plans leave nothing of that out. If it fails whatever is left out, there is no search for a while.
func (l *Loop) findProposal(s *cluster.Snapshot) disrupt.Proposal {
	t := &searchIsolation{s: s, proposal: disrupt.Proposal{Rev: s.Rev, Now: s.Now}}
	sight, q := s.ForSearch(), &s.Quarantine
	f := recoverPanic(plan.StepSearch, func() { t.proposal = l.planner().Search(sight, l.Policy) })
	if f == nil && !anyUndecided(q.SearchClasses, q.SearchClaims) {
		return t.proposal
	}
	t.begin(l, f)
	var leftOut cluster.Quarantine
	if f == nil {
		leftOut = t.continueSearch()
	} else {
		l.saveSnapshotFile(f, &replay.Case{Step: replay.Search, Snapshot: sight})
		leftOut = t.findCause()
	}
	l.World.Quarantine(leftOut)
	if f == nil {
		f = t.failure
	}
	if f != nil {
		f.LeftOut, f.Tries = stillOut(leftOut, s), t.tries
		l.reportFailure(f)
	}
	return t.proposal
}

// begin makes the isolation ready; b is what the search failed with, or nil if it goes on with what is to be told
// apart.
func (t *searchIsolation) begin(l *Loop, f *plan.PlannerFailure) {
	q, message := &t.s.Quarantine, ""
	if f != nil {
		message = f.Panic
	}
	t.isolation = l.newIsolation(message, t.s.Now, longestIsolation)
	t.base = cluster.Quarantine{
		Classes: mergeFailures(q.Classes, decidedFailures(q.SearchClasses)),
		Claims:  mergeFailures(q.Claims, decidedFailures(q.SearchClaims)),
		Parts:   q.Parts,
	}
	t.asks = func(q cluster.Quarantine) bool {
		at := t.s.WithOnlyQuarantine(q)
		var found disrupt.Proposal
		if f := recoverPanic(plan.StepSearch, func() { found = l.planner().Search(at, l.Policy) }); f != nil {
			t.failure = f
			return false
		}
		t.proposal = found
		return true
	}
}

// searchedPods lists the pods that a search looks at.
func (t *searchIsolation) searchedPods() []*cluster.Pod {
	out := t.s.PodsSeekingPlace()
	for _, p := range t.s.Pods {
		if _, leftOut := t.base.Classes[p.Class.Key]; !leftOut && !p.Finished && p.Node != "" &&
			t.s.ClaimOf(p.Node) != nil {
			out = append(out, p)
		}
	}
	return out
}

// findCause finds what the search fails on: classes of pods, or else claims and nodes, or else all of it.
func (t *searchIsolation) findCause() cluster.Quarantine {
	q := &t.s.Quarantine
	some := suspectGroup{suspects: classSuspects(t.s, t.searchedPods()), mustFail: true}
	doubtful := undecidedGroups(q.SearchClasses, some.suspects)
	some.suspects = without(some.suspects, flatten(doubtful))
	all := append([]suspectGroup{some}, doubtful...)
	withoutClaims := t.withClaims(flatten(undecidedGroups(q.SearchClaims, nil)))
	if t.passes(t.withClasses(flatten(all)).With(withoutClaims)) {
		found := t.failuresOf(q.SearchClasses, all, func(out []suspect) bool {
			return t.passes(t.withClasses(out).With(withoutClaims))
		})
		return cluster.Quarantine{SearchClasses: found}
	}
	claims := []suspectGroup{{suspects: claimSuspects(t.s, &t.base), mustFail: true}}
	classesOut := t.withClasses(flatten(doubtful))
	if t.passes(t.withClaims(flatten(claims)).With(classesOut)) {
		found := t.failuresOf(q.SearchClaims, claims, func(out []suspect) bool {
			return t.passes(t.withClaims(out).With(classesOut))
		})
		return cluster.Quarantine{SearchClaims: found}
	}
	return t.withParts([]cluster.Part{cluster.Searching})
}

// continueSearch goes on with what an earlier search had no time to tell apart.
func (t *searchIsolation) continueSearch() cluster.Quarantine {
	q := &t.s.Quarantine
	if groups := undecidedGroups(q.SearchClasses, classSuspects(t.s, t.searchedPods())); len(groups) > 0 {
		t.message = q.SearchClasses[groups[0].suspects[0].key].Message
		withoutClaims := t.withClaims(flatten(undecidedGroups(q.SearchClaims, nil)))
		found := t.failuresOf(q.SearchClasses, groups, func(out []suspect) bool {
			return t.passes(t.withClasses(out).With(withoutClaims))
		})
		return cluster.Quarantine{SearchClasses: found}
	}
	groups := undecidedGroups(q.SearchClaims, claimSuspects(t.s, &cluster.Quarantine{}))
	t.message = q.SearchClaims[groups[0].suspects[0].key].Message
	found := t.failuresOf(q.SearchClaims, groups, func(out []suspect) bool { return t.passes(t.withClaims(out)) })
	return cluster.Quarantine{SearchClaims: found}
}

// failuresOf is what is to be remembered of groups of which some have to be left out; left is what was before.
func (t *searchIsolation) failuresOf(
	leftOut map[string]cluster.Failure,
	groups []suspectGroup,
	passes func([]suspect) bool,
) map[string]cluster.Failure {
	causes, open := t.isolate(groups, passes)
	return t.failures(&isolationResult{causes: causes, undecided: open, cleared: clearedSuspects(leftOut,
		flatten(groups), causes, open)})
}
