package saving

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
)

// Least is what a move must save per hour in any case, in dollars: below that there is no telling a saving from
// the way in which numbers are rounded. Every move makes the cluster cheaper by at least that much, so that there is an
// end to moves.
const Least = 1e-6

// Appraisal is what a move is worth.
type Appraisal struct {
	// Bins are the new nodes, with only those types left that are cheap enough, whichever of them the cloud hands out.
	Bins []market.Bin
	// Before is what the nodes that go cost per hour. After is what the new ones are expected to cost, and MaxAfter the
	// most that they may cost.
	Before, After, MaxAfter float64
	// NeededSaving is what the move must save at least: Before - MaxAfter is no less.
	NeededSaving float64
}

// Saving is what the move is expected to save per hour.
func (a *Appraisal) Saving() float64 { return a.Before - a.After }

// appraise says what it is worth to take the candidates away and to make the bins instead. origins are all nodes that
// pods may come from. With choice, what takes the place of several nodes may be none that could be kept instead.
//
// However the new nodes come out, together they must be cheaper than what goes by the least saving. So each of them
// gets a ceiling, and keeps the types that cost no more than that at worst.
func appraise(set disrupt.Settings, candidates, origins []disrupt.Candidate, bins []market.Bin,
	choice bool) (Appraisal,
	*disrupt.BlockedNode) {
	var a Appraisal
	for i := range candidates {
		a.Before += candidates[i].Price
	}
	a.NeededSaving = Needed(set, candidates)
	if reason := a.capPrices(set, candidates, origins, bins, choice); reason != "" {
		blocked := &disrupt.BlockedNode{Reason: reason, Saving: a.Before, NeededSaving: a.NeededSaving}
		for i := range bins {
			blocked.Saving -= bins[i].Price
			blocked.Estimated = blocked.Estimated || bins[i].Estimated
		}
		blocked.CertainSaving = min(blocked.Saving, a.Before-a.MaxAfter)
		if len(candidates) > 0 {
			blocked.Claim, blocked.Node = candidates[0].Claim.Name, candidates[0].Node.Name
		}
		return Appraisal{}, blocked
	}
	return a, nil
}

// Needed is what a move that takes the candidates away must save per hour at least. What it must save by the word
// of one pool holds for the whole of it.
func Needed(set disrupt.Settings, candidates []disrupt.Candidate) float64 {
	before, evicted := 0.0, 0
	for i := range candidates {
		before, evicted = before+candidates[i].Price, evicted+candidates[i].Evicted
	}
	least := Least
	for i := range candidates {
		part, perPod := set.MinSaving, set.MinSavingPerPod
		if own := candidates[i].Pool.Overrides.MinSaving; own != nil {
			part = *own
		}
		if own := candidates[i].Pool.Overrides.MinSavingPerPod; own != nil {
			perPod = *own
		}
		least = max(least, part*before, perPod*float64(evicted))
	}
	return least
}

// capPrices gives each bin its ceiling and leaves the types that are below. If that does not pay, Worst is what the
// bins would count for at least, as far as it came to that.
func (a *Appraisal) capPrices(set disrupt.Settings, candidates, origins []disrupt.Candidate, bins []market.Bin,
	choice bool) disrupt.BlockReason {
	ceiling := a.Before - a.NeededSaving
	if ceiling < 0 {
		return disrupt.SavesTooLittle
	}
	caps := make([]*priceCap, len(bins))
	cheapest := 0.0
	for i := range bins {
		rule, reason := spotTermsFor(set, candidates, origins, &bins[i])
		if reason != "" {
			return reason
		}
		caps[i] = newPriceCap(&bins[i], rule, set.Schedule.RelaxMinValues)
		if choice && replacesSeveral(candidates, bins) {
			caps[i].dropNoCheaper(sourcesOfBin(candidates, &bins[i]))
		}
		if len(caps[i].types) == 0 {
			a.MaxAfter = a.Before // nothing is sure to be saved
			return disrupt.NothingCheaper
		}
		cheapest += caps[i].types[0].high
	}
	a.MaxAfter = cheapest
	switch {
	case cheapest > a.Before-Least:
		return disrupt.NothingCheaper
	case cheapest > ceiling:
		return disrupt.SavesTooLittle
	}
	a.MaxAfter = 0
	return a.shareCap(caps, ceiling)
}

// replacesSeveral reports whether a single new node takes the place of several: it must then be cheaper than any of
// these that is like it.
func replacesSeveral(candidates []disrupt.Candidate, bins []market.Bin) bool {
	return len(bins) == 1 && len(candidates) > 1
}

// shareCap shares the ceiling out: each price cap gets what it needs at least, and what remains is shared in proportion
// to that.
func (a *Appraisal) shareCap(caps []*priceCap, ceiling float64) disrupt.BlockReason {
	least := 0.0
	for _, c := range caps {
		if c.minCap() < 0 {
			return c.tooFewReason()
		}
		least += c.minCap()
	}
	if least > ceiling {
		a.MaxAfter = least
		// The one that needs the most beyond its cheapest type is what it fails at.
		return slices.MaxFunc(caps, func(x, y *priceCap) int {
			return cmp.Compare(x.minCap()-x.types[0].high, y.minCap()-y.types[0].high)
		}).tooFewReason()
	}
	for _, c := range caps {
		part := ceiling / float64(len(caps))
		if least > 0 && len(caps) > 1 {
			part = c.minCap() / least * ceiling
		}
		bin, worst := c.binWith(c.typesWithin(part))
		a.Bins, a.After, a.MaxAfter = append(a.Bins, bin), a.After+bin.Price, a.MaxAfter+worst
	}
	return ""
}

// sourcesOfBin are the candidates whose pods go to the new node; all of them if its pods come from none of them.
func sourcesOfBin(candidates []disrupt.Candidate, bin *market.Bin) []disrupt.Candidate {
	of := CandidateByNode(candidates)
	var out []disrupt.Candidate
	for i := range candidates {
		if slices.ContainsFunc(bin.Pods, func(p *cluster.Pod) bool { return of(p) == i }) {
			out = append(out, candidates[i])
		}
	}
	if len(out) == 0 {
		return candidates
	}
	return out
}

// BinsPrice is what new nodes cost together.
func BinsPrice(bins []market.Bin) float64 {
	sum := 0.0
	for i := range bins {
		sum += bins[i].Price
	}
	return sum
}
