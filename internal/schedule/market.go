package schedule

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// market is all markets, and the feasible sets that have been asked for.
type market struct {
	s            *cluster.Snapshot
	tiers        [][]*poolMarket
	markets      []*poolMarket
	feasibleSets map[string]*feasibleSet
	setList      []*feasibleSet
	// appraisedSets are feasible sets by the offerings that they have: pods that ask for different labels often get the
	// same.
	appraisedSets map[string]*feasibleSet
	demands       map[*cluster.PodClass]demand
	demandNumbers map[string]int
	// reservations are how many instances each reservation has left; relaxMinValues lets minValues give way.
	reservations   map[string]int
	relaxMinValues bool
	// daemonsElsewhere are the DaemonSets that find room in some pools and not in others where they would run.
	daemonsElsewhere map[*cluster.Daemon]bool
	// followDaemon are the classes that can only go where a DaemonSet's pods come.
	followDaemon map[*cluster.PodClass]bool
}

// demand is what a class asks of a node, numbered.
type demand struct {
	number int
	text   string
}

// feasibleSet is the offerings, over all markets, that suit pods with the same demands on a node. Many classes share
// one.
type feasibleSet struct {
	number  int
	matches [][]termMatch // by market
	// offerings is the union of a market's matches.
	offerings []require.Bits
	// largestRooms are rooms of which every other is a part, bargains the offerings with the best price for some mix of
	// resources: what is needed to tell quickly whether, and for about how much, a pod can be had.
	largestRooms []resource.Vector
	bargains     []cheapOffering
}

// cheapOffering is an offering that is cheap for what it has.
type cheapOffering struct {
	price       float64
	room        resource.Vector
	pricePerMix float64 // for one core and the memory of the mix
}

func newMarket(s *cluster.Snapshot, relax bool) *market {
	mk := &market{s: s, tiers: marketTiers(s), feasibleSets: make(map[string]*feasibleSet),
		appraisedSets: make(map[string]*feasibleSet), demands: make(map[*cluster.PodClass]demand),
		demandNumbers: make(map[string]int), reservations: make(map[string]int), relaxMinValues: relax,
		followDaemon: make(map[*cluster.PodClass]bool)}
	mk.markets = slices.Concat(mk.tiers...)
	mk.findDaemonsElsewhere()
	for _, pm := range mk.markets {
		for i := range pm.pool.Catalog.Offerings {
			o := &pm.pool.Catalog.Offerings[i]
			if o.Reservation == "" {
				continue
			}
			// Pools may have been told at different times: the least is what can be counted on.
			if left, known := mk.reservations[o.Reservation]; !known || o.ReservationLeft < left {
				mk.reservations[o.Reservation] = o.ReservationLeft
			}
		}
		pm.refreshBuyable(mk.reservations)
	}
	return mk
}

// refresh looks again at what can be bought, if limits or reservations bound that. Feasible sets are made anew then.
func (mk *market) refresh() {
	if len(mk.reservations) > 0 || slices.ContainsFunc(mk.markets, func(pm *poolMarket) bool {
		return pm.pool.Limits.Any()
	}) {
		mk.refreshAll()
	}
}

// refreshAll looks again at what can be bought in any case.
func (mk *market) refreshAll() {
	for _, pm := range mk.markets {
		pm.refreshBuyable(mk.reservations)
	}
	mk.forgetSets()
}

// forgetSets drops the feasible sets, and what was kept for them.
func (mk *market) forgetSets() {
	clear(mk.feasibleSets)
	clear(mk.appraisedSets)
	mk.setList = nil
	for _, pm := range mk.markets {
		pm.rankings = nil
	}
}

// feasibleSet finds where pods of all the classes may go together, under the pins.
func (mk *market) feasibleSet(classes []*cluster.PodClass, pins require.Set) *feasibleSet {
	var text strings.Builder
	for _, c := range classes {
		text.WriteString(mk.readDemand(c).text)
	}
	if len(pins) > 0 {
		text.WriteString(pins.String())
	}
	fs := mk.feasibleSets[text.String()]
	if fs == nil {
		fs = mk.newFeasibleSet(classes, pins)
		mk.feasibleSets[text.String()] = fs
		mk.setList = append(mk.setList, fs)
	}
	return fs
}

// demandNumber numbers what a class asks of a node, so that classes that ask the same are looked at once.
func (mk *market) demandNumber(c *cluster.PodClass) int { return mk.readDemand(c).number }

func (mk *market) readDemand(c *cluster.PodClass) demand {
	d, ok := mk.demands[c]
	if !ok {
		if d.text = c.NodeKey; d.text == "" {
			d.text = topology.TermsText(c.Terms) + "\x00" + topology.TolerationsText(c) + "\x00"
		}
		if len(mk.s.Daemons) > 0 { // they may leave no place for it
			if len(c.Ports) > 0 {
				d.text += fmt.Sprint(c.Ports)
			}
			for _, r := range c.Rules {
				if r.Kind != cluster.Spread {
					d.text += "\x00" + r.Key
				}
			}
		}
		if d.number, ok = mk.demandNumbers[d.text]; !ok {
			d.number = len(mk.demandNumbers)
			mk.demandNumbers[d.text] = d.number
		}
		mk.demands[c] = d
	}
	return d
}

