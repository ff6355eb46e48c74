package ingest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// catchUpTries is how often CatchUp looks, and catchUpFirst how long it waits after the first time; then twice as long
// each time, up to catchUpMost.
const (
	catchUpTries = 20
	catchUpFirst = 50 * time.Millisecond
	catchUpMost  = 2 * time.Second
)

// CatchUp waits until the book knows all NodeClaims and Nodes that the API server has now. A replica that takes over
// has filled its caches long before, and what its predecessor made last may still be on its way: buying without that
// exceeds limits. wait lets time pass. It is an error if the book does not catch up within half a minute; the caller
// may go on, since an object that can't be read must not stop everything.
func (b *Book) CatchUp(ctx context.Context, live client.Reader, wait func(context.Context, time.Duration) error) error {
	pause := catchUpFirst
	for try := 1; ; try++ {
		err := b.checkCaughtUp(ctx, live)
		if err == nil || try == catchUpTries {
			return err
		}
		if stopped := wait(ctx, pause); stopped != nil {
			return stopped
		}
		pause = min(2*pause, catchUpMost)
	}
}

// checkCaughtUp is an error if the API server has a claim or a node that the book does not know.
func (b *Book) checkCaughtUp(ctx context.Context, live client.Reader) error {
	for _, x := range []struct {
		kind  string
		list  metav1.TypeMeta
		knows func(name string) (uid string)
	}{
		{"NodeClaim", metav1.TypeMeta{APIVersion: v1.GroupVersion().String(), Kind: "NodeClaimList"}, b.claimUID},
		{"Node", metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "NodeList"}, b.nodeUID},
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: x.list}
		if err := live.List(ctx, list); err != nil {
			return fmt.Errorf("asking the API server which %ss there are: %w", x.kind, err)
		}
		for i := range list.Items {
			if have := &list.Items[i]; x.knows(have.Name) != string(have.UID) {
				return fmt.Errorf("the API server has %s %s, and the watch has not shown it yet", x.kind, have.Name)
			}
		}
	}
	return nil
}

func (b *Book) claimUID(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.claims[name]; e != nil {
		return e.Claim.UID
	}
	return b.others.ClaimUID(name)
}

func (b *Book) nodeUID(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.nodes[name]; e != nil {
		return e.Node.UID
	}
	return ""
}

const (
	// watchLag is by how much a watch may be behind.
	watchLag = time.Minute
	// clockLag is by how much our clock may be behind the API server's, whose answers say what time it is to the
	// second.
	clockLag = time.Second
)

// deletedAt is when an object was deleted that we have known before. If we have seen that come about, it was not long
// ago, and not in times to come, whatever the API server says: if its clock was set just now, a node would be past its
// grace period at once. A time that is ahead of us by less than clockLag is right: with ours in its place, the grace
// period would be over too early. The lock is held.
func (b *Book) deletedAt(before, said time.Time) time.Time {
	now := b.now()
	switch {
	case said.IsZero():
		return said
	case !before.IsZero():
		return before
	case said.After(now.Add(clockLag)):
		return now
	}
	return cluster.Later(said, now.Add(-watchLag))
}
