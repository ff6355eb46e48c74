package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/require"
)

// portion is companies that go to the same domains.
type portion struct {
	party *party
	units int
	// site is where they may go; loose is the same before domains were chosen.
	site, loose *site
	// near are domains that the pods would like, beside those that they insist on.
	near require.Set
}

// dealer decides, before anything is packed, which domains (zones, say) pods go to whose rules tell domains apart. From
// then on each domain can be packed by itself. The hostname is left to packing.
type dealer struct {
	l    *ledger
	shop *shop
	// wide counts every domain that could be had, not only those where a pod fits: what other pods' nodes may bring about.
	wide   bool
	wishes bool
	// hosts are asked first: a domain may open for one more pod only after others have gone elsewhere.
	hosts    *settler
	late     []*crate
	portions []*portion
	byKey    map[portionKey]*portion
	combos   map[comboKey][]combo
}

type portionKey struct {
	party *party
	site  *site
	near  string
}

type comboKey struct {
	site *site
	keys string
}

// combo is a domain for each of some keys.
type combo struct {
	at   []int32 // by key of the ledger; fresh for hostnames, unknown for keys that don't matter
	site *site
}

// deal shares the parties out. What no domain takes stays where it is.
func (d *dealer) deal(parties []*party) []*portion {
	d.byKey, d.combos = make(map[portionKey]*portion), make(map[comboKey][]combo)
	open := make([]*hand, 0, len(parties))
	for _, p := range parties {
		if h := d.pick(p); h != nil {
			open = append(open, h)
		}
	}
	for _, h := range open {
		d.announce(h)
	}
	// Pods that rules count without having one themselves come first: kube-scheduler may bind them first, too.
	slices.SortStableFunc(open, func(a, b *hand) int { return a.stranger() - b.stranger() })
	for again := true; again; {
		again = false
		for _, h := range open {
			for h.party.units > h.dealt && (d.lodge(h) || d.one(h)) {
				again = true
			}
		}
	}
	return d.portions
}

// hand is a party for which domains have to be chosen.
type hand struct {
	party  *party
	keys   []int32
	loose  *site
	combos []combo
	used   []int // by combination: how many companies went there
	rooms  []roomy
	dealt  int
}

// roomy are hosts in the same domains that have room for a party.
type roomy struct {
	at     []int32 // with a fresh hostname
	houses []*house
}

// stranger is 0 for parties without rules of their own.
func (h *hand) stranger() int {
	for _, part := range h.party.parts {
		if len(part.kind.carries) > 0 {
			return 1
		}
	}
	return 0
}

// pick passes parties on that no domain matters to, and finds the choice for the others.
func (d *dealer) pick(p *party) *hand {
	keys := d.keysOf(p)
	loose := d.shop.site(p.classes(), nil)
	if len(keys) == 0 {
		d.settle(p, p.units, loose, loose)
		return nil
	}
	combos := d.combosFor(p, loose, keys)
	return &hand{party: p, keys: keys, loose: loose, combos: combos, used: make([]int, len(combos)), rooms: d.roomsFor(p)}
}

// roomsFor finds the hosts that would take a pod of the party, were it not for the rules.
func (d *dealer) roomsFor(p *party) []roomy {
	if len(p.parts) != 1 || p.parts[0].count != 1 || len(p.parts[0].kind.carries) == 0 {
		return nil
	}
	var out []roomy
	known := make(map[string]int)
	for _, h := range d.hosts.houses {
		if k := p.parts[0].kind; !d.hosts.fits(h, k) || !d.hosts.suits(h, k) {
			continue
		}
		at := slices.Clone(h.at)
		for i := range at {
			if d.l.keys[i].host {
				at[i] = fresh
			}
		}
		text := string(signature(nil, at, nil, nil))
		i, there := known[text]
		if !there {
			i = len(out)
			known[text] = i
			out = append(out, roomy{at: at})
		}
		out[i].houses = append(out[i].houses, h)
	}
	return out
}

// lodge gives the next pod of the party a place on a host, now that others have been dealt.
func (d *dealer) lodge(h *hand) bool {
	for _, r := range h.rooms {
		k := h.party.parts[0].kind
		if _, ok := d.l.allows(r.at, k); !ok {
			continue
		}
		for _, house := range r.houses {
			if _, ok := d.l.allows(house.at, k); !ok || !d.hosts.fits(house, k) {
				continue
			}
			d.l.add(house.at, house.counts, k, 1)
			house.occupy(k, 1)
			if d.l.crossed(k) {
				k.order = append(k.order, h.loose)
			}
			d.late = append(d.late, &crate{house: house, loads: []load{{k, k.take(1), h.loose}}})
			h.party.units--
			return true
		}
	}
	return false
}

// keysOf lists the keys, hostname aside, whose domains matter to the party: by its own rules, and by those of others
// that count its pods.
func (d *dealer) keysOf(p *party) []int32 {
	var keys []int32
	add := func(id int32) {
		if t := &d.l.rules[id]; t.hard && !d.l.keys[t.key].host && !slices.Contains(keys, t.key) {
			keys = append(keys, t.key)
		}
	}
	for _, id := range d.l.staffed {
		add(id) // wherever a node is, it brings a pod that the rule counts
	}
	for _, part := range p.parts {
		for _, id := range part.kind.carries {
			add(id)
		}
		for _, id := range part.kind.counted {
			add(id)
		}
	}
	slices.Sort(keys)
	return keys
}

// mostCombos bounds how many combinations of domains are looked at.
const mostCombos = 4096

