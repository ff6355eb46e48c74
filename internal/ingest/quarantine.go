package ingest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// A class of pods, or a claim, that the planner has failed on is tried again after firstQuarantine, and after twice
	// as long each time that it fails again, up to lastQuarantine. A class is a hash of what its pods ask for: whoever
	// changes that is in another.
	firstQuarantine = 10 * time.Minute
	lastQuarantine  = 6 * time.Hour
	// A class that the planner fails on only together with another is tried again sooner: it may be the other's fault.
	firstPairOut = time.Minute
	lastPairOut  = 10 * time.Minute
	// A part of planning that fails altogether is tried again sooner: everybody misses it.
	firstPartOut = time.Minute
	lastPartOut  = time.Hour
	// mostQuarantined bounds how much is remembered of each kind; the oldest tenth is forgotten first.
	mostQuarantined = 10_000
	// failuresKept is for how long after a quarantine its length is remembered.
	failuresKept = 24 * time.Hour
)

// quarantine is what the planner has failed on, by what it is.
type quarantine struct {
	classes, claims             map[string]*failure
	searchClasses, searchClaims map[string]*failure
	parts                       map[cluster.Part]*failure
}

// failure is what is known of one thing that the planner has failed on.
type failure struct {
	cluster.Failure
	times int
	over  bool // that Until has passed has been noted
}

func newQuarantine() quarantine {
	return quarantine{
		classes: make(map[string]*failure), claims: make(map[string]*failure), parts: make(map[cluster.Part]*failure),
		searchClasses: make(map[string]*failure), searchClaims: make(map[string]*failure),
	}
}

// Quarantine notes what the planner has failed on. It is left out of the next snapshots' plans until its time is over.
// A failure that says itself until when it holds is believed: one that is over by now is taken out.
func (b *Book) Quarantine(q cluster.Quarantine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	commit(b.failed.classes, q.Classes, now, firstQuarantine, lastQuarantine)
	commit(b.failed.claims, q.Claims, now, firstQuarantine, lastQuarantine)
	commit(b.failed.searchClasses, q.SearchClasses, now, firstQuarantine, lastQuarantine)
	commit(b.failed.searchClaims, q.SearchClaims, now, firstQuarantine, lastQuarantine)
	commit(b.failed.parts, q.Parts, now, firstPartOut, lastPartOut)
	b.touch(demand | room | stakes)
}

// commit takes failures in.
func commit[K ~string](into map[K]*failure, more map[K]cluster.Failure, now time.Time, first, last time.Duration) {
	for _, key := range slices.Sorted(maps.Keys(more)) {
		f, have := more[key], into[key]
		if have == nil && !f.Until.IsZero() && !now.Before(f.Until) {
			continue
		}
		if have == nil {
			drop(into)
			have = &failure{}
			into[key] = have
		}
		have.Failure, have.over = f, false
		have.Since = now
		if !f.Until.IsZero() {
			continue
		}
		from, to := first, last
		if f.With != "" {
			from, to = firstPairOut, lastPairOut
		}
		have.Until = now.Add(min(from<<min(have.times, 20), to))
		have.times++
	}
}

// drop forgets the oldest failures if there are too many: a tenth at a time, since it has to look at all of them.
func drop[K ~string](of map[K]*failure) {
	if len(of) < mostQuarantined {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(of[a].Since.Compare(of[b].Since), cmp.Compare(a, b))
	})
	for _, key := range oldest[:mostQuarantined/10] {
		delete(of, key)
	}
}

// quarantineNow is what is left out now. The lock is held.
func (b *Book) quarantineNow(now time.Time) cluster.Quarantine {
	var q cluster.Quarantine
	ended := false
	q.Classes, ended = inForce(b.failed.classes, now, ended)
	q.Claims, ended = inForce(b.failed.claims, now, ended)
	q.SearchClasses, ended = inForce(b.failed.searchClasses, now, ended)
	q.SearchClaims, ended = inForce(b.failed.searchClaims, now, ended)
	q.Parts, ended = inForce(b.failed.parts, now, ended)
	if ended {
		b.note(demand | room | stakes)
	}
	return q
}

// inForce picks the failures whose time is not over; ended is true if that of some has just come to its end.
func inForce[K ~string](of map[K]*failure, now time.Time, ended bool) (map[K]cluster.Failure, bool) {
	var out map[K]cluster.Failure
	for key, f := range of {
		switch {
		case now.Before(f.Until):
			if out == nil {
				out = make(map[K]cluster.Failure)
			}
			out[key] = f.Failure
		case !f.over:
			f.over, ended = true, true
		case !now.Before(f.Until.Add(failuresKept)):
			delete(of, key)
		}
	}
	return out, ended
}
