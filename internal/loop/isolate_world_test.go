package loop

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/plan"
)

// uidOn is the UID of the pod that wastefulAt puts on a node.
func (st *loopWorld) uidOn(node string) types.UID {
	return types.UID(st.book.Snapshot().PodsOn(node)[0].UID)
}

// frail is a world of which something fails.
type frail struct {
	*ingest.Book
	// good is how many snapshots can still be had.
	good                    int
	moves, records, abandon bool
}

func (w *frail) Snapshot() *cluster.Snapshot {
	if w.good--; w.good < 0 {
		panic("no snapshot")
	}
	return w.Book.Snapshot()
}

func (w *frail) Rev() uint64 {
	if w.moves {
		return w.Book.Rev() + 1
	}
	return w.Book.Rev()
}

func (w *frail) Record(o command.Outcome) {
	if w.records {
		panic("no record")
	}
	w.Book.Record(o)
}

func (w *frail) Abandon(c command.Command) {
	if w.abandon {
		panic("no end")
	}
	w.Book.Abandon(c)
}

// Wherever a snapshot can't be had, the pass is skipped or goes on without it, it is told, and the next pass is as
// ever.
func TestSnapshotFails(t *testing.T) {
	for good := range 3 {
		st := newLoopWorld(t, 5)
		world := &frail{Book: st.book, good: good, moves: good > 0}
		st.loop.World = world
		if good > 1 {
			st.failOn("p002") // the second snapshot is for the plan without it
		}
		st.pass()
		if world.good >= 0 {
			t.Fatalf("with %d snapshots none has failed", good)
		}
		if !slices.ContainsFunc(st.told.broken, func(f plan.PlannerFailure) bool {
			return f.Step == plan.StepSnapshot
		}) {
			t.Errorf("with %d snapshots: told %+v", good, st.told.broken)
		}
		world.good = 100
		st.loop.Planner = Planner{}
		st.now = st.now.Add(20 * time.Minute)
		if served := st.pass(); len(served) != 5 {
			t.Errorf("with %d snapshots, later served: %v", good, served)
		}
	}
}

// A search that gets no snapshot is told, and made again after a pause.
func TestSearchWithoutASnapshot(t *testing.T) {
	st := newLoopWorld(t, 0)
	world := &frail{Book: st.book, good: 1}
	st.loop.World = world
	st.now = st.now.Add(time.Minute)
	for range 3 { // the first searches only when nothing has changed for a while
		world.good = 1
		st.pass()
		st.now = st.now.Add(time.Second)
	}
	failed := len(st.told.broken)
	if failed == 0 || st.told.broken[0].Step != plan.StepSnapshot || st.loop.searches.running {
		t.Fatalf("told %+v", st.told.broken)
	}
	world.good = 100
	st.now = st.now.Add(lastPause)
	st.pass()
	if st.loop.searches.last.proposal.Now.IsZero() {
		t.Error("there is no search any more")
	}
}

// What became of a command can't be noted: it is told, and the command is not under way for ever.
func TestRecordFails(t *testing.T) {
	for _, abandon := range []bool{false, true} {
		st := newLoopWorld(t, 0)
		st.loop.World = &frail{Book: st.book, good: 100, records: true, abandon: abandon}
		st.loop.Actor = clumsy{}
		c := command.Adopt{Claim: "a"}
		st.book.Begin(c)
		st.loop.Execute(t.Context(), st.book.Snapshot(), c)
		want := map[bool]int{false: 2, true: 3}[abandon]
		if len(st.told.broken) != want || st.told.broken[1].Step != plan.StepCommand {
			t.Errorf("told %d times, want %d", len(st.told.broken), want)
		}
		if busy := st.book.Snapshot().InFlight[c.Key()]; busy != abandon {
			t.Errorf("the command is under way: %v", busy)
		}
	}
}

// A loop that gets no snapshot finishes no pass: its pulse stops, so that the lease is let go.
func TestPulseStopsWithoutSnapshots(t *testing.T) {
	st := newLoopWorld(t, 0)
	beats, tries := 0, 0
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	st.loop.World = &frail{Book: st.book}
	st.loop.Observer = &counting{failureRecorder: st.told, count: func() {
		if tries++; tries == 3 {
			stop()
		}
	}}
	st.loop.Liveness = &Liveness{Now: func() time.Time { beats++; return time.Now() }}
	go func() {
		for i := range 100 {
			st.book.SetPod(hungry("again", int64(i)))
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	if err := st.loop.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if beats != 1 || tries < 3 {
		t.Errorf("the pulse beat %d times in %d passes, want once: when the loop began", beats, tries)
	}
}

// counting counts the passes.
type counting struct {
	*failureRecorder
	count func()
}

func (c *counting) Planning() { c.count() }

// blindDesk has no snapshots for searches.
type blindDesk struct{ *ingest.Book }

func (w blindDesk) Snapshot() *cluster.Snapshot {
	if strings.Contains(string(debug.Stack()), ").runSearch(") {
		panic("no snapshot for a search")
	}
	return w.Book.Snapshot()
}

// firstFailure tells of the first failure, and of each pass after it.
type firstFailure struct {
	*failureRecorder
	broke, after chan struct{}
	once         sync.Once
}

func (a *firstFailure) PlannerFailed(f plan.PlannerFailure) {
	if f.Step == plan.StepSnapshot {
		select {
		case a.broke <- struct{}{}:
		default:
		}
	}
}

func (a *firstFailure) Planning() {
	select {
	case <-a.broke:
		a.once.Do(func() { close(a.after) })
	default:
	}
}

// A search in the background that gets no snapshot ends neither the process nor the passes.
func TestSearchInTheBackgroundWithoutASnapshot(t *testing.T) {
	told := &firstFailure{
		failureRecorder: &failureRecorder{silent: silent{done: make(chan command.Outcome, 100)}},
		broke:           make(chan struct{}, 1),
		after:           make(chan struct{}),
	}
	main := &Loop{World: blindDesk{wastefulAt(t, time.Now, 1)}, Observer: told, Actor: clumsy{}}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	go func() {
		for range told.done {
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- main.Run(ctx) }()
	select {
	case <-told.after:
	case <-ctx.Done():
		t.Error("no pass after a search without a snapshot")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
