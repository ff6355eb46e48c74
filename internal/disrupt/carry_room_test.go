package disrupt

import (
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Whoever a plan has looked after is not looked after again when it is checked, be it that there was no place for them; but whoever
// needs no place any more takes up none.
func TestWhoeverWaitsIsLookedAfterOnce(t *testing.T) {
	s := quiet(2)
	class := &cluster.PodClass{Key: "web"}
	wait := func(name string) *cluster.Pod {
		p := &cluster.Pod{UID: name, Name: name, Class: class, Owner: "rs", Unschedulable: true}
		s.Pods = append(s.Pods, p)
		return p
	}
	drained := wait("drained")
	drained.Unschedulable, drained.Node = false, "n0"
	s.Claims[0].Deleting = s.Now
	placed := &schedule.Placement{
		Assigned: []schedule.Assignment{{Pod: drained, Host: "n1"}, {Pod: wait("seated"), Host: "n1"}, {Pod: &cluster.Pod{UID: "gone", Class: class}, Host: "n1"}},
		Bins:     []schedule.Bin{{Pods: []*cluster.Pod{wait("bought for")}}},
		Unplaced: []schedule.Unplaced{{Pod: wait("hopeless")}},
	}
	r := stillPending(s.Seal(), placed)
	for name, want := range map[string]bool{"drained": true, "seated": true, "bought for": true, "hopeless": true, "gone": false} {
		if r.cared[name] != want {
			t.Errorf("%s is looked after: %t, want %t", name, r.cared[name], want)
		}
	}
	if len(r.on["n1"]) != 2 {
		t.Errorf("%d pods count as being on n1, want 2", len(r.on["n1"]))
	}
}

// Whether moves may go without others is asked again if other nodes are gone than last time: nodes become empty by the clock alone.
func TestTheMemoryOfDeparturesKnowsWhoIsGone(t *testing.T) {
	s := quiet(4)
	s.Demand, s.Supply = 7, 7
	apart := &cluster.PodClass{Key: "shy", Rules: []*cluster.Rule{{}}}
	s.Pods = []*cluster.Pod{{UID: "p", Node: "n0", Class: apart, Owner: "rs"}}
	s.Seal()
	ask := func(gone string) string {
		d := newDesk(s, Settings{}, Orders{})
		d.gone[gone] = true
		g := &group{id: "underutilized-a", nodes: []Candidate{{Claim: s.Claims[0], Node: s.Nodes[0], Pool: s.Pools[0]}}}
		d.groups = []*group{g, {id: "underutilized-b", nodes: []Candidate{{Claim: s.Claims[1], Node: s.Nodes[1], Pool: s.Pools[0]}}}}
		d.departures, d.memo = []departure{{groups: []*group{g}}}, &Memo{}
		d.mayDepart()
		return d.memo.departed.question.asked
	}
	if a, b := ask("n2"), ask("n3"); a == "" || a == b {
		t.Errorf("with n2 gone the question is %q, with n3 gone %q", a, b)
	}
}
