package ingest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
)

const (
	// askDrift is how often the cloud is asked whether an instance is still what its NodeClass asks for; firstDrift is
	// within which time each is asked about for the first time, so that not all come at once.
	askDrift   = 5 * time.Minute
	firstDrift = time.Minute
	// hastyDrift is the least time between two questions about the same instance; retryDrift after an answer failed.
	hastyDrift = 5 * time.Second
	retryDrift = 30 * time.Second
	// driftTimeout bounds one answer; driftsAtOnce is how many are waited for at the same time.
	driftTimeout = 30 * time.Second
	driftsAtOnce = 8
)

// DriftAsker says whether an instance is still what its NodeClass asks for: the part of a provider that this is about.
type DriftAsker interface {
	Drifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error)
}

// driftStates is what the cloud has said about each claim's instance, by claim UID.
type driftStates struct {
	byClaim map[string]*driftState
	wake    chan struct{}
	next    time.Time // nothing is due before
	// versions of the NodeClasses.
	versions map[cluster.ClassRef]string
}

// driftState is what is known of one.
type driftState struct {
	claim  string
	class  cluster.ClassRef
	reason string
	// answered says that reason is the cloud's word in this life of the program; before, the claim's condition is
	// believed.
	answered  bool
	due, last time.Time
	asking    bool
	// askAgain says that the NodeClass has changed while the cloud was being asked.
	askAgain bool
}

func newDriftStates() driftStates {
	return driftStates{byClaim: make(map[string]*driftState), wake: make(chan struct{}, 1),
		versions: make(map[cluster.ClassRef]string)}
}

// driftOf is how the claim's instance differs from what its NodeClass asks for. The lock is held.
func (b *Book) driftOf(c *cluster.Claim) string {
	d := b.driftStates.byClaim[c.UID]
	if d != nil && d.answered {
		return d.reason
	}
	// Until the cloud has been asked, what was known before a restart holds, if it was the cloud's word.
	if drifted := c.Condition(cluster.Drifted); drifted.Status == cluster.True && !isOurDriftReason(drifted.Reason) {
		return drifted.Reason
	}
	return ""
}

// isOurDriftReason reports whether a reason for drift is one that we find out by ourselves.
func isOurDriftReason(reason string) bool {
	switch reason {
	case "NodePoolDrifted", "NodePoolStaticallyDrifted", "RequirementsDrifted", "InstanceTypeNotFound",
		cluster.Drifted, "":
		return true
	}
	return false
}

// trackDrift sees to it that the cloud is asked about a claim's instance from its launch until its end. The lock is
// held.
func (b *Book) trackDrift(c *cluster.Claim, ref *v1.NodeClassReference) {
	if ref == nil || c.ProviderID == "" || !c.Deleting.IsZero() || !c.Is(cluster.Launched) {
		delete(b.driftStates.byClaim, c.UID)
		return
	}
	class := cluster.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}
	if d := b.driftStates.byClaim[c.UID]; d != nil {
		d.class = class
		return
	}
	at := b.now().Add(spreadOver(c.UID, firstDrift))
	b.driftStates.byClaim[c.UID] = &driftState{claim: c.Name, class: class, due: at}
	if b.driftStates.next.IsZero() || at.Before(b.driftStates.next) {
		b.driftStates.next = at
	}
}

// spreadOver is a part of the time that depends on the name and on nothing else.
func spreadOver(name string, over time.Duration) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	return time.Duration(h.Sum64() % uint64(over))
}

// NoteNodeClassVersion takes in the version of a NodeClass: whatever has changed in it, its status included, may mean
// that instances no longer are what it asks for, and that its pools can buy something else.
func (b *Book) NoteNodeClassVersion(ref cluster.ClassRef, version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.driftStates.versions[ref]
	b.driftStates.versions[ref] = version
	if !known || before == version {
		return
	}
	b.askDriftSoon(ref)
	for name, e := range b.pools {
		if e.pool.Template.NodeClass == ref {
			b.requestCatalog(name, -1) // what it found, such as subnets and reservations, decides what can be bought
		}
	}
}

// askDriftSoon has the cloud asked about every instance of a NodeClass. The lock is held.
func (b *Book) askDriftSoon(ref cluster.ClassRef) {
	now := b.now()
	for _, d := range b.driftStates.byClaim {
		if d.class != ref {
			continue
		}
		d.askAgain = d.asking
		if soon := cluster.Later(now, d.last.Add(hastyDrift)); soon.Before(d.due) {
			d.due = soon
		}
	}
	b.driftStates.next = now
	select {
	case b.driftStates.wake <- struct{}{}:
	default:
	}
}

// dueDrifts lists the claims about which the cloud is to be asked, and marks them as being asked about.
func (b *Book) dueDrifts() []*driftState {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if now.Before(b.driftStates.next) {
		return nil
	}
	var out []*driftState
	b.driftStates.next = now.Add(askDrift)
	for _, uid := range slices.Sorted(maps.Keys(b.driftStates.byClaim)) {
		d := b.driftStates.byClaim[uid]
		if !d.asking && !now.Before(d.due) {
			d.asking, d.askAgain, d.last, d.due = true, false, now, now.Add(askDrift)
			out = append(out, d)
		}
		if d.due.Before(b.driftStates.next) {
			b.driftStates.next = d.due
		}
	}
	return out
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
		case <-b.driftStates.wake:
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
func (b *Book) askDrift(ctx context.Context, provider DriftAsker, claims client.Reader, d *driftState) error {
	limited, cancel := context.WithTimeout(ctx, driftTimeout)
	defer cancel()
	claim := &v1.NodeClaim{}
	err := claims.Get(limited, client.ObjectKey{Name: d.claim}, claim)
	var reason cloudprovider.DriftReason
	if err == nil {
		reason, err = provider.Drifted(limited, claim)
	}
	if apierrors.IsNotFound(err) || cloudprovider.IsNotFound(err) {
		reason, err = "", nil
	}
	b.setDrift(d, string(reason), err)
	if err != nil {
		return fmt.Errorf("asking whether the instance of NodeClaim %s has drifted: %w", d.claim, err)
	}
	return nil
}

// setDrift takes in what the cloud said. After a failure the last answer stands.
func (b *Book) setDrift(d *driftState, reason string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d.asking = false
	switch {
	case d.askAgain:
		d.due = cluster.Later(b.now(), d.last.Add(hastyDrift))
	case err != nil:
		d.due = d.last.Add(retryDrift)
	}
	if d.due.Before(b.driftStates.next) {
		b.driftStates.next = d.due
	}
	if err != nil {
		return
	}
	e := b.claims[d.claim]
	if e == nil || b.driftStates.byClaim[e.claim.UID] != d {
		return // it has gone while the cloud was being asked
	}
	before := b.driftOf(e.claim)
	d.answered, d.reason = true, reason
	if reason != before {
		b.noteAndWake(changesDisruption)
	}
}
