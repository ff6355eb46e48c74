package execute

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/disrupt/destination"
)

// A new node that several moves share is made for the one that has the most pods there; of equals for the first.
func TestWhoseASharedNodeIs(t *testing.T) {
	moves := func(lists ...[]destination.Place) (out []*destination.Move) {
		for i, list := range lists {
			out = append(out, &destination.Move{ID: string(rune('a' + i)), Destinations: list})
		}
		return out
	}
	in := func(bins ...int) (out []destination.Place) {
		for _, bin := range bins {
			out = append(out, destination.Place{Distance: destination.AtNewNode, Bin: bin})
		}
		return out
	}
	there := destination.Place{Distance: destination.AtReadyNode, Host: "n", Bin: 3}
	for _, c := range []struct {
		name  string
		moves []*destination.Move
		want  string
	}{
		{"only the first", moves(in(3, 3), in(4)), "a"},
		{"only the second", moves(in(4, 4), in(3)), "b"},
		{"the second has more", moves(in(3, 4, 4), in(3, 3), in(4)), "b"},
		{"both have as many", moves(in(3, 3), in(3, 3)), "a"},
		{"pods on nodes that are there don't count", moves([]destination.Place{there, there}, in(3)), "b"},
	} {
		if got := mainMoveOf(c.moves, 3); got.ID != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.ID, c.want)
		}
	}
}
