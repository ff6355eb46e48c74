package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// excuseReason is a reason for which a broken promise is forgiven, if it holds.
type excuseReason struct {
	name  string
	holds func() bool
}

// is makes a reason of something that is known already.
func is(name string, holds bool) excuseReason {
	return excuseReason{name, func() bool { return holds }}
}

const (
	askedFor  = "asked "
	excusedBy = "excuse "
)

// asks counts how often the judge has looked at a promise.
func (j *judge) asks(promise string) { j.sim.seen[askedFor+promise]++ }

// charge is for a promise that is broken, unless one of the pleas holds: that one is counted. A judge that forgives too
// much sees nothing, so a run fails if an excuse takes more than its share (see mostShare).
func (j *judge) charge(promise string, pleas []excuseReason, format string, args ...any) {
	if j.excused(promise, pleas) {
		return
	}
	j.sim.fail(promise, format, args...)
}

// excused reports whether a reason holds, and counts it.
func (j *judge) excused(promise string, pleas []excuseReason) bool {
	for _, p := range pleas {
		if p.holds() {
			j.sim.seen[excusedBy+promise+": "+p.name]++
			return true
		}
	}
	return false
}

// mostShare is for what part of the times that a promise is looked at each excuse may be needed, by promise and name.
// Each is one and a half times what a soak of 26,369 seeds has shown, rounded up to two digits; what came to less than
// mostOfAny has that. Of two that hold at the same time the first is counted: the removed node has the shares of both
// removals. Set it anew from the next soak.
func mostShare() map[string]float64 {
	const interrupted = "pods of an interrupted node leave when their places are ready or time runs out"
	return map[string]float64{
		endsDrained + ": the node was removed by force, or made anew":               0.038,
		endsDrained + ": the claim was removed by force":                            0.0012,
		byEviction + ": the claim was removed by force":                             0.0012,
		interrupted + ": there is room elsewhere":                                   0.098,
		"replacements are ready before the first eviction: there is room elsewhere": 0.013,
		// Of 52,223 seeds.
		givenUpForFree + ": the planner has failed on the claim, or on whom it was made for": 0.0023,
		// Of 2,500 seeds; a look is one owner in one second.
		driftedGo + ": DaemonSets leave its pods no room on a new node": 0.0047,
		unusedBounded + ": claims were taken away from their machines":  0.00027,
		unusedBounded + ": nodes stand beside those that replace them":  0.00051,
		unusedBounded + ": nodes were deleted on their way":             0.0001,
		// a history that has it has it for seconds
		unusedBounded + ": nodes lost their room on their way": 0.00004,
	}
}

// mostOfAny is the share of an excuse that has none of its own.
const mostOfAny = 0.001

// Excuse is how often the judge has forgiven something, for one reason.
type Excuse struct {
	Promise, Name string
	Count, Asked  int
	Most          float64
}

// Share is of how many times that the judge looked.
func (e *Excuse) Share() float64 { return float64(e.Count) / float64(max(e.Asked, 1)) }

// Excessive reports whether there are more of them than there may be, by more than chance explains: three times the
// spread of a count of that size, and one.
func (e *Excuse) Excessive() bool {
	most := e.Most * float64(e.Asked)
	return float64(e.Count) > most+3*math.Sqrt(most)+1
}

func (e *Excuse) String() string {
	return fmt.Sprintf("%7d of %8d  %7.3f%% (at most %.3f%%)  %s: %s", e.Count, e.Asked, 100*e.Share(), 100*e.Most,
		e.Promise, e.Name)
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
