package sim

import (
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/plan"
)

// planted is how the panics begin that the simulation makes by itself.
const planted = "planted: "

// ofClass is how those begin that a class of pods brings about, after the step; they end with the class.
const ofClass = "a class of pods: "

// mistakes are the planner's, while they last. Nobody else makes any.
type mistakes struct {
	// class is a class of pods with which no plan can be made, claim a claim, part a part of planning that fails.
	class, claim string
	part         cluster.Part
	// search and check fail altogether, or as long as a class is not left out.
	search, check           bool
	searchClass, checkClass string
}

// planner is package plan with the simulation's mistakes.
func (s *Sim) planner() loop.Planner {
	return loop.Planner{
		Make: func(at *cluster.Snapshot, policy plan.Policy, before *plan.Plan, found *disrupt.Proposal) plan.Plan {
			m := &s.mistakes
			for _, p := range at.Pending() {
				if p.Class.Key == m.class {
					panic(planted + ofClass + p.Class.Key)
				}
			}
			if _, held := at.Quarantine.Claims[m.claim]; !held && at.Claim(m.claim) != nil {
				panic(planted + "a claim")
			}
			if m.part != "" && !at.Quarantine.LeavesOut(m.part) {
				panic(planted + "a part of planning")
			}
			return plan.Make(at, policy, before, found)
		},
		Search: func(at *cluster.Snapshot, policy plan.Policy) disrupt.Proposal {
			if s.mistakes.search {
				panic(planted + "the search")
			}
			for _, p := range at.Pods {
				if p.Class.Key != s.mistakes.searchClass || p.Node == "" || p.Finished {
					continue
				}
				if at.ClaimOf(p.Node) != nil && !at.IsQuarantined(p) {
					panic(planted + "the search, " + ofClass + p.Class.Key)
				}
			}
			return plan.Search(at, policy)
		},
		Check: func(p plan.Plan, at *cluster.Snapshot) plan.Plan {
			if s.mistakes.check {
				panic(planted + "the check")
			}
			for _, q := range at.Pending() {
				if q.Class.Key == s.mistakes.checkClass {
					panic(planted + "the check, " + ofClass + q.Class.Key)
				}
			}
			return plan.Check(p, at)
		},
	}
}

// plantings are the planner's failures.
func (s *Sim) plantings() []fault {
	return []fault{
		{"planner fails on pods", func() {
			if r := s.leader(); r != nil {
				if pods := r.book.Snapshot().ClassesSeekingPlace(); len(pods) > 0 {
					s.plant("pods", mistakes{class: pick(s.clock, pods)})
				}
			}
		}},
		{"planner fails on a claim", func() {
			if r := s.leader(); r != nil {
				if claims := r.book.Snapshot().Claims; len(claims) > 0 {
					s.plant("a claim", mistakes{claim: pick(s.clock, claims).Name})
				}
			}
		}},
		{"planner fails in a part", func() { s.plant("a part", mistakes{part: pick(s.clock, cluster.Parts())}) }},
		{"search fails", func() {
			if class := s.classOnNodes(); class != "" && s.clock.now.Second()%2 == 0 {
				s.plant("the search of a class", mistakes{searchClass: class})
				return
			}
			s.plant("the search", mistakes{search: true})
		}},
		{"check fails", func() {
			if r := s.leader(); r != nil {
				if pods := r.book.Snapshot().ClassesSeekingPlace(); len(pods) > 0 && s.clock.now.Second()%2 == 0 {
					s.plant("the check of a class", mistakes{checkClass: pods[0]})
					return
				}
			}
			s.plant("the check", mistakes{check: true})
		}},
	}
}

// classOnNodes is a class of pods that run on our nodes; empty if there is none.
func (s *Sim) classOnNodes() string {
	r := s.leader()
	if r == nil {
		return ""
	}
	at := r.book.Snapshot()
	for _, p := range at.Pods {
		if p.Node != "" && at.ClaimOf(p.Node) != nil && !p.Finished {
			return p.Class.Key
		}
	}
	return ""
}

// plant has the planner make mistakes for a while.
func (s *Sim) plant(what string, m mistakes) {
	s.mistakes = m
	s.trace.note("the planner begins to fail on %s", what)
	if r := s.leader(); r != nil {
		r.passAt(s.clock.now)
	}
	s.clock.after(s.clock.between(time.Second, 2*time.Minute), func() {
		if s.mistakes == m {
			s.mistakes = mistakes{}
			s.trace.note("the planner fails no more")
		}
	})
}

// PlannerFailed judges a failure of the planner: only those that were planted are excused.
func (o observer) PlannerFailed(b plan.PlannerFailure) {
	s := o.r.sim
	if !strings.HasPrefix(b.Panic, planted) {
		s.fail("the planner never fails", "%s: %s\n%s", b.Step, b.Panic, b.Stack)
		return
	}
	what, class, ofOne := strings.Cut(strings.TrimPrefix(b.Panic, planted), ofClass)
	s.seen["contained "+what]++
	s.trace.note("%s: contains a failure in %s: %d classes, %d claims and %d parts are left out", o.r, b.Step,
		len(b.LeftOut.Classes), len(b.LeftOut.Claims), len(b.LeftOut.Parts))
	if b.Minimal || b.MinimalFailed {
		s.fail("a failure is contained", "%s: nothing can be planned", b.Panic)
	}
	if !ofOne {
		return
	}
	left := b.LeftOut.Classes
	if b.Step == plan.StepSearch {
		left = b.LeftOut.SearchClasses
	}
	// The class is the one that the failure names: another may be planted by the time that it is told.
	if _, found := left[class]; !found || len(left) != 1 {
		s.fail("the class that the planner fails on is found", "%s: after %d tries it left out %v instead of %s",
			b.Step, b.Tries, left, class)
	}
}

// SnapshotSaved tells nobody: the simulation keeps no files.
func (observer) SnapshotSaved(string, error) {}