// combosFor lists the combinations of domains in which nodes for the party's site can be had.
func (d *dealer) combosFor(p *party, loose *site, keys []int32) []combo {
	at := comboKey{loose, string(signature(nil, keys, nil, nil))}
	if list, ok := d.combos[at]; ok {
		return list
	}
	sets := []require.Set{nil}
	domains := [][]int32{make([]int32, len(d.l.keys))}
	for i := range d.l.keys {
		domains[0][i] = unknown
		if d.l.keys[i].host {
			domains[0][i] = fresh
		}
	}
	for _, key := range keys {
		values, without := d.values(loose, d.l.keys[key].key)
		var nextSets []require.Set
		var nextDomains [][]int32
		add := func(i int, demand require.Values, domain int32) {
			if len(nextSets) < mostCombos {
				nextSets = append(nextSets, sets[i].With(d.l.keys[key].key, demand))
				next := slices.Clone(domains[i])
				next[key] = domain
				nextDomains = append(nextDomains, next)
			}
		}
		for i := range sets {
			for _, value := range values {
				add(i, require.Only(value), d.l.domain(key, value))
			}
			if without {
				none, _ := require.Make(require.DoesNotExist, nil)
				add(i, none, absent)
			}
		}
		sets, domains = nextSets, nextDomains
	}
	var list []combo
	classes := p.classes()
	for i := range sets {
		if st := d.shop.site(classes, sets[i]); len(st.tops) > 0 {
			list = append(list, combo{domains[i], st})
		}
	}
	d.combos[at] = list
	return list
}

// values lists what a label may be on nodes that can be bought for the site; without says that there are some that lack it.
func (d *dealer) values(st *site, key string) (values []string, without bool) {
	for i, m := range d.shop.markets {
		rows := st.rows[i].And(m.buyable)
		if !rows.Any() {
			continue
		}
		if value, fixed := m.fixed.Get(key); fixed {
			values = append(values, value)
			continue
		}
		if index := m.pool.Catalog.Index(); index.Knows(key) {
			among, lacking := index.Among(key, rows)
			values, without = append(values, among...), without || lacking
			continue
		}
		have, open := m.open.Get(key)
		if listed, finite := have.Listed(); open && finite {
			values = append(values, listed...)
			continue
		}
		if value, ok := have.Pick(); open && ok {
			values = append(values, value)
			continue
		}
		without = true
	}
	slices.Sort(values)
	return slices.Compact(values), without
}

// announce makes the domains count in which the party's pods could be.
func (d *dealer) announce(h *hand) {
	for _, part := range h.party.parts {
		for _, n := range part.kind.spreads {
			s := &d.l.spreads[n]
			if d.l.keys[s.key].host {
				continue
			}
			for i := range h.combos {
				c := &h.combos[i]
				lacking := slices.ContainsFunc(s.keys, func(key int32) bool { return c.at[key] == absent })
				if c.at[s.key] >= 0 && !lacking && (d.wide || c.site.holds(&h.party.need)) {
					s.present(c.at[s.key])
				}
			}
		}
	}
}

// one gives the next company its domains: the emptiest where its pods are to be spread, else the cheapest.
func (d *dealer) one(h *hand) bool {
	best, bestLoad, bestPrice := -1, 0, 0.0
	for i := range h.combos {
		c := &h.combos[i]
		if !c.site.holds(&h.party.need) || !d.admits(h, c) {
			continue
		}
		load, price := d.load(h, c), c.site.about(&h.party.need)
		better := best < 0 || load < bestLoad
		if !better && load == bestLoad {
			// Combinations of several keys are used evenly, so that no order in which the pods are bound ends in one
			// that is full in each key.
			better = h.used[i] < h.used[best] || h.used[i] == h.used[best] && price < bestPrice
			if len(h.keys) == 1 {
				better = price < bestPrice
			}
		}
		if better {
			best, bestLoad, bestPrice = i, load, price
		}
	}
	if best < 0 {
		return false
	}
	h.used[best]++
	c := &h.combos[best]
	if k := h.party.parts[0].kind; len(h.party.parts) == 1 && d.l.crossed(k) {
		k.order = append(k.order, c.site)
	}
	for _, part := range h.party.parts {
		d.l.add(c.at, nil, part.kind, part.count)
	}
	h.dealt++
	d.settle(h.party, 1, c.site, h.loose)
	return true
}

// crossed reports whether the kind's pods are spread over several keys beside the hostname: then not every order in which
// they are let in comes to an end.
func (l *ledger) crossed(k *kind) bool {
	keys := 0
	for _, n := range k.spreads {
		if !l.keys[l.spreads[n].key].host {
			keys++
		}
	}
	return keys > 1
}

// admits asks the rules of every pod of a company. That they follow one another is left to the referee.
func (d *dealer) admits(h *hand, c *combo) bool {
	for _, part := range h.party.parts {
		if why, ok := d.l.allows(c.at, part.kind); !ok {
			part.kind.why = &why
			return false
		}
	}
	return true
}

// load counts the pods that a company's spreads would see in the combination.
func (d *dealer) load(h *hand, c *combo) int {
	n := 0
	for _, part := range h.party.parts {
		for _, i := range part.kind.spreads {
			n += int(d.l.spreads[i].at(c.at[d.l.spreads[i].key]))
		}
	}
	return n
}

// settle adds units of a party to the portion for the site.
func (d *dealer) settle(p *party, units int, st, loose *site) {
	for _, near := range d.wish(p, units, st) {
		key := portionKey{party: p, site: st}
		if len(near.set) > 0 {
			key.near = near.set.String()
		}
		q := d.byKey[key]
		if q == nil {
			q = &portion{party: p, site: st, loose: loose, near: near.set}
			d.byKey[key] = q
			d.portions = append(d.portions, q)
		}
		q.units += near.units
	}
}
