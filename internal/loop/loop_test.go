package loop

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/validate"
)

// actor notes what it is told to do and lets the test decide when, and how, it ends.
type actor struct {
	began chan command.Command
	end   chan error
	mu    sync.Mutex
	open  int
}

func (a *actor) Do(ctx context.Context, c command.Command) command.Outcome {
	a.mu.Lock()
	a.open++
	a.mu.Unlock()
	a.began <- c
	var err error
	select {
	case err = <-a.end:
	case <-ctx.Done():
		err = ctx.Err()
	}
	a.mu.Lock()
	a.open--
	a.mu.Unlock()
	return command.Outcome{Command: c, At: time.Now(), Err: err}
}

func (a *actor) running() int { a.mu.Lock(); defer a.mu.Unlock(); return a.open }

// silent tells nobody anything.
type silent struct{ done chan command.Outcome }

func (silent) Planning()                                                    {}
func (silent) Planned(*cluster.Snapshot, *plan.Plan, time.Duration)         {}
func (silent) PlannerFailed(plan.PlannerFailure)                            {}
func (silent) SnapshotSaved(string, error)                                  {}
func (silent) Searched(*cluster.Snapshot, *disrupt.Proposal, time.Duration) {}
func (s silent) Done(_ *cluster.Snapshot, o command.Outcome, _ time.Duration) {
	s.done <- o
}

// claim is a pool's claim that nobody has adopted yet.
func claim(name, version string) *v1.NodeClaim {
	return &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version,
		Labels: map[string]string{v1.NodePoolLabelKey: "default"}}}
}

