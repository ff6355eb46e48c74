package schedule

import (
	"cmp"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// buyer packs stacks into nodes of one tier.
type buyer struct {
	tier     []*market
	stacks   []*stack
	taste    *taste
	shop     *shop
	problem  pack.Problem
	rows     []row // by offer
	siteOf   map[*site]int
	same     map[string]int // by the offerings that a site has
	sites    []*site
	reserved map[string]int
}

// row is an offering of a market.
type row struct {
	m *market
	i int
}

// newBuyer writes the stacks and the tier down as a problem of packing.
func newBuyer(sh *shop, tier []*market, stacks []*stack, likes *taste) *buyer {
	b := &buyer{tier: tier, stacks: stacks, taste: likes, shop: sh,
		siteOf: make(map[*site]int), same: make(map[string]int), reserved: make(map[string]int)}
	b.rows, b.problem.Offers = sh.rows[:0], sh.offers[:0]
	sh.rows, sh.offers = nil, nil // until they are given back
	for _, st := range stacks {
		st.Site, st.Loose, st.Like = b.number(st.site), b.number(st.loose), -1
		if st.like != nil {
			st.Like = st.like.number
		}
	}
	for i, m := range tier {
		b.problem.Shelves = append(b.problem.Shelves, m.shelf())
		b.offer(i, m)
	}
	for _, st := range b.sites {
		bits := require.NewBits(len(b.rows))
		for i, r := range b.rows {
			if st.rows[r.m.number].Has(r.i) {
				bits.Set(i)
			}
		}
		b.problem.Sites = append(b.problem.Sites, bits)
	}
	b.problem.Likes, b.problem.Brief = b.taste.likes(b.rows), sh.brief
	if !sh.relax && slices.ContainsFunc(tier, func(m *market) bool { return m.choosy() != "" }) {
		b.problem.Suits = b.suits
	}
	b.problem.Stacks = make([]pack.Stack, len(stacks))
	for i, st := range stacks {
		b.problem.Stacks[i] = st.Stack
	}
	return b
}

func (b *buyer) number(st *site) int {
	n, known := b.siteOf[st]
	if known {
		return n
	}
	text := b.textOf(st)
	if n, known = b.same[text]; !known {
		n = len(b.sites)
		b.same[text] = n
		b.sites = append(b.sites, st)
	}
	b.siteOf[st] = n
	return n
}

// textOf is the same for sites that have the same offerings of the tier. Pods that ask for different labels often get the same.
func (b *buyer) textOf(st *site) string {
	rows := make([]require.Bits, len(b.tier))
	for i, m := range b.tier {
		rows[i] = st.rows[m.number]
	}
	return rowsText(rows)
}

// shelf is what the pool's limits leave, as packing counts it.
func (m *market) shelf() pack.Shelf {
	s := pack.Shelf{Nodes: -1, Bound: m.pool.Limits.Set, Left: m.pool.Limits.Amount.Sub(m.left.used)}
	if m.pool.Limits.HasNodes {
		s.Nodes = max(m.pool.Limits.Nodes-m.left.nodes, 0)
	}
	if m.pool.Limits.Broken != "" {
		s.Nodes = 0
	}
	return s
}

// offer lists what the market sells to some stack. Of offerings of a type that no stack can tell apart only the cheapest
// is listed.
func (b *buyer) offer(shelf int, m *market) {
	wanted := require.NewBits(len(m.room))
	for _, st := range b.sites {
		wanted = wanted.Or(st.rows[m.number])
	}
	wanted = wanted.And(m.buyable)
	b.makeSpace(m.countTypes(wanted)) // mostly one of each type
	first, kind := len(b.rows), -1
	for i := range wanted.All {
		o := &m.pool.Catalog.Offerings[i]
		if o.Type != kind {
			first, kind = len(b.rows), o.Type
		}
		offer := pack.Offer{Price: o.Price, Room: m.room[i], Shelf: shelf, Charge: m.pool.Catalog.Types[o.Type].Capacity, Stock: b.stock(o)}
		twin := -1
		for j := first; j < len(b.rows); j++ {
			if b.problem.Offers[j].Stock == offer.Stock && b.problem.Offers[j].Room == offer.Room && b.alike(m, i, b.rows[j].i) {
				twin = j
				break
			}
		}
		switch {
		case twin < 0:
			if len(b.problem.Offers) == cap(b.problem.Offers) {
				b.makeSpace(wanted.Count())
			}
			b.rows, b.problem.Offers = append(b.rows, row{m, i}), append(b.problem.Offers, offer)
		case o.Price < b.problem.Offers[twin].Price:
			b.rows[twin], b.problem.Offers[twin] = row{m, i}, offer
		}
	}
}

// makeSpace makes room for n more offers: to grow by and by would take several times the memory.
func (b *buyer) makeSpace(n int) {
	b.rows, b.problem.Offers = slices.Grow(b.rows, n), slices.Grow(b.problem.Offers, n)
}

// stock numbers a reservation; what is not reserved is sold without bound.
func (b *buyer) stock(o *cluster.Offering) int {
	if o.Reservation == "" {
		return -1
	}
	n, known := b.reserved[o.Reservation]
	if !known {
		n = len(b.problem.Stocks)
		b.reserved[o.Reservation] = n
		b.problem.Stocks = append(b.problem.Stocks, b.shop.stocks[o.Reservation])
	}
	return n
}

// alike reports whether no stack can tell two offerings of a market apart.
func (b *buyer) alike(m *market, i, j int) bool {
	for _, st := range b.sites {
		if rows := st.rows[m.number]; rows.Has(i) != rows.Has(j) {
			return false
		}
	}
	return b.taste.same(m, i, j)
}

// suits reports whether a content leaves the choice of types that the pool asks for.
func (b *buyer) suits(offer int, content []pack.Part) bool {
	m := b.rows[offer].m
	if m.choosy() == "" {
		return true
	}
	c := b.purchase(offer, content).interchangeable()
	return m.shortOfValues(c.rows) == ""
}

func (b *buyer) purchase(offer int, content []pack.Part) *purchase {
	var sum resource.Vector
	var sites []*site
	for _, part := range content {
		sum = sum.Add(b.stacks[part.Stack].Need.Times(int64(part.Count)))
		if st := b.stacks[part.Stack].site; !slices.Contains(sites, st) {
			sites = append(sites, st)
		}
	}
	slices.SortFunc(sites, func(x, y *site) int { return x.number - y.number })
	p := newPurchase(b.rows[offer].m, b.rows[offer].i, sites, sum)
	var wishes []wished
	for _, part := range content {
		if st := b.stacks[part.Stack]; st.like != nil {
			wishes = append(wishes, wished{st.like.number, part.Count})
		}
	}
	if p.fond = b.taste.fond(p.m, p.row, wishes); p.fond != nil {
		p.sorts = b.taste.sortsOf(p.m)
	}
	return p
}

// buy solves the problem and adds the nodes to the placement. It is the last thing that a buyer does.
func (b *buyer) buy() []*crate {
	defer func() { b.shop.rows, b.shop.offers = b.rows, b.problem.Offers }()
	solution := pack.Solve(&b.problem)
	bins := solution.Bins
	b.shop.cut = b.shop.cut || solution.Cut
	slices.SortStableFunc(bins, func(x, y pack.Bin) int { // by content, so that the order says something to a reader
		return cmp.Or(slices.CompareFunc(x.Parts, y.Parts, func(x, y pack.Part) int {
			return cmp.Or(x.Stack-y.Stack, y.Count-x.Count)
		}), x.Offer-y.Offer)
	})
	var out []*crate
	for _, bin := range bins {
		p := b.purchase(bin.Offer, bin.Parts)
		model := p.bin()
		for range bin.Times {
			c := &crate{Bin: model, m: p.m, row: p.row, rows: p.rows}
			for _, part := range bin.Parts {
				c.fill(b.stacks[part.Stack], part.Count)
			}
			out = append(out, c)
		}
		p.m.left.charge(model.Capacity, bin.Times)
		if id := p.m.pool.Catalog.Offerings[p.row].Reservation; id != "" {
			b.shop.stocks[id] -= bin.Times
		}
	}
	return out
}

// crate is a new node with what is in it, or what more goes to a host that is there.
type crate struct {
	Bin
	m     *market
	row   int
	rows  require.Bits
	house *house
	loads []load
}

// load is pods of a kind in a crate.
type load struct {
	kind *kind
	pods []*cluster.Pod
	site *site
}

// fill takes n companies off the stack.
func (c *crate) fill(st *stack, n int) {
	for n > 0 {
		p := st.portions[0]
		if p.units == 0 {
			st.portions = st.portions[1:]
			continue
		}
		take := min(n, p.units)
		for _, part := range p.party.parts {
			c.loads = append(c.loads, load{part.kind, part.kind.take(part.count * take), p.site})
		}
		p.units -= take
		p.party.units -= take
		n -= take
	}
}
