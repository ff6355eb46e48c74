package main

import (
	"slices"
	"testing"
)

// The input that adds most comes first, of equals the shortest; one that adds nothing is not taken.
func TestChoose(t *testing.T) {
	set := func(list ...string) map[string]bool {
		out := make(map[string]bool)
		for _, x := range list {
			out[x] = true
		}
		return out
	}
	from := []*input{
		{name: "nothing new", size: 1, reaches: set("seed")},
		{name: "long", size: 9, reaches: set("a", "b")},
		{name: "short", size: 2, reaches: set("a", "b")},
		{name: "most", size: 50, reaches: set("c", "d", "e", "seed")},
		{name: "last", size: 1, reaches: set("a", "f")},
	}
	names := func(list []*input) []string {
		var out []string
		for _, in := range list {
			out = append(out, in.name)
		}
		return out
	}
	reached := set("seed")
	if got, want := names(choose(from, reached, 10)), []string{"most", "last", "short"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(reached) != 7 {
		t.Errorf("%d blocks are reached, want 7", len(reached))
	}
	if got := names(choose(from, set("seed"), 1)); !slices.Equal(got, []string{"most"}) {
		t.Errorf("of one: %q", got)
	}
	if got := names(shortest(from, from[3:], 2)); !slices.Equal(got, []string{"nothing new", "short"}) {
		t.Errorf("the shortest two: %q", got)
	}
	if got := shortest(from, nil, -1); len(got) != 0 {
		t.Errorf("none is needed: %q", names(got))
	}
}
