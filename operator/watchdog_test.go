package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/lease"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/replay"
	"github.com/tenon-sh/tenon/internal/validate"
)

// sharedLease is a lease of several replicas in memory.
type sharedLease struct {
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	version int
}

// door is one replica's way to it.
type door struct {
	*sharedLease
	name string
}

func (d *door) Identity() string   { return d.name }
func (d *door) Describe() string   { return "a lease in memory" }
func (d *door) RecordEvent(string) {}
func (d *door) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "x")
	}
	record := *d.record
	return &record, fmt.Append(nil, d.version), nil
}

func (d *door) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return d.Update(ctx, r)
}

func (d *door) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record, d.version = &r, d.version+1
	return nil
}

// contest has a replica run for the lease until the context ends.
func contest(ctx context.Context, t *testing.T, lock resourcelock.Interface, leads func()) <-chan struct{} {
	t.Helper()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: 5 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {
			leads()
		}, OnStoppedLeading: func() {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { elector.Run(ctx); close(done) }()
	return done
}

// nobody tells and does nothing.
type nobody struct{}

func (nobody) Planning()                                                    {}
func (nobody) Planned(*cluster.Snapshot, *plan.Plan, time.Duration)         {}
func (nobody) Done(*cluster.Snapshot, command.Outcome, time.Duration)       {}
func (nobody) Searched(*cluster.Snapshot, *disrupt.Proposal, time.Duration) {}
func (nobody) PlannerFailed(plan.PlannerFailure)                            {}
func (nobody) SnapshotSaved(string, error)                                  {}
func (nobody) Do(_ context.Context, c command.Command) command.Outcome {
	return command.Outcome{Command: c}
}

// A leader whose planner hangs fails its liveness probe, acts no more and lets the lease go; the standby takes over at
// once, although the lease would last for an hour.
func TestAHangingLeaderLetsGo(t *testing.T) {
	var ahead atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	ctx, lost := context.WithCancelCause(t.Context())
	defer lost(nil)
	term := lease.NewTerm()
	shared := &sharedLease{}
	elected := make(chan string, 2)
	over := contest(ctx, t, lease.Hold(&door{shared, "first"}, term, lost), func() { elected <- "first" })
	if who := <-elected; who != "first" || !term.Holds() {
		t.Fatalf("%s leads, its term holds: %v", who, term.Holds())
	}
	contest(t.Context(), t, &door{shared, "second"}, func() { elected <- "second" })

	hangs, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	main := &loop.Loop{World: ingest.New(time.Now, validate.Labels{}, nil), Actor: nobody{}, Observer: nobody{},
		IsLeader: term.Holds,
		Liveness: &loop.Liveness{Now: clock}, Planner: loop.Planner{Make: func(*cluster.Snapshot, plan.Policy,
			*plan.Plan, *disrupt.Proposal) plan.Plan {
			once.Do(func() { close(hangs) })
			<-release
			return plan.Plan{}
		}}}
	dog := &watchdog{pulse: main.Liveness, term: term, lost: lost}
	if err := dog.check(nil); err != nil {
		t.Errorf("before it leads: %v", err)
	}
	ended := make(chan struct{})
	go func() { _ = main.Run(ctx); close(ended) }()
	<-hangs
	ahead.Store(int64(longestPass - time.Minute)) // a first pass may take its time
	if dog.look(); dog.check(nil) != nil || ctx.Err() != nil || !term.Holds() {
		t.Fatalf("after %v it is ended: %v", longestPass-time.Minute, context.Cause(ctx))
	}
	ahead.Store(int64(longestPass + time.Second))
	err := dog.check(nil)
	if err == nil || !strings.Contains(err.Error(), "the planner hangs") {
		t.Errorf("the probe says %v", err)
	}
	dog.look()
	if term.Holds() || ctx.Err() == nil || errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("it goes on: its term holds %v, %v", term.Holds(), context.Cause(ctx))
	}
	<-over
	if who := <-elected; who != "second" {
		t.Errorf("%s leads", who)
	}
	close(release)
	<-ended
	if err := dog.check(nil); err != nil {
		t.Errorf("a loop that has ended has no passes to wait for: %v", err)
	}
}

// The page hands out a file that can be replayed.
func TestSnapshotPage(t *testing.T) {
	book := ingest.New(time.Now, validate.Labels{}, nil)
	answer := httptest.NewRecorder()
	snapshotPage(book.Snapshot, plan.Policy{BatchMax: time.Second}).ServeHTTP(answer, httptest.NewRequest("GET",
		snapshotPath, nil))
	c, err := replay.Read(bytes.NewReader(answer.Body.Bytes()), replay.DefaultLimits())
	if err != nil || c.Policy.BatchMax != time.Second || c.Panic != "" {
		t.Errorf("got %+v, %v", c, err)
	}
}
