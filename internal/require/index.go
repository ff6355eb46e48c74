package require

import (
	"maps"
	"slices"
	"sort"
)

// Index answers which rows of a table of labels meet a set of demands. It is built once for a catalog.
type Index struct {
	rows int
	keys map[string]*column
}

// column holds, for one key, the rows with each value and the rows without the key.
type column struct {
	values []string // sorted
	rows   []Bits   // by value
	absent Bits
}

// NewIndex builds the index over n rows; labels yields each label of a row.
func NewIndex(n int, labels func(row int, yield func(key, value string))) *Index {
	idx := &Index{rows: n, keys: make(map[string]*column)}
	byValue := make(map[string]map[string]Bits)
	for row := range n {
		labels(row, func(key, value string) {
			values := byValue[key]
			if values == nil {
				values = make(map[string]Bits)
				byValue[key] = values
			}
			if values[value] == nil {
				values[value] = NewBits(n)
			}
			values[value].Set(row)
		})
	}
	for key, values := range byValue {
		idx.keys[key] = newColumn(n, values)
	}
	return idx
}

func newColumn(n int, rows map[string]Bits) *column {
	col := &column{absent: AllBits(n)}
	for value := range rows {
		col.values = append(col.values, value)
	}
	sort.Strings(col.values)
	for _, value := range col.values {
		col.rows = append(col.rows, rows[value])
		col.absent = col.absent.AndNot(rows[value])
	}
	return col
}

// Share takes the columns from another index that are the same there, so that they are kept once. It reports whether
// there were any. It is part of building an index: nobody else may have it yet.
func (x *Index) Share(other *Index) (any bool) {
	if x.rows != other.rows {
		return false
	}
	for key, col := range x.keys {
		if have := other.keys[key]; have != nil && col.equal(have) {
			x.keys[key], any = have, true
		}
	}
	return any
}

func (c *column) equal(other *column) bool {
	return slices.Equal(c.values, other.values) && slices.Equal(c.absent, other.absent) &&
		slices.EqualFunc(c.rows, other.rows, slices.Equal[Bits])
}

// Len is the number of rows.
func (x *Index) Len() int { return x.rows }

// Knows reports whether any row carries the key.
func (x *Index) Knows(key string) bool { return x.keys[key] != nil }

// Has reports whether any row carries the key with the value.
func (x *Index) Has(key, value string) bool {
	col := x.keys[key]
	if col == nil {
		return false
	}
	_, found := slices.BinarySearch(col.values, value)
	return found
}

// Keys lists the keys that some row has, in order.
func (x *Index) Keys() []string { return slices.Sorted(maps.Keys(x.keys)) }

// Match returns the rows whose label for the key satisfies the values. The result must not be changed.
func (x *Index) Match(key string, values Values) Bits {
	col := x.keys[key]
	if col == nil {
		if values.AllowsAbsent() {
			return AllBits(x.rows)
		}
		return NewBits(x.rows)
	}
	out := NewBits(x.rows)
	if values.AllowsAbsent() {
		out = out.Or(col.absent)
	}
	for i, value := range col.values {
		if values.Matches(value, true) {
			for w := range out {
				out[w] |= col.rows[i][w]
			}
		}
	}
	return out
}

// MatchAll returns the rows that meet every demand of the set.
func (x *Index) MatchAll(s Set) Bits {
	out := AllBits(x.rows)
	for _, e := range s {
		out = out.And(x.Match(e.Key, e.Values))
	}
	return out
}

// Spread counts the different values of a key among the rows.
func (x *Index) Spread(key string, rows Bits) int {
	col := x.keys[key]
	if col == nil {
		return 0
	}
	n := 0
	for i := range col.values {
		if col.rows[i].And(rows).Any() {
			n++
		}
	}
	return n
}
