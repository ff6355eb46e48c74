package purchase

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// tierPacker packs items into nodes of one tier.
type tierPacker struct {
	tier           []*market.Pool
	items          []*packItem
	preferences    *preferenceScores
	buyer          *Buyer
	problem        pack.Problem
	offerings      []offering // by bin type
	setNumbers     map[*market.FeasibleSet]int
	setByOfferings map[string]int // by the offerings that a feasible set has
	feasibleSets   []*market.FeasibleSet
	reservations   map[string]int
}

// offering is an offering of a market.
type offering struct {
	market *market.Pool
	index  int
}

// newTierPacker writes the items and the tier down as a problem of packing.
func (b *Buyer) newTierPacker(tier []*market.Pool, items []*packItem, preferences *preferenceScores) *tierPacker {
	t := &tierPacker{tier: tier, items: items, preferences: preferences, buyer: b,
		setNumbers: make(map[*market.FeasibleSet]int), setByOfferings: make(map[string]int),
		reservations: make(map[string]int)}
	t.offerings, t.problem.BinTypes = b.scratchOfferings[:0], b.scratchBinTypes[:0]
	b.scratchOfferings, b.scratchBinTypes = nil, nil // until they are given back
	for _, it := range items {
		it.Feasible, it.Unrestricted, it.Preference = t.numberSet(it.feasible), t.numberSet(it.anyDomain), -1
		if it.preferences != nil {
			it.Preference = it.preferences.number
		}
	}
	for i, pm := range tier {
		t.problem.Limits = append(t.problem.Limits, packLimit(pm))
		t.addBinTypes(i, pm)
	}
	for _, fs := range t.feasibleSets {
		bits := require.NewBits(len(t.offerings))
		for i, r := range t.offerings {
			if fs.Offerings[r.market.Number].Has(r.index) {
				bits.Set(i)
			}
		}
		t.problem.FeasibleSets = append(t.problem.FeasibleSets, bits)
	}
	t.problem.Preferences, t.problem.Brief = t.preferences.scoresOf(t.offerings), b.Brief
	if !b.Market.RelaxMinValues && slices.ContainsFunc(tier, func(pm *market.Pool) bool {
		return pm.FirstMinValuesKey() != ""
	}) {
		t.problem.Suits = t.meetsMinValues
	}
	t.problem.Items = make([]pack.Item, len(items))
	for i, it := range items {
		t.problem.Items[i] = it.Item
	}
	return t
}

func (t *tierPacker) numberSet(fs *market.FeasibleSet) int {
	n, known := t.setNumbers[fs]
	if known {
		return n
	}
	text := t.setKey(fs)
	if n, known = t.setByOfferings[text]; !known {
		n = len(t.feasibleSets)
		t.setByOfferings[text] = n
		t.feasibleSets = append(t.feasibleSets, fs)
	}
	t.setNumbers[fs] = n
	return n
}

// setKey is the same for feasible sets that have the same offerings of the tier. Pods that ask for different labels
// often get the same.
func (t *tierPacker) setKey(fs *market.FeasibleSet) string {
	rows := make([]require.Bits, len(t.tier))
	for i, pm := range t.tier {
		rows[i] = fs.Offerings[pm.Number]
	}
	return market.OfferingsText(rows)
}

// packLimit is what the pool's limits leave, as packing counts it.
func packLimit(pm *market.Pool) pack.Limit {
	s := pack.Limit{Nodes: -1, Limited: pm.Spec.Limits.Set, Left: pm.Spec.Limits.Amount.Sub(pm.Headroom.Used)}
	if pm.Spec.Limits.HasNodes {
		s.Nodes = max(pm.Spec.Limits.Nodes-pm.Headroom.Nodes, 0)
	}
	if pm.Spec.Limits.Broken != "" {
		s.Nodes = 0
	}
	return s
}

// addBinTypes lists what the market sells to some item. Of offerings of a type that no item can tell apart only the
// cheapest is listed.
func (t *tierPacker) addBinTypes(shelf int, pm *market.Pool) {
	wanted := require.NewBits(len(pm.Room))
	for _, fs := range t.feasibleSets {
		wanted = wanted.Or(fs.Offerings[pm.Number])
	}
	wanted = wanted.And(pm.Buyable)
	t.growBinTypes(pm.CountTypes(wanted)) // mostly one of each type
	first, kind := len(t.offerings), -1
	for i := range wanted.All {
		o := &pm.Spec.Catalog.Offerings[i]
		if o.Type != kind {
			first, kind = len(t.offerings), o.Type
		}
		offer := pack.BinType{Price: o.Price, Room: pm.Room[i], Limit: shelf,
			Charge: pm.Spec.Catalog.Types[o.Type].Capacity, Reservation: t.numberReservation(o)}
		twin := -1
		for j := first; j < len(t.offerings); j++ {
			if t.problem.BinTypes[j].Reservation == offer.Reservation && t.problem.BinTypes[j].Room == offer.Room &&
				t.isIndistinguishable(pm, i, t.offerings[j].index) {
				twin = j
				break
			}
		}
		switch {
		case twin < 0:
			if len(t.problem.BinTypes) == cap(t.problem.BinTypes) {
				t.growBinTypes(wanted.Count())
			}
			t.offerings, t.problem.BinTypes = append(t.offerings, offering{pm, i}),
				append(t.problem.BinTypes, offer)
		case o.Price < t.problem.BinTypes[twin].Price:
			t.offerings[twin], t.problem.BinTypes[twin] = offering{pm, i}, offer
		}
	}
}

// growBinTypes makes room for n more offers: to grow by and by would take several times the memory.
func (t *tierPacker) growBinTypes(n int) {
	t.offerings, t.problem.BinTypes = slices.Grow(t.offerings, n), slices.Grow(t.problem.BinTypes, n)
}

