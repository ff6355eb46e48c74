package disrupt

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// What becomes of a move that a search has found: n1 is to go, and its pod to n2.
func TestWhatBegins(t *testing.T) {
	begins := "fence/n1; begin n1 $4"
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"nothing has changed", func(f *fleet) {}, begins},
		{"the claim is gone", func(f *fleet) {
			f.o.Proposal.Moves[0].Claims = []string{"n0"}
		}, "pass n0: NotInitialized"},
		{"it is about no node", func(f *fleet) { f.o.Proposal.Moves[0].Claims = nil }, "pass : NotInitialized"},
		{"people keep it", func(f *fleet) { f.host("n1").DoNotDisrupt = true }, "pass n1: NodeDoNotDisrupt"},
		{"the plan fences it for another reason", func(f *fleet) {
			f.o.Commands = []command.Command{command.Fence{Node: "n1"}}
		}, "pass n1: BeingDisrupted"},
		{"the plan deletes it", func(f *fleet) {
			f.o.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, "pass n1: BeingDisrupted"},
		{"the plan sends a pod there", func(f *fleet) {
			f.o.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.run("new", "", 1), Host: "n1"}}}
		}, "pass n1: PodsExpected"},
		{"its fence did not go up lately", func(f *fleet) {
			f.s.Retry["fence/n1"] = cluster.Retry{NotBefore: f.now.Add(time.Second)}
		}, "pass n1: MoveFailedLately"},
		{"its fence did not go up long ago", func(f *fleet) {
			f.s.Retry["fence/n1"] = cluster.Retry{NotBefore: f.now}
		}, begins},
		{"the budget is used up", func(f *fleet) { f.pool.Budgets[0].Nodes = 0 }, "pass n1: BudgetBlocks"},
		{"the pool only wants to be told", func(f *fleet) {
			f.pool.Overrides.DryRun = true
		}, "would n1; pass n1: DryRun"},
		{"another node is just being fenced", func(f *fleet) {
			f.s.InFlight["fence/n3"] = true
		}, "pass n1: BeingDisrupted"},
		{"pods of another move go there", func(f *fleet) {
			f.pod("p3").Class.Requests[0] = 1000
			f.found("n3", "n1")
			f.o.Proposal.Moves[0], f.o.Proposal.Moves[1] = f.o.Proposal.Moves[1], f.o.Proposal.Moves[0]
		}, "fence/n3; begin n3 $4; pass n1: PodsExpected"},
		{"the place is taken, and there is another", func(f *fleet) { f.run("new", "n2", 3) }, begins},
		{"the place goes away, and there is another", func(f *fleet) {
			f.claim("n2").Deleting = f.now
			f.pod("p2").Class.Requests[0] = 1000
		}, begins},
		{"the place is interrupted, and there is another", func(f *fleet) {
			f.claim("n2").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, begins},
		{"the place is not quiet, and there is another", func(f *fleet) {
			f.pool.ConsolidateAfter.For = time.Minute
			f.claim("n2").LastPodEvent = f.now
		}, begins},
		{"the places are taken, and a smaller node will do", func(f *fleet) {
			f.run("new2", "n2", 3)
			f.run("new3", "n3", 3)
		}, begins},
		{"the places are taken, and what is left is less than half", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.run("more", "n1", 1)
			f.o.Proposal.Moves[0].Before = 4.1
		}, "pass n1: SavesTooLittle"},
		{"the places are taken, and half of it is left", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.run("more", "n1", 1)
		}, begins},
		{"the places are taken, and nothing is cheaper", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.run("more", "n1", 6)
		}, "pass n1: NothingCheaper"},
		{"the places are taken, and no node can be made", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.pool.NodeClass.Ready = false
		}, "pass n1: PodsStranded"},
		{"an earlier try has left a node that nobody uses", func(f *fleet) {
			f.node("left", "large").Replaces = f.o.Proposal.Moves[0].ID
		}, "pass n1: NothingCheaper"},
		{"nobody knows what a node costs that an earlier try has left", func(f *fleet) {
			c := f.node("left", "small")
			c.Replaces, c.Price, c.Labels = f.o.Proposal.Moves[0].ID, 0, labelsFor("sold no more", "a", onDemand)
		}, "pass n1: PriceUnknown"},
		{"the places are taken, and a new node saves less than half of what it did", func(f *fleet) {
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
			f.pod("p1").Class.Ports = make([]cluster.Port, 1)
			b := binOf(f.pool, []string{onDemand}, "small")
			b.Pods = []*cluster.Pod{f.pod("p1")}
			m := &f.o.Proposal.Moves[0]
			m.Bins, m.Assigned, m.Before, m.After = []schedule.Bin{b}, nil, 9, 1
		}, "fence/n1; begin n1 $8"},
		{"what an earlier try has left is on its way out", func(f *fleet) {
			c := f.node("left", "large")
			c.Replaces, c.Deleting = f.o.Proposal.Moves[0].ID, f.now
		}, begins},
	}
	for _, c := range cases {
		f := newFleet()
		f.found("n1", "n2")
		c.change(f)
		left := NewBudgetTracker(f.s.Seal())
		f.o.Budgets = left
		before := left.Remaining("default", command.Drifted)
		if got := f.carry(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		} else if taken := before - left.Remaining("default", command.Drifted); taken != strings.Count(got, "begin")+
			strings.Count(got, "would") {
			t.Errorf("%s: %q takes %d nodes from the budget", c.name, got, taken)
		}
	}
}

