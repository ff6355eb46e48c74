package ordered

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

func TestMapKeepsOrder(t *testing.T) {
	r := NewMap[int]()
	twin := map[string]int{}
	for i := range 5000 {
		key := fmt.Sprint(i * 7919 % 613)
		if i%3 == 2 {
			r.Remove(key)
			delete(twin, key)
		} else {
			r.Set(key, i)
			twin[key] = i
		}
		if i%37 > 0 {
			continue
		}
		keys := slices.Sorted(maps.Keys(twin))
		list := r.All()
		if len(list) != len(keys) || len(r.entries) != len(keys) {
			t.Fatalf("after %d: %d things, want %d", i, len(list), len(keys))
		}
		for j, key := range keys {
			if list[j] != twin[key] {
				t.Fatalf("after %d: place %d holds %d, want %d", i, j, list[j], twin[key])
			}
		}
	}
}
