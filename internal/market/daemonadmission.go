package market

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// daemonAdmission lets DaemonSets in on the offerings of a market, those of one priority after the other. The market's
// room is what they leave at least; high is what they leave at most, and the same slice until some don't fit together.
type daemonAdmission struct {
	market  *Pool
	rule    DaemonRule
	maxLeft []resource.Vector
	sums    []resource.Vector
	needs   []resource.Vector // of one offering
}

// admit lets DaemonSets of equal priority in. One that finds room on no offering even as the first of them never gets a
// pod on a node of the pool: whoever may make one must not keep all others from their nodes. If not all fit on any
// offering together, each offering has what the worst order leaves.
func (a *daemonAdmission) admit(equals []DaemonOfferings) {
	var counted []DaemonOfferings
	tooSmall := require.NewBits(len(a.maxLeft)) // for one of them by itself
	for _, l := range equals {
		fits := a.offeringsWithRoom(l.Offerings, &l.Daemon.Class.Requests)
		switch {
		case !fits.Any() && !a.rule.fitElsewhere[l.Daemon]:
			a.market.addOmitted(l, a.maxLeft)
			continue
		case a.rule.perOffering:
			l.Offerings = fits
		default:
			tooSmall = tooSmall.Or(l.Offerings.AndNot(fits))
		}
		counted = append(counted, l)
	}
	if len(counted) == 0 {
		return
	}
	a.market.Daemons = append(a.market.Daemons, counted...)
	land, crowded := a.sumNeeds(counted)
	if crowded.Any() && !a.boundsDiffer() {
		a.maxLeft = slices.Clone(a.market.Room)
	}
	contended := crowded.AndNot(tooSmall).AndNot(a.betterOfferings(counted, crowded))
	for i := range land.All {
		if contended.Has(i) {
			a.resolveContention(counted, i)
			continue
		}
		if a.boundsDiffer() {
			a.maxLeft[i] = a.maxLeft[i].Sub(a.sums[i])
		}
		a.market.Room[i] = a.market.Room[i].Sub(a.sums[i])
	}
}

// boundsDiffer reports whether what is left at least and at most are different things.
func (a *daemonAdmission) boundsDiffer() bool {
	return len(a.maxLeft) > 0 && &a.maxLeft[0] != &a.market.Room[0]
}

// sumNeeds sums up what the DaemonSets need on each offering, and finds those on which they come, and those of them on
// which not all fit together.
func (a *daemonAdmission) sumNeeds(counted []DaemonOfferings) (land, crowded require.Bits) {
	land, crowded = require.NewBits(len(a.maxLeft)), require.NewBits(len(a.maxLeft))
	if a.sums == nil {
		a.sums = make([]resource.Vector, len(a.maxLeft))
	}
	clear(a.sums)
	for _, l := range counted {
		for i := range l.Offerings.All {
			a.sums[i] = a.sums[i].Add(l.Daemon.Class.Requests)
		}
		land = land.Or(l.Offerings)
	}
	for i := range land.All {
		if !a.sums[i].Fits(a.market.Room[i]) {
			crowded.Set(i)
		}
	}
	return land, crowded
}

// betterOfferings are the offerings for which there are better ones: on some of those a DaemonSet that comes here finds
// room beside all its equals. If every offering is asked by itself there are none.
func (a *daemonAdmission) betterOfferings(counted []DaemonOfferings, crowded require.Bits) require.Bits {
	out := require.NewBits(len(a.maxLeft))
	if a.rule.perOffering || !crowded.Any() {
		return out
	}
	for _, l := range counted {
		if l.Offerings.AndNot(crowded).Any() {
			out = out.Or(l.Offerings)
		}
	}
	return out
}

// resolveContention lets those in on an offering that don't all fit.
func (a *daemonAdmission) resolveContention(counted []DaemonOfferings, row int) {
	left := resource.Range{Low: a.market.Room[row], High: a.maxLeft[row]}
	if len(counted) > resource.ManyNeeds {
		left = left.TakeSome(a.sums[row])
	} else {
		a.needs = a.needs[:0]
		for _, l := range counted {
			if l.Offerings.Has(row) {
				a.needs = append(a.needs, l.Daemon.Class.Requests)
			}
		}
		left = left.Take(a.needs)
	}
	a.market.Room[row], a.maxLeft[row] = left.Low, left.High
}

// offeringsWithRoom are those of the offerings that may have room for so much.
func (a *daemonAdmission) offeringsWithRoom(rows require.Bits, need *resource.Vector) require.Bits {
	out := require.NewBits(len(a.maxLeft))
	for i := range rows.All {
		if need.Fits(a.maxLeft[i]) {
			out.Set(i)
		}
	}
	return out
}
