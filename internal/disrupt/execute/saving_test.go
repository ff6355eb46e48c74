package execute

import "testing"

// A new node that several moves share is made for the one that has the most pods there; of equals for the first.
func TestWhoseASharedNodeIs(t *testing.T) {
	moves := func(lists ...[]destination) (out []*activeMove) {
		for i, list := range lists {
			out = append(out, &activeMove{id: string(rune('a' + i)), destinations: list})
		}
		return out
	}
	in := func(bins ...int) (out []destination) {
		for _, bin := range bins {
			out = append(out, destination{distance: atNewNode, bin: bin})
		}
		return out
	}
	there := destination{distance: atReadyNode, host: "n", bin: 3}
	for _, c := range []struct {
		name  string
		moves []*activeMove
		want  string
	}{
		{"only the first", moves(in(3, 3), in(4)), "a"},
		{"only the second", moves(in(4, 4), in(3)), "b"},
		{"the second has more", moves(in(3, 4, 4), in(3, 3), in(4)), "b"},
		{"both have as many", moves(in(3, 3), in(3, 3)), "a"},
		{"pods on nodes that are there don't count", moves([]destination{there, there}, in(3)), "b"},
	} {
		if got := mainMoveOf(c.moves, 3); got.id != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.id, c.want)
		}
	}
}
