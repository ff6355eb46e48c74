package execute

import (
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// What becomes of a move that a search has found: n1 is to go, and its pod to n2.
func TestWhatBegins(t *testing.T) {
	begins := "fence/n1; begin n1 $4"
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"nothing has changed", func(f *disrupttest.Fleet) {}, begins},
		{"the claim is gone", func(f *disrupttest.Fleet) {
			f.O.Proposal.Moves[0].Claims = []string{"n0"}
		}, "pass n0: NotInitialized"},
		{"it is about no node", func(f *disrupttest.Fleet) {
			f.O.Proposal.Moves[0].Claims = nil
		}, "pass : NotInitialized"},
		{"people keep it", func(f *disrupttest.Fleet) {
			f.Host("n1").DoNotDisrupt = true
		}, "pass n1: NodeDoNotDisrupt"},
		{"the plan fences it for another reason", func(f *disrupttest.Fleet) {
			f.O.Commands = []command.Command{command.Fence{Node: "n1"}}
		}, "pass n1: BeingDisrupted"},
		{"the plan deletes it", func(f *disrupttest.Fleet) {
			f.O.Commands = []command.Command{command.DeleteClaim{Claim: "n1", Node: "n1"}}
		}, "pass n1: BeingDisrupted"},
		{"the plan sends a pod there", func(f *disrupttest.Fleet) {
			f.O.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.Run("new", "", 1), Host: "n1"}}}
		}, "pass n1: PodsExpected"},
		{"its fence did not go up lately", func(f *disrupttest.Fleet) {
			f.S.Retry["fence/n1"] = cluster.Retry{NotBefore: f.Now.Add(time.Second)}
		}, "pass n1: MoveFailedLately"},
		{"its fence did not go up long ago", func(f *disrupttest.Fleet) {
			f.S.Retry["fence/n1"] = cluster.Retry{NotBefore: f.Now}
		}, begins},
		{"the budget is used up", func(f *disrupttest.Fleet) { f.Pool.Budgets[0].Nodes = 0 }, "pass n1: BudgetBlocks"},
		{"the pool only wants to be told", func(f *disrupttest.Fleet) {
			f.Pool.Overrides.DryRun = true
		}, "would n1; pass n1: DryRun"},
		{"another node is just being fenced", func(f *disrupttest.Fleet) {
			f.S.InFlight["fence/n3"] = true
		}, "pass n1: BeingDisrupted"},
		{"pods of another move go there", func(f *disrupttest.Fleet) {
			f.Pod("p3").Class.Requests[0] = 1000
			f.Found("n3", "n1")
			f.O.Proposal.Moves[0], f.O.Proposal.Moves[1] = f.O.Proposal.Moves[1], f.O.Proposal.Moves[0]
		}, "fence/n3; begin n3 $4; pass n1: PodsExpected"},
		{"the place is taken, and there is another", func(f *disrupttest.Fleet) { f.Run("new", "n2", 3) }, begins},
		{"the place goes away, and there is another", func(f *disrupttest.Fleet) {
			f.Claim("n2").Deleting = f.Now
			f.Pod("p2").Class.Requests[0] = 1000
		}, begins},
		{"the place is interrupted, and there is another", func(f *disrupttest.Fleet) {
			f.Claim("n2").Interruption = cluster.Interruption{Kind: "spot", Force: true}
		}, begins},
		{"the place is not quiet, and there is another", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.For = time.Minute
			f.Claim("n2").LastPodEvent = f.Now
		}, begins},
		{"the places are taken, and a smaller node will do", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 3)
			f.Run("new3", "n3", 3)
		}, begins},
		{"the places are taken, and what is left is less than half", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Run("more", "n1", 1)
			f.O.Proposal.Moves[0].Before = 4.1
		}, "pass n1: SavesTooLittle"},
		{"the places are taken, and half of it is left", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Run("more", "n1", 1)
		}, begins},
		{"the places are taken, and nothing is cheaper", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Run("more", "n1", 6)
		}, "pass n1: NothingCheaper"},
		{"the places are taken, and no node can be made", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Pool.NodeClass.Ready = false
		}, "pass n1: PodsStranded"},
		{"an earlier try has left a node that nobody uses", func(f *disrupttest.Fleet) {
			f.Node("left", "large").Replaces = f.O.Proposal.Moves[0].ID
		}, "pass n1: NothingCheaper"},
		{"nobody knows what a node costs that an earlier try has left", func(f *disrupttest.Fleet) {
			c := f.Node("left", "small")
			c.Replaces, c.Price, c.Labels = f.O.Proposal.Moves[0].ID, 0, disrupttest.LabelsFor("sold no more", "a",
				disrupt.OnDemand)
		}, "pass n1: PriceUnknown"},
		{"the places are taken, and a new node saves less than half of what it did", func(f *disrupttest.Fleet) {
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
			f.Pod("p1").Class.Ports = make([]cluster.Port, 1)
			b := disrupttest.BinOf(f.Pool, []string{disrupt.OnDemand}, "small")
			b.Pods = []*cluster.Pod{f.Pod("p1")}
			m := &f.O.Proposal.Moves[0]
			m.Bins, m.Assigned, m.Before, m.After = []market.Bin{b}, nil, 9, 1
		}, "fence/n1; begin n1 $8"},
		{"what an earlier try has left is on its way out", func(f *disrupttest.Fleet) {
			c := f.Node("left", "large")
			c.Replaces, c.Deleting = f.O.Proposal.Moves[0].ID, f.Now
		}, begins},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Found("n1", "n2")
		c.change(f)
		left := disrupt.NewBudgetTracker(f.S.Seal())
		f.O.Budgets = left
		before := left.Remaining("default", command.Drifted)
		if got := carry(f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		} else if taken := before - left.Remaining("default", command.Drifted); taken != strings.Count(got, "begin")+
			strings.Count(got, "would") {
			t.Errorf("%s: %q takes %d nodes from the budget", c.name, got, taken)
		}
	}
}

