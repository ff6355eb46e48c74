package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/drift"
)

const (
	// driftTimeout bounds one answer; driftsAtOnce is how many are waited for at the same time.
	driftTimeout = 30 * time.Second
	driftsAtOnce = 8
)

// NoteNodeClassVersion takes in the version of a NodeClass: whatever has changed in it, its status included, may mean
// that instances no longer are what it asks for, and that its pools can buy something else.
func (b *Book) NoteNodeClassVersion(ref cluster.ClassRef, version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.drift.NoteVersion(ref, version) {
		return
	}
	b.askDriftSoon(ref)
	for name, e := range b.pools {
		if e.Pool.Template.NodeClass == ref {
			b.requestCatalog(name, -1) // what it found, such as subnets and reservations, decides what can be bought
		}
	}
}

// askDriftSoon has the cloud asked about every instance of a NodeClass. The lock is held.
func (b *Book) askDriftSoon(ref cluster.ClassRef) {
	b.drift.AskSoon(ref, b.now())
	select {
	case b.driftWake <- struct{}{}:
	default:
	}
}

// dueDrifts lists the claims about which the cloud is to be asked, and marks them as being asked about.
func (b *Book) dueDrifts() []*drift.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.drift.Due(b.now())
}

// DriftAsker says whether an instance is still what its NodeClass asks for: the part of a provider that this is about.
type DriftAsker interface {
	Drifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error)
}

// KeepDrift asks the cloud again and again whether instances are what their NodeClasses ask for, until the context
// ends. claims reads NodeClaims; trouble is told once when answers fail, and with nil when they come again.
func (b *Book) KeepDrift(ctx context.Context, provider DriftAsker, claims client.Reader, tellError func(error)) error {
	slots := make(chan struct{}, driftsAtOnce)
	tell := &errorOnce{tell: tellError}
	var asking sync.WaitGroup
	defer asking.Wait()
	for {
		for _, d := range b.dueDrifts() {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			asking.Go(func() {
				defer func() { <-slots }()
				var err error
				if broken := b.contain("whether an instance has drifted", func() {
					err = b.askDrift(ctx, provider, claims, d)
				}); broken != nil {
					err = broken
				}
				if ctx.Err() == nil {
					tell.report(err)
				}
			})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.driftWake:
		case <-time.After(dueCheckInterval):
		}
	}
}

// errorOnce hands on the first of several errors, and that there are none any more.
type errorOnce struct {
	mu      sync.Mutex
	failing bool
	tell    func(error)
}

func (o *errorOnce) report(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failing != (err != nil) {
		o.failing = err != nil
		o.tell(err)
	}
}

// AskDueDrift asks, one after the other, about every instance that is due: one round of what DriftAsker does without
// end. It is for whoever has a clock of their own.
func (b *Book) AskDueDrift(ctx context.Context, provider DriftAsker, claims client.Reader) error {
	var all []error
	for _, d := range b.dueDrifts() {
		all = append(all, b.askDrift(ctx, provider, claims, d))
	}
	return errors.Join(all...)
}

// askDrift asks about one instance. One that is gone has not drifted; that it is gone is for others to find out.
func (b *Book) askDrift(ctx context.Context, provider DriftAsker, claims client.Reader, d *drift.State) error {
	limited, cancel := context.WithTimeout(ctx, driftTimeout)
	defer cancel()
	claim := &v1.NodeClaim{}
	err := claims.Get(limited, client.ObjectKey{Name: d.Claim}, claim)
	var reason cloudprovider.DriftReason
	if err == nil {
		reason, err = provider.Drifted(limited, claim)
	}
	if apierrors.IsNotFound(err) || cloudprovider.IsNotFound(err) {
		reason, err = "", nil
	}
	b.setDrift(d, string(reason), err)
	if err != nil {
		return fmt.Errorf("asking whether the instance of NodeClaim %s has drifted: %w", d.Claim, err)
	}
	return nil
}

// setDrift takes in what the cloud said. After a failure the last answer stands.
func (b *Book) setDrift(d *drift.State, reason string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drift.Answered(d, b.claims[d.Claim].Value(), reason, err, b.now()) {
		b.noteAndWake(change.Disruption)
	}
}
