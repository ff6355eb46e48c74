package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider/fake"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/replay"
)

// failureRecorder writes down what breaks and what is planned.
type failureRecorder struct {
	silent
	broken []plan.PlannerFailure
	saved  []string
	errs   []error
	last   plan.Plan
	panics bool
}

func (w *failureRecorder) PlannerFailed(f plan.PlannerFailure) { w.broken = append(w.broken, f) }
func (w *failureRecorder) SnapshotSaved(path string, err error) {
	if path != "" {
		w.saved = append(w.saved, path)
	}
	if err != nil {
		w.errs = append(w.errs, err)
	}
}

func (w *failureRecorder) Planned(_ *cluster.Snapshot, p *plan.Plan, _ time.Duration) {
	if w.last = *p; w.panics {
		panic("the observer fails")
	}
}

// hungry is a pod that needs a new node; every amount of CPU is a class of its own.
func hungry(name string, milli int64) *corev1.Pod {
	pod := looking(name)
	pod.Spec.NodeSelector = nil
	pod.OwnerReferences = nil
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: *apiresource.NewMilliQuantity(milli,
			apiresource.DecimalSI)}}}}
	return pod
}

// loopWorld is a loop over a book with a pool, a node and pods that need nodes, on a clock of its own: how busy the
// machine is does not matter.
type loopWorld struct {
	t    *testing.T
	now  time.Time
	book *ingest.Book
	loop *Loop
	told *failureRecorder
}

func newLoopWorld(t *testing.T, pods int) *loopWorld {
	t.Helper()
	st := &loopWorld{t: t, now: time.Now(),
		told: &failureRecorder{silent: silent{done: make(chan command.Outcome, 100)}}}
	st.book = wastefulAt(t, func() time.Time { return st.now }, 1)
	for i := range pods {
		st.book.SetPod(hungry(fmt.Sprintf("p%03d", i), 7000+int64(i)))
		st.now = st.now.Add(time.Millisecond)
	}
	st.loop = &Loop{
		World: st.book, Observer: st.told, Version: "v9",
		Wait: func(context.Context, time.Duration) error { return nil },
		Policy: plan.Policy{
			BatchIdle: time.Second, BatchMax: 10 * time.Second,
			Disrupt: disrupt.Settings{ReplacementTimeout: time.Minute},
		},
	}
	st.now = st.now.Add(time.Minute)
	return st
}

// failOn has the planner fail while a pod with one of the names is pending.
func (st *loopWorld) failOn(names ...string) {
	st.loop.Planner.Make = func(s *cluster.Snapshot, policy plan.Policy, before *plan.Plan,
		found *disrupt.Proposal) plan.Plan {
		for _, p := range s.Pending() {
			if slices.Contains(names, p.Name) {
				panic("boom at " + p.Name)
			}
		}
		return plan.Make(s, policy, before, found)
	}
}

// pass plans once and returns the pods that get a place.
func (st *loopWorld) pass() []string {
	st.t.Helper()
	var served []string
	st.loop.Pass(func(_ *cluster.Snapshot, c command.Command) {
		if create, ok := c.(command.CreateClaim); ok {
			for _, p := range create.Pods {
				served = append(served, p.Name)
			}
		}
	})
	for _, a := range st.told.last.Placement.Assigned {
		served = append(served, a.Pod.Name)
	}
	slices.Sort(served)
	return slices.Compact(served)
}

// refusals are the pods that are told that the planner fails on them.
func (st *loopWorld) refusals() []string {
	var out []string
	for i := range st.told.last.Placement.Unplaced {
		if u := &st.told.last.Placement.Unplaced[i]; u.Failed != nil {
			if !strings.Contains(render.Unplaced(u), "mistake in Tenon: "+u.Failed.Message) ||
				!u.Failed.Until.After(st.now) {
				st.t.Errorf("%s is told %s", u.Pod.Name, render.Unplaced(u))
			}
			out = append(out, u.Pod.Name)
		}
	}
	return out
}

