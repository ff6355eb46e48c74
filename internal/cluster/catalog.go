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
	Type   int // its place in Catalog.Types
	Labels Labels
	// Zone and CapacityType repeat two of the labels, because everybody asks for them.
	Zone, CapacityType string
	Price              float64 // dollars per hour
	Available          bool
	// Why is what people could do about it that the cloud has refused the offering lately, with the cloud's code; empty if they
	// can only wait.
	Why string
	// Trial offerings were refused a while ago and may be back: they can be bought, but one launch at a time finds out.
	Trial bool
	// Reservation names the capacity that was paid for in advance, of which Left instances are still free; empty for
	// offerings without bound.
	Reservation string
	Left        int
}

// Catalog is what can be bought, numbered. It is immutable and may be shared by pools and by snapshots.
type Catalog struct {
	Types     []Type
	Offerings []Offering
	index     *require.Index
	byType    map[string]int
	available require.Bits
}

// NewCatalog sorts types and offerings and numbers them. Offering.Type refers to the order of types as given.
func NewCatalog(types []Type, offerings []Offering) *Catalog {
	c := &Catalog{Types: slices.Clone(types), Offerings: slices.Clone(offerings), byType: make(map[string]int)}
	slices.SortFunc(c.Types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	for i := range c.Types {
		c.byType[c.Types[i].Name] = i
	}
	for i := range c.Offerings {
		c.Offerings[i].Type = c.byType[types[c.Offerings[i].Type].Name]
	}
	slices.SortStableFunc(c.Offerings, compareOfferings)
	c.index = require.NewIndex(len(c.Offerings), func(row int, yield func(key, value string)) {
		for _, label := range c.Offerings[row].Labels {
			yield(label.Key, label.Value)
		}
	})
	c.available = require.NewBits(len(c.Offerings))
	for i := range c.Offerings {
		if c.Offerings[i].Available {
			c.available.Set(i)
		}
	}
	return c
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
	return slices.CompareFunc(a.Labels, b.Labels, func(x, y Label) int {
		if d := strings.Compare(x.Key, y.Key); d != 0 {
			return d
		}
		return strings.Compare(x.Value, y.Value)
	})
}

// Index answers which offerings carry which labels.
func (c *Catalog) Index() *require.Index { return c.index }

// Available is the set of offerings that can be bought now.
func (c *Catalog) Available() require.Bits { return c.available }

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
	t, known := c.byType[typeName]
	if !known {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(c.Offerings, t, func(o Offering, t int) int { return o.Type - t })
	for ; i < len(c.Offerings) && c.Offerings[i].Type == t; i++ {
		if o := &c.Offerings[i]; o.Zone == zone && o.CapacityType == capacityType {
			return o.Price, true
		}
	}
	return 0, false
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
