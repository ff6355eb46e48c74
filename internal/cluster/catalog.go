package cluster

import (
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Type is an instance type.
type Type struct {
	Name string
	// Capacity counts against limits; Allocatable is what pods may use.
	Capacity, Allocatable resource.Vector
}

// Offering is one concrete node that can be bought: every label that the type leaves open is decided. A type that runs
// two operating systems has two offerings where it would have one.
type Offering struct {
	Type int // its place in Catalog.Types
	// Labels are its own labels; Common are those that it has like all offerings of its type, which share them. No key
	// is in both. Label and AllLabels know of both.
	Labels, Common Labels
	// Zone and CapacityType repeat two of the labels, because everybody asks for them.
	Zone, CapacityType string
	Price              float64 // dollars per hour
	// Estimated says that nobody has told the price: it is inferred from what other types cost.
	Estimated bool
	Available bool
	// Advice is what people could do about it that the cloud has refused the offering lately, with the cloud's code;
	// empty if they can only wait.
	Advice string
	// Probing offerings were refused a while ago and may be back: they can be bought, but one launch at a time finds
	// out.
	Probing bool
	// Reservation names the capacity that was paid for in advance, of which ReservationLeft instances are still free;
	// empty for offerings without bound.
	Reservation     string
	ReservationLeft int
}

// Catalog is what can be bought, numbered. It is immutable and may be shared by pools and by snapshots.
type Catalog struct {
	Types     []Type
	Offerings []Offering
	index     *require.Index
	byType    map[string]int
	available require.Bits
	estimated require.Bits // nil if all prices were told
}

// NewCatalog sorts types and offerings and numbers them. Offering.Type refers to the order of types as given. What is
// the same in one of the catalogs alike is shared with it: what is sold does not change as often as its price.
func NewCatalog(types []Type, offerings []Offering, alike ...*Catalog) *Catalog {
	c := &Catalog{Types: slices.Clone(types), Offerings: slices.Clone(offerings), byType: make(map[string]int)}
	slices.SortFunc(c.Types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	for i := range c.Types {
		c.byType[c.Types[i].Name] = i
	}
	for i := range c.Offerings {
		c.Offerings[i].Type = c.byType[types[c.Offerings[i].Type].Name]
	}
	slices.SortStableFunc(c.Offerings, compareOfferings)
	c.index = c.indexSharing(alike)
	c.available = require.NewBits(len(c.Offerings))
	for i := range c.Offerings {
		if c.Offerings[i].Available {
			c.available.Set(i)
		}
		if c.Offerings[i].Estimated {
			if c.estimated == nil {
				c.estimated = require.NewBits(len(c.Offerings))
			}
			c.estimated.Set(i)
		}
	}
	return c
}

// indexSharing is the index of the catalog: that of another with the same labels, or one that shares columns with
// another.
func (c *Catalog) indexSharing(alike []*Catalog) *require.Index {
	for _, other := range alike {
		if slices.EqualFunc(c.Offerings, other.Offerings, sameLabels) {
			return other.index
		}
	}
	index := require.NewIndex(len(c.Offerings), func(row int, yield func(key, value string)) {
		for _, label := range c.Offerings[row].Labels {
			yield(label.Key, label.Value)
		}
		for _, label := range c.Offerings[row].Common {
			yield(label.Key, label.Value)
		}
	})
	for _, other := range alike {
		if index.Share(other.index) {
			break
		}
	}
	return index
}

func sameLabels(a, b Offering) bool {
	return slices.Equal(a.Labels, b.Labels) && slices.Equal(a.Common, b.Common)
}

func compareOfferings(a, b Offering) int {
	if a.Type != b.Type {
		return a.Type - b.Type
	}
	if d := strings.Compare(a.Zone, b.Zone); d != 0 {
		return d
	}
	if d := strings.Compare(a.CapacityType, b.CapacityType); d != 0 {
		return d
	}
	own, other := a.Labels, b.Labels
	if !slices.EqualFunc(own, other, func(x, y Label) bool {
		return x.Key == y.Key
	}) || !slices.Equal(a.Common, b.Common) {
		own, other = a.AllLabels(), b.AllLabels()
	}
	return slices.CompareFunc(own, other, func(x, y Label) int {
		if d := strings.Compare(x.Key, y.Key); d != 0 {
			return d
		}
		return strings.Compare(x.Value, y.Value)
	})
}

// Label finds the value of a label.
func (o *Offering) Label(key string) (value string, present bool) {
	if value, present = o.Labels.Get(key); present {
		return value, true
	}
	return o.Common.Get(key)
}

// AllLabels are the labels of a node that is bought.
func (o *Offering) AllLabels() Labels {
	out := slices.Concat(o.Labels, o.Common)
	slices.SortFunc(out, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Index answers which offerings carry which labels.
func (c *Catalog) Index() *require.Index { return c.index }

// Available is the set of offerings that can be bought now.
func (c *Catalog) Available() require.Bits { return c.available }

// Estimated is the set of offerings whose price nobody has told.
func (c *Catalog) Estimated() require.Bits { return c.estimated }

// Type finds a type by name.
func (c *Catalog) Type(name string) (*Type, bool) {
	i, ok := c.byType[name]
	if !ok {
		return nil, false
	}
	return &c.Types[i], true
}

// Price finds what an offering of the type in the zone costs under the capacity type; ok is false if it is not sold.
func (c *Catalog) Price(typeName, zone, capacityType string) (price float64, ok bool) {
	if o := c.Offering(typeName, zone, capacityType); o != nil {
		return o.Price, true
	}
	return 0, false
}

// Offering finds an offering of the type in the zone under the capacity type; nil if it is not sold.
func (c *Catalog) Offering(typeName, zone, capacityType string) *Offering {
	first, end := c.RangeOf(typeName)
	for i := first; i < end; i++ {
		if o := &c.Offerings[i]; o.Zone == zone && o.CapacityType == capacityType {
			return o
		}
	}
	return nil
}

// Without is the catalog with some offerings unavailable. It shares everything else with the catalog it came from.
func (c *Catalog) Without(soldOut func(*Offering) bool) *Catalog {
	out := *c
	out.Offerings = slices.Clone(c.Offerings)
	out.available = require.NewBits(len(c.Offerings))
	for i := range out.Offerings {
		o := &out.Offerings[i]
		o.Available = o.Available && !soldOut(o)
		if o.Available {
			out.available.Set(i)
		}
	}
	return &out
}

// WithAmounts is the catalog with other amounts of the same types, in any order. It shares everything else with the
// catalog it came from.
func (c *Catalog) WithAmounts(types []Type) *Catalog {
	out := *c
	out.Types = slices.Clone(types)
	slices.SortFunc(out.Types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	return &out
}

// CommonLabels are the labels that all offerings of a type have; nil if it has none.
func (c *Catalog) CommonLabels(typeName string) Labels {
	if o := c.firstOf(typeName); o < len(c.Offerings) {
		return c.Offerings[o].Common
	}
	return nil
}

// RangeOf are the places of a type's offerings: from first to before end.
func (c *Catalog) RangeOf(typeName string) (first, end int) {
	first = c.firstOf(typeName)
	for end = first; end < len(c.Offerings) && c.Offerings[end].Type == c.Offerings[first].Type; end++ {
		continue
	}
	return first, end
}

// firstOf is the first offering of a type; the number of offerings if there is none.
func (c *Catalog) firstOf(typeName string) int {
	t, known := c.byType[typeName]
	if !known {
		return len(c.Offerings)
	}
	i, found := slices.BinarySearchFunc(c.Offerings, t, func(o Offering, t int) int { return o.Type - t })
	if !found {
		return len(c.Offerings)
	}
	return i
}
