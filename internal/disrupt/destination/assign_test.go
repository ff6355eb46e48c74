package destination

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// A node that was made for a move is for its pods, even if an older move has pods like them: otherwise that would have
// none made for it, and this one two.
func TestEachMoveGetsWhatWasMadeForIt(t *testing.T) {
	class := &cluster.PodClass{}
	pod := func(uid string) *cluster.Pod { return &cluster.Pod{UID: uid, Class: class} }
	a, b := &Move{ID: "a"}, &Move{ID: "b"}
	order := map[*Move]int{a: 1, b: 2}
	owner := map[string]*Move{"p1": a, "p2": b, "p3": b}
	places := func(m *Move) string {
		out := ""
		for _, dest := range m.Destinations {
			out += fmt.Sprintf("%s:%s%d ", dest.Pod.UID, dest.Host, dest.Distance)
		}
		m.Destinations = nil
		return out
	}
	destinations := func() []Place {
		return []Place{{Pod: pod("p1"), Distance: AtComingNode, Host: "for-b"},
			{Pod: pod("p2"), Distance: AtNewNode}, {Pod: pod("p3"), Distance: AtReadyNode, Host: "there"}}
	}
	others := shareDestinations(destinations(), owner, order, map[string]*Move{"for-b": b})
	if got := places(a) + "/ " + places(b); got != "p1:there0 / p2:for-b1 p3:2 " || len(others) > 0 {
		t.Errorf("the places are %q, and strangers go to %v", got, others)
	}
	// As many of its pods get it as there is room for; what is left there is for the others.
	for uids, want := range map[string]string{"p1 p2 p3": "p1:2 / p2:for-b0 p3:for-b0 ",
		"p1 p2": "p1:for-b0 / p2:for-b0 ", "p1 p4 p2": "p1:for-b0 p4:2 / p2:for-b0 "} {
		owner["p4"] = a
		list := []Place{{Distance: AtReadyNode, Host: "for-b"}, {Distance: AtReadyNode, Host: "for-b"},
			{Distance: AtNewNode}}
		for i, uid := range strings.Fields(uids) {
			list[i].Pod = pod(uid)
		}
		shareDestinations(list[:len(strings.Fields(uids))], owner, order, map[string]*Move{"for-b": b})
		if got := places(a) + "/ " + places(b); got != want {
			t.Errorf("%s: the places are %q, want %q", uids, got, want)
		}
	}
	// Whoever has no node comes first, wherever that is.
	delete(owner, "p3")
	others = shareDestinations(destinations(), owner, order, map[string]*Move{"there": b})
	if got := places(a) + "/ " + places(b); got != "p1:for-b1 / p2:2 " || fmt.Sprint(others) != "[there]" {
		t.Errorf("beside a stranger the places are %q, and it goes to %v", got, others)
	}
}
