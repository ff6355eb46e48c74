// Package resource holds amounts of resources as small fixed-size vectors, so that adding, subtracting and comparing
// them costs a few instructions and no memory.
//
// Floor 0: pure; it imports nothing but the standard library.
package resource

// Size is how many kinds of resource one snapshot can tell apart. Four are fixed; the rest are extended resources,
// huge pages and the like, numbered by Names in the order in which they are first seen.
const Size = 16

// The dimensions that every snapshot has.
const (
	CPU     = iota // thousandths of a core
	Memory         // bytes
	Storage        // bytes of ephemeral storage
	Pods           // number of pods
	fixed
)

// Vector is an amount of each resource. CPU is in thousandths, everything else in whole units.
type Vector [Size]int64

// Add returns v + w.
func (v Vector) Add(w Vector) Vector {
	for i := range v {
		v[i] += w[i]
	}
	return v
}

// Sub returns v − w. Negative results stand: they say by how much something is overcommitted.
func (v Vector) Sub(w Vector) Vector {
	for i := range v {
		v[i] -= w[i]
	}
	return v
}

// Times returns v taken n times.
func (v Vector) Times(n int64) Vector {
	for i := range v {
		v[i] *= n
	}
	return v
}

// Max returns the larger of v and w in each dimension.
func (v Vector) Max(w Vector) Vector {
	for i := range v {
		v[i] = max(v[i], w[i])
	}
	return v
}

// Min returns the smaller of v and w in each dimension.
func (v Vector) Min(w Vector) Vector {
	for i := range v {
		v[i] = min(v[i], w[i])
	}
	return v
}

// Floor returns v with negative amounts raised to zero.
func (v Vector) Floor() Vector { return v.Max(Vector{}) }

// Fits reports whether v can be taken out of free. A dimension of which v needs nothing never stands in the way,
// even where free is overcommitted, as kube-scheduler sees it too.
func (v Vector) Fits(free Vector) bool {
	for i := range v {
		if v[i] > 0 && v[i] > free[i] {
			return false
		}
	}
	return true
}

// Within reports whether v is at most limit in each dimension.
func (v Vector) Within(limit Vector) bool {
	for i := range v {
		if v[i] > limit[i] {
			return false
		}
	}
	return true
}

// Count says how many times v can be taken out of free, at most limit.
func (v Vector) Count(free Vector, limit int) int {
	n := int64(limit)
	for i := range v {
		if v[i] > 0 {
			n = min(n, max(free[i], 0)/v[i])
		}
	}
	return int(n)
}

// IsZero reports whether every amount is zero.
func (v Vector) IsZero() bool { return v == Vector{} }

// FirstShort names the first dimension in which v does not fit free, or −1.
func (v Vector) FirstShort(free Vector) int {
	for i := range v {
		if v[i] > 0 && v[i] > free[i] {
			return i
		}
	}
	return -1
}
