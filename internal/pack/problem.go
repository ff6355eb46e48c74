// Package pack finds the cheapest nodes for items of pods, and a price that no choice of nodes can undercut.
//
// It is arithmetic: it knows vectors, prices and sets of bin types, but neither pods nor pools. What rules between pods
// mean for who may share a node has been turned into marks before; in which zone a pod goes has been decided before.
//
// Floor 1: pure; it imports only the ground floor. The same problem gives the same answer, byte for byte: searches are
// bounded by steps, never by time.
package pack

import (
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Problem is what has to be packed and what can be bought.
type Problem struct {
	Items    []Item
	BinTypes []BinType
	// FeasibleSets are sets of bin types. An item refers to one of them, because many items have the same.
	FeasibleSets []require.Bits
	// Preferences are, for items with preferences, how far each bin type meets them: 0 not at all, 1 completely.
	Preferences [][]float32
	// Limits bound what may be bought; Reservations how often.
	Limits       []Limit
	Reservations []int
	// Suits, if it is set, has the last word on whether a node with the content may be bought as the bin type. If it
	// says no, less content is tried: some of its items may suit the bin type where others don't. A pod that suits no
	// bin type even alone is left over; one that suits some other bin type goes there. It must be pure, and what suits
	// must still suit with less in it.
	Suits func(binType int, content []Part) bool
	// Steps bounds how many pods one run of the search may look at; 0 for a bound that only absurd problems reach.
	Steps int
	// Brief asks for a good answer soon rather than for the best: it is for finding out whether something might pay.
	Brief bool
}

// Item is a number of pods that packing can't tell apart.
type Item struct {
	Need  resource.Vector
	Count int
	// Feasible is the place in Problem.FeasibleSets of the bin types that will do; Unrestricted is the same before any
	// choice was made for the item that could have been made otherwise (a zone, say): the lower bound counts with it.
	Feasible, Unrestricted int
	// Preference is the place in Problem.Preferences, −1 for no preferences. Preferences choose among bin types of
	// nearly the same price; they never add a node.
	Preference int
	// Rank decides who comes first where limits or reservations run short: the higher.
	Rank int32
	Marks
}

// Marks say with whom an item's pods can share a node. All lists are sorted; most are empty.
type Marks struct {
	// Excludes and ExcludedAs: no pod that excludes an id shares a node with another pod that is excluded as it. An
	// item with both sends at most one pod to a node.
	Excludes, ExcludedAs []int32
	// Caps and Counts: where a pod with a cap is, there are at most Most pods in all whose items count for its id.
	Caps   []Cap
	Counts []int32
}

// Cap bounds how many pods that count for an id share a node.
type Cap struct {
	ID   int32
	Most int32
}

// BinType is an option that can be bought.
type BinType struct {
	Price float64
	// Room is what a node has for pods, daemons' share taken off. Negative room holds nothing.
	Room resource.Vector
	// Limit is what the node counts against, by Charge; Reservation is the place in Problem.Reservations, −1 for no
	// bound.
	Limit       int
	Charge      resource.Vector
	Reservation int
}

// Limit is what may still be bought together.
type Limit struct {
	// Left bounds the sum of charges in the dimensions that are Limited.
	Limited [resource.Size]bool
	Left    resource.Vector
	// Nodes bounds their number; negative for no bound.
	Nodes int64
}

// Part is some pods of an item.
type Part struct {
	Item, Count int
}

// Bin is a number of nodes with the same content.
type Bin struct {
	BinType int
	Parts   []Part // sorted by item
	Times   int
}

// Solution is what to buy.
type Solution struct {
	Bins []Bin
	// Unplaced is, for each item, how many of its pods found no place.
	Unplaced []int
	// Price of all bins.
	Price float64
	// Truncated says that the search was brought to an end by its budget of steps: the answer is valid and may be
	// dearer than need be.
	Truncated bool
}
