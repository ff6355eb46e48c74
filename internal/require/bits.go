package require

import "math/bits"

// Bits is a set of row numbers.
type Bits []uint64

// NewBits returns an empty set with room for n rows.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// AllBits returns the set of the rows 0 to n−1.
func AllBits(n int) Bits {
	b := NewBits(n)
	for i := range b {
		b[i] = ^uint64(0)
	}
	if n%64 != 0 {
		b[len(b)-1] = 1<<(n%64) - 1
	}
	return b
}

// Set adds a row.
func (b Bits) Set(i int) { b[i/64] |= 1 << (i % 64) }

// Has reports whether the row is in the set.
func (b Bits) Has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// And returns the rows in both.
func (b Bits) And(c Bits) Bits {
	out := make(Bits, len(b))
	for i := range b {
		out[i] = b[i] & c[i]
	}
	return out
}

// AndNot returns the rows in b that are not in c.
func (b Bits) AndNot(c Bits) Bits {
	out := make(Bits, len(b))
	for i := range b {
		out[i] = b[i] &^ c[i]
	}
	return out
}

// Or returns the rows in either.
func (b Bits) Or(c Bits) Bits {
	out := make(Bits, len(b))
	for i := range b {
		out[i] = b[i] | c[i]
	}
	return out
}

// Any reports whether there is a row in the set.
func (b Bits) Any() bool {
	for _, w := range b {
		if w != 0 {
			return true
		}
	}
	return false
}

// Count is the number of rows in the set.
func (b Bits) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// All yields the rows in rising order.
func (b Bits) All(yield func(int) bool) {
	for i, w := range b {
		for w != 0 {
			if !yield(i*64 + bits.TrailingZeros64(w)) {
				return
			}
			w &= w - 1
		}
	}
}
