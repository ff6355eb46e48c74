package loop

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
)

// worldThatMoves has something new whenever it is asked.
type worldThatMoves struct{ *ingest.Book }

func (w worldThatMoves) Rev() uint64 { return w.Book.Rev() + 1 }

// started is what a pass begins: the pods that get a place, the nodes that are fenced, and how many other commands.
type started struct {
	pods, fenced []string
	others       int
}

func (st *loopWorld) start() started {
	var out started
	st.loop.Pass(func(_ *cluster.Snapshot, c command.Command) {
		switch c := c.(type) {
		case command.CreateClaim:
			for _, p := range c.Pods {
				out.pods = append(out.pods, p.Name)
			}
		case command.Fence:
			out.fenced = append(out.fenced, c.Node)
		default:
			out.others++
		}
	})
	for _, a := range st.told.last.Placement.Assigned {
		out.pods = append(out.pods, a.Pod.Name)
	}
	slices.Sort(out.pods)
	out.pods = slices.Compact(out.pods)
	return out
}

// A check that fails while a certain pod looks for a place: its class is found and left out, everybody else gets nodes
// in the very same pass, and later passes don't fail any more.
func TestCheckFailsOnAClass(t *testing.T) {
	st := newLoopWorld(t, 30)
	st.loop.World = worldThatMoves{st.book}
	st.loop.Recorder = &replay.Folder{Path: t.TempDir(), Files: 5, Bytes: 1 << 24}
	st.loop.Planner.Check = func(p plan.Plan, s *cluster.Snapshot) plan.Plan {
		for _, q := range s.Pending() {
			if q.Name == "p011" {
				panic("boom at p011")
			}
		}
		return plan.Check(p, s)
	}
	got := st.start()
	if len(got.pods) != 29 || slices.Contains(got.pods, "p011") || got.others == 0 {
		t.Errorf("places are found for %v, and %d other commands begin", got.pods, got.others)
	}
	if refused := st.refusals(); !slices.Equal(refused, []string{"p011"}) {
		t.Errorf("told that the planner fails on them: %v", refused)
	}
	f := st.told.broken[0]
	if f.Step != plan.StepCheck || len(f.LeftOut.Classes) != 1 || f.Pods != 1 || f.Tries > 20 ||
		len(st.told.saved) != 1 {
		t.Errorf("told %d times, of %d classes and %d pods after %d tries, saved %v",
			len(st.told.broken), len(f.LeftOut.Classes), f.Pods, f.Tries, st.told.saved)
	}
	st.book.SetPod(hungry("late", 6999))
	st.now = st.now.Add(time.Minute)
	if got := st.start(); !slices.Contains(got.pods, "late") || len(st.told.broken) != 1 {
		t.Errorf("later places are found for %v, told %d times", got.pods, len(st.told.broken))
	}
}

// A check that fails on more classes than there are tries for is gone on with by the next passes.
func TestCheckFailsOnManyClasses(t *testing.T) {
	st := newLoopWorld(t, 0)
	for i := range 50 {
		st.addIn("tenant", fmt.Sprintf("bad%02d", i), 7000+int64(i))
	}
	st.addIn("tenant", "near", 7100)
	st.addIn("other", "far", 7200)
	st.now = st.now.Add(time.Minute)
	st.loop.World = worldThatMoves{st.book}
	st.loop.Planner.Check = func(p plan.Plan, s *cluster.Snapshot) plan.Plan {
		for _, q := range s.Pending() {
			if strings.HasPrefix(q.Name, "bad") {
				panic("boom at " + q.Name)
			}
		}
		return plan.Check(p, s)
	}
	at := st.passesUntilServed(8)
	if at["far"] != 1 || at["near"] == 0 || at["near"] > 4 || len(at) != 2 {
		t.Errorf("planned for in pass: %v, want far in the first and near in the fourth at the latest", at)
	}
	if q := st.book.Snapshot().Quarantine.Classes; len(q) != 50 || anyUndecided(q) {
		t.Errorf("%d classes are left out", len(q))
	}
}

// A check that fails on one command, whoever looks for a place: that one is left out and told, the others begin.
func TestCheckFailsOnACommand(t *testing.T) {
	st := newLoopWorld(t, 5)
	st.loop.World = worldThatMoves{st.book}
	st.loop.Planner.Check = func(p plan.Plan, s *cluster.Snapshot) plan.Plan {
		for _, c := range p.Commands {
			if _, bad := c.(command.SetPool); bad {
				panic("boom at a pool")
			}
		}
		return plan.Check(p, s)
	}
	got := st.start()
	if len(got.pods) != 5 || got.others == 0 {
		t.Errorf("places are found for %v, and %d other commands begin", got.pods, got.others)
	}
	f := st.told.broken[0]
	if !slices.Equal(f.Commands, []string{"pool/default"}) || f.LeftOut.Any() || f.Unchecked {
		t.Errorf("left out %v and %+v", f.Commands, f.LeftOut)
	}
}

