package schedule

import (
	"cmp"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// NoSwap is why no single new node takes the place of another.
type NoSwap string

const (
	TooDear   NoSwap = "TooDear"   // the cheapest with room for all costs too much
	FewValues NoSwap = "FewValues" // it leaves fewer values than the pool's minValues ask for
	NotAlone  NoSwap = "NotAlone"  // the pods may not all be together there
)

// Swap finds one new node, below the price, that takes all who have found no room; why says what keeps it from that. It is
// quicker than Buy and asks less: they may not need one another's company more than they did where they were, so it is for
// pods of one node.
//
// price is what the cheapest node would cost that has room for them, +Inf if there is none.
func (st *Stage) Swap(below float64) (bins []Bin, price float64, why NoSwap) {
	sites, content := st.joint()
	m, row, price := st.shop.cheapestFor(sites, &content)
	if m == nil || price >= below {
		return nil, price, TooDear
	}
	p := newPurchase(m, row, sites, content)
	switch {
	case len(p.wants) < len(sites) || !p.agrees():
		return nil, price, NotAlone
	case m.choosy() != "" && m.shortOfValues(p.interchangeable().rows) != "":
		return nil, price, FewValues
	}
	bins, ok := st.tryOn(p)
	if !ok {
		return nil, price, NotAlone
	}
	return bins, price, ""
}

// joint is where all who have found no room can be together, and what they need.
func (st *Stage) joint() (sites []*site, content resource.Vector) {
	var pins require.Set
	if zone, there := st.journal[0].at.Labels.Get(cluster.ZoneLabel); there && st.zoned() {
		pins = pins.With(cluster.ZoneLabel, require.Only(zone))
	}
	for _, b := range st.rest {
		content = content.Add(b.class.Requests.Times(int64(len(b.pods))))
		if s := st.shop.site([]*cluster.PodClass{b.class}, pins); !slices.Contains(sites, s) {
			sites = append(sites, s)
		}
	}
	slices.SortFunc(sites, func(x, y *site) int { return x.number - y.number })
	return sites, content
}

// zoned reports whether rules tell domains apart, other than nodes, for somebody who has found no room.
func (st *Stage) zoned() bool {
	tells := func(ids []int32) bool {
		return slices.ContainsFunc(ids, func(id int32) bool {
			t := &st.l.rules[id]
			return t.hard && !st.l.keys[t.key].host
		})
	}
	return len(st.l.staffed) > 0 || slices.ContainsFunc(st.rest, func(b bundle) bool { return tells(b.carries) || tells(b.counted) })
}

// cheapestFor finds the cheapest offering of the first tier that has one for all the sites together.
func (sh *shop) cheapestFor(sites []*site, content *resource.Vector) (best *market, row int, price float64) {
	price = math.Inf(1)
	for _, tier := range sh.tiers {
		for _, m := range tier {
			rows := m.buyable
			for _, s := range sites {
				rows = rows.And(s.rows[m.number])
			}
			for _, i := range m.byPrice() {
				if o := &m.pool.Catalog.Offerings[i]; o.Price >= price {
					break
				} else if rows.Has(i) && o.Reservation == "" && m.holds(i, content) {
					best, row, price = m, i, o.Price
					break
				}
			}
		}
		if best != nil {
			break
		}
	}
	return best, row, price
}

// byPrice lists what is for sale, the cheapest first.
func (m *market) byPrice() []int {
	if m.priced == nil {
		for i := range m.forSale.All {
			m.priced = append(m.priced, i)
		}
		slices.SortFunc(m.priced, func(i, j int) int {
			return cmp.Or(cmp.Compare(m.pool.Catalog.Offerings[i].Price, m.pool.Catalog.Offerings[j].Price), i-j)
		})
	}
	return m.priced
}

// agrees reports whether the sites' alternatives want the same values of labels that the pool leaves open.
func (p *purchase) agrees() bool {
	var settled cluster.Labels
	for _, w := range p.wants {
		for _, label := range w.open {
			if value, ok := settled.Get(label.Key); ok && value != label.Value {
				return false
			}
		}
		settled = settled.Merge(w.open)
	}
	return true
}

// tryOn lets those who have found no room move into a new node, as kube-scheduler will.
func (st *Stage) tryOn(p *purchase) (bins []Bin, ok bool) {
	st.stock = st.shop.stock()
	c := &crate{Bin: p.bin(), m: p.m, row: p.row}
	c.rows = p.rows
	var kinds []*kind
	for _, b := range st.rest {
		kinds = append(kinds, b.kind)
		c.loads = append(c.loads, load{b.kind, slices.Clone(b.pods), nil})
	}
	c.m.left.charge(c.Capacity, 1)
	if len(st.l.rules) > 0 {
		st.steps += costOf(st.l, kinds, 1)
		trial := st.l.lens(&st.trial, kinds)
		h := c.host("new")
		sp := trial.open(&h)
		trial.mayOpen(c, &h, sp)
		trial.staffCrate(c, sp)
		if !trial.movesIn(sp, c.loads) {
			return nil, false
		}
	}
	st.crates = append(st.crates[:0], c)
	return []Bin{c.seal()}, true
}

// movesIn reports whether all the loads' pods get in, in whatever order.
func (l *ledger) movesIn(sp *spot, loads []load) bool {
	in := make([]int, len(loads))
	for again := true; again; {
		again = false
		for j := range loads {
			again = l.enter(sp, &loads[j], &in[j]) || again
		}
	}
	for j := range loads {
		if in[j] < len(loads[j].pods) {
			return false
		}
	}
	return true
}
