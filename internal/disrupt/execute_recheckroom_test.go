package disrupt

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Whoever a plan has looked after is not looked after again when it is checked, be it that there was no place for them;
// but whoever needs no place any more takes up none.
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
		Assigned: []schedule.Assignment{{Pod: drained, Host: "n1"}, {Pod: wait("seated"), Host: "n1"},
			{Pod: &cluster.Pod{UID: "gone", Class: class}, Host: "n1"}},
		Bins:     []schedule.Bin{{Pods: []*cluster.Pod{wait("bought for")}}},
		Unplaced: []schedule.Unplaced{{Pod: wait("hopeless")}},
	}
	o := decidedPending(s.Seal(), placed)
	for name, want := range map[string]bool{"drained": true, "seated": true, "bought for": true, "hopeless": true,
		"gone": false} {
		if o.handled[name] != want {
			t.Errorf("%s is looked after: %t, want %t", name, o.handled[name], want)
		}
	}
	if len(o.placedOn["n1"]) != 2 {
		t.Errorf("%d pods count as being on n1, want 2", len(o.placedOn["n1"]))
	}
}

// Whether moves may go without others is asked again if other nodes are gone than last time: nodes become empty by the
// clock alone.
func TestTheMemoryOfDeparturesKnowsWhoIsGone(t *testing.T) {
	s := quiet(4)
	s.DemandRev, s.SupplyRev = 7, 7
	apart := &cluster.PodClass{Key: "shy", Rules: []*cluster.Rule{{}}}
	s.Pods = []*cluster.Pod{{UID: "p", Node: "n0", Class: apart, Owner: "rs"}}
	s.Seal()
	ask := func(gone string) string {
		x := newExecutor(s, Settings{}, ExecuteInput{})
		x.removedNodes[gone] = true
		m := &activeMove{id: "underutilized-a", nodes: []Candidate{{Claim: s.Claims[0], Node: s.Nodes[0],
			Pool: s.Pools[0]}}}
		x.moves = []*activeMove{m, {id: "underutilized-b", nodes: []Candidate{{Claim: s.Claims[1], Node: s.Nodes[1],
			Pool: s.Pools[0]}}}}
		x.departures, x.memo = []departure{{moves: []*activeMove{m}}}, &Memo{}
		x.departable()
		return x.memo.departures.query.key
	}
	if a, b := ask("n2"), ask("n3"); a == "" || a == b {
		t.Errorf("with n2 gone the question is %q, with n3 gone %q", a, b)
	}
}