// Two moves that were found beside each other begin together, in the places that were found.
func TestTwoMovesBegin(t *testing.T) {
	f := newFleet()
	f.node("n4", "large")
	f.run("p4", "n4", 2)
	f.found("n1", "n2")
	f.found("n4", "n2")
	if got, want := f.carry(), "fence/n1; fence/n4; begin n1 $4; begin n4 $4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// With no room for both on n2, one of them goes to n3: that is asked together.
	f.run("new", "n2", 1)
	if got, want := f.carry(), "fence/n1; fence/n4; begin n1 $4; begin n4 $4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A place that a search has found must still be one: n1 is to go, and its pod, which asks for 3 CPUs, to n2. n3 is
// full. A new node for it would save less than half of what was found.
func TestWhetherAFoundPlaceIsStillThere(t *testing.T) {
	begins, no := "fence/n1; begin n1 $4.1", "pass n1: SavesTooLittle"
	cases := []struct {
		name   string
		change func(f *fleet)
		want   string
	}{
		{"it is", func(f *fleet) {}, begins},
		{"another place was found", func(f *fleet) { f.o.Proposal.Moves[0].Assigned[0].Host = "n3" }, begins},
		{"none was found", func(f *fleet) { f.o.Proposal.Moves[0].Assigned = nil }, begins},
		{"others have taken it", func(f *fleet) { f.run("new", "n2", 2) }, no},
		{"one that waits is sent there", func(f *fleet) {
			f.o.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.run("new", "", 2), Host: "n2"}}}
		}, no},
		{"the node is not up", func(f *fleet) { notUp(f.claim("n2")) }, begins},
		{"the node is kept for a move", func(f *fleet) {
			f.host("n2").KeptFor = "m"
			f.claim("n2").Replaces = "m"
		}, begins},
		{"the node is not quiet", func(f *fleet) {
			f.pool.ConsolidateAfter.For = time.Minute
			f.claim("n2").LastPodEvent = f.now
		}, no},
		{"the node goes", func(f *fleet) { f.claim("n2").Deleting = f.now }, no},
		{"the node goes in a move", func(f *fleet) {
			f.drifted("n2")
			f.fenced(command.Drifted, "n2")
			f.s.Pods = append(f.s.Pods[:1], f.s.Pods[2:]...)
		}, "delete/n2; " + no},
		{"the plan fences the node", func(f *fleet) {
			f.o.Commands = []command.Command{command.Fence{Node: "n2"}}
		}, no},
		{"the node is cordoned", func(f *fleet) { f.host("n2").Cordoned = true }, no},
		{"the node is tainted", func(f *fleet) {
			f.host("n2").Taints = []cluster.Taint{{Key: "team", Effect: cluster.NoSchedule}}
		}, no},
		{"a pod of a drifted node goes there", func(f *fleet) {
			f.node("n4", "large")
			f.run("p4", "n4", 2)
			f.drifted("n4")
			f.fenced(command.Drifted, "n4")
			f.host("n1").Cordoned = true
		}, "delete/n4; " + no},
		{"a pod of a node that saves money goes there", func(f *fleet) {
			f.node("n4", "large")
			f.run("p4", "n4", 2)
			f.fenced(command.Underutilized, "n4")
			f.host("n1").Cordoned = true
		}, "delete/n4; " + no},
		{"the node has lost its claim", func(f *fleet) { f.s.Claims = append(f.s.Claims[:1], f.s.Claims[2:]...) }, no},
		{"the node is somebody else's", func(f *fleet) {
			f.s.Claims, f.host("n2").Ours = append(f.s.Claims[:1], f.s.Claims[2:]...), false
		}, begins},
		{"the node is kept for the pods of a drifted one", func(f *fleet) {
			f.node("n4", "large")
			f.run("p4", "n4", 4)
			f.drifted("n4")
			f.replaced(f.fenced(command.Drifted, "n4"), "new",
				"large").Seats = []cluster.Seat{{Class: "web4", Count: 1}}
			f.run("full2", "n2", 4)
			f.o.Proposal.Moves[0].Assigned[0].Host = "new"
		}, "delete/n4; " + no},
		{"the node goes itself in a move that was found", func(f *fleet) {
			for _, name := range []string{"n4", "n5"} {
				f.node(name, "large")
				f.run("p"+name, name, 1)
			}
			f.pod("pn5").Class = f.pod("p1").Class
			f.found("n4", "n2")
			f.found("n5", "n4").Before = 4.1
		}, "fence/n1; fence/n4; begin n1 $4.1; begin n4 $4; pass n5: OthersFirst"},
		{"another move has taken it", func(f *fleet) {
			f.node("n4", "large")
			f.run("p4", "n4", 2)
			f.found("n4", "n2")
			f.o.Proposal.Moves[0], f.o.Proposal.Moves[1] = f.o.Proposal.Moves[1], f.o.Proposal.Moves[0]
		}, "fence/n4; begin n4 $4; pass n1: OthersFirst"},
	}
	for _, c := range cases {
		f := newFleet()
		f.pod("p1").Class.Requests[0] = 3000
		f.run("full", "n3", 4)
		f.found("n1", "n2").Before = 4.1
		c.change(f)
		if got := f.carry(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A move that is passed because of its price says what it would save, and what it would have to.
func TestPassedMovesSayWhatTheyWouldSave(t *testing.T) {
	f := newFleet()
	f.found("n1", "n2").Before = 4.1
	f.run("new2", "n2", 4)
	f.run("new3", "n3", 4)
	f.run("more", "n1", 1)
	r, _ := Execute(f.s.Seal(), f.set, f.o)
	if len(r.NotBegun) != 1 || r.NotBegun[0].Saving != 2 || r.NotBegun[0].CertainSaving > 2 ||
		r.NotBegun[0].CertainSaving <= 0 || r.NotBegun[0].NeededSaving != 2.05 {
		t.Errorf("%+v, want that a node for $2 in place of one for $4 saves $2 where $2.05 are needed", r.NotBegun)
	}
}

// A new node that a search has found is asked for at once if nothing stands against it. Otherwise the pods are placed
// once more: they have room on n2 now, and what is missing is asked for when the node is fenced.
func TestWhetherAFoundNodeIsAskedForAtOnce(t *testing.T) {
	atOnce, later := "fence/n1; begin n1 $3; want $1", "fence/n1; begin n1 $3"
	cases := []struct {
		name   string
		change func(f *fleet, b *schedule.Bin)
		want   string
	}{
		{"nothing has changed", func(f *fleet, b *schedule.Bin) {}, atOnce},
		{"the pool is gone", func(f *fleet, b *schedule.Bin) {
			b.Pool = &cluster.Pool{Name: "gone", Catalog: f.pool.Catalog}
		}, later},
		{"the pool is another of the same name", func(f *fleet, b *schedule.Bin) {
			other := *f.pool
			other.UID, b.Pool = "other", &other
		}, later},
		{"the pool has changed", func(f *fleet, b *schedule.Bin) {
			old := *f.pool
			old.Generation, b.Pool = 7, &old
		}, later},
		{"the pool can't be used", func(f *fleet, b *schedule.Bin) { f.pool.NodeClass.Ready = false }, later},
		{"the pool is on trial", func(f *fleet, b *schedule.Bin) { f.pool.Probing = true }, later},
		{"the pool has limits", func(f *fleet, b *schedule.Bin) {
			f.pool.Limits = cluster.Limits{HasNodes: true, Nodes: 9}
		}, later},
		{"the pod has rules", func(f *fleet, b *schedule.Bin) {
			b.Pods[0].Class.Ports = make([]cluster.Port, 1)
		}, later},
		{"an earlier try has left a node", func(f *fleet, b *schedule.Bin) {
			f.node("left", "small").Replaces = f.o.Proposal.Moves[0].ID
		}, later},
		{"an earlier try has left a node that is on its way out", func(f *fleet, b *schedule.Bin) {
			c := f.node("left", "small")
			c.Replaces, c.Deleting = f.o.Proposal.Moves[0].ID, f.now
		}, atOnce},
		{"it does not save enough any more", func(f *fleet, b *schedule.Bin) {
			f.set.MinSaving = 0.9
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 4)
		}, "pass n1: SavesTooLittle"},
		{"another move is found whose place is taken", func(f *fleet, b *schedule.Bin) {
			f.node("n4", "small")
			f.run("p4", "n4", 2)
			f.found("n4", "n2")
			f.run("new2", "n2", 4)
			f.run("new3", "n3", 2)
		}, "fence/n1; fence/n4; begin n1 $3; begin n4 $1; want $1"},
	}
	for _, c := range cases {
		f := newFleet()
		m := f.found("n1", "n2")
		b := binOf(f.pool, []string{onDemand}, "small")
		b.Pods = []*cluster.Pod{f.pod("p1")}
		m.Bins, m.Assigned, m.After = []schedule.Bin{b}, nil, 1
		c.change(f, &m.Bins[0])
		if got := f.carry(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What is said of a move that begins because it has to: what its node costs, how many pods move, and how much that
// disturbs.
func TestWhatIsSaidOfAMoveThatBegins(t *testing.T) {
	f := fleetOf("medium: large:1,2,1; p1 cost 5; p3 daemon")
	f.drifted("n2")
	r, _ := Execute(f.s.Seal(), f.set, f.o)
	if len(r.Begun) != 1 || r.Begun[0].Before != 4 || r.Begun[0].Evicted != 2 || r.Begun[0].Cost != 1+5+1 {
		t.Errorf("%+v, want one move of a node for $4 with two pods that costs 7", r.Begun)
	}
}