func (mk *market) newFeasibleSet(classes []*cluster.PodClass, pins require.Set) *feasibleSet {
	fs := &feasibleSet{number: len(mk.setList), matches: make([][]termMatch, len(mk.markets)),
		offerings: make([]require.Bits, len(mk.markets))}
	terms := jointTerms(classes, pins)
	for i, pm := range mk.markets {
		fs.offerings[i] = require.NewBits(len(pm.room))
		if slices.ContainsFunc(classes, func(c *cluster.PodClass) bool {
			_, tainted := cluster.Untolerated(c.Tolerations, pm.pool.Template.Taints)
			return tainted
		}) {
			continue
		}
		fs.matches[i] = consistentMatches(pm.matchTerms(terms))
		for j := range fs.matches[i] {
			tm := &fs.matches[i][j]
			for _, c := range classes {
				pm.restrictByDaemons(mk.s, tm, c, mk.followDaemon[c])
			}
			fs.offerings[i] = fs.offerings[i].Or(tm.offerings)
		}
	}
	text := offeringsText(fs.offerings)
	if preference := mk.appraisedSets[text]; preference != nil {
		fs.largestRooms, fs.bargains = preference.largestRooms, preference.bargains
		return fs
	}
	mk.appraise(fs)
	mk.appraisedSets[text] = fs
	return fs
}

// offeringsText is the same for feasible sets with the same offerings.
func offeringsText(rows []require.Bits) string {
	var text []byte
	for _, bits := range rows {
		for _, word := range bits {
			text = binary.LittleEndian.AppendUint64(text, word)
		}
	}
	return string(text)
}

// consistentMatches keeps the alternatives that want the same values of open labels as the first that asks for them:
// pods that are alike in what they ask for then always agree about a node.
func consistentMatches(matches []termMatch) []termMatch {
	var settled cluster.Labels
	return slices.DeleteFunc(matches, func(m termMatch) bool {
		for _, label := range m.openLabels {
			if value, ok := settled.Get(label.Key); ok && value != label.Value {
				return true
			}
		}
		settled = settled.Merge(m.openLabels)
		return false
	})
}

// jointTerms are the alternatives under which the pods of all classes can share a node.
func jointTerms(classes []*cluster.PodClass, pins require.Set) []require.Set {
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

// appraise finds the largest rooms and the best bargains among what the feasible set can buy now. Only the first tier
// that has something counts for the price, because it comes first.
func (mk *market) appraise(fs *feasibleSet) {
	priced := false
	for _, tier := range mk.tiers {
		for _, pm := range tier {
			rows := fs.offerings[pm.number].And(pm.buyable)
			if !mk.relaxMinValues && pm.firstMinValuesKey() != "" && pm.shortOfValues(rows) != "" {
				continue // not even an empty node could be had
			}
			last := -1 // offerings of a type mostly have the same room: only the cheapest of them matters
			for i := range rows.All {
				o := &pm.pool.Catalog.Offerings[i]
				same := last >= 0 && pm.pool.Catalog.Offerings[last].Type == o.Type && pm.room[last] == pm.room[i]
				if !same {
					fs.addRoom(pm.room[i])
				}
				if !priced && (!same || o.Price < pm.pool.Catalog.Offerings[last].Price) {
					fs.addBargain(o.Price, pm.room[i])
				}
				last = i
			}
		}
		priced = len(fs.bargains) > 0
	}
}

func (fs *feasibleSet) addRoom(room resource.Vector) {
	for i := range fs.largestRooms {
		if room.Within(fs.largestRooms[i]) {
			return
		}
	}
	fs.largestRooms = slices.DeleteFunc(fs.largestRooms, func(v resource.Vector) bool { return v.Within(room) })
	fs.largestRooms = append(fs.largestRooms, room)
}

// resourceMixes are the proportions of memory (GiB) to CPU (cores) for which a bargain is remembered.
const resourceMixes = 5

// addBargain keeps, for each mix, the offering that asks the least for it.
func (fs *feasibleSet) addBargain(price float64, room resource.Vector) {
	if fs.bargains == nil {
		fs.bargains = make([]cheapOffering, resourceMixes)
	}
	price = max(price, 1e-9)
	core, gi := 1000*price/float64(max(room[resource.CPU], 1)), (1<<30)*price/float64(max(room[resource.Memory], 1))
	for i := range fs.bargains {
		if demands := max(core, gi*float64(int(1)<<i)); fs.bargains[i].price == 0 ||
			demands < fs.bargains[i].pricePerMix {
			fs.bargains[i] = cheapOffering{price, room, demands}
		}
	}
}

// largestShare is the largest part of a dimension of the room that the need takes.
func largestShare(need, room *resource.Vector) float64 {
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

// fits reports whether the feasible set has an offering with room for the need.
func (fs *feasibleSet) fits(need *resource.Vector) bool {
	for i := range fs.largestRooms {
		if need.Fits(fs.largestRooms[i]) {
			return true
		}
	}
	return false
}

// roughPrice is roughly what the need costs at the feasible set, as its share of a node.
func (fs *feasibleSet) roughPrice(need *resource.Vector) float64 {
	least := 1e18
	for i := range fs.bargains {
		least = min(least, fs.bargains[i].price*largestShare(need, &fs.bargains[i].room))
	}
	return least
}
