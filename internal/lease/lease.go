package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// errLost ends a replica that has seen another one's name in the lease.
var errLost = errors.New("another replica holds the lease")

// timeout bounds each request about the lease, as the election's own deadline for a renewal does.
const timeout = 10 * time.Second

// heldLease is the election's lease, read more strictly. A replica that was frozen for longer than the lease lasts goes
// on as if it were elected until its next renewals have failed for ten seconds, although the first of them shows that
// another replica has taken over. Here that first look ends it.
type heldLease struct {
	resourcelock.Interface
	term *Term
	lost func(error)
}

// Lasts is how long a lease holds without being renewed.
const Lasts = 15 * time.Second

// Term is how long this replica may take itself for the leader. A process that was frozen wakes up in the middle of
// what it was doing, before it has looked at the lease: whoever acts asks here first.
//
// It is measured by two clocks. One never goes backwards, but stands still while the machine is suspended. The other is
// the wall clock, which goes on meanwhile, and which somebody may set.
type Term struct {
	now, wall func() time.Time
	led       atomic.Bool
	renewed   atomic.Pointer[moment]
	// ended says that this replica is never to act again, whatever the lease says.
	ended atomic.Bool
}

// moment is a time by both clocks.
type moment struct{ steady, wall time.Time }

// NewTerm returns a term that has not begun.
func NewTerm() *Term {
	return &Term{now: time.Now, wall: func() time.Time { return time.Now().Round(0) }}
}

func (t *Term) moment() moment { return moment{steady: t.now(), wall: t.wall()} }

// Holds reports whether the lease can't have passed to another replica yet.
func (t *Term) Holds() bool {
	at := t.renewed.Load()
	return t.led.Load() && !t.ended.Load() && at != nil && t.now().Sub(at.steady) < Lasts &&
		t.wall().Sub(at.wall) < Lasts
}

// End has this replica never act again, whatever the lease says.
func (t *Term) End() { t.ended.Store(true) }

// replicaName is the pod's name, as Kubernetes tells it to every container, or the machine's.
func replicaName() (string, error) {
	if pod := os.Getenv("HOSTNAME"); pod != "" {
		return pod, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("finding a name for this replica: %w", err)
	}
	return host, nil
}

// New makes the lease that the election is about. The term begins when this replica is elected; lost is told when
// another has taken the lease from it.
func New(config *rest.Config, namespace, name string, t *Term, lost func(error)) (resourcelock.Interface, error) {
	host, err := replicaName()
	if err != nil {
		return nil, err
	}
	lease, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, config, timeout)
	if err != nil {
		return nil, fmt.Errorf("preparing the lease (--leader-election-name): %w", err)
	}
	return Hold(lease, t, lost), nil
}

// Hold has the term follow a lease; lost is told when another replica has taken it from this one.
func Hold(lease resourcelock.Interface, t *Term, lost func(error)) resourcelock.Interface {
	return &heldLease{Interface: lease, term: t, lost: lost}
}

// Get looks at the lease.
func (l *heldLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.term.led.Load() && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.lost(errLost)
	}
	return record, raw, err
}

// Create takes a lease that was not there.
func (l *heldLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := l.term.moment()
	return l.note(record, asked, l.Interface.Create(ctx, record))
}

// Update takes, renews or releases the lease.
func (l *heldLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := l.term.moment()
	return l.note(record, asked, l.Interface.Update(ctx, record))
}

// note counts the lease from when it was asked for: that is what the others see.
func (l *heldLease) note(record resourcelock.LeaderElectionRecord, asked moment, err error) error {
	if err == nil {
		l.term.renewed.Store(&asked)
		l.term.led.Store(record.HolderIdentity == l.Identity())
	}
	return err
}
