package resource

import (
	"math/rand"
	"testing"
	"testing/quick"
)

// small keeps quick's numbers in a range where sums can't overflow.
func small(r *rand.Rand) Vector {
	var v Vector
	for i := range v {
		v[i] = r.Int63n(50) - 10
	}
	return v
}

func check(t *testing.T, name string, f func(v, w Vector) bool) {
	t.Helper()
	r := rand.New(rand.NewSource(1))
	if err := quick.Check(func() bool { return f(small(r), small(r)) }, nil); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestVectorAgainstDumbTwin(t *testing.T) {
	check(t, "add then sub is nothing", func(v, w Vector) bool { return v.Add(w).Sub(w) == v })
	check(t, "times is repeated add", func(v, _ Vector) bool { return v.Times(3) == v.Add(v).Add(v) })
	check(t, "max and min share out", func(v, w Vector) bool { return v.Max(w).Add(v.Min(w)) == v.Add(w) })
	check(t, "count is the largest multiple that fits", func(v, w Vector) bool {
		n := v.Count(w, 7)
		positive := v.Floor()
		if n > 0 && !positive.Times(int64(n)).Fits(w) {
			return false
		}
		return n == 7 || !positive.Times(int64(n+1)).Fits(w)
	})
	check(t, "short names a dimension exactly when it does not fit", func(v, w Vector) bool {
		dim := v.FirstShort(w)
		return (dim == -1) == v.Fits(w) && (dim == -1 || v[dim] > w[dim])
	})
	check(t, "within is componentwise", func(v, w Vector) bool {
		return v.Min(w).Within(w) && v.Within(v.Max(w)) && (v.Within(w) == (v.Max(w) == w))
	})
}

func TestFitsIgnoresWhatIsNotAskedFor(t *testing.T) {
	free := Vector{CPU: 1000, Memory: -5}
	if !(Vector{CPU: 1000}).Fits(free) {
		t.Error("a pod without memory request must fit a node whose memory is overcommitted")
	}
	if (Vector{CPU: 1000, Memory: 1}).Fits(free) {
		t.Error("a pod with a memory request must not")
	}
}

func TestNamesRunOut(t *testing.T) {
	var n Names
	for i := range Size - fixed {
		if dim, ok := n.Index(string(rune('a' + i))); !ok || dim != fixed+i {
			t.Fatalf("name %d got dimension %d, %v", i, dim, ok)
		}
	}
	if _, ok := n.Index("one-too-many"); ok {
		t.Error("a name beyond the last dimension was accepted")
	}
	if dim, ok := n.Index("b"); !ok || dim != fixed+1 {
		t.Errorf("a known name lost its number: %d, %v", dim, ok)
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		dim    int
		amount int64
		want   string
	}{
		{CPU, 500, "500m"}, {CPU, 1500, "1.5"}, {CPU, 2000, "2"}, {Memory, 3 << 30, "3Gi"},
		{Memory, 3<<30 + 1<<29, "3.5Gi"},
		{Memory, 100, "100"}, {Pods, 110, "110"}, {Storage, 20 << 30, "20Gi"},
	} {
		if got := Format(c.dim, c.amount); got != c.want {
			t.Errorf("Format(%d, %d) = %q, want %q", c.dim, c.amount, got, c.want)
		}
	}
}