// numberReservation numbers a reservation; what is not reserved is sold without bound.
func (t *tierPacker) numberReservation(o *cluster.Offering) int {
	if o.Reservation == "" {
		return -1
	}
	n, known := t.reservations[o.Reservation]
	if !known {
		n = len(t.problem.Reservations)
		t.reservations[o.Reservation] = n
		t.problem.Reservations = append(t.problem.Reservations, t.buyer.Market.Reservations[o.Reservation])
	}
	return n
}

// isIndistinguishable reports whether no item can tell two offerings of a market apart.
func (t *tierPacker) isIndistinguishable(pm *market.Pool, i, j int) bool {
	for _, fs := range t.feasibleSets {
		if rows := fs.Offerings[pm.Number]; rows.Has(i) != rows.Has(j) {
			return false
		}
	}
	return t.preferences.same(pm, i, j)
}

// meetsMinValues reports whether a content leaves the choice of types that the pool asks for.
func (t *tierPacker) meetsMinValues(offer int, content []pack.Part) bool {
	pm := t.offerings[offer].market
	if pm.FirstMinValuesKey() == "" {
		return true
	}
	c := t.chooseOffering(offer, content).Interchangeable()
	return pm.ShortOfValues(c.Offerings) == ""
}

func (t *tierPacker) chooseOffering(offer int, content []pack.Part) *market.Choice {
	var sum resource.Vector
	var sets []*market.FeasibleSet
	for _, part := range content {
		sum = sum.Add(t.items[part.Item].Need.Times(int64(part.Count)))
		if fs := t.items[part.Item].feasible; !slices.Contains(sets, fs) {
			sets = append(sets, fs)
		}
	}
	slices.SortFunc(sets, func(x, y *market.FeasibleSet) int { return x.Number - y.Number })
	c := market.NewChoice(t.offerings[offer].market, t.offerings[offer].index, sets, sum)
	var usePreferences []preferenceUse
	for _, part := range content {
		if it := t.items[part.Item]; it.preferences != nil {
			usePreferences = append(usePreferences, preferenceUse{it.preferences.number, part.Count})
		}
	}
	if c.LikedSorts = t.preferences.likedSorts(c.Pool, c.Offering, usePreferences); c.LikedSorts != nil {
		c.Sorts = t.preferences.sortsOf(c.Pool)
	}
	return c
}

// solve solves the problem and adds the nodes to the placement. It is the last thing that a buyer does.
func (t *tierPacker) solve() []*OpenBin {
	defer func() { t.buyer.scratchOfferings, t.buyer.scratchBinTypes = t.offerings, t.problem.BinTypes }()
	solution := pack.Solve(&t.problem)
	bins := solution.Bins
	t.buyer.Truncated = t.buyer.Truncated || solution.Truncated
	slices.SortStableFunc(bins, func(x, y pack.Bin) int { // by content, so that the order says something to a reader
		return cmp.Or(slices.CompareFunc(x.Parts, y.Parts, func(x, y pack.Part) int {
			return cmp.Or(x.Item-y.Item, y.Count-x.Count)
		}), x.BinType-y.BinType)
	})
	var out []*OpenBin
	for _, bin := range bins {
		co := t.chooseOffering(bin.BinType, bin.Parts)
		model := co.ToBin()
		for range bin.Times {
			ob := &OpenBin{Bin: model, Pool: co.Pool, offering: co.Offering, offerings: co.Offerings}
			for _, part := range bin.Parts {
				ob.addUnits(t.items[part.Item], part.Count)
			}
			out = append(out, ob)
		}
		co.Pool.Headroom.Charge(model.Capacity, bin.Times)
		if id := co.Pool.Spec.Catalog.Offerings[co.Offering].Reservation; id != "" {
			t.buyer.Market.Reservations[id] -= bin.Times
		}
	}
	return out
}

// OpenBin is a new node with what is in it, or what more goes to a host that is there.
type OpenBin struct {
	market.Bin
	Pool      *market.Pool
	offering  int
	offerings require.Bits
	Host      *topology.Host
	Contents  []Content
}

// Content is pods of a pod set in a bin.
type Content struct {
	PodSet   *topology.PodSet
	Pods     []*cluster.Pod
	feasible *market.FeasibleSet
}

// addUnits takes n groups off the item.
func (ob *OpenBin) addUnits(it *packItem, n int) {
	for n > 0 {
		p := it.shares[0]
		if p.units == 0 {
			it.shares = it.shares[1:]
			continue
		}
		take := min(n, p.units)
		for _, member := range p.group.members {
			ob.Contents = append(ob.Contents, Content{member.podSet, member.podSet.TakePods(member.count * take),
				p.feasible})
		}
		p.units -= take
		p.group.units -= take
		n -= take
	}
}

// firstTierOnly leaves each feasible set what the first tier sells that has something for it, reservations aside: that
// is where its pods would go, and what there are only a few of says nothing of what a pod is worth.
func (t *tierPacker) firstTierOnly() {
	tier := make(map[*market.Pool]int)
	for i, pools := range t.buyer.Market.Tiers {
		for _, pm := range pools {
			tier[pm] = i
		}
	}
	for n, bits := range t.problem.FeasibleSets {
		first := len(t.buyer.Market.Tiers)
		for i := range bits.All {
			if t.problem.BinTypes[i].Reservation < 0 {
				first = min(first, tier[t.offerings[i].market])
			}
		}
		kept := bits.AndNot(bits)
		for i := range bits.All {
			if t.problem.BinTypes[i].Reservation < 0 && tier[t.offerings[i].market] == first {
				kept.Set(i)
			}
		}
		t.problem.FeasibleSets[n] = kept
	}
}
