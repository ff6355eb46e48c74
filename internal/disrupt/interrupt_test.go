package disrupt

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// warned says that the cloud takes a node away in so long; 0 for advice without a deadline.
func (f *fleet) warned(name string, left time.Duration) *cluster.Claim {
	c := f.claim(name)
	c.Interruption = cluster.Interruption{Kind: "spot"}
	if left > 0 {
		c.Interruption.Deadline = f.now.Add(left)
	}
	return c
}

// What becomes of n1, which the cloud takes away in ten minutes or only advises to let go. Its pod has room on n2 and
// n3.
func TestWhatBecomesOfAnInterruptedNode(t *testing.T) {
	fenced := func(f *fleet) { f.fenced(command.Interrupted, "n1") }
	full := func(f *fleet) { f.run("x", "n2", 4); f.run("y", "n3", 4) }
	begins := "fence/n1; begin n1 $4"
	cases := []struct {
		name                  string
		change                func(f *fleet)
		want, advised, counts string // with a deadline; advised only; with a deadline while pods are counted
	}{
		{"it is fenced", func(f *fleet) {}, begins, begins, begins},
		{"it is fenced, and goes", fenced, "delete/n1", "delete/n1", ""},
		{"a replacement is on its way", func(f *fleet) {
			fenced(f)
			notUp(f.replaced(f.claim("n1").Move, "new", "small"))
		}, "", "", ""},
		{"there is no room", func(f *fleet) { fenced(f); full(f) }, "want $1", "want $1", "want $1"},
		{"there is no room, and it is not fenced yet", full, begins + "; want $1", begins + "; want $1", begins +
			"; want $1"},
		{"pods have nowhere to go", func(f *fleet) { full(f); f.pool.NodeClass.Ready = false }, begins, "", begins},
		{"pods have nowhere to go any more", func(f *fleet) { fenced(f); full(f); f.pool.NodeClass.Ready = false }, "",
			"unfence/n1: PodsStranded, rests; give up n1: PodsStranded", ""},
		{"pods have nowhere to go any more, and it is being opened", func(f *fleet) {
			fenced(f)
			full(f)
			f.pool.NodeClass.Ready, f.s.InFlight["unfence/n1"] = false, true
		}, "", "", ""},
		{"one pod has nowhere to go any more, and another needs a new node", func(f *fleet) {
			fenced(f)
			full(f)
			f.run("far", "n1", 1).Class.Terms = []require.Set{require.Set{}.With(cluster.ZoneLabel,
				require.Only("elsewhere"))}
		}, "want $1", "unfence/n1: PodsStranded, rests; give up n1: PodsStranded", "want $1"},
		{"its pool is gone", func(f *fleet) { f.claim("n1").Pool = "gone" }, begins, "", begins},
		{"a pod says no", func(f *fleet) { f.pod("p1").DoNotDisrupt = true }, begins, "", begins},
		{"a pod says no after all", func(f *fleet) { fenced(f); f.pod("p1").DoNotDisrupt = true }, "delete/n1", "", ""},
		{"it goes in another move", func(f *fleet) { f.fenced(command.Drifted, "n1") }, begins, "", begins},
		{"the fence is gone", func(f *fleet) { fenced(f); f.host("n1").Taints = nil }, begins, begins, begins},
		{"it is being opened", func(f *fleet) { f.s.InFlight["unfence/n1"] = true }, "", "", ""},
		{"it is being deleted", func(f *fleet) { fenced(f); f.s.InFlight["delete/n1"] = true }, "", "", ""},
		{"its node is on its way out", func(f *fleet) { f.host("n1").Deleting = f.now }, "", "", ""},
		{"it is only expected", func(f *fleet) { f.claim("n1").Expected = true }, "", "", ""},
		{"the planner fails on it", func(f *fleet) {
			f.s.Quarantine.Claims = map[string]cluster.Failure{"n1": {}}
		}, begins, "", begins},
		{"no node has come", func(f *fleet) {
			f.s.Nodes, f.s.Pods = f.s.Nodes[1:], f.s.Pods[1:]
			f.claim("n1").Conditions = nil
		}, "delete/n1", "", "delete/n1"},
		{"it has not been opened", func(f *fleet) {
			f.closed()
			f.s.Pods = f.s.Pods[1:]
		}, "delete/n1", "", "delete/n1"},
		{"it has not been opened, but a pod is there", func(f *fleet) { f.closed() }, begins, "", begins},
		{"it is being opened just now", func(f *fleet) {
			f.closed()
			f.s.Pods = f.s.Pods[1:]
			f.s.InFlight["register/n1"] = true
		}, begins, "", begins},
		{"it has been opened", func(f *fleet) {
			f.closed()
			f.claim("n1").Conditions = f.node("x", "small").Conditions
			f.s.Pods = f.s.Pods[1:]
		}, begins, begins, begins},
		{"it came without the taint", func(f *fleet) {
			f.closed()
			f.host("n1").Taints = nil
			f.s.Pods = f.s.Pods[1:]
		}, begins, "", begins},
		{"it is drained already, and there is no room for a pod that has to leave", func(f *fleet) {
			f.claim("n1").Deleting = f.now
			f.pod("p1").DoNotDisrupt = true
			f.guard(0, 5, 5)
			full(f)
		}, "want $1", "", "want $1"},
		{"a static pool: there is one in its place", func(f *fleet) {
			f.static1()
			fenced(f)
			f.replaced(f.claim("n1").Move, "new", "small")
		}, "delete/n1", "delete/n1", ""},
		{"a static pool: one is on its way", func(f *fleet) {
			f.static1()
			fenced(f)
			notUp(f.replaced(f.claim("n1").Move, "new", "small"))
		}, "", "", ""},
		{"a static pool: one is asked for", func(f *fleet) { f.static1(); fenced(f) }, "want $1", "want $1", "want $1"},
		{"a static pool without the gate: pods have room elsewhere", func(f *fleet) {
			f.static1()
			f.o.Static = false
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
			f := newFleet()
			f.warned("n1", how.left)
			c.change(f)
			r, _, _ := Interrupt(f.s.Seal(), f.set, f.o, how.counting)
			if got := outcome(&r); got != how.want {
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
			p.Bins = []schedule.Bin{{Pods: []*cluster.Pod{pod}}}
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
		f := newFleet()
		f.warned("n1", 10*time.Minute)
		f.fenced(command.Interrupted, "n1")
		f.run("x", "n3", 4)
		pod := f.run("waits", "", 1)
		pod.Nominated = c.nominated
		f.o.Placement = &schedule.Placement{}
		c.place(f.o.Placement, pod)
		r, _, _ := Interrupt(f.s.Seal(), f.set, f.o, false)
		if got := outcome(&r); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// closed has n1 not be opened yet.
func (f *fleet) closed() {
	f.claim("n1").Conditions = f.claim("n1").Conditions[:1]
	f.host("n1").Taints = []cluster.Taint{{Key: cluster.UnregisteredTaint, Effect: cluster.NoExecute}}
}

// static1 makes the pool a static one.
func (f *fleet) static1() { f.pool.Static, f.pool.Replicas, f.o.Static = true, 3, true }

// When pods are told to leave whether or not they have a place elsewhere, and by when they must have.
func TestWhenAnInterruptedNodeHasToGo(t *testing.T) {
	cases := []struct {
		name   string
		change func(f *fleet, c *cluster.Claim)
		goes   bool
		end    time.Duration // after now
	}{
		{"long before the deadline", func(f *fleet, c *cluster.Claim) {}, false, 10 * time.Minute},
		{"just enough time is left", func(f *fleet, c *cluster.Claim) {
			f.warned("n1", 45*time.Second)
		}, true, 45 * time.Second},
		{"a little more time is left", func(f *fleet, c *cluster.Claim) {
			f.warned("n1", 46*time.Second)
		}, false, 46 * time.Second},
		{"people want more time for it", func(f *fleet, c *cluster.Claim) {
			f.set.InterruptionDrain = 10 * time.Minute
		}, true, 10 * time.Minute},
		{"it is of no use any more", func(f *fleet, c *cluster.Claim) { c.Interruption.Force = true }, true, 0},
		{"its own grace is shorter", func(f *fleet, c *cluster.Claim) {
			f.warned("n1", 45*time.Second)
			c.HasTerminationGrace, c.TerminationGrace = true, 30*time.Second
		}, true, 30 * time.Second},
		{"it was to be gone before, and was not deleted", func(f *fleet, c *cluster.Claim) {
			f.warned("n1", 45*time.Second)
			c.Deadline = f.now.Add(time.Second)
		}, true, 45 * time.Second},
		{"the cloud only advises it", func(f *fleet, c *cluster.Claim) { f.warned("n1", 0) }, false, 0},
		{"its own grace is longer", func(f *fleet, c *cluster.Claim) {
			f.warned("n1", 45*time.Second)
			c.HasTerminationGrace, c.TerminationGrace = true, time.Hour
		}, true, 45 * time.Second},
		{"it is of no use any more, whatever its own grace", func(f *fleet, c *cluster.Claim) {
			c.Interruption.Force, c.HasTerminationGrace, c.TerminationGrace = true, true, 30*time.Second
		}, true, 0},
	}
	for _, c := range cases {
		f := newFleet()
		claim := f.warned("n1", 10*time.Minute)
		f.fenced(command.Interrupted, "n1")
		f.run("x", "n2", 4)
		f.run("y", "n3", 4) // no room
		c.change(f, claim)
		s := f.s.Seal()
		if got := MustGoNow(s, f.set, claim); got != c.goes {
			t.Errorf("%s: it has to go %t, want %t", c.name, got, c.goes)
		}
		r, _, _ := Interrupt(s, f.set, f.o, false)
		gone := false
		for _, cmd := range r.Commands {
			if d, ok := cmd.(command.DeleteClaim); ok {
				gone = true
				if !d.Deadline.Equal(f.now.Add(c.end)) {
					t.Errorf("%s: it ends in %s, want %s", c.name, d.Deadline.Sub(f.now), c.end)
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
	f := newFleet()
	f.pod("p1").Class, f.pod("p3").Class = f.pod("p2").Class, f.pod("p2").Class
	f.node("n4", "large")
	f.run("p4", "n4", 4)
	f.warned("n1", 0)
	f.warned("n2", time.Hour)
	f.warned("n3", 30*time.Minute)
	for _, name := range []string{"n1", "n2", "n3"} {
		f.fenced(command.Interrupted, name)
	}
	r, _, _ := Interrupt(f.s.Seal(), f.set, f.o, false)
	if got, want := outcome(&r), "delete/n3; want $4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The pods of a static pool's node that is advised to go will need places, too, until another node is there for them:
// n3 has room for one pod, which is not promised to that of n2.
func TestPodsOfAdvisedStaticNodesCount(t *testing.T) {
	for advised, want := range map[bool]string{false: "fence/n2; begin n2 $4", true: "fence/n1; fence/n2; begin n1 " +
		"$4; begin n2 $4; want $2"} {
		f := newFleet()
		b := f.poolOf("b")
		b.Static, b.Replicas, f.o.Static = true, 1, true
		f.claim("n1").Pool = "b"
		f.pod("p1").Class = f.pod("p2").Class
		f.warned("n2", 10*time.Minute)
		if advised {
			f.warned("n1", 0)
		}
		r, _, _ := Interrupt(f.s.Seal(), f.set, f.o, false)
		if got := sorted(outcome(&r)); got != sorted(want) {
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