// Who no longer has room when a plan is checked that lets n1 go, whose pod asks for 2 CPUs.
func TestWhoLacksRoom(t *testing.T) {
	full := func(f *fleet, nodes ...string) {
		for _, n := range nodes {
			f.run("full-"+n, n, 4)
		}
	}
	type asked struct {
		placed   *schedule.Placement
		commands []command.Command
		parties  map[string][]string
	}
	goes := func(a *asked, departure, node string) {
		a.parties[departure] = append(a.parties[departure], node)
		a.commands = append(a.commands, command.DeleteClaim{Claim: node, Node: node})
	}
	cases := []struct {
		name   string
		change func(f *fleet, a *asked)
		want   string
	}{
		{"there is room", func(f *fleet, a *asked) {}, ""},
		{"the room is taken", func(f *fleet, a *asked) { full(f, "n2", "n3") }, "m1"},
		{"the room is fenced", func(f *fleet, a *asked) {
			full(f, "n3")
			a.commands = append(a.commands, command.Fence{Claim: "n2", Node: "n2"})
		}, "m1"},
		{"the room is fenced already", func(f *fleet, a *asked) { full(f, "n3"); taint(f.s, 1) }, "m1"},
		{"the room goes, too", func(f *fleet, a *asked) {
			f.s.Pods = slices.Delete(f.s.Pods, 1, 2)
			full(f, "n3")
			a.commands = append(a.commands, command.DeleteClaim{Claim: "n2", Node: "n2"})
		}, "m1"},
		{"the room is taken, and others that go lack room, too", func(f *fleet, a *asked) {
			full(f, "n2", "n3")
			a.commands = append(a.commands, command.DeleteClaim{Claim: "n3", Node: "n3"})
		}, "m1"},
		{"there is room, and the claim has gone", func(f *fleet, a *asked) { f.s.Claims = f.s.Claims[1:] }, ""},
		{"a claim without a node goes", func(f *fleet, a *asked) {
			a.commands = append(a.commands, command.DeleteClaim{Claim: "other"})
		}, ""},
		{"the room is not up", func(f *fleet, a *asked) { full(f, "n3"); notUp(f.claim("n2")) }, "m1"},
		{"the room is not there yet", func(f *fleet, a *asked) {
			full(f, "n2", "n3")
			c := f.node("n4", "large")
			c.NodeName, f.s.Nodes, c.Conditions = "", f.s.Nodes[:3], c.Conditions[:1]
		}, "m1"},
		{"the room is for a pod that waits", func(f *fleet, a *asked) {
			full(f, "n3")
			a.placed = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.run("new", "", 4), Host: "n2"}}}
		}, "m1"},
		{"the room was for a pod that is gone", func(f *fleet, a *asked) {
			full(f, "n3")
			gone := f.run("new", "", 4)
			f.s.Pods = f.s.Pods[:len(f.s.Pods)-1]
			a.placed = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: gone, Host: "n2"}}}
		}, ""},
		{"room for one of two: the larger pod is placed first", func(f *fleet, a *asked) { goes(a, "m2", "n2") }, "m1"},
		{"room for one of two that go together", func(f *fleet, a *asked) { goes(a, "m1", "n2") }, "m1"},
		{"room for two", func(f *fleet, a *asked) { goes(a, "m2", "n2"); f.node("n4", "large") }, ""},
		{"a pod that will not leave needs no room", func(f *fleet, a *asked) {
			full(f, "n2", "n3")
			f.guard(0, 5, 5)
		}, ""},
		{"a pod that would not leave has to, because its node is taken away", func(f *fleet, a *asked) {
			full(f, "n2", "n3")
			f.guard(0, 5, 5)
			f.claim("n1").Interruption = cluster.Interruption{Kind: "spot", Deadline: f.now.Add(2e11)}
		}, "m1"},
		{"a pod that would not leave need not if the interruption is only advice", func(f *fleet, a *asked) {
			full(f, "n2", "n3")
			f.guard(0, 5, 5)
			f.claim("n1").Interruption = cluster.Interruption{Kind: "rebalance"}
		}, ""},
	}
	for _, c := range cases {
		f := newFleet()
		a := &asked{parties: make(map[string][]string)}
		goes(a, "m1", "n1")
		c.change(f, a)
		out := DeparturesWithoutRoom(f.s.Seal(), f.set, a.placed, a.commands, a.parties)
		if got := strings.Join(slices.Sorted(maps.Keys(out)), " "); got != c.want {
			t.Errorf("%s: %q lack room, want %q", c.name, got, c.want)
		}
	}
}

// Where node after node lacks room because others stay, it is not asked about each of them: the later half of those
// that are left stays.
func TestLongChainsAreCutShort(t *testing.T) {
	f := shyFleet("b")
	shy := f.pod("p1").Class
	f.s.Claims, f.s.Nodes, f.s.Pods = nil, nil, nil
	f.pool.NodeClass.Ready = false
	departures, commands := make(map[string][]string), []command.Command(nil)
	goes := func(departure, rack string, class *cluster.PodClass, nodes ...string) {
		for _, n := range nodes {
			f.node(n, "large")
			f.host(n).Labels = f.host(n).Labels.With("rack", rack)
			p := f.run("p"+n, n, 1)
			if class != nil {
				p.Class = class
			} else {
				p.Labels = cluster.LabelsOf(map[string]string{"app": "db"})
			}
			commands = append(commands, command.DeleteClaim{Claim: n, Node: n})
		}
		if departure != "" {
			departures[departure] = nodes
		}
	}
	goes("", "", nil, "alone")
	// There is a place for a shy pod in racks r0 to r2 each, which is free if the one stays away that is there.
	for i, rack := range []string{"r3", "r2", "r1", "r0"} {
		goes("chain"+strconv.Itoa(i), rack, shy, "a"+strconv.Itoa(i))
	}
	for _, rack := range []string{"r0", "r1", "r2"} {
		f.node("free-"+rack, "large")
		f.host("free-" + rack).Labels = f.host("free-"+rack).Labels.With("rack", rack)
	}
	goes("first", "", nil, "b1", "b2")
	goes("second", "", nil, "c1")
	goes("third", "", nil, "d1")
	out := DeparturesWithoutRoom(f.s.Seal(), f.set, nil, commands, departures)
	if got, want := strings.Join(slices.Sorted(maps.Keys(out)), " "), "chain0 chain1 chain2 chain3 third"; got != want {
		t.Errorf("%q stay, want %q", got, want)
	}
}