// One class of a hundred makes the planner fail: the others get their nodes in the very same pass, and it is told.
func TestGuiltyClassIsFound(t *testing.T) {
	st := newLoopWorld(t, 100)
	st.failOn("p037")
	served := st.pass()
	if len(served) != 99 || slices.Contains(served, "p037") {
		t.Fatalf("%d pods get nodes: %v", len(served), served)
	}
	if got := st.refusals(); !slices.Equal(got, []string{"p037"}) {
		t.Errorf("refused: %v", got)
	}
	if len(st.told.broken) != 1 {
		t.Fatalf("told %d times", len(st.told.broken))
	}
	f := st.told.broken[0]
	if f.Step != plan.StepMake || f.Panic != "boom at p037" || !strings.Contains(f.Stack, "failOn") ||
		len(f.LeftOut.Classes) != 1 || f.Pods != 1 || f.Tries > 12 {
		t.Errorf("told %+v", f)
	}
	// From then on it does not even come to a failure. It is tried again, and served once the mistake is mended.
	st.pass()
	if st.refusals(); len(st.told.broken) != 1 {
		t.Errorf("told again: %+v", st.told.broken[1:])
	}
	st.now = st.now.Add(11 * time.Minute)
	if st.pass(); len(st.told.broken) != 2 || len(st.refusals()) != 1 {
		t.Errorf("after its time it is tried again: told %d times, refused %v", len(st.told.broken), st.refusals())
	}
	st.loop.Planner = Planner{}
	st.now = st.now.Add(21 * time.Minute)
	if served := st.pass(); !slices.Contains(served, "p037") || len(st.refusals()) > 0 {
		t.Errorf("once it is mended: served %v, refused %v", served, st.refusals())
	}
}

// What changes is another class, and is served at once.
func TestChangedPodLeavesQuarantine(t *testing.T) {
	st := newLoopWorld(t, 3)
	st.failOn("p001")
	st.pass()
	st.loop.Planner = Planner{}
	pod := hungry("p001", 6000)
	st.book.SetPod(pod)
	if served := st.pass(); !slices.Equal(served, []string{"p001"}) && !slices.Contains(served, "p001") {
		t.Errorf("served: %v", served)
	}
}

// Several classes fail, each by itself; of two that fail only together the newer is left out.
func TestSeveralGuiltyClasses(t *testing.T) {
	st := newLoopWorld(t, 40)
	st.failOn("p003", "p017", "p039")
	if served := st.pass(); len(served) != 37 {
		t.Errorf("%d pods get nodes", len(served))
	}
	if got := st.refusals(); !slices.Equal(got, []string{"p003", "p017", "p039"}) {
		t.Errorf("refused: %v", got)
	}
	pair := newLoopWorld(t, 40)
	pair.loop.Planner.Make = func(s *cluster.Snapshot, policy plan.Policy, before *plan.Plan,
		found *disrupt.Proposal) plan.Plan {
		met := 0
		for _, p := range s.Pending() {
			if p.Name == "p005" || p.Name == "p030" {
				met++
			}
		}
		if met == 2 {
			panic("they met")
		}
		return plan.Make(s, policy, before, found)
	}
	if served := pair.pass(); len(served) != 39 || slices.Contains(served, "p030") {
		t.Errorf("%d pods get nodes: %v", len(served), served)
	}
}

// Whatever fails and however much of it, the search for it is bounded.
func TestTrialsAreBounded(t *testing.T) {
	st := newLoopWorld(t, 200)
	names := []string{}
	for i := range 200 {
		if i%3 == 0 {
			names = append(names, fmt.Sprintf("p%03d", i))
		}
	}
	st.failOn(names...)
	served := st.pass()
	f := st.told.broken[0]
	if f.Tries > mostTries+5 || f.MinimalFailed || len(f.LeftOut.Classes) == 0 {
		t.Errorf("%d tries, left out %d classes", f.Tries, len(f.LeftOut.Classes))
	}
	for _, name := range served {
		if slices.Contains(names, name) {
			t.Errorf("%s is served", name)
		}
	}
	for range 10 { // what there was no time for is gone on with
		st.now = st.now.Add(time.Second)
		for _, name := range st.pass() {
			if slices.Contains(names, name) {
				t.Errorf("%s is served", name)
			}
			served = append(served, name)
		}
		if f := st.told.broken[len(st.told.broken)-1]; f.Tries > mostTries {
			t.Errorf("%d tries in a later pass", f.Tries)
		}
	}
	slices.Sort(served)
	if served = slices.Compact(served); len(served) != 133 {
		t.Errorf("%d of 133 innocent pods get nodes in the end", len(served))
	}
}

// What earlier plans have left behind is forgotten first.
func TestMemoryIsForgotten(t *testing.T) {
	st := newLoopWorld(t, 2)
	st.pass()
	st.loop.Planner.Make = func(s *cluster.Snapshot, policy plan.Policy, before *plan.Plan,
		found *disrupt.Proposal) plan.Plan {
		if before != nil {
			panic("what I remember is wrong")
		}
		return plan.Make(s, policy, before, found)
	}
	st.book.SetPod(hungry("q", 900))
	st.now = st.now.Add(time.Minute)
	if served := st.pass(); !slices.Contains(served, "q") || st.told.broken[0].LeftOut.Any() {
		t.Errorf("served %v, left out %+v", served, st.told.broken[0].LeftOut)
	}
}

