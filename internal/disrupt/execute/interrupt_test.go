package execute

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt/disrupttest"
	"github.com/tenon-sh/tenon/internal/market"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// What becomes of n1, which the cloud takes away in ten minutes or only advises to let go. Its pod has room on n2 and
// n3.
func TestWhatBecomesOfAnInterruptedNode(t *testing.T) {
	fenced := func(f *disrupttest.Fleet) { f.Fenced(command.Interrupted, "n1") }
	full := func(f *disrupttest.Fleet) { f.Run("x", "n2", 4); f.Run("y", "n3", 4) }
	begins := "fence/n1; begin n1 $4"
	cases := []struct {
		name                  string
		change                func(f *disrupttest.Fleet)
		want, advised, counts string // with a deadline; advised only; with a deadline while pods are counted
	}{
		{"it is fenced", func(f *disrupttest.Fleet) {}, begins, begins, begins},
		{"it is fenced, and goes", fenced, "delete/n1", "delete/n1", ""},
		{"a replacement is on its way", func(f *disrupttest.Fleet) {
			fenced(f)
			disrupttest.NotUp(f.Replaced(f.Claim("n1").Move, "new", "small"))
		}, "", "", ""},
		{"there is no room", func(f *disrupttest.Fleet) { fenced(f); full(f) }, "want $1", "want $1", "want $1"},
		{"there is no room, and it is not fenced yet", full, begins + "; want $1", begins + "; want $1", begins +
			"; want $1"},
		{"pods have nowhere to go", func(f *disrupttest.Fleet) {
			full(f)
			f.Pool.NodeClass.Ready = false
		}, begins, "", begins},
		{"pods have nowhere to go any more", func(f *disrupttest.Fleet) {
			fenced(f)
			full(f)
			f.Pool.NodeClass.Ready = false
		}, "",
			"unfence/n1: PodsStranded, rests; give up n1: PodsStranded", ""},
		{"pods have nowhere to go any more, and it is being opened", func(f *disrupttest.Fleet) {
			fenced(f)
			full(f)
			f.Pool.NodeClass.Ready, f.S.InFlight["unfence/n1"] = false, true
		}, "", "", ""},
		{"one pod has nowhere to go any more, and another needs a new node", func(f *disrupttest.Fleet) {
			fenced(f)
			full(f)
			f.Run("far", "n1", 1).Class.Terms = []require.Set{require.Set{}.With(cluster.ZoneLabel,
				require.Only("elsewhere"))}
		}, "want $1", "unfence/n1: PodsStranded, rests; give up n1: PodsStranded", "want $1"},
		{"its pool is gone", func(f *disrupttest.Fleet) { f.Claim("n1").Pool = "gone" }, begins, "", begins},
		{"a pod says no", func(f *disrupttest.Fleet) { f.Pod("p1").DoNotDisrupt = true }, begins, "", begins},
		{"a pod says no after all", func(f *disrupttest.Fleet) {
			fenced(f)
			f.Pod("p1").DoNotDisrupt = true
		}, "delete/n1", "", ""},
		{"it goes in another move", func(f *disrupttest.Fleet) { f.Fenced(command.Drifted, "n1") }, begins, "", begins},
		{"the fence is gone", func(f *disrupttest.Fleet) {
			fenced(f)
			f.Host("n1").Taints = nil
		}, begins, begins, begins},
		{"it is being opened", func(f *disrupttest.Fleet) { f.S.InFlight["unfence/n1"] = true }, "", "", ""},
		{"it is being deleted", func(f *disrupttest.Fleet) { fenced(f); f.S.InFlight["delete/n1"] = true }, "", "", ""},
		{"its node is on its way out", func(f *disrupttest.Fleet) { f.Host("n1").Deleting = f.Now }, "", "", ""},
		{"it is only expected", func(f *disrupttest.Fleet) { f.Claim("n1").Expected = true }, "", "", ""},
		{"the planner fails on it", func(f *disrupttest.Fleet) {
			f.S.Quarantine.Claims = map[string]cluster.Failure{"n1": {}}
		}, begins, "", begins},
		{"no node has come", func(f *disrupttest.Fleet) {
			f.S.Nodes, f.S.Pods = f.S.Nodes[1:], f.S.Pods[1:]
			f.Claim("n1").Conditions = nil
		}, "delete/n1", "", "delete/n1"},
		{"it has not been opened", func(f *disrupttest.Fleet) {
			closed(f)
			f.S.Pods = f.S.Pods[1:]
		}, "delete/n1", "", "delete/n1"},
		{"it has not been opened, but a pod is there", func(f *disrupttest.Fleet) { closed(f) }, begins, "", begins},
		{"it is being opened just now", func(f *disrupttest.Fleet) {
			closed(f)
			f.S.Pods = f.S.Pods[1:]
			f.S.InFlight["register/n1"] = true
		}, begins, "", begins},
		{"it has been opened", func(f *disrupttest.Fleet) {
			closed(f)
			f.Claim("n1").Conditions = f.Node("x", "small").Conditions
			f.S.Pods = f.S.Pods[1:]
		}, begins, begins, begins},
		{"it came without the taint", func(f *disrupttest.Fleet) {
			closed(f)
			f.Host("n1").Taints = nil
			f.S.Pods = f.S.Pods[1:]
		}, begins, "", begins},
		{"it is drained already, and there is no room for a pod that has to leave", func(f *disrupttest.Fleet) {
			f.Claim("n1").Deleting = f.Now
			f.Pod("p1").DoNotDisrupt = true
			f.Guard(0, 5, 5)
			full(f)
		}, "want $1", "", "want $1"},
		{"a static pool: there is one in its place", func(f *disrupttest.Fleet) {
			f.Static1()
			fenced(f)
			f.Replaced(f.Claim("n1").Move, "new", "small")
		}, "delete/n1", "delete/n1", ""},
		{"a static pool: one is on its way", func(f *disrupttest.Fleet) {
			f.Static1()
			fenced(f)
			disrupttest.NotUp(f.Replaced(f.Claim("n1").Move, "new", "small"))
		}, "", "", ""},
		{"a static pool: one is asked for", func(f *disrupttest.Fleet) {
			f.Static1()
			fenced(f)
		}, "want $1", "want $1", "want $1"},
		{"a static pool without the gate: pods have room elsewhere", func(f *disrupttest.Fleet) {
			f.Static1()
			f.O.Static = false
			fenced(f)
		}, "delete/n1", "delete/n1", ""},
	}
	for _, c := range cases {
		for _, how := range []struct {
			name     string
			left     time.Duration
			counting bool
			want     string
		}{{"with a deadline", 10 * time.Minute, false, c.want}, {"advised", 0, false, c.advised},
			{"with a deadline, while pods are counted", 10 * time.Minute, true, c.counts}} {
			f := disrupttest.NewFleet()
			f.Warned("n1", how.left)
			c.change(f)
			r, _, _ := Interrupt(f.S.Seal(), f.Set, input(f), how.counting)
			if got := disrupttest.Outcome(&r); got != how.want {
				t.Errorf("%s, %s: %q, want %q", c.name, how.name, got, how.want)
			}
		}
	}
}

