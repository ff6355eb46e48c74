package market

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
	"github.com/tenon-sh/tenon/internal/topology"
)

// Market is all markets, and the feasible sets that have been asked for.
type Market struct {
	Snapshot     *cluster.Snapshot
	Tiers        [][]*Pool
	Pools        []*Pool
	feasibleSets map[string]*FeasibleSet
	setList      []*FeasibleSet
	// appraisedSets are feasible sets by the offerings that they have: pods that ask for different labels often get the
	// same.
	appraisedSets map[string]*FeasibleSet
	demands       map[*cluster.PodClass]demand
	demandNumbers map[string]int
	// Reservations are how many instances each reservation has left; relaxMinValues lets minValues give way.
	Reservations   map[string]int
	RelaxMinValues bool
	// DaemonsElsewhere are the DaemonSets that find room in some pools and not in others where they would run.
	DaemonsElsewhere map[*cluster.Daemon]bool
	// followDaemon are the classes that can only go where a DaemonSet's pods come.
	followDaemon map[*cluster.PodClass]bool
}

// demand is what a class asks of a node, numbered.
type demand struct {
	number int
	text   string
}

// FeasibleSet is the offerings, over all markets, that suit pods with the same demands on a node. Many classes share
// one.
type FeasibleSet struct {
	Number  int
	Matches [][]termMatch // by market
	// Offerings is the union of a market's matches.
	Offerings []require.Bits
	// LargestRooms are rooms of which every other is a part, bargains the offerings with the best price for some mix of
	// resources: what is needed to tell quickly whether, and for about how much, a pod can be had.
	LargestRooms []resource.Vector
	bargains     []cheapOffering
}

// cheapOffering is an offering that is cheap for what it has.
type cheapOffering struct {
	price       float64
	room        resource.Vector
	pricePerMix float64 // for one core and the memory of the mix
}

// New opens the market of a snapshot; relax lets minValues give way where they can't be met.
func New(s *cluster.Snapshot, relax bool) *Market {
	mk := &Market{Snapshot: s, Tiers: marketTiers(s), feasibleSets: make(map[string]*FeasibleSet),
		appraisedSets: make(map[string]*FeasibleSet), demands: make(map[*cluster.PodClass]demand),
		demandNumbers: make(map[string]int), Reservations: make(map[string]int), RelaxMinValues: relax,
		followDaemon: make(map[*cluster.PodClass]bool)}
	mk.Pools = slices.Concat(mk.Tiers...)
	mk.findDaemonsElsewhere()
	for _, pm := range mk.Pools {
		for i := range pm.Spec.Catalog.Offerings {
			o := &pm.Spec.Catalog.Offerings[i]
			if o.Reservation == "" {
				continue
			}
			// Pools may have been told at different times: the least is what can be counted on.
			if left, known := mk.Reservations[o.Reservation]; !known || o.ReservationLeft < left {
				mk.Reservations[o.Reservation] = o.ReservationLeft
			}
		}
		pm.RefreshBuyable(mk.Reservations)
	}
	return mk
}