// A part of planning that fails whoever is pending is left out, and only that.
func TestPartIsLeftOut(t *testing.T) {
	for _, part := range cluster.Parts() {
		st := newLoopWorld(t, 3)
		st.loop.Planner.Make = func(s *cluster.Snapshot, policy plan.Policy, before *plan.Plan,
			found *disrupt.Proposal) plan.Plan {
			if !s.Quarantine.LeavesOut(part) {
				panic("boom in " + string(part))
			}
			return plan.Make(s, policy, before, found)
		}
		served := st.pass()
		f := st.told.broken[0]
		if len(f.LeftOut.Parts) != 1 || !f.LeftOut.LeavesOut(part) || f.MinimalFailed {
			t.Errorf("%s: left out %+v", part, f.LeftOut)
		}
		if want := 3; part != cluster.Placing && len(served) != want {
			t.Errorf("%s: %d pods get nodes", part, len(served))
		}
		if part == cluster.Placing && len(st.refusals()) != 3 {
			t.Errorf("%s: refused %v", part, st.refusals())
		}
		if !slices.ContainsFunc(st.told.last.Notes, func(n cluster.Note) bool {
			return n.Reason == plan.PlannerFailed && n.Kind == "NodePool" && n.Warning
		}) {
			t.Errorf("%s: nobody is told: %+v", part, st.told.last.Notes)
		}
	}
}

// One claim that makes the lifecycle fail holds up no other.
func TestClaimIsLeftOut(t *testing.T) {
	st := newLoopWorld(t, 3)
	st.book.SetClaim(claim("new-a", "1"))
	st.book.SetClaim(claim("new-b", "1"))
	st.loop.Planner.Make = func(s *cluster.Snapshot, policy plan.Policy, before *plan.Plan,
		found *disrupt.Proposal) plan.Plan {
		if _, held := s.Quarantine.Claims["new-a"]; !held {
			panic("boom")
		}
		return plan.Make(s, policy, before, found)
	}
	served := st.pass()
	f := st.told.broken[0]
	if _, found := f.LeftOut.Claims["new-a"]; !found || len(f.LeftOut.Claims) != 1 || len(f.LeftOut.Parts) > 0 ||
		len(served) != 3 ||
		st.adopted() != "new-b" {
		t.Errorf("left out %+v, served %v, adopted %s", f.LeftOut, served, st.adopted())
	}
}

// adopted lists the claims that the last plan takes one step further, all of which are new.
func (st *loopWorld) adopted() string {
	var out []string
	for _, c := range st.told.last.Commands {
		if a, ok := c.(command.Adopt); ok {
			out = append(out, a.Claim)
		}
	}
	return strings.Join(out, " ")
}

// If plans fail whatever is left out, the claims that are there go on all the same, but for one on which that fails,
// too.
func TestClaimsGoOnWhenPlansFail(t *testing.T) {
	for _, sick := range []string{"", "new-a"} {
		st := newLoopWorld(t, 3)
		st.book.SetClaim(claim("new-a", "1"))
		st.book.SetClaim(claim("new-b", "1"))
		good, asked := st.loop.Planner, 0
		st.loop.Planner.Make = func(*cluster.Snapshot, plan.Policy, *plan.Plan, *disrupt.Proposal) plan.Plan {
			asked++
			panic("always")
		}
		st.loop.Planner.Minimal = func(s *cluster.Snapshot, policy plan.Policy) plan.Plan {
			if _, leftOut := s.Quarantine.Claims[sick]; sick != "" && !leftOut {
				panic("this, too")
			}
			return plan.MakeMinimal(s, policy)
		}
		want := map[string]string{"": "new-a new-b", "new-a": "new-b"}[sick]
		for pass := range 3 {
			p, finished := st.loop.pass(func(*cluster.Snapshot, command.Command) {})
			if got := st.adopted(); pass == 0 && got != want {
				t.Errorf("sick %q: %q go on, want %q", sick, got, want)
			}
			if !finished || p.Provisioned || p.WakeAt.IsZero() || p.WakeAt.After(st.now.Add(minimalFor)) {
				t.Errorf("sick %q: finished %v, provisioned %v, looks again at %v", sick, finished,
					p.Provisioned, p.WakeAt)
			}
		}
		f := st.told.broken[0]
		if _, leftOut := f.LeftOut.Claims[sick]; !f.Minimal || f.MinimalFailed || leftOut != (sick != "") ||
			len(f.LeftOut.Parts) != 0 {
			t.Errorf("sick %q: told %+v", sick, f)
		}
		before := asked
		st.now = st.now.Add(time.Second)
		if st.pass(); asked != before+1 {
			t.Errorf("sick %q: %d plans are tried a second later, want 1", sick, asked-before)
		}
		if again := st.told.broken[len(st.told.broken)-1]; again.Tries != 1 {
			t.Errorf("sick %q: %d bare plans are tried then, want 1: it is known what they fail on", sick, again.Tries)
		}
		st.loop.Planner = good
		if served := st.pass(); len(served) != 3 {
			t.Errorf("sick %q: once it is over: served %v", sick, served)
		}
	}
}

