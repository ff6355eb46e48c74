package sim

import (
	"fmt"
	"slices"
	"strings"
)

// plea is a reason for which a broken promise is forgiven, if it holds.
type plea struct {
	name  string
	holds func() bool
}

// is makes a plea of something that is known already.
func is(name string, holds bool) plea { return plea{name, func() bool { return holds }} }

const (
	askedFor  = "asked "
	excusedBy = "excuse "
)

// asks counts how often the judge has looked at a promise.
func (j *judge) asks(promise string) { j.sim.seen[askedFor+promise]++ }

// charge is for a promise that is broken, unless one of the pleas holds: that one is counted. A judge that forgives too much
// sees nothing, so a run fails if an excuse takes more than its share (see mostShare).
func (j *judge) charge(promise string, pleas []plea, format string, args ...any) {
	if j.excused(promise, pleas) {
		return
	}
	j.sim.fail(promise, format, args...)
}

// excused reports whether a plea holds, and counts it.
func (j *judge) excused(promise string, pleas []plea) bool {
	for _, p := range pleas {
		if p.holds() {
			j.sim.seen[excusedBy+promise+": "+p.name]++
			return true
		}
	}
	return false
}

// mostShare is for what part of the times that a promise is looked at each excuse may be needed, by promise and name. They are about
// three times what 700 seeds have shown, or less where that would be all; one that is not listed has mostOfAny. The clock's share of
// interruptions was 2 % first, which the next 500 seeds exceeded (2.5 %): it is three times what both runs showed together. Such
// small samples say little: set them anew from the first long soak.
func mostShare() map[string]float64 {
	const clock = "the replica's clock was wrong just now"
	const interrupted = "pods of an interrupted node leave when their places are ready or time runs out"
	return map[string]float64{
		endsDrained + ": the node was removed by force, or made anew":                                  0.05,
		endsDrained + ": " + clock:                                                                     0.015,
		endsDrained + ": the pods came after the replica had looked":                                   0.015,
		byEviction + ": " + clock:                                                                      0.07,
		interrupted + ": " + clock:                                                                     0.04,
		interrupted + ": there is room elsewhere":                                                      0.5, // which is as good as a replacement, if the scheduler uses it
		"replacements are ready before the first eviction: there is room elsewhere":                    0.08,
		"a disruption budget is never overrun: pods went by themselves before they were counted again": 0.01,
		"a do-not-disrupt pod is not evicted before its deadline: " + clock:                            0.01,
		neverDearer + ": a machine has died, and nobody knows what it would cost":                      0.02,
		neverDearer + ": somebody else has ended a part of the move":                                   0.02,
		neverDearer + ": prices have changed just now":                                                 0.03,
		neverDearer + ": pods wait for a place, and may need what was made":                            0.03,
		neverDearer + ": a pod has just found a place":                                                 0.03,
		endsOnlyItsOwn + ": the replica had lost the lease, and its clock was wrong":                   0.0005,
	}
}

// mostOfAny is the share of an excuse that has none of its own.
const mostOfAny = 0.005

// fewest is how often a promise must have been looked at before shares are told from it.
const fewest = 400

// Excuse is how often the judge has forgiven something, for one reason.
type Excuse struct {
	Promise, Name string
	Count, Asked  int
	Most          float64
}

// Share is of how many times that the judge looked.
func (e *Excuse) Share() float64 { return float64(e.Count) / float64(max(e.Asked, 1)) }

// Excessive reports whether there are more of them than there may be.
func (e *Excuse) Excessive() bool { return e.Asked >= fewest && e.Share() > e.Most }

func (e *Excuse) String() string {
	return fmt.Sprintf("%7d of %8d  %7.3f%% (at most %.3f%%)  %s: %s", e.Count, e.Asked, 100*e.Share(), 100*e.Most, e.Promise, e.Name)
}

// Excuses are what has been forgiven in runs that have seen this, by promise and name.
func Excuses(seen map[string]int) []Excuse {
	var out []Excuse
	most := mostShare()
	for what, n := range seen {
		text, ok := strings.CutPrefix(what, excusedBy)
		if !ok {
			continue
		}
		promise, name, _ := strings.Cut(text, ": ")
		e := Excuse{Promise: promise, Name: name, Count: n, Asked: seen[askedFor+promise], Most: mostOfAny}
		if own, has := most[text]; has {
			e.Most = own
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Excuse) int { return strings.Compare(a.Promise+": "+a.Name, b.Promise+": "+b.Name) })
	return out
}