// A check that fails on more than one command at a time: each is looked at alone.
func TestCheckFailsOnSeveralTogether(t *testing.T) {
	st := newLoopWorld(t, 3)
	st.loop.World = worldThatMoves{st.book}
	st.loop.Planner.Check = func(p plan.Plan, s *cluster.Snapshot) plan.Plan {
		if len(p.Commands) > 1 {
			panic("too much")
		}
		return plan.Check(p, s)
	}
	got := st.start()
	if f := st.told.broken[0]; len(got.pods) != 3 || f.Step != plan.StepCheck || len(f.Commands) > 0 {
		t.Errorf("places are found for %v, left out %v", got.pods, f.Commands)
	}
}

// A check that always fails: pods get their nodes.
func TestCheckAlwaysFails(t *testing.T) {
	st := newLoopWorld(t, 3)
	st.loop.World = worldThatMoves{st.book}
	st.loop.Planner.Check = func(plan.Plan, *cluster.Snapshot) plan.Plan { panic("always") }
	if got := st.start(); len(got.pods) != 3 || got.others == 0 || !st.told.broken[0].Unchecked {
		t.Errorf("places are found for %v, and %d other commands begin", got.pods, got.others)
	}
}

// What can't be checked takes no node away, unless nothing has changed while the plan was made anew.
func TestUncheckedPlanTakesNoNodeAway(t *testing.T) {
	for _, moves := range []bool{true, false} {
		st := newLoopWorld(t, 0)
		class := cluster.ClassRef{Group: "fake.tenon.sh", Kind: "FakeNodeClass", Name: "default"}
		addNode(st.book, poolOf("default", class), "idle")
		st.book.DeletePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: st.uidOn("idle")}})
		st.now = st.now.Add(time.Minute)
		world := &movesOnce{Book: st.book}
		st.loop.World = world
		st.loop.Planner.Check = func(plan.Plan, *cluster.Snapshot) plan.Plan { panic("always") }
		var fenced []string
		for range 5 {
			if world.times = 1; moves {
				world.times = 100
			}
			fenced = append(fenced, st.start().fenced...)
			st.now = st.now.Add(10 * time.Second)
		}
		if len(st.told.broken) == 0 || slices.Contains(fenced, "idle") == moves {
			t.Errorf("something changes all the time: %v; failed %d times, fenced %v", moves,
				len(st.told.broken), fenced)
		}
	}
}

// A plan that could not be checked binds no pod if something has changed: others may have come to the node.
func TestUncheckedPlanBindsNobody(t *testing.T) {
	for _, changed := range []bool{true, false} {
		st := newLoopWorld(t, 0)
		world := &movesOnce{Book: st.book}
		if changed {
			world.times = 1
		}
		st.loop.World = world
		st.loop.Planner.Make = func(*cluster.Snapshot, plan.Policy, *plan.Plan, *disrupt.Proposal) plan.Plan {
			return plan.Plan{Commands: []command.Command{command.Bind{Pod: "ns/p", Node: "n"}}}
		}
		out, _ := st.loop.withoutCheck(plan.Plan{}, st.book.Snapshot())
		isBind := func(c command.Command) bool { _, is := c.(command.Bind); return is }
		if slices.ContainsFunc(out.Commands, isBind) == changed {
			t.Errorf("something has changed: %v; it does %v", changed, out.Commands)
		}
	}
}

// What a plan that could not be checked still does when something has changed: what was begun before goes on, and
// nobody's machine is ended on old news.
func TestUncheckedPlanEndsNoOrphan(t *testing.T) {
	st := newLoopWorld(t, 0)
	st.loop.World = &movesOnce{Book: st.book, times: 1}
	drained := command.Terminate{Claim: "a", UID: "a", ProviderID: "fake://a"}
	st.loop.Planner.Make = func(*cluster.Snapshot, plan.Policy, *plan.Plan, *disrupt.Proposal) plan.Plan {
		return plan.Plan{Commands: []command.Command{
			drained, command.Evict{}, command.Terminate{UID: "b", ProviderID: "fake://b"},
			command.DeleteNode{Node: "c"},
		}}
	}
	out, _ := st.loop.withoutCheck(plan.Plan{}, st.book.Snapshot())
	if len(out.Commands) != 2 || out.Commands[0].Key() != drained.Key() ||
		out.Commands[1].Key() != (command.Evict{}).Key() {
		t.Errorf("it does %+v, want the end of a and the eviction", out.Commands)
	}
}

// movesOnce has something new the first times that it is asked.
type movesOnce struct {
	*ingest.Book
	times int
}

func (w *movesOnce) Rev() uint64 {
	if w.times--; w.times >= 0 {
		return w.Book.Rev() + 1
	}
	return w.Book.Rev()
}
