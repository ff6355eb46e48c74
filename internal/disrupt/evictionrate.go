package disrupt

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// EvictionRates counts how often the pods of each workload have been evicted to save money within the hour. A workload
// of n pods bears n times what the settings allow: each of its pods is evicted no more often than that on average, and
// one of a thousand pods does not have to wait for an hour because ten of them have moved.
type EvictionRates struct {
	s   *cluster.Snapshot
	set Settings
	// planned are the evictions that have been decided on since.
	planned map[string]int
	// workloadSizes are the numbers of pods of owners that don't say how many they want; nil until somebody asks.
	workloadSizes map[string]int
}

// NewEvictionRates begins with what the snapshot knows.
func NewEvictionRates(s *cluster.Snapshot, set Settings) *EvictionRates {
	return &EvictionRates{s: s, set: set, planned: make(map[string]int)}
}

// Allow reports whether the workloads of all candidates would bear to be evicted now, on top of what was taken. If not,
// pod is one of a workload that rests, and until is when it has done so, if that is known.
func (r *EvictionRates) Allow(candidates ...Candidate) (pod *cluster.Pod, until time.Time, ok bool) {
	more := make(map[string]int)
	for i := range candidates {
		bound := r.perPod(candidates[i].Pool)
		if bound <= 0 {
			continue
		}
		for _, q := range candidates[i].Pods {
			spent := r.s.EvictedToSave[q.Owner] + r.planned[q.Owner]
			if spent == 0 { // as many as it has may go at once
				continue
			}
			more[q.Owner]++
			if spent+more[q.Owner] > bound*r.workloadSize(q.Owner) {
				return q, r.s.EvictionsDropAt[q.Owner], false
			}
		}
	}
	return nil, time.Time{}, true
}

// Add counts the candidates' pods as evicted.
func (r *EvictionRates) Add(candidates ...Candidate) {
	for i := range candidates {
		for _, q := range candidates[i].Pods {
			r.planned[q.Owner]++
		}
	}
}

// perPod is how often each pod may be evicted in an hour; 0 for as often as it takes.
func (r *EvictionRates) perPod(pool *cluster.Pool) int {
	if own := pool.Overrides.EvictionsPerHour; own != nil {
		return *own
	}
	return r.set.EvictionsPerHour
}

// workloadSize is how many pods a workload has.
func (r *EvictionRates) workloadSize(owner string) int {
	if o, ok := r.s.Owners[owner]; ok && o.Known && o.Desired > 0 {
		return o.Desired
	}
	if r.workloadSizes == nil {
		r.workloadSizes = make(map[string]int)
		for _, q := range r.s.Pods {
			if !q.Finished && !q.Daemon && !q.Mirror && q.Deleting.IsZero() {
				r.workloadSizes[q.Owner]++
			}
		}
	}
	return max(1, r.workloadSizes[owner])
}
