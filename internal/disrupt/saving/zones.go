package saving

import (
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
)

// AppraiseCheapestZones is appraise for moves that were found and for nodes that need not be free to come up in any
// zone: where a move pays, but might not if the cloud chose another zone than the cheapest, the new nodes are kept to
// that.
//
// The pods of a move are placed once more when it begins, together with those of others, and all of them may come to
// share one new node that is like one of those that go. A search would keep that one instead, and look for something
// better. Here nobody looks, so that all that counts is whether it pays: what was refused would be found again and
// again.
func AppraiseCheapestZones(set disrupt.Settings, candidates []disrupt.Candidate, bins []market.Bin) (Appraisal,
	*disrupt.BlockedNode) {
	a, blocked := AppraiseFrom(set, candidates, candidates, bins, true)
	if blocked != nil && replacesSeveral(candidates, bins) {
		a, blocked = AppraiseFrom(set, candidates, candidates, bins, false)
	}
	return a, blocked
}

// AppraiseFrom is AppraiseCheapestZones where pods may come from more nodes than the candidates: origins are all of
// them. With choice, what takes the place of several nodes may be none that could be kept instead.
func AppraiseFrom(set disrupt.Settings, candidates, origins []disrupt.Candidate, bins []market.Bin,
	choice bool) (Appraisal,
	*disrupt.BlockedNode) {
	a, blocked := appraise(set, candidates, origins, bins, choice)
	if blocked != nil && len(bins) > 0 && blocked.Saving >= blocked.NeededSaving {
		a, blocked = appraise(set, candidates, origins, InCheapestZones(bins), choice)
	}
	return a, blocked
}

// InCheapestZones keeps each new node to the zone in which its cheapest offering is.
func InCheapestZones(bins []market.Bin) []market.Bin {
	out := slices.Clone(bins)
	for i := range out {
		if o := cheapestOffering(&out[i]); o != nil && o.Zone != "" {
			out[i].Requirements = out[i].Requirements.Replace(cluster.ZoneLabel, require.Only(o.Zone))
		}
	}
	return out
}

// cheapestOffering is the offering that a new node would best become.
func cheapestOffering(b *market.Bin) *cluster.Offering {
	catalog := b.Pool.Catalog
	rows := catalog.Available()
	for _, e := range b.Requirements {
		if catalog.Index().Knows(e.Key) {
			rows = rows.And(catalog.Index().Match(e.Key, e.Values))
		}
	}
	best := -1
	for i := range rows.All {
		if best < 0 || catalog.Offerings[i].Price < catalog.Offerings[best].Price {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return &catalog.Offerings[best]
}

// LeftOverPrice is what the pods may cost that find no room in the end. Pods of several nodes that are packed anew into
// several need not go where they were put here: kube-scheduler spreads them as they come. What saves less than nodes
// for those that are left over is undone again and again. A single new node has room for all of them, in whatever order
// they come.
func LeftOverPrice(chosen []disrupt.Candidate, bins []market.Bin) float64 {
	if len(bins) <= 1 || len(chosen) == 1 {
		return 0
	}
	least, crowd := math.Inf(1), 0
	for i := range bins {
		least = min(least, bins[i].Price)
	}
	for i := range chosen {
		crowd += len(chosen[i].Pods)
	}
	return least * max(1, float64(crowd)/podsPerLeftOver)
}

// podsPerLeftOver is of how many pods one finds no room in the end, as measured with kube-scheduler.
const podsPerLeftOver = 32
