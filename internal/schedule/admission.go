package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// admission lets DaemonSets in on the offerings of a market, those of one priority after the other. The market's room
// is what they leave at least; high is what they leave at most, and the same slice until some don't fit together.
type admission struct {
	m     *market
	which awaited
	high  []resource.Vector
	sums  []resource.Vector
	needs []resource.Vector // of one offering
}

// admit lets DaemonSets of equal priority in. One that finds room on no offering even as the first of them never gets a
// pod on a node of the pool: whoever may make one must not keep all others from their nodes. If not all fit on any
// offering together, each offering has what the worst order leaves.
func (a *admission) admit(equals []landing) {
	var counted []landing
	tooSmall := require.NewBits(len(a.high)) // for one of them by itself
	for _, l := range equals {
		fits := a.withRoom(l.bits, &l.daemon.Class.Requests)
		switch {
		case !fits.Any() && !a.which.elsewhere[l.daemon]:
			a.m.omit(l, a.high)
			continue
		case a.which.each:
			l.bits = fits
		default:
			tooSmall = tooSmall.Or(l.bits.AndNot(fits))
		}
		counted = append(counted, l)
	}
	if len(counted) == 0 {
		return
	}
	a.m.daemons = append(a.m.daemons, counted...)
	land, crowded := a.add(counted)
	if crowded.Any() && !a.apart() {
		a.high = slices.Clone(a.m.room)
	}
	contended := crowded.AndNot(tooSmall).AndNot(a.better(counted, crowded))
	for i := range land.All {
		if contended.Has(i) {
			a.contend(counted, i)
			continue
		}
		if a.apart() {
			a.high[i] = a.high[i].Sub(a.sums[i])
		}
		a.m.room[i] = a.m.room[i].Sub(a.sums[i])
	}
}

// apart reports whether what is left at least and at most are different things.
func (a *admission) apart() bool { return len(a.high) > 0 && &a.high[0] != &a.m.room[0] }

// add sums up what the DaemonSets need on each offering, and finds those on which they come, and those of them on which
// not all fit together.
func (a *admission) add(counted []landing) (land, crowded require.Bits) {
	land, crowded = require.NewBits(len(a.high)), require.NewBits(len(a.high))
	if a.sums == nil {
		a.sums = make([]resource.Vector, len(a.high))
	}
	clear(a.sums)
	for _, l := range counted {
		for i := range l.bits.All {
			a.sums[i] = a.sums[i].Add(l.daemon.Class.Requests)
		}
		land = land.Or(l.bits)
	}
	for i := range land.All {
		if !a.sums[i].Fits(a.m.room[i]) {
			crowded.Set(i)
		}
	}
	return land, crowded
}

// better are the offerings for which there are better ones: on some of those a DaemonSet that comes here finds room
// beside all its equals. If every offering is asked by itself there are none.
func (a *admission) better(counted []landing, crowded require.Bits) require.Bits {
	out := require.NewBits(len(a.high))
	if a.which.each || !crowded.Any() {
		return out
	}
	for _, l := range counted {
		if l.bits.AndNot(crowded).Any() {
			out = out.Or(l.bits)
		}
	}
	return out
}

// contend lets those in on an offering that don't all fit.
func (a *admission) contend(counted []landing, row int) {
	left := resource.Range{Low: a.m.room[row], High: a.high[row]}
	if len(counted) > resource.ManyNeeds {
		left = left.TakeSome(a.sums[row])
	} else {
		a.needs = a.needs[:0]
		for _, l := range counted {
			if l.bits.Has(row) {
				a.needs = append(a.needs, l.daemon.Class.Requests)
			}
		}
		left = left.Take(a.needs)
	}
	a.m.room[row], a.high[row] = left.Low, left.High
}

// withRoom are those of the offerings that may have room for so much.
func (a *admission) withRoom(rows require.Bits, need *resource.Vector) require.Bits {
	out := require.NewBits(len(a.high))
	for i := range rows.All {
		if need.Fits(a.high[i]) {
			out.Set(i)
		}
	}
	return out
}
