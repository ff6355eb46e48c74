package lp

// Problem is what is to be packed, as the linear program sees it. An item is so many pods that are alike; an option is
// a kind of node that can be bought, and options stand from cheap to dear.
type Problem struct {
	// Dims is how many resources somebody asks for.
	Dims int

	// Counts is by item the number of its pods.
	Counts []int
	// Needs is by item and dimension what a pod asks for, and NeedsFloat the same.
	Needs      []int64
	NeedsFloat []float64
	// SetOf is by item the dense number of the set of options that it may use.
	SetOf []int32

	// Prices is by option what a node costs.
	Prices []float64
	// Room is by option and dimension what an empty node has.
	Room []int64
	// OptionSets are by option the sets that it is in, as bits, Words of them to an option.
	OptionSets []uint64
	Words      int
	// FittingItems are by option the items of which an empty node can hold a pod.
	FittingItems [][]int32

	// Shares names the marks under which an item's pods get in the way of their own kind, and how much of a node one of
	// them uses up under each. MarkCount is one more than the largest mark.
	Shares    func(item int, each func(mark int32, share float64))
	MarkCount int
}

// NeedOf is what a pod of the item asks for.
func (m *Problem) NeedOf(item int) []int64 { return m.Needs[item*m.Dims : item*m.Dims+m.Dims] }

// RoomOf is what an empty node of the option has.
func (m *Problem) RoomOf(option int) []int64 { return m.Room[option*m.Dims : option*m.Dims+m.Dims] }

// SetsOf are the sets that the option is in.
func (m *Problem) SetsOf(option int) []uint64 {
	return m.OptionSets[option*m.Words : option*m.Words+m.Words]
}

// IsIn reports whether the option is in the set.
func (m *Problem) IsIn(option int, set int32) bool {
	return m.OptionSets[option*m.Words+int(set>>6)]&(1<<(set&63)) != 0
}
