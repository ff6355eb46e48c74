package destination

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// Whoever a plan has looked after is not looked after again when it is checked, be it that there was no place for them;
// but whoever needs no place any more takes up none.
func TestWhoeverWaitsIsLookedAfterOnce(t *testing.T) {
	s := disrupttest.Quiet(2)
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
		Bins:     []market.Bin{{Pods: []*cluster.Pod{wait("bought for")}}},
		Unplaced: []schedule.Unplaced{{Pod: wait("hopeless")}},
	}
	o := decidedPending(s.Seal(), placed)
	for name, want := range map[string]bool{"drained": true, "seated": true, "bought for": true, "hopeless": true,
		"gone": false} {
		if o.Handled[name] != want {
			t.Errorf("%s is looked after: %t, want %t", name, o.Handled[name], want)
		}
	}
	if len(o.PlacedOn["n1"]) != 2 {
		t.Errorf("%d pods count as being on n1, want 2", len(o.PlacedOn["n1"]))
	}
}

// Who no longer has room when a plan is checked that lets n1 go, whose pod asks for 2 CPUs.
func TestWhoLacksRoom(t *testing.T) {
	full := func(f *disrupttest.Fleet, nodes ...string) {
		for _, n := range nodes {
			f.Run("full-"+n, n, 4)
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
		change func(f *disrupttest.Fleet, a *asked)
		want   string
	}{
		{"there is room", func(f *disrupttest.Fleet, a *asked) {}, ""},
		{"the room is taken", func(f *disrupttest.Fleet, a *asked) { full(f, "n2", "n3") }, "m1"},
		{"the room is fenced", func(f *disrupttest.Fleet, a *asked) {
			full(f, "n3")
			a.commands = append(a.commands, command.Fence{Claim: "n2", Node: "n2"})
		}, "m1"},
		{"the room is fenced already", func(f *disrupttest.Fleet, a *asked) {
			full(f, "n3")
			disrupttest.Taint(f.S, 1)
		}, "m1"},
		{"the room goes, too", func(f *disrupttest.Fleet, a *asked) {
			f.S.Pods = slices.Delete(f.S.Pods, 1, 2)
			full(f, "n3")
			a.commands = append(a.commands, command.DeleteClaim{Claim: "n2", Node: "n2"})
		}, "m1"},
		{"the room is taken, and others that go lack room, too", func(f *disrupttest.Fleet, a *asked) {
			full(f, "n2", "n3")
			a.commands = append(a.commands, command.DeleteClaim{Claim: "n3", Node: "n3"})
		}, "m1"},
		{"there is room, and the claim has gone", func(f *disrupttest.Fleet, a *asked) {
			f.S.Claims = f.S.Claims[1:]
		}, ""},
		{"a claim without a node goes", func(f *disrupttest.Fleet, a *asked) {
			a.commands = append(a.commands, command.DeleteClaim{Claim: "other"})
		}, ""},
		{"the room is not up", func(f *disrupttest.Fleet, a *asked) {
			full(f, "n3")
			disrupttest.NotUp(f.Claim("n2"))
		}, "m1"},
		{"the room is not there yet", func(f *disrupttest.Fleet, a *asked) {
			full(f, "n2", "n3")
			c := f.Node("n4", "large")
			c.NodeName, f.S.Nodes, c.Conditions = "", f.S.Nodes[:3], c.Conditions[:1]
		}, "m1"},
		{"the room is for a pod that waits", func(f *disrupttest.Fleet, a *asked) {
			full(f, "n3")
			a.placed = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.Run("new", "", 4), Host: "n2"}}}
		}, "m1"},
		{"the room was for a pod that is gone", func(f *disrupttest.Fleet, a *asked) {
			full(f, "n3")
			gone := f.Run("new", "", 4)
			f.S.Pods = f.S.Pods[:len(f.S.Pods)-1]
			a.placed = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: gone, Host: "n2"}}}
		}, ""},
		{"room for one of two: the larger pod is placed first", func(f *disrupttest.Fleet, a *asked) {
			goes(a, "m2", "n2")
		}, "m1"},
		{"room for one of two that go together", func(f *disrupttest.Fleet, a *asked) { goes(a, "m1", "n2") }, "m1"},
		{"room for two", func(f *disrupttest.Fleet, a *asked) { goes(a, "m2", "n2"); f.Node("n4", "large") }, ""},
		{"a pod that will not leave needs no room", func(f *disrupttest.Fleet, a *asked) {
			full(f, "n2", "n3")
			f.Guard(0, 5, 5)
		}, ""},
		{"a pod that would not leave has to, because its node is taken away", func(f *disrupttest.Fleet, a *asked) {
			full(f, "n2", "n3")
			f.Guard(0, 5, 5)
			f.Claim("n1").Interruption = cluster.Interruption{Kind: "spot", Deadline: f.Now.Add(2e11)}
		}, "m1"},
		{"a pod that would not leave need not if the interruption is only advice", func(f *disrupttest.Fleet,
			a *asked) {
			full(f, "n2", "n3")
			f.Guard(0, 5, 5)
			f.Claim("n1").Interruption = cluster.Interruption{Kind: "rebalance"}
		}, ""},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		a := &asked{parties: make(map[string][]string)}
		goes(a, "m1", "n1")
		c.change(f, a)
		out := DeparturesWithoutRoom(f.S.Seal(), f.Set, a.placed, a.commands, a.parties)
		if got := strings.Join(slices.Sorted(maps.Keys(out)), " "); got != c.want {
			t.Errorf("%s: %q lack room, want %q", c.name, got, c.want)
		}
	}
}

// Where node after node lacks room because others stay, it is not asked about each of them: the later half of those
// that are left stays.
func TestLongChainsAreCutShort(t *testing.T) {
	f := disrupttest.ShyFleet("b")
	shy := f.Pod("p1").Class
	f.S.Claims, f.S.Nodes, f.S.Pods = nil, nil, nil
	f.Pool.NodeClass.Ready = false
	departures, commands := make(map[string][]string), []command.Command(nil)
	goes := func(departure, rack string, class *cluster.PodClass, nodes ...string) {
		for _, n := range nodes {
			f.Node(n, "large")
			f.Host(n).Labels = f.Host(n).Labels.With("rack", rack)
			p := f.Run("p"+n, n, 1)
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
		f.Node("free-"+rack, "large")
		f.Host("free-" + rack).Labels = f.Host("free-"+rack).Labels.With("rack", rack)
	}
	goes("first", "", nil, "b1", "b2")
	goes("second", "", nil, "c1")
	goes("third", "", nil, "d1")
	out := DeparturesWithoutRoom(f.S.Seal(), f.Set, nil, commands, departures)
	if got, want := strings.Join(slices.Sorted(maps.Keys(out)), " "), "chain0 chain1 chain2 chain3 third"; got != want {
		t.Errorf("%q stay, want %q", got, want)
	}
}
