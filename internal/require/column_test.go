package require_test

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/require"
)

func TestWithin(t *testing.T) {
	of := func(op require.Operator, values ...string) require.Values {
		v, ok := require.Make(op, values)
		if !ok {
			t.Fatalf("%s %v", op, values)
		}
		return v
	}
	for _, c := range []struct {
		v, w require.Values
		want bool
	}{
		{require.Only("a"), require.Only("a", "b"), true},
		{require.Only("a", "c"), require.Only("a", "b"), false},
		{require.Only("5", "6"), of(require.Gte, "5"), true},
		{of(require.Gte, "6"), of(require.Gte, "5"), true},
		{of(require.Gte, "4"), of(require.Gte, "5"), false},
		{of(require.NotIn, "a", "b"), of(require.NotIn, "a"), true},
		{of(require.NotIn, "a"), of(require.NotIn, "a", "b"), false},
		{of(require.NotIn, "a"), of(require.Exists), false},
		{of(require.Exists), of(require.Exists), true},
		{of(require.DoesNotExist), of(require.NotIn, "a"), true},
		{require.Anything(), require.Anything(), true},
		{require.Anything(), require.Only("a"), false},
	} {
		if got := c.v.Within(c.w); got != c.want {
			t.Errorf("%s within %s: %v", c.v, c.w, got)
		}
	}
}

func TestAmong(t *testing.T) {
	rows := []map[string]string{{"zone": "a"}, {"zone": "b"}, {}, {"zone": "a"}}
	x := require.NewIndex(len(rows), func(row int, yield func(key, value string)) {
		for key, value := range rows[row] {
			yield(key, value)
		}
	})
	some := require.NewBits(len(rows))
	some.Set(0)
	some.Set(3)
	if values, absent := x.Among("zone", some); len(values) != 1 || values[0] != "a" || absent {
		t.Errorf("rows 0 and 3 have %v, absent %v", values, absent)
	}
	if values, absent := x.Among("zone", require.AllBits(len(rows))); len(values) != 2 || !absent {
		t.Errorf("all rows have %v, absent %v", values, absent)
	}
	if values, absent := x.Among("rack", some); len(values) != 0 || !absent {
		t.Errorf("an unknown key has %v, absent %v", values, absent)
	}
}
