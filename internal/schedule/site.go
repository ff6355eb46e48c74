package schedule

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// shop is all markets, and the sites that have been asked for.
type shop struct {
	s       *cluster.Snapshot
	tiers   [][]*market
	markets []*market
	sites   map[string]*site
	list    []*site
	// appraised are sites by the offerings that they have: pods that ask for different labels often get the same.
	appraised map[string]*site
	texts     map[*cluster.PodClass]demand
	numbers   map[string]int
	// stocks are how many instances each reservation has left; relax lets minValues give way.
	stocks map[string]int
	relax  bool
	// cut says that a search was brought to an end by its budget.
	cut bool
	// brief asks for a good answer soon rather than for the best.
	brief bool
	// elsewhere are the DaemonSets that find room in some pools and not in others where they would run.
	elsewhere map[*cluster.Daemon]bool
	// attached are the classes that can only go where a DaemonSet's pods come.
	attached map[*cluster.PodClass]bool
	// draft is the memory of the copies of ledgers on which pods are dealt; rows and offers that of the tables that buyers write.
	draft  ledger
	rows   []row
	offers []pack.Offer
	// faults are the invariants that were found violated on the way.
	faults []Fault
}

// demand is what a class asks of a node, numbered.
type demand struct {
	number int
	text   string
}

// site is the offerings, over all markets, that suit pods with the same demands on a node. Many classes share one.
type site struct {
	number int
	wants  [][]want // by market
	// rows is the union of a market's wants.
	rows []require.Bits
	// tops are rooms of which every other is a part, best the offerings with the best price for some mix of resources:
	// what is needed to tell quickly whether, and for about how much, a pod can be had.
	tops []resource.Vector
	best []bargain
}

// bargain is an offering that is cheap for what it has.
type bargain struct {
	price float64
	room  resource.Vector
	asks  float64 // for one core and the memory of the mix
}

func newShop(s *cluster.Snapshot, relax bool) *shop {
	sh := &shop{s: s, tiers: marketTiers(s), sites: make(map[string]*site), appraised: make(map[string]*site), texts: make(map[*cluster.PodClass]demand),
		numbers: make(map[string]int), stocks: make(map[string]int), relax: relax,
		attached: make(map[*cluster.PodClass]bool)}
	sh.markets = slices.Concat(sh.tiers...)
	sh.findElsewhere()
	for _, m := range sh.markets {
		for i := range m.pool.Catalog.Offerings {
			o := &m.pool.Catalog.Offerings[i]
			if o.Reservation == "" {
				continue
			}
			// Pools may have been told at different times: the least is what can be counted on.
			if left, known := sh.stocks[o.Reservation]; !known || o.Left < left {
				sh.stocks[o.Reservation] = o.Left
			}
		}
		m.stockUp(sh.stocks)
	}
	return sh
}

// restock looks again at what can be bought. Sites are made anew.
func (sh *shop) restock() {
	for _, m := range sh.markets {
		m.stockUp(sh.stocks)
	}
	sh.forget()
}

// forget drops the sites, and what was kept for them.
func (sh *shop) forget() {
	clear(sh.sites)
	clear(sh.appraised)
	sh.list = nil
	for _, m := range sh.markets {
		m.rankings = nil
	}
}

// site finds where pods of all the classes may go together, under the pins.
func (sh *shop) site(classes []*cluster.PodClass, pins require.Set) *site {
	var text strings.Builder
	for _, c := range classes {
		text.WriteString(sh.read(c).text)
	}
	if len(pins) > 0 {
		text.WriteString(pins.String())
	}
	st := sh.sites[text.String()]
	if st == nil {
		st = sh.newSite(classes, pins)
		sh.sites[text.String()] = st
		sh.list = append(sh.list, st)
	}
	return st
}

// demand numbers what a class asks of a node, so that classes that ask the same are looked at once.
func (sh *shop) demand(c *cluster.PodClass) int { return sh.read(c).number }

func (sh *shop) read(c *cluster.PodClass) demand {
	d, ok := sh.texts[c]
	if !ok {
		if d.text = c.NodeKey; d.text == "" {
			d.text = termsText(c.Terms) + "\x00" + tolerationsText(c) + "\x00"
		}
		if len(sh.s.Daemons) > 0 { // they may leave no place for it
			if len(c.Ports) > 0 {
				d.text += fmt.Sprint(c.Ports)
			}
			for _, r := range c.Rules {
				if r.Kind != cluster.Spread {
					d.text += "\x00" + r.Key
				}
			}
		}
		if d.number, ok = sh.numbers[d.text]; !ok {
			d.number = len(sh.numbers)
			sh.numbers[d.text] = d.number
		}
		sh.texts[c] = d
	}
	return d
}

func termsText(terms []require.Set) string {
	if len(terms) == 1 && len(terms[0]) == 0 {
		return ""
	}
	var text strings.Builder
	for _, term := range terms {
		text.WriteString(term.String())
		text.WriteByte('|')
	}
	return text.String()
}

func tolerationsText(c *cluster.PodClass) string {
	if len(c.Tolerations) == 0 {
		return ""
	}
	return fmt.Sprint(c.Tolerations)
}

