package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// Patience counts how often the pods of each workload have been evicted to save money within the hour. A workload of n pods
// bears n times what the settings allow: each of its pods is evicted no more often than that on average, and one of a
// thousand pods does not have to wait for an hour because ten of them have moved.
type Patience struct {
	s   *cluster.Snapshot
	set Settings
	// taken are the evictions that have been decided on since.
	taken map[string]int
	// sizes are the numbers of pods of owners that don't say how many they want; nil until somebody asks.
	sizes map[string]int
}

// NewPatience begins with what the snapshot knows.
func NewPatience(s *cluster.Snapshot, set Settings) *Patience {
	return &Patience{s: s, set: set, taken: make(map[string]int)}
}

// Bears reports whether the workloads of all candidates would bear to be evicted now, on top of what was taken. If not, pod is
// one of a workload that rests, and until is when it has done so, if that is known.
func (p *Patience) Bears(candidates ...Candidate) (pod *cluster.Pod, until time.Time, ok bool) {
	more := make(map[string]int)
	for i := range candidates {
		bound := p.bound(candidates[i].Pool)
		if bound <= 0 {
			continue
		}
		for _, q := range candidates[i].Pods {
			spent := p.s.Evicted[q.Owner] + p.taken[q.Owner]
			if spent == 0 { // as many as it has may go at once
				continue
			}
			more[q.Owner]++
			if spent+more[q.Owner] > bound*p.size(q.Owner) {
				return q, p.s.Rested[q.Owner], false
			}
		}
	}
	return nil, time.Time{}, true
}

// Take counts the candidates' pods as evicted.
func (p *Patience) Take(candidates ...Candidate) {
	for i := range candidates {
		for _, q := range candidates[i].Pods {
			p.taken[q.Owner]++
		}
	}
}

// bound is how often each pod may be evicted in an hour; 0 for as often as it takes.
func (p *Patience) bound(pool *cluster.Pool) int {
	if own := pool.Care.EvictionsPerHour; own != nil {
		return *own
	}
	return p.set.EvictionsPerHour
}

// size is how many pods a workload has.
func (p *Patience) size(owner string) int {
	if o, ok := p.s.Owners[owner]; ok && o.Known && o.Desired > 0 {
		return o.Desired
	}
	if p.sizes == nil {
		p.sizes = make(map[string]int)
		for _, q := range p.s.Pods {
			if !q.Done && !q.Daemon && !q.Mirror && q.Deleting.IsZero() {
				p.sizes[q.Owner]++
			}
		}
	}
	return max(1, p.sizes[owner])
}

// rested: a workload whose pods have been evicted often enough is left alone. What has to be done in any case is done.
func (v *verdict) rested() bool {
	if v.begun || v.reason != command.Underutilized {
		return true
	}
	pod, until, ok := v.patience.Bears(v.candidate)
	if !ok {
		v.stay.Pod = pod.ID()
		return v.noUntil(WorkloadResting, until)
	}
	return true
}
