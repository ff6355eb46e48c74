package purchase

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// NoSwapReason is why no single new node takes the place of another.
type NoSwapReason string

const (
	TooDear   NoSwapReason = "TooDear"   // the cheapest with room for all costs too much
	FewValues NoSwapReason = "FewValues" // it leaves fewer values than the pool's minValues ask for
	NotAlone  NoSwapReason = "NotAlone"  // the pods may not all be together there
)

// ChooseOne finds one new node, below the price, that holds all the contents under the pins; reason says what keeps it
// from that. It is quicker than buy and asks less: pods may not need one another more than they did where they were, so
// it is for pods of one node.
//
// price is what the cheapest node would cost that has room for them, +Inf if there is none.
func (b *Buyer) ChooseOne(contents []Content, pins require.Set, below float64) (c *market.Choice, price float64,
	reason NoSwapReason) {
	var sets []*market.FeasibleSet
	var sum resource.Vector
	for _, ld := range contents {
		sum = sum.Add(ld.PodSet.Class.Requests.Times(int64(len(ld.Pods))))
		if s := b.Market.FeasibleSet([]*cluster.PodClass{ld.PodSet.Class}, pins); !slices.Contains(sets, s) {
			sets = append(sets, s)
		}
	}
	slices.SortFunc(sets, func(x, y *market.FeasibleSet) int { return x.Number - y.Number })
	pm, row, price := b.Market.CheapestFor(sets, &sum)
	if pm == nil || price >= below {
		return nil, price, TooDear
	}
	c = market.NewChoice(pm, row, sets, sum)
	switch {
	case len(c.Matches) < len(sets) || !c.LabelsAgree():
		return nil, price, NotAlone
	case pm.FirstMinValuesKey() != "" && pm.ShortOfValues(c.Interchangeable().Offerings) != "":
		return nil, price, FewValues
	}
	return c, price, ""
}

// TakeOne makes a new node of what was chosen for the contents. The counts are told nothing of it.
func (b *Buyer) TakeOne(c *market.Choice, contents []Content) *OpenBin {
	out := &OpenBin{Bin: c.ToBin(), Pool: c.Pool, offering: c.Offering, Contents: contents}
	out.offerings = c.Offerings
	out.Pool.Headroom.Charge(out.Capacity, 1)
	return out
}

// AllFit reports whether all the node's pods get in, in whatever order, as kube-scheduler lets them.
func (b *Buyer) AllFit(bin *OpenBin) bool {
	v := b.openNodes([]*OpenBin{bin})
	v.letIn(func(*topology.PodSet) bool { return true })
	for j := range bin.Contents {
		if v.in[0][j] < len(bin.Contents[j].Pods) {
			return false
		}
	}
	return true
}
