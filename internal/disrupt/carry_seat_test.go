package disrupt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// A node that was made for a move is for its pods, even if an older move has pods like them: otherwise that would have none made
// for it, and this one two.
func TestEachMoveGetsWhatWasMadeForIt(t *testing.T) {
	class := &cluster.PodClass{}
	pod := func(uid string) *cluster.Pod { return &cluster.Pod{UID: uid, Class: class} }
	a, b := &group{id: "a"}, &group{id: "b"}
	order := map[*group]int{a: 1, b: 2}
	owner := map[string]*group{"p1": a, "p2": b, "p3": b}
	places := func(g *group) string {
		out := ""
		for _, st := range g.seats {
			out += fmt.Sprintf("%s:%s%d ", st.pod.UID, st.host, st.rank)
		}
		g.seats = nil
		return out
	}
	seats := func() []seat {
		return []seat{{pod: pod("p1"), rank: coming, host: "for-b"}, {pod: pod("p2"), rank: wished}, {pod: pod("p3"), rank: ready, host: "there"}}
	}
	others := allot(seats(), owner, order, map[string]*group{"for-b": b})
	if got := places(a) + "/ " + places(b); got != "p1:there0 / p2:for-b1 p3:2 " || len(others) > 0 {
		t.Errorf("the places are %q, and strangers go to %v", got, others)
	}
	// As many of its pods get it as there is room for; what is left there is for the others.
	for uids, want := range map[string]string{"p1 p2 p3": "p1:2 / p2:for-b0 p3:for-b0 ", "p1 p2": "p1:for-b0 / p2:for-b0 ", "p1 p4 p2": "p1:for-b0 p4:2 / p2:for-b0 "} {
		owner["p4"] = a
		list := []seat{{rank: ready, host: "for-b"}, {rank: ready, host: "for-b"}, {rank: wished}}
		for i, uid := range strings.Fields(uids) {
			list[i].pod = pod(uid)
		}
		allot(list[:len(strings.Fields(uids))], owner, order, map[string]*group{"for-b": b})
		if got := places(a) + "/ " + places(b); got != want {
			t.Errorf("%s: the places are %q, want %q", uids, got, want)
		}
	}
	// Whoever has no node comes first, wherever that is.
	delete(owner, "p3")
	others = allot(seats(), owner, order, map[string]*group{"there": b})
	if got := places(a) + "/ " + places(b); got != "p1:for-b1 / p2:2 " || fmt.Sprint(others) != "[there]" {
		t.Errorf("beside a stranger the places are %q, and it goes to %v", got, others)
	}
}

// A new node that several moves share is made for the one that has the most pods there; of equals for the first.
func TestWhoseASharedNodeIs(t *testing.T) {
	moves := func(lists ...[]seat) (out []*group) {
		for i, list := range lists {
			out = append(out, &group{id: string(rune('a' + i)), seats: list})
		}
		return out
	}
	in := func(bins ...int) (out []seat) {
		for _, bin := range bins {
			out = append(out, seat{rank: wished, bin: bin})
		}
		return out
	}
	there := seat{rank: ready, host: "n", bin: 3}
	for _, c := range []struct {
		name  string
		moves []*group
		want  string
	}{
		{"only the first", moves(in(3, 3), in(4)), "a"},
		{"only the second", moves(in(4, 4), in(3)), "b"},
		{"the second has more", moves(in(3, 4, 4), in(3, 3), in(4)), "b"},
		{"both have as many", moves(in(3, 3), in(3, 3)), "a"},
		{"pods on nodes that are there don't count", moves([]seat{there, there}, in(3)), "b"},
	} {
		if got := mostIn(c.moves, 3); got.id != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.id, c.want)
		}
	}
}