// If nothing at all can be planned, the loop says so, goes on trying, and counts no such pass as finished.
func TestHelpless(t *testing.T) {
	st := newLoopWorld(t, 3)
	good := st.loop.Planner
	st.loop.Planner.Make = func(*cluster.Snapshot, plan.Policy, *plan.Plan, *disrupt.Proposal) plan.Plan {
		panic("always")
	}
	st.loop.Planner.Minimal = func(*cluster.Snapshot, plan.Policy) plan.Plan { panic("always") }
	p, finished := st.loop.pass(func(*cluster.Snapshot, command.Command) {})
	if f := st.told.broken[0]; finished || len(p.Commands) != 0 || !f.MinimalFailed || f.LeftOut.Any() {
		t.Errorf("finished %v, %d commands, told %+v", finished, len(p.Commands), f)
	}
	st.loop.Planner = good
	if served := st.pass(); len(served) != 3 {
		t.Errorf("once it is over: served %v", served)
	}
}

// Cheaper nodes are looked for while a part of planning is left out, unless it is the one that would begin the moves.
func TestSearchesGoOnWithoutAPart(t *testing.T) {
	for _, part := range cluster.Parts() {
		st, searched := newLoopWorld(t, 0), 0
		st.loop.Planner.Search = func(*cluster.Snapshot, plan.Policy) disrupt.Proposal {
			searched++
			return disrupt.Proposal{}
		}
		until := st.now.Add(time.Hour)
		leftOut := cluster.Quarantine{Parts: map[cluster.Part]cluster.Failure{part: {Message: "boom", Until: until}}}
		st.book.Quarantine(leftOut)
		for range 5 {
			st.pass()
			st.now = st.now.Add(10 * time.Second)
		}
		if want := part != cluster.Disrupting; searched > 0 != want {
			t.Errorf("without %s: %d searches", part, searched)
		}
	}
}

// A search that fails whatever is left out is not made for a while; pods get their nodes all the same.
func TestSearchFails(t *testing.T) {
	st := newLoopWorld(t, 0)
	st.loop.Planner.Search = func(s *cluster.Snapshot, p plan.Policy) disrupt.Proposal { panic("no idea") }
	for range 5 {
		st.pass()
		st.now = st.now.Add(10 * time.Second)
	}
	b := st.told.broken
	if len(b) != 1 || b[0].Step != plan.StepSearch || !b[0].LeftOut.LeavesOut(cluster.Searching) {
		t.Errorf("told %+v", st.told.broken)
	}
	st.book.SetPod(hungry("late", 7000))
	st.now = st.now.Add(2 * time.Minute)
	if served := st.pass(); len(served) != 1 {
		t.Errorf("served %v", served)
	}
	st.now = st.now.Add(10 * time.Second)
	st.pass()
	st.now = st.now.Add(10 * time.Second)
	if st.pass(); len(st.told.broken) != 2 {
		t.Errorf("%d searches failed after a minute", len(st.told.broken))
	}
}

// Who tells people must not keep them from their nodes.
func TestObserverFails(t *testing.T) {
	st := newLoopWorld(t, 3)
	st.told.panics = true
	if served := st.pass(); len(served) != 3 || st.told.broken[0].Step != plan.StepObserve {
		t.Errorf("served %v, told %+v", served, st.told.broken)
	}
}

