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
	firstPairQuarantine = time.Minute
	lastPairQuarantine  = 10 * time.Minute
	// A part of planning that fails altogether is tried again sooner: everybody misses it.
	firstPartQuarantine = time.Minute
	lastPartQuarantine  = time.Hour
	// mostQuarantined bounds how much is remembered of each kind; the oldest tenth is forgotten first.
	mostQuarantined = 10_000
	// failuresKept is for how long after a quarantine its length is remembered.
	failuresKept = 24 * time.Hour
)

// quarantined is what the planner has failed on, by what it is.
type quarantined struct {
	classes, claims             map[string]*quarantinedFailure
	searchClasses, searchClaims map[string]*quarantinedFailure
	partsOut                    map[cluster.Part]*quarantinedFailure
}

// quarantinedFailure is what is known of one thing that the planner has failed on.
type quarantinedFailure struct {
	cluster.Failure
	times int
	ended bool // that Until has passed has been noted
}

func newQuarantined() quarantined {
	return quarantined{
		classes: make(map[string]*quarantinedFailure), claims: make(map[string]*quarantinedFailure),
		partsOut:      make(map[cluster.Part]*quarantinedFailure),
		searchClasses: make(map[string]*quarantinedFailure), searchClaims: make(map[string]*quarantinedFailure),
	}
}

// Quarantine notes what the planner has failed on. It is left out of the next snapshots' plans until its time is over.
// A failure that says itself until when it holds is believed: one that is over by now is taken out.
func (b *Book) Quarantine(q cluster.Quarantine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	addFailures(b.quarantined.classes, q.Classes, now, firstQuarantine, lastQuarantine)
	addFailures(b.quarantined.claims, q.Claims, now, firstQuarantine, lastQuarantine)
	addFailures(b.quarantined.searchClasses, q.SearchClasses, now, firstQuarantine, lastQuarantine)
	addFailures(b.quarantined.searchClaims, q.SearchClaims, now, firstQuarantine, lastQuarantine)
	addFailures(b.quarantined.partsOut, q.Parts, now, firstPartQuarantine, lastPartQuarantine)
	b.noteAndWake(changesDemand | changesRoom | changesDisruption)
}

// addFailures takes failures in.
func addFailures[K ~string](into map[K]*quarantinedFailure, more map[K]cluster.Failure, now time.Time, first,
	last time.Duration) {
	for _, key := range slices.Sorted(maps.Keys(more)) {
		f, have := more[key], into[key]
		if have == nil && !f.Until.IsZero() && !now.Before(f.Until) {
			continue
		}
		if have == nil {
			dropOldestFailures(into)
			have = &quarantinedFailure{}
			into[key] = have
		}
		have.Failure, have.ended = f, false
		have.Since = now
		if !f.Until.IsZero() {
			continue
		}
		from, to := first, last
		if f.PairedWith != "" {
			from, to = firstPairQuarantine, lastPairQuarantine
		}
		have.Until = now.Add(min(from<<min(have.times, 20), to))
		have.times++
	}
}

// dropOldestFailures forgets the oldest failures if there are too many: a tenth at a time, since it has to look at all
// of them.
func dropOldestFailures[K ~string](of map[K]*quarantinedFailure) {
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
	q.Classes, ended = activeFailures(b.quarantined.classes, now, ended)
	q.Claims, ended = activeFailures(b.quarantined.claims, now, ended)
	q.SearchClasses, ended = activeFailures(b.quarantined.searchClasses, now, ended)
	q.SearchClaims, ended = activeFailures(b.quarantined.searchClaims, now, ended)
	q.Parts, ended = activeFailures(b.quarantined.partsOut, now, ended)
	if ended {
		b.noteChange(changesDemand | changesRoom | changesDisruption)
	}
	return q
}

// activeFailures picks the failures whose time is not over; ended is true if that of some has just come to its end.
func activeFailures[K ~string](of map[K]*quarantinedFailure, now time.Time, ended bool) (map[K]cluster.Failure, bool) {
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
		case !now.Before(f.Until.Add(failuresKept)):
			delete(of, key)
		}
	}
	return out, ended
}
