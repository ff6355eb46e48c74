package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

const (
	// mostSteps is how often a search looks at rules between pods: 2,000 nodes with 40,000 pods of ordinary workloads take less than
	// 0.2 % of it, thousands of pods that each have rules about all the others would take hours.
	mostSteps = 150_000_000
	// stepsPerLook is about how many nodes are looked at for a pod whose rules stand in the way, in all that is tried with it.
	stepsPerLook = 1_000
	// turn is how long a search that can't come to all nodes begins with the same one, and stride by how many it then goes on.
	turn   = time.Minute
	stride = 31
)

// spent reports whether the search has used up its steps.
func (sr *searcher) spent() bool { return sr.stage.Steps() >= sr.steps }

// firstOf is with which of n nodes a search begins that can't come to all: another one each minute, so that all come in turn. It is
// the snapshot's time that says so, and the same snapshot gives the same answer.
func firstOf(s *cluster.Snapshot, n int) int {
	return int(uint64(s.Now.Unix()/int64(turn.Seconds())) * stride % uint64(n))
}

// takeOn tells the candidates that a search takes on from those that are left out because their pods have too many rules.
func takeOn(s *cluster.Snapshot, set Settings, busy []Candidate) (taken, cut []Candidate) {
	if len(busy) == 0 {
		return nil, nil
	}
	departures := make([]schedule.Departure, len(busy))
	for i := range busy {
		departures[i] = schedule.Departure{Host: busy[i].Node.Name, Pods: busy[i].Pods}
	}
	for i, in := range schedule.TakeOn(s, set.Schedule, departures, firstOf(s, len(busy))) {
		if in {
			taken = append(taken, busy[i])
		} else {
			cut = append(cut, busy[i])
		}
	}
	return taken, cut
}

// ration leaves those out that there will be no steps for, if pods have so many rules that it is certain that they won't do. The
// steps would else go to the most wasteful nodes again and again.
func (sr *searcher) ration() {
	left, first := sr.steps, firstOf(sr.s, len(sr.all))
	for n := range sr.all {
		i := (first + n) % len(sr.all)
		looks := sr.stage.Looks(i) * stepsPerLook
		if left -= looks; left < 0 && looks > 0 {
			sr.all[i].left, sr.all[i].stay.Why = true, SearchCut
		}
	}
}
