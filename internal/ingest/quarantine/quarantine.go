package quarantine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// A class of pods, or a claim, that the planner has failed on is tried again after First, and after twice
	// as long each time that it fails again, up to Last. A class is a hash of what its pods ask for: whoever
	// changes that is in another.
	First = 10 * time.Minute
	Last  = 6 * time.Hour
	// A class that the planner fails on only together with another is tried again sooner: it may be the other's fault.
	FirstPair = time.Minute
	LastPair  = 10 * time.Minute
	// A part of planning that fails altogether is tried again sooner: everybody misses it.
	FirstPart = time.Minute
	LastPart  = time.Hour
	// Most bounds how much is remembered of each kind; the oldest tenth is forgotten first.
	Most = 10_000
	// Kept is for how long after a quarantine its length is remembered.
	Kept = 24 * time.Hour
)

// List is what the planner has failed on, by what it is.
type List struct {
	classes, claims             map[string]*failure
	searchClasses, searchClaims map[string]*failure
	partsOut                    map[cluster.Part]*failure
}

// failure is what is known of one thing that the planner has failed on.
type failure struct {
	cluster.Failure
	times int
	ended bool // that Until has passed has been noted
}

// New has nothing in it.
func New() List {
	return List{
		classes: make(map[string]*failure), claims: make(map[string]*failure),
		partsOut:      make(map[cluster.Part]*failure),
		searchClasses: make(map[string]*failure), searchClaims: make(map[string]*failure),
	}
}

// Add notes what the planner has failed on. It is left out until its time is over. A failure that says itself until
// when it holds is believed: one that is over by now is taken out.
func (l *List) Add(q cluster.Quarantine, now time.Time) {
	addFailures(l.classes, q.Classes, now, First, Last)
	addFailures(l.claims, q.Claims, now, First, Last)
	addFailures(l.searchClasses, q.SearchClasses, now, First, Last)
	addFailures(l.searchClaims, q.SearchClaims, now, First, Last)
	addFailures(l.partsOut, q.Parts, now, FirstPart, LastPart)
}

// addFailures takes failures in.
func addFailures[K ~string](into map[K]*failure, more map[K]cluster.Failure, now time.Time, first,
	last time.Duration) {
	for _, key := range slices.Sorted(maps.Keys(more)) {
		f, have := more[key], into[key]
		if have == nil && !f.Until.IsZero() && !now.Before(f.Until) {
			continue
		}
		if have == nil {
			dropOldestFailures(into)
			have = &failure{}
			into[key] = have
		}
		have.Failure, have.ended = f, false
		have.Since = now
		if !f.Until.IsZero() {
			continue
		}
		from, to := first, last
		if f.PairedWith != "" {
			from, to = FirstPair, LastPair
		}
		have.Until = now.Add(min(from<<min(have.times, 20), to))
		have.times++
	}
}

// dropOldestFailures forgets the oldest failures if there are too many: a tenth at a time, since it has to look at all
// of them.
func dropOldestFailures[K ~string](of map[K]*failure) {
	if len(of) < Most {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(of[a].Since.Compare(of[b].Since), cmp.Compare(a, b))
	})
	for _, key := range oldest[:Most/10] {
		delete(of, key)
	}
}

// Now is what is left out now, and whether the time of something has just come to its end.
func (l *List) Now(now time.Time) (q cluster.Quarantine, ended bool) {
	q.Classes, ended = activeFailures(l.classes, now, ended)
	q.Claims, ended = activeFailures(l.claims, now, ended)
	q.SearchClasses, ended = activeFailures(l.searchClasses, now, ended)
	q.SearchClaims, ended = activeFailures(l.searchClaims, now, ended)
	q.Parts, ended = activeFailures(l.partsOut, now, ended)
	return q, ended
}

// activeFailures picks the failures whose time is not over; ended is true if that of some has just come to its end.
func activeFailures[K ~string](of map[K]*failure, now time.Time, ended bool) (map[K]cluster.Failure, bool) {
	var out map[K]cluster.Failure
	for key, f := range of {
		switch {
		case now.Before(f.Until):
			if out == nil {
				out = make(map[K]cluster.Failure)
			}
			out[key] = f.Failure
		case !f.ended:
			f.ended, ended = true, true
		case !now.Before(f.Until.Add(Kept)):
			delete(of, key)
		}
	}
	return out, ended
}
