package main

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

// errLeaseLost ends a replica that has seen another one's name in the lease.
var errLeaseLost = errors.New("another replica holds the lease")

// leaseTimeout bounds each request about the lease, as the election's own deadline for a renewal does.
const leaseTimeout = 10 * time.Second

// fencedLease is the election's lease, read more strictly. A replica that was frozen for longer than the lease lasts goes on
// as if it were elected until its next renewals have failed for ten seconds, although the first of them shows that
// another replica has taken over. Here that first look ends it.
type fencedLease struct {
	resourcelock.Interface
	led  atomic.Bool
	lost func(error)
}

func newLease(config *rest.Config, o *options, lost func(error)) (resourcelock.Interface, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding a name for this replica: %w", err)
	}
	lease, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, electionNamespace(o), o.electionName,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, config, leaseTimeout)
	if err != nil {
		return nil, fmt.Errorf("preparing the lease (--leader-election-name): %w", err)
	}
	return &fencedLease{Interface: lease, lost: lost}, nil
}

// Get looks at the lease.
func (l *fencedLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.led.Load() && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() {
		l.lost(errLeaseLost)
	}
	return record, raw, err
}

// Create takes a lease that was not there.
func (l *fencedLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, l.Interface.Create(ctx, record))
}

// Update takes, renews or releases the lease.
func (l *fencedLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(record, l.Interface.Update(ctx, record))
}

func (l *fencedLease) note(record resourcelock.LeaderElectionRecord, err error) error {
	if err == nil {
		l.led.Store(record.HolderIdentity == l.Identity())
	}
	return err
}