// start runs a loop over a book with one claim that nobody has adopted yet, which gives one command to carry out.
func start(t *testing.T) (*ingest.Book, *actor, silent, func()) {
	t.Helper()
	book := ingest.New(time.Now, validate.Labels{}, nil)
	book.SetClaim(claim("a", "1"))
	a := &actor{began: make(chan command.Command, 100), end: make(chan error)}
	s := silent{done: make(chan command.Outcome, 100)}
	l := &Loop{World: book, Actor: a, Observer: s, Policy: plan.Policy{BatchIdle: time.Second, BatchMax: time.Second}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { _ = l.Run(ctx); close(ended) }()
	stop := func() { cancel(); <-ended }
	t.Cleanup(stop)
	return book, a, s, stop
}

func next[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

func TestCommandUnderWayIsNotBegunAgain(t *testing.T) {
	book, a, s, _ := start(t)
	if c := next(t, a.began, "the command"); c.Key() != "adopt/a" {
		t.Fatalf("began %s", c.Key())
	}
	// Events that have nothing to do with it make the loop plan again and again; the last one asks for something else,
	// which shows that plans were made meanwhile.
	for range 20 {
		book.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	}
	book.SetClaim(claim("b", "2"))
	if c := next(t, a.began, "the second command"); c.Key() != "adopt/b" {
		t.Fatalf("began %s while adopt/a was under way", c.Key())
	}
	a.end <- nil
	next(t, s.done, "the outcome")
}

func TestFailedCommandIsTriedAgain(t *testing.T) {
	_, a, s, _ := start(t)
	next(t, a.began, "the command")
	a.end <- errors.New("boom")
	if o := next(t, s.done, "the outcome"); o.Err == nil {
		t.Fatal("the failure was not told")
	}
	if c := next(t, a.began, "the second try"); c.Key() != "adopt/a" {
		t.Fatalf("tried %s", c.Key())
	}
	a.end <- nil
}

func TestStopWaitsForWhatIsUnderWay(t *testing.T) {
	_, a, _, stop := start(t)
	next(t, a.began, "the command")
	stop()
	if n := a.running(); n != 0 {
		t.Errorf("%d commands were still running when the loop had stopped", n)
	}
}

// A cloud that does not answer keeps those who wait for it, and nobody else: a node that is to go is fenced at once.
func TestNothingWaitsBehindASlowCloud(t *testing.T) {
	for _, slow := range []func(int) command.Command{
		func(i int) command.Command { return command.LaunchInstance{Claim: strconv.Itoa(i)} },
		func(i int) command.Command { return command.Terminate{Claim: strconv.Itoa(i)} },
	} {
		a := &actor{began: make(chan command.Command, 1000), end: make(chan error)}
		book := ingest.New(time.Now, validate.Labels{}, nil)
		l := &Loop{World: book, Actor: a, Observer: silent{done: make(chan command.Outcome, 1000)},
			pools: newWorkerPools(), statusQueue: &statusQueue{}}
		ctx, cancel := context.WithCancel(t.Context())
		s := book.Snapshot()
		for i := range 200 {
			l.start(ctx, s, slow(i))
		}
		for range workers { // all of them are out
			next(t, a.began, "a command that hangs")
		}
		l.start(ctx, s, command.Fence{})
		for fenced := false; !fenced; {
			_, fenced = next(t, a.began, "the fence").(command.Fence)
		}
		cancel()
		l.running.Wait()
		if n := a.running(); n != 0 {
			t.Errorf("%d commands were still running after the end", n)
		}
	}
}

// What takes the place of a node that the cloud takes away is launched at once, however many launches are waiting.
func TestReplacementsOfInterruptedNodesAreLaunchedFirst(t *testing.T) {
	a := &actor{began: make(chan command.Command, 1000), end: make(chan error)}
	book := ingest.New(time.Now, validate.Labels{}, nil)
	rescue, thrift := claim("rescue", "1"), claim("thrift", "2")
	rescue.Annotations = map[string]string{cluster.ReplacesAnnotation: disrupt.MoveID(command.Interrupted,
		[]string{"x"})}
	thrift.Annotations = map[string]string{cluster.ReplacesAnnotation: disrupt.MoveID(command.Underutilized,
		[]string{"y"})}
	book.SetClaim(rescue)
	book.SetClaim(thrift)
	l := &Loop{World: book, Actor: a, Observer: silent{done: make(chan command.Outcome, 1000)}, pools: newWorkerPools(),
		statusQueue: &statusQueue{}}
	ctx, cancel := context.WithCancel(t.Context())
	s := book.Snapshot()
	for i := range launchWorkers + 10 {
		l.start(ctx, s, command.LaunchInstance{Claim: strconv.Itoa(i)})
	}
	for range launchWorkers { // all of them are out, and do not come back
		next(t, a.began, "a launch that hangs")
	}
	l.start(ctx, s, command.LaunchInstance{Claim: "thrift"})
	l.start(ctx, s, command.LaunchInstance{Claim: "rescue"})
	if c := next(t, a.began, "the launch that is in a hurry").(command.LaunchInstance); c.Claim != "rescue" {
		t.Errorf("%s was launched first", c.Claim)
	}
	cancel()
	l.running.Wait()
}

// A process may be frozen between planning and acting; when it wakes up the cluster may be another replica's.
func TestWhoDoesNotLeadDoesNotAct(t *testing.T) {
	book := ingest.New(time.Now, validate.Labels{}, nil)
	book.SetClaim(claim("a", "1"))
	a := &actor{began: make(chan command.Command, 100), end: make(chan error, 100)}
	leads := false
	l := &Loop{World: book, Actor: a, Observer: silent{done: make(chan command.Outcome, 100)}, IsLeader: func() bool {
		return leads
	}}
	carry := func(s *cluster.Snapshot, c command.Command) { l.Execute(t.Context(), s, c) }
	if p := l.Pass(carry); len(p.Commands) == 0 {
		t.Fatal("there was nothing to do")
	}
	if n := len(a.began); n != 0 {
		t.Fatalf("%d commands were carried out", n)
	}
	// It may have been late, and lead on: then nothing that it let go may be lost.
	leads = true
	a.end <- nil
	l.Pass(carry)
	if n := len(a.began); n != 1 {
		t.Errorf("%d commands were carried out by the leader, want one", n)
	}
}

// unsure answers like an API server that is not to be reached, and then like one that is.
type unsure struct{ tries int }

func (u *unsure) Do(_ context.Context, c command.Command) command.Outcome {
	if u.tries++; u.tries < 4 {
		return command.Outcome{Command: c, At: time.Now(), Err: errors.New("no answer"), Unsure: true}
	}
	return command.Outcome{Command: c, At: time.Now()}
}

func TestWhatMayHaveBeenDoneIsRepeatedUntilItIsKnown(t *testing.T) {
	book := ingest.New(time.Now, validate.Labels{}, nil)
	u, told := &unsure{}, silent{done: make(chan command.Outcome, 100)}
	var waits []time.Duration
	l := &Loop{World: book, Actor: u, Observer: told, Wait: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		if !book.Snapshot().InFlight["create/x"] {
			t.Error("it is not counted as under way between two tries")
		}
		return nil
	}}
	c := command.CreateClaim{Name: "x"}
	book.Begin(c)
	l.Execute(t.Context(), book.Snapshot(), c)
	if u.tries != 4 || len(waits) != 3 || waits[2] <= waits[0] || len(told.done) != 4 {
		t.Errorf("%d tries, waits %v, told %d times", u.tries, waits, len(told.done))
	}
	if book.Snapshot().InFlight["create/x"] {
		t.Error("it is still under way")
	}
}

func TestPlansThatDoNothingAreFarApart(t *testing.T) {
	const never = time.Hour
	for _, c := range []struct {
		name         string
		took, due    time.Duration
		acted, eager bool
		want         time.Duration
	}{
		{"a small cluster answers at once", 100 * time.Microsecond, never, true, false, leastInterval},
		{"work goes on after nine times as long", 20 * time.Millisecond, 0, true, false, 180 * time.Millisecond},
		{"and within a second", 200 * time.Millisecond, never, true, false, time.Second},
		{"or three times as long", 500 * time.Millisecond, never, true, false, 1500 * time.Millisecond},
		{"news that come to nothing gather", 50 * time.Millisecond, never, false, false, 950 * time.Millisecond},
		{"but not for long", 500 * time.Millisecond, never, false, false, longestGather},
		{"and never take more than a quarter of the time", time.Second, never, false, false, 3 * time.Second},
		{"unless they take very long", 5 * time.Second, never, true, false, 2 * longestGather},
		{"what is due is not late", 50 * time.Millisecond, 200 * time.Millisecond, false, false,
			200 * time.Millisecond},
		{"whoever only waits for the news does not wait longer", 50 * time.Millisecond, never, true, true,
			150 * time.Millisecond},
		{"and not for long, be the plan slow", time.Second, never, true, true, soonGather},
		{"be it that nothing was done", 50 * time.Millisecond, never, false, true, 150 * time.Millisecond},
		{"but does not plan without a pause", 50 * time.Millisecond, 0, false, false, 150 * time.Millisecond},
	} {
		if got := gatherTime(c.took, c.due, c.acted, c.eager); got != c.want {
			t.Errorf("%s: gather(%v, %v, %v, %v) = %v, want %v", c.name, c.took, c.due, c.acted, c.eager, got, c.want)
		}
	}
	if hasActs([]command.Command{command.SetClaim{}, command.SetPool{}, command.WriteClaimHash{},
		command.WritePoolHash{}}) {
		t.Error("writing down what was seen counts as an act")
	}
	if !hasActs([]command.Command{command.SetClaim{}, command.DeleteClaim{}}) {
		t.Error("an end does not count as an act")
	}
}