// FeasibleSet finds where pods of all the classes may go together, under the pins.
func (mk *Market) FeasibleSet(classes []*cluster.PodClass, pins require.Set) *FeasibleSet {
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

// DemandNumber numbers what a class asks of a node, so that classes that ask the same are looked at once.
func (mk *Market) DemandNumber(c *cluster.PodClass) int { return mk.readDemand(c).number }

func (mk *Market) readDemand(c *cluster.PodClass) demand {
	d, ok := mk.demands[c]
	if !ok {
		if d.text = c.NodeKey; d.text == "" {
			d.text = topology.TermsText(c.Terms) + "\x00" + topology.TolerationsText(c) + "\x00"
		}
		if len(mk.Snapshot.Daemons) > 0 { // they may leave no place for it
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

func (mk *Market) newFeasibleSet(classes []*cluster.PodClass, pins require.Set) *FeasibleSet {
	fs := &FeasibleSet{Number: len(mk.setList), Matches: make([][]termMatch, len(mk.Pools)),
		Offerings: make([]require.Bits, len(mk.Pools))}
	terms := jointTerms(classes, pins)
	for i, pm := range mk.Pools {
		fs.Offerings[i] = require.NewBits(len(pm.Room))
		if slices.ContainsFunc(classes, func(c *cluster.PodClass) bool {
			_, tainted := cluster.Untolerated(c.Tolerations, pm.Spec.Template.Taints)
			return tainted
		}) {
			continue
		}
		fs.Matches[i] = consistentMatches(pm.MatchTerms(terms))
		for j := range fs.Matches[i] {
			tm := &fs.Matches[i][j]
			for _, c := range classes {
				pm.restrictByDaemons(mk.Snapshot, tm, c, mk.followDaemon[c])
			}
			fs.Offerings[i] = fs.Offerings[i].Or(tm.Offerings)
		}
	}
	text := OfferingsText(fs.Offerings)
	if preference := mk.appraisedSets[text]; preference != nil {
		fs.LargestRooms, fs.bargains = preference.LargestRooms, preference.bargains
		return fs
	}
	mk.appraise(fs)
	mk.appraisedSets[text] = fs
	return fs
}

// OfferingsText is the same for feasible sets with the same offerings.
func OfferingsText(rows []require.Bits) string {
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
	return slices.DeleteFunc(matches, func(m termMatch) bool { return !m.agrees(&settled) })
}

// agrees reports whether the alternative wants no other values of open labels than are settled, and settles its own.
func (m *termMatch) agrees(settled *cluster.Labels) bool {
	for _, label := range m.OpenLabels {
		if value, ok := settled.Get(label.Key); ok && value != label.Value {
			return false
		}
	}
	*settled = settled.Merge(m.OpenLabels)
	return true
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
func (mk *Market) appraise(fs *FeasibleSet) {
	priced := false
	for _, tier := range mk.Tiers {
		for _, pm := range tier {
			rows := fs.Offerings[pm.Number].And(pm.Buyable)
			if !mk.RelaxMinValues && pm.FirstMinValuesKey() != "" && pm.ShortOfValues(rows) != "" {
				continue // not even an empty node could be had
			}
			last := -1 // offerings of a type mostly have the same room: only the cheapest of them matters
			for i := range rows.All {
				o := &pm.Spec.Catalog.Offerings[i]
				same := last >= 0 && pm.Spec.Catalog.Offerings[last].Type == o.Type && pm.Room[last] == pm.Room[i]
				if !same {
					fs.addRoom(pm.Room[i])
				}
				if !priced && (!same || o.Price < pm.Spec.Catalog.Offerings[last].Price) {
					fs.addBargain(o.Price, pm.Room[i])
				}
				last = i
			}
		}
		priced = len(fs.bargains) > 0
	}
}

func (fs *FeasibleSet) addRoom(room resource.Vector) {
	for i := range fs.LargestRooms {
		if room.Within(fs.LargestRooms[i]) {
			return
		}
	}
	fs.LargestRooms = slices.DeleteFunc(fs.LargestRooms, func(v resource.Vector) bool { return v.Within(room) })
	fs.LargestRooms = append(fs.LargestRooms, room)
}

// resourceMixes are the proportions of memory (GiB) to CPU (cores) for which a bargain is remembered.
const resourceMixes = 5

// addBargain keeps, for each mix, the offering that asks the least for it.
func (fs *FeasibleSet) addBargain(price float64, room resource.Vector) {
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

// Fits reports whether the feasible set has an offering with room for the need.
func (fs *FeasibleSet) Fits(need *resource.Vector) bool {
	for i := range fs.LargestRooms {
		if need.Fits(fs.LargestRooms[i]) {
			return true
		}
	}
	return false
}

// RoughPrice is roughly what the need costs at the feasible set, as its share of a node.
func (fs *FeasibleSet) RoughPrice(need *resource.Vector) float64 {
	least := 1e18
	for i := range fs.bargains {
		least = min(least, fs.bargains[i].price*largestShare(need, &fs.bargains[i].room))
	}
	return least
}

// CheapestFor finds the cheapest offering of the first tier that has one for all the feasible sets together.
func (mk *Market) CheapestFor(sets []*FeasibleSet, content *resource.Vector) (best *Pool, row int,
	price float64) {
	price = math.Inf(1)
	for _, tier := range mk.Tiers {
		for _, pm := range tier {
			rows := pm.Buyable
			for _, s := range sets {
				rows = rows.And(s.Offerings[pm.Number])
			}
			for _, i := range pm.byPrice() {
				if o := &pm.Spec.Catalog.Offerings[i]; o.Price >= price {
					break
				} else if rows.Has(i) && o.Reservation == "" && pm.Fits(i, content) {
					best, row, price = pm, i, o.Price
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
