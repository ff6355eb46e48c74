package require

import (
	"reflect"
	"testing"
)

// indexOf is an index over rows of values of the keys a and b.
func indexOf(rows ...[2]string) *Index {
	return NewIndex(len(rows), func(row int, yield func(key, value string)) {
		yield("a", rows[row][0])
		yield("b", rows[row][1])
	})
}

// TestIndexesShareEqualColumns: a column is shared if it says the same of every row, and what the index says stays the
// same.
func TestIndexesShareEqualColumns(t *testing.T) {
	first := indexOf([2]string{"1", "x"}, [2]string{"2", "x"})
	second := indexOf([2]string{"1", "y"}, [2]string{"2", "y"})
	if !second.Share(first) || second.keys["a"] != first.keys["a"] {
		t.Error("a column that is the same is kept twice")
	}
	if !reflect.DeepEqual(second, indexOf([2]string{"1", "y"}, [2]string{"2", "y"})) {
		t.Error("sharing has changed what the index says")
	}
	for name, other := range map[string]*Index{
		"other rows":   indexOf([2]string{"2", "y"}, [2]string{"1", "y"}),
		"other values": indexOf([2]string{"3", "y"}, [2]string{"4", "y"}),
		"more rows":    indexOf([2]string{"1", "x"}, [2]string{"2", "x"}, [2]string{"2", "x"}),
	} {
		if other.Share(first) {
			t.Errorf("%s: a column is shared that is not the same", name)
		}
	}
}
