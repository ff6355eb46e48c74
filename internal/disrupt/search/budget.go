package search

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/schedule"
)

const (
	// mostSteps is how often a search looks at rules between pods: 2,000 nodes with 40,000 pods of ordinary workloads
	// take less than
	// 0.2 % of it, thousands of pods that each have rules about all the others would take hours.
	mostSteps = 150_000_000
	// stepsPerCandidate is about how many nodes are looked at for a pod whose rules stand in the way, in all that is
	// tried with it.
	stepsPerCandidate = 1_000
	// rotationPeriod is how long a search that can't come to all nodes begins with the same one, and rotationStride by
	// how many it then goes on.
	rotationPeriod = time.Minute
	rotationStride = 31
)

// isOutOfSteps reports whether the search has used up its steps.
func (sr *searcher) isOutOfSteps() bool { return sr.whatIf.Steps() >= sr.maxSteps }

// rotationStart is with which of n nodes a search begins that can't come to all: another one each minute, so that all
// come in turn. It is the snapshot's time that says so, and the same snapshot gives the same answer.
func rotationStart(s *cluster.Snapshot, n int) int {
	return int(uint64(s.Now.Unix()/int64(rotationPeriod.Seconds())) * rotationStride % uint64(n))
}

// splitByRules tells the candidates that a search takes on from those that are left out because their pods have too
// many rules.
func splitByRules(s *cluster.Snapshot, set disrupt.Settings, busy []disrupt.Candidate) (taken,
	cut []disrupt.Candidate) {
	if len(busy) == 0 {
		return nil, nil
	}
	departures := make([]schedule.RemovableNode, len(busy))
	for i := range busy {
		departures[i] = schedule.RemovableNode{Host: busy[i].Node.Name, Pods: busy[i].Pods}
	}
	for i, in := range schedule.WithinRuleBounds(s, set.Schedule, departures, rotationStart(s, len(busy))) {
		if in {
			taken = append(taken, busy[i])
		} else {
			cut = append(cut, busy[i])
		}
	}
	return taken, cut
}

// skipCostly leaves those out that there will be no steps for, if pods have so many rules that it is certain that they
// won't do. The steps would else go to the most wasteful nodes again and again.
func (sr *searcher) skipCostly() {
	left, first := sr.maxSteps, rotationStart(sr.s, len(sr.candidates))
	for n := range sr.candidates {
		i := (first + n) % len(sr.candidates)
		looks := sr.whatIf.RuleSteps(i) * stepsPerCandidate
		if left -= looks; left < 0 && looks > 0 {
			sr.candidates[i].skipped, sr.candidates[i].blocked.Reason = true, disrupt.SearchCut
		}
	}
}
