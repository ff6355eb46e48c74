package execute

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
	a, b := &activeMove{id: "a"}, &activeMove{id: "b"}
	order := map[*activeMove]int{a: 1, b: 2}
	owner := map[string]*activeMove{"p1": a, "p2": b, "p3": b}
	places := func(m *activeMove) string {
		out := ""
		for _, dest := range m.destinations {
			out += fmt.Sprintf("%s:%s%d ", dest.pod.UID, dest.host, dest.distance)
		}
		m.destinations = nil
		return out
	}
	destinations := func() []destination {
		return []destination{{pod: pod("p1"), distance: atComingNode, host: "for-b"},
			{pod: pod("p2"), distance: atNewNode}, {pod: pod("p3"), distance: atReadyNode, host: "there"}}
	}
	others := shareDestinations(destinations(), owner, order, map[string]*activeMove{"for-b": b})
	if got := places(a) + "/ " + places(b); got != "p1:there0 / p2:for-b1 p3:2 " || len(others) > 0 {
		t.Errorf("the places are %q, and strangers go to %v", got, others)
	}
	// As many of its pods get it as there is room for; what is left there is for the others.
	for uids, want := range map[string]string{"p1 p2 p3": "p1:2 / p2:for-b0 p3:for-b0 ",
		"p1 p2": "p1:for-b0 / p2:for-b0 ", "p1 p4 p2": "p1:for-b0 p4:2 / p2:for-b0 "} {
		owner["p4"] = a
		list := []destination{{distance: atReadyNode, host: "for-b"}, {distance: atReadyNode, host: "for-b"},
			{distance: atNewNode}}
		for i, uid := range strings.Fields(uids) {
			list[i].pod = pod(uid)
		}
		shareDestinations(list[:len(strings.Fields(uids))], owner, order, map[string]*activeMove{"for-b": b})
		if got := places(a) + "/ " + places(b); got != want {
			t.Errorf("%s: the places are %q, want %q", uids, got, want)
		}
	}
	// Whoever has no node comes first, wherever that is.
	delete(owner, "p3")
	others = shareDestinations(destinations(), owner, order, map[string]*activeMove{"there": b})
	if got := places(a) + "/ " + places(b); got != "p1:for-b1 / p2:2 " || fmt.Sprint(others) != "[there]" {
		t.Errorf("beside a stranger the places are %q, and it goes to %v", got, others)
	}
}