func (sh *shop) newSite(classes []*cluster.PodClass, pins require.Set) *site {
	st := &site{number: len(sh.list), wants: make([][]want, len(sh.markets)), rows: make([]require.Bits, len(sh.markets))}
	terms := joint(classes, pins)
	for i, m := range sh.markets {
		st.rows[i] = require.NewBits(len(m.room))
		if slices.ContainsFunc(classes, func(c *cluster.PodClass) bool {
			_, tainted := cluster.Untolerated(c.Tolerations, m.pool.Template.Taints)
			return tainted
		}) {
			continue
		}
		st.wants[i] = agreed(m.match(terms))
		for j := range st.wants[i] {
			w := &st.wants[i][j]
			for _, c := range classes {
				m.restrict(sh.s, w, c, sh.attached[c])
			}
			st.rows[i] = st.rows[i].Or(w.bits)
		}
	}
	text := rowsText(st.rows)
	if like := sh.appraised[text]; like != nil {
		st.tops, st.best = like.tops, like.best
		return st
	}
	sh.appraise(st)
	sh.appraised[text] = st
	return st
}

// rowsText is the same for sites with the same offerings.
func rowsText(rows []require.Bits) string {
	var text []byte
	for _, bits := range rows {
		for _, word := range bits {
			text = binary.LittleEndian.AppendUint64(text, word)
		}
	}
	return string(text)
}

// agreed keeps the alternatives that want the same values of open labels as the first that asks for them: pods that are
// alike in what they ask for then always agree about a node.
func agreed(wants []want) []want {
	var settled cluster.Labels
	return slices.DeleteFunc(wants, func(w want) bool {
		for _, label := range w.open {
			if value, ok := settled.Get(label.Key); ok && value != label.Value {
				return true
			}
		}
		settled = settled.Merge(w.open)
		return false
	})
}

// fewPorts are compared faster one by one.
const fewPorts = 8

// clash reports whether two lists of ports can't be on one host. A class has its ports sorted by number; a host need not.
func clash(class, others []cluster.Port) bool {
	if len(class) <= fewPorts {
		return slices.ContainsFunc(class, func(p cluster.Port) bool { return slices.ContainsFunc(others, p.Conflicts) })
	}
	for _, q := range others {
		i, _ := slices.BinarySearchFunc(class, q.Number, func(p cluster.Port, number int32) int { return cmp.Compare(p.Number, number) })
		for ; i < len(class) && class[i].Number == q.Number; i++ {
			if class[i].Conflicts(q) {
				return true
			}
		}
	}
	return false
}

// joint are the alternatives under which the pods of all classes can share a node.
func joint(classes []*cluster.PodClass, pins require.Set) []require.Set {
	out := []require.Set{pins}
	for _, c := range classes {
		if len(c.Terms) == 1 && len(c.Terms[0]) == 0 {
			continue
		}
		next := make([]require.Set, 0, len(out)*len(c.Terms))
		for _, a := range out {
			for _, b := range c.Terms {
				next = append(next, a.And(b))
			}
		}
		out = next
	}
	return out
}

// appraise finds the largest rooms and the best bargains among what the site can buy now. Only the first tier that has
// something counts for the price, because it comes first.
func (sh *shop) appraise(st *site) {
	priced := false
	for _, tier := range sh.tiers {
		for _, m := range tier {
			rows := st.rows[m.number].And(m.buyable)
			if !sh.relax && m.choosy() != "" && m.shortOfValues(rows) != "" {
				continue // not even an empty node could be had
			}
			last := -1 // offerings of a type mostly have the same room: only the cheapest of them matters
			for i := range rows.All {
				o := &m.pool.Catalog.Offerings[i]
				same := last >= 0 && m.pool.Catalog.Offerings[last].Type == o.Type && m.room[last] == m.room[i]
				if !same {
					st.top(m.room[i])
				}
				if !priced && (!same || o.Price < m.pool.Catalog.Offerings[last].Price) {
					st.bargain(o.Price, m.room[i])
				}
				last = i
			}
		}
		priced = len(st.best) > 0
	}
}

func (st *site) top(room resource.Vector) {
	for i := range st.tops {
		if room.Within(st.tops[i]) {
			return
		}
	}
	st.tops = slices.DeleteFunc(st.tops, func(v resource.Vector) bool { return v.Within(room) })
	st.tops = append(st.tops, room)
}

// mixes are the proportions of memory (GiB) to CPU (cores) for which a bargain is remembered.
const mixes = 5

// bargain keeps, for each mix, the offering that asks the least for it.
func (st *site) bargain(price float64, room resource.Vector) {
	if st.best == nil {
		st.best = make([]bargain, mixes)
	}
	price = max(price, 1e-9)
	core, gi := 1000*price/float64(max(room[resource.CPU], 1)), (1<<30)*price/float64(max(room[resource.Memory], 1))
	for i := range st.best {
		if asks := max(core, gi*float64(int(1)<<i)); st.best[i].price == 0 || asks < st.best[i].asks {
			st.best[i] = bargain{price, room, asks}
		}
	}
}

// share is the largest part of a dimension of the room that the need takes.
func share(need, room *resource.Vector) float64 {
	most := 0.0
	for dim := range need {
		if need[dim] > 0 {
			if room[dim] <= 0 {
				return 1e18
			}
			most = max(most, float64(need[dim])/float64(room[dim]))
		}
	}
	return most
}

// holds reports whether the site has an offering with room for the need.
func (st *site) holds(need *resource.Vector) bool {
	for i := range st.tops {
		if need.Fits(st.tops[i]) {
			return true
		}
	}
	return false
}

// about is roughly what the need costs at the site, as its share of a node.
func (st *site) about(need *resource.Vector) float64 {
	least := 1e18
	for i := range st.best {
		least = min(least, st.best[i].price*share(need, &st.best[i].room))
	}
	return least
}