// The file that is written about a failure shows it again.
func TestFailureIsSaved(t *testing.T) {
	st := newLoopWorld(t, 5)
	st.loop.Recorder = &replay.Folder{Path: t.TempDir(), Files: 5, Bytes: 1 << 24}
	st.failOn("p002")
	st.pass()
	if len(st.told.saved) != 1 || len(st.told.errs) > 0 {
		t.Fatalf("saved %v, %v", st.told.saved, st.told.errs)
	}
	file, err := os.Open(st.told.saved[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c, err := replay.Read(file, replay.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if c.Engine != "v9" || c.Step != replay.Make || c.Panic != "boom at p002" || c.Stack == "" ||
		c.Policy.BatchMax != 10*time.Second || len(c.Snapshot.Pending()) != 5 {
		t.Errorf("the file says %+v", c)
	}
	func() {
		defer func() {
			if r := recover(); r != "boom at p002" {
				t.Errorf("the planner that failed says %v to the file", r)
			}
		}()
		st.loop.Planner.Make(c.Snapshot, c.Policy, nil, c.Found)
	}()
	if answer := c.Run(); answer.Panic != "" || len(answer.Plan.Placement.Bins) == 0 {
		t.Errorf("the planner that is mended says %+v", answer)
	}
	// The same failure is not written again and again.
	st.now = st.now.Add(time.Second)
	st.book.SetPod(hungry("p002", 6999))
	if st.pass(); len(st.told.broken) != 2 || len(st.told.saved) != 1 {
		t.Errorf("failed %d times, saved %v", len(st.told.broken), st.told.saved)
	}
}

// A file that can't be written holds nothing up.
func TestFailureCannotBeSaved(t *testing.T) {
	st := newLoopWorld(t, 5)
	st.loop.Recorder = full{}
	st.failOn("p002")
	if served := st.pass(); len(served) != 4 || len(st.told.errs) != 1 {
		t.Errorf("served %v, told %v", served, st.told.errs)
	}
}

type full struct{}

func (full) Save(*replay.Case) (string, error) { return "", errors.New("the disk is full") }

// A command that fails so badly is tried again like one that fails otherwise.
func TestCommandPanics(t *testing.T) {
	st := newLoopWorld(t, 0)
	st.loop.Actor = clumsy{}
	s := st.book.Snapshot()
	c := command.Adopt{Claim: "a"}
	st.book.Begin(c)
	st.loop.Execute(t.Context(), s, c)
	out := <-st.told.done
	if out.Err == nil || !strings.Contains(out.Err.Error(), "oops") || st.told.broken[0].Step != plan.StepCommand {
		t.Errorf("got %v, told %+v", out.Err, st.told.broken)
	}
	if after := st.book.Snapshot(); after.InFlight[c.Key()] || after.Retry[c.Key()].Attempts != 1 {
		t.Errorf("busy %v, retry %+v", after.InFlight, after.Retry)
	}
}

type clumsy struct{}

func (clumsy) Do(context.Context, command.Command) command.Outcome { panic("oops") }

// Nodes that have nothing to do with what the planner fails on are disrupted as ever, whether it fails when it plans or
// when it searches. An empty node that was made for the pods that are left out stays: they may still come.
func TestOtherNodesGoMeanwhile(t *testing.T) {
	for name, fail := range map[string]func(*loopWorld){
		"make": func(st *loopWorld) { st.failOn("p000") },
		"search": func(st *loopWorld) {
			st.loop.Planner.Search = func(s *cluster.Snapshot, p plan.Policy) disrupt.Proposal {
				if len(s.PodsOn("n00")) > 0 {
					panic("boom")
				}
				return plan.Search(s, p)
			}
		},
	} {
		st := newLoopWorld(t, map[string]int{"make": 1}[name])
		class := cluster.ClassRef{Group: "fake.tenon.sh", Kind: "FakeNodeClass", Name: "default"}
		other := poolOf("other", class)
		st.book.SetPool(other)
		st.book.FetchCatalogs(t.Context(), fake.New(fake.NewCloud()))
		addNode(st.book, other, "idle")
		made := addNode(st.book, poolOf("default", class), "made")
		made.Annotations = map[string]string{cluster.MadeForAnnotation: cluster.FormatMadeFor(
			[]cluster.MadeFor{{Owner: "p000", Try: 1}})}
		st.book.SetClaim(made)
		for _, node := range []string{"idle", "made"} {
			st.book.DeletePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID("pod-" + node)}})
		}
		st.now = st.now.Add(time.Minute)
		fail(st)
		var fenced []string
		for range 5 {
			st.loop.Pass(func(_ *cluster.Snapshot, c command.Command) {
				if f, ok := c.(command.Fence); ok {
					fenced = append(fenced, f.Node)
				}
			})
			st.now = st.now.Add(10 * time.Second)
		}
		if len(st.told.broken) == 0 || st.told.broken[0].Step != name {
			t.Errorf("%s: told %+v", name, st.told.broken)
		}
		if !slices.Contains(fenced, "idle") || name == "make" && slices.Contains(fenced, "made") {
			t.Errorf("%s: fenced %v", name, fenced)
		}
	}
}