// Two moves that were found beside each other begin together, in the places that were found.
func TestTwoMovesBegin(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Node("n4", "large")
	f.Run("p4", "n4", 2)
	f.Found("n1", "n2")
	f.Found("n4", "n2")
	if got, want := carry(f), "fence/n1; fence/n4; begin n1 $4; begin n4 $4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// With no room for both on n2, one of them goes to n3: that is asked together.
	f.Run("new", "n2", 1)
	if got, want := carry(f), "fence/n1; fence/n4; begin n1 $4; begin n4 $4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A place that a search has found must still be one: n1 is to go, and its pod, which asks for 3 CPUs, to n2. n3 is
// full. A new node for it would save less than half of what was found.
func TestWhetherAFoundPlaceIsStillThere(t *testing.T) {
	begins, no := "fence/n1; begin n1 $4.1", "pass n1: SavesTooLittle"
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet)
		want   string
	}{
		{"it is", func(f *disrupttest.Fleet) {}, begins},
		{"another place was found", func(f *disrupttest.Fleet) {
			f.O.Proposal.Moves[0].Assigned[0].Host = "n3"
		}, begins},
		{"none was found", func(f *disrupttest.Fleet) { f.O.Proposal.Moves[0].Assigned = nil }, begins},
		{"others have taken it", func(f *disrupttest.Fleet) { f.Run("new", "n2", 2) }, no},
		{"one that waits is sent there", func(f *disrupttest.Fleet) {
			f.O.Placement = &schedule.Placement{Assigned: []schedule.Assignment{{Pod: f.Run("new", "", 2), Host: "n2"}}}
		}, no},
		{"the node is not up", func(f *disrupttest.Fleet) { disrupttest.NotUp(f.Claim("n2")) }, begins},
		{"the node is kept for a move", func(f *disrupttest.Fleet) {
			f.Host("n2").KeptFor = "m"
			f.Claim("n2").Replaces = "m"
		}, begins},
		{"the node is not quiet", func(f *disrupttest.Fleet) {
			f.Pool.ConsolidateAfter.For = time.Minute
			f.Claim("n2").LastPodEvent = f.Now
		}, no},
		{"the node goes", func(f *disrupttest.Fleet) { f.Claim("n2").Deleting = f.Now }, no},
		{"the node goes in a move", func(f *disrupttest.Fleet) {
			f.Drifted("n2")
			f.Fenced(command.Drifted, "n2")
			f.S.Pods = append(f.S.Pods[:1], f.S.Pods[2:]...)
		}, "delete/n2; " + no},
		{"the plan fences the node", func(f *disrupttest.Fleet) {
			f.O.Commands = []command.Command{command.Fence{Node: "n2"}}
		}, no},
		{"the node is cordoned", func(f *disrupttest.Fleet) { f.Host("n2").Cordoned = true }, no},
		{"the node is tainted", func(f *disrupttest.Fleet) {
			f.Host("n2").Taints = []cluster.Taint{{Key: "team", Effect: cluster.NoSchedule}}
		}, no},
		{"a pod of a drifted node goes there", func(f *disrupttest.Fleet) {
			f.Node("n4", "large")
			f.Run("p4", "n4", 2)
			f.Drifted("n4")
			f.Fenced(command.Drifted, "n4")
			f.Host("n1").Cordoned = true
		}, "delete/n4; " + no},
		{"a pod of a node that saves money goes there", func(f *disrupttest.Fleet) {
			f.Node("n4", "large")
			f.Run("p4", "n4", 2)
			f.Fenced(command.Underutilized, "n4")
			f.Host("n1").Cordoned = true
		}, "delete/n4; " + no},
		{"the node has lost its claim", func(f *disrupttest.Fleet) {
			f.S.Claims = append(f.S.Claims[:1], f.S.Claims[2:]...)
		}, no},
		{"the node is somebody else's", func(f *disrupttest.Fleet) {
			f.S.Claims, f.Host("n2").Ours = append(f.S.Claims[:1], f.S.Claims[2:]...), false
		}, begins},
		{"the node is kept for the pods of a drifted one", func(f *disrupttest.Fleet) {
			f.Node("n4", "large")
			f.Run("p4", "n4", 4)
			f.Drifted("n4")
			f.Replaced(f.Fenced(command.Drifted, "n4"), "new",
				"large").Seats = []cluster.Seat{{Class: "web4", Count: 1}}
			f.Run("full2", "n2", 4)
			f.O.Proposal.Moves[0].Assigned[0].Host = "new"
		}, "delete/n4; " + no},
		{"the node goes itself in a move that was found", func(f *disrupttest.Fleet) {
			for _, name := range []string{"n4", "n5"} {
				f.Node(name, "large")
				f.Run("p"+name, name, 1)
			}
			f.Pod("pn5").Class = f.Pod("p1").Class
			f.Found("n4", "n2")
			f.Found("n5", "n4").Before = 4.1
		}, "fence/n1; fence/n4; begin n1 $4.1; begin n4 $4; pass n5: OthersFirst"},
		{"another move has taken it", func(f *disrupttest.Fleet) {
			f.Node("n4", "large")
			f.Run("p4", "n4", 2)
			f.Found("n4", "n2")
			f.O.Proposal.Moves[0], f.O.Proposal.Moves[1] = f.O.Proposal.Moves[1], f.O.Proposal.Moves[0]
		}, "fence/n4; begin n4 $4; pass n1: OthersFirst"},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		f.Pod("p1").Class.Requests[0] = 3000
		f.Run("full", "n3", 4)
		f.Found("n1", "n2").Before = 4.1
		c.change(f)
		if got := carry(f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A move that is passed because of its price says what it would save, and what it would have to.
func TestPassedMovesSayWhatTheyWouldSave(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Found("n1", "n2").Before = 4.1
	f.Run("new2", "n2", 4)
	f.Run("new3", "n3", 4)
	f.Run("more", "n1", 1)
	r, _ := Moves(f.S.Seal(), f.Set, input(f))
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
		change func(f *disrupttest.Fleet, b *market.Bin)
		want   string
	}{
		{"nothing has changed", func(f *disrupttest.Fleet, b *market.Bin) {}, atOnce},
		{"the pool is gone", func(f *disrupttest.Fleet, b *market.Bin) {
			b.Pool = &cluster.Pool{Name: "gone", Catalog: f.Pool.Catalog}
		}, later},
		{"the pool is another of the same name", func(f *disrupttest.Fleet, b *market.Bin) {
			other := *f.Pool
			other.UID, b.Pool = "other", &other
		}, later},
		{"the pool has changed", func(f *disrupttest.Fleet, b *market.Bin) {
			old := *f.Pool
			old.Generation, b.Pool = 7, &old
		}, later},
		{"the pool can't be used", func(f *disrupttest.Fleet, b *market.Bin) {
			f.Pool.NodeClass.Ready = false
		}, later},
		{"the pool is on trial", func(f *disrupttest.Fleet, b *market.Bin) { f.Pool.Probing = true }, later},
		{"the pool has limits", func(f *disrupttest.Fleet, b *market.Bin) {
			f.Pool.Limits = cluster.Limits{HasNodes: true, Nodes: 9}
		}, later},
		{"the pod has rules", func(f *disrupttest.Fleet, b *market.Bin) {
			b.Pods[0].Class.Ports = make([]cluster.Port, 1)
		}, later},
		{"an earlier try has left a node", func(f *disrupttest.Fleet, b *market.Bin) {
			f.Node("left", "small").Replaces = f.O.Proposal.Moves[0].ID
		}, later},
		{"an earlier try has left a node that is on its way out", func(f *disrupttest.Fleet, b *market.Bin) {
			c := f.Node("left", "small")
			c.Replaces, c.Deleting = f.O.Proposal.Moves[0].ID, f.Now
		}, atOnce},
		{"it does not save enough any more", func(f *disrupttest.Fleet, b *market.Bin) {
			f.Set.MinSaving = 0.9
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 4)
		}, "pass n1: SavesTooLittle"},
		{"another move is found whose place is taken", func(f *disrupttest.Fleet, b *market.Bin) {
			f.Node("n4", "small")
			f.Run("p4", "n4", 2)
			f.Found("n4", "n2")
			f.Run("new2", "n2", 4)
			f.Run("new3", "n3", 2)
		}, "fence/n1; fence/n4; begin n1 $3; begin n4 $1; want $1"},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		m := f.Found("n1", "n2")
		b := disrupttest.BinOf(f.Pool, []string{disrupt.OnDemand}, "small")
		b.Pods = []*cluster.Pod{f.Pod("p1")}
		m.Bins, m.Assigned, m.After = []market.Bin{b}, nil, 1
		c.change(f, &m.Bins[0])
		if got := carry(f); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What is said of a move that begins because it has to: what its node costs, how many pods move, and how much that
// disturbs.
func TestWhatIsSaidOfAMoveThatBegins(t *testing.T) {
	f := disrupttest.FleetOf("medium: large:1,2,1; p1 cost 5; p3 daemon")
	f.Drifted("n2")
	r, _ := Moves(f.S.Seal(), f.Set, input(f))
	if len(r.Begun) != 1 || r.Begun[0].Before != 4 || r.Begun[0].Evicted != 2 || r.Begun[0].Cost != 1+5+1 {
		t.Errorf("%+v, want one move of a node for $4 with two pods that costs 7", r.Begun)
	}
}