// n1 is interrupted, and its pod has room on n2. A pod that waits was nominated to n2: as long as kube-scheduler keeps
// the room for it, or binds it there, n1 stays, wherever the plan sends the pod.
func TestAnInterruptedNodeWaitsForNominationsToBeTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		nominated string
		place     func(p *schedule.Placement, pod *cluster.Pod)
		want      string
	}{
		"it goes to a node that is on its way": {"n2", func(p *schedule.Placement, pod *cluster.Pod) {
			p.Assigned = []schedule.Assignment{{Pod: pod, Host: "coming"}}
		}, ""},
		"it goes to a new node": {"n2", func(p *schedule.Placement, pod *cluster.Pod) {
			p.Bins = []market.Bin{{Pods: []*cluster.Pod{pod}}}
		}, ""},
		"it has no place": {"n2", func(p *schedule.Placement, pod *cluster.Pod) {
			p.Unplaced = []schedule.Unplaced{{Pod: pod}}
		}, ""},
		"it goes there, and both have room": {"n2", func(p *schedule.Placement, pod *cluster.Pod) {
			p.Assigned = []schedule.Assignment{{Pod: pod, Host: "n2"}}
		}, "delete/n1"},
		"it was nominated to another node": {"n3", func(p *schedule.Placement, pod *cluster.Pod) {
			p.Unplaced = []schedule.Unplaced{{Pod: pod}}
		}, "delete/n1"},
		"it was not nominated": {"", func(p *schedule.Placement, pod *cluster.Pod) {
			p.Unplaced = []schedule.Unplaced{{Pod: pod}}
		}, "delete/n1"},
	} {
		f := disrupttest.NewFleet()
		f.Warned("n1", 10*time.Minute)
		f.Fenced(command.Interrupted, "n1")
		f.Run("x", "n3", 4)
		pod := f.Run("waits", "", 1)
		pod.Nominated = c.nominated
		f.O.Placement = &schedule.Placement{}
		c.place(f.O.Placement, pod)
		r, _, _ := Interrupt(f.S.Seal(), f.Set, input(f), false)
		if got := disrupttest.Outcome(&r); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// closed has n1 not be opened yet.
func closed(f *disrupttest.Fleet) {
	f.Claim("n1").Conditions = f.Claim("n1").Conditions[:1]
	f.Host("n1").Taints = []cluster.Taint{{Key: cluster.UnregisteredTaint, Effect: cluster.NoExecute}}
}

// When pods are told to leave whether or not they have a place elsewhere, and by when they must have.
func TestWhenAnInterruptedNodeHasToGo(t *testing.T) {
	cases := []struct {
		name   string
		change func(f *disrupttest.Fleet, c *cluster.Claim)
		goes   bool
		end    time.Duration // after now
	}{
		{"long before the deadline", func(f *disrupttest.Fleet, c *cluster.Claim) {}, false, 10 * time.Minute},
		{"just enough time is left", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.Warned("n1", 45*time.Second)
		}, true, 45 * time.Second},
		{"a little more time is left", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.Warned("n1", 46*time.Second)
		}, false, 46 * time.Second},
		{"people want more time for it", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.Set.InterruptionDrain = 10 * time.Minute
		}, true, 10 * time.Minute},
		{"it is of no use any more", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Interruption.Force = true
		}, true, 0},
		{"its own grace is shorter", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.Warned("n1", 45*time.Second)
			c.HasTerminationGrace, c.TerminationGrace = true, 30*time.Second
		}, true, 30 * time.Second},
		{"it was to be gone before, and was not deleted", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.Warned("n1", 45*time.Second)
			c.Deadline = f.Now.Add(time.Second)
		}, true, 45 * time.Second},
		{"the cloud only advises it", func(f *disrupttest.Fleet, c *cluster.Claim) { f.Warned("n1", 0) }, false, 0},
		{"its own grace is longer", func(f *disrupttest.Fleet, c *cluster.Claim) {
			f.Warned("n1", 45*time.Second)
			c.HasTerminationGrace, c.TerminationGrace = true, time.Hour
		}, true, 45 * time.Second},
		{"it is of no use any more, whatever its own grace", func(f *disrupttest.Fleet, c *cluster.Claim) {
			c.Interruption.Force, c.HasTerminationGrace, c.TerminationGrace = true, true, 30*time.Second
		}, true, 0},
	}
	for _, c := range cases {
		f := disrupttest.NewFleet()
		claim := f.Warned("n1", 10*time.Minute)
		f.Fenced(command.Interrupted, "n1")
		f.Run("x", "n2", 4)
		f.Run("y", "n3", 4) // no room
		c.change(f, claim)
		s := f.S.Seal()
		if got := MustGoNow(s, f.Set, claim); got != c.goes {
			t.Errorf("%s: it has to go %t, want %t", c.name, got, c.goes)
		}
		r, _, _ := Interrupt(s, f.Set, input(f), false)
		gone := false
		for _, cmd := range r.Commands {
			if d, ok := cmd.(command.DeleteClaim); ok {
				gone = true
				if !d.Deadline.Equal(f.Now.Add(c.end)) {
					t.Errorf("%s: it ends in %s, want %s", c.name, d.Deadline.Sub(f.Now), c.end)
				}
			}
		}
		if gone != c.goes {
			t.Errorf("%s: it goes %t, want %t", c.name, gone, c.goes)
		}
	}
}

// Of several interrupted nodes the most urgent gets the room that is there.
func TestTheMostUrgentGetsTheRoom(t *testing.T) {
	f := disrupttest.NewFleet()
	f.Pod("p1").Class, f.Pod("p3").Class = f.Pod("p2").Class, f.Pod("p2").Class
	f.Node("n4", "large")
	f.Run("p4", "n4", 4)
	f.Warned("n1", 0)
	f.Warned("n2", time.Hour)
	f.Warned("n3", 30*time.Minute)
	for _, name := range []string{"n1", "n2", "n3"} {
		f.Fenced(command.Interrupted, name)
	}
	r, _, _ := Interrupt(f.S.Seal(), f.Set, input(f), false)
	if got, want := disrupttest.Outcome(&r), "delete/n3; want $4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The pods of a static pool's node that is advised to go will need places, too, until another node is there for them:
// n3 has room for one pod, which is not promised to that of n2.
func TestPodsOfAdvisedStaticNodesCount(t *testing.T) {
	for advised, want := range map[bool]string{false: "fence/n2; begin n2 $4", true: "fence/n1; fence/n2; begin n1 " +
		"$4; begin n2 $4; want $2"} {
		f := disrupttest.NewFleet()
		b := f.PoolOf("b")
		b.Static, b.Replicas, f.O.Static = true, 1, true
		f.Claim("n1").Pool = "b"
		f.Pod("p1").Class = f.Pod("p2").Class
		f.Warned("n2", 10*time.Minute)
		if advised {
			f.Warned("n1", 0)
		}
		r, _, _ := Interrupt(f.S.Seal(), f.Set, input(f), false)
		if got := sorted(disrupttest.Outcome(&r)); got != sorted(want) {
			t.Errorf("advised %t: %q, want %q", advised, got, want)
		}
	}
}

// The earlier deadline is the more urgent one; what has none comes last.
func TestDeadlinesInOrder(t *testing.T) {
	early, never := time.Unix(60, 0), time.Time{}
	late := early.Add(time.Second)
	for _, c := range []struct {
		a, b time.Time
		want int
	}{
		{early, late, -1}, {late, early, 1}, {early, early, 0},
		{early, never, -1}, {never, early, 1}, {never, never, 0},
	} {
		if got := compareDeadlines(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
