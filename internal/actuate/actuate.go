// Package actuate carries commands out: one file a kind of command. Each is idempotent, so that doing it again after a
// crash, a conflict or a lost answer is harmless, and each returns an Outcome that says what was written.
//
// Floor 3: it writes to Kubernetes and to the cloud and decides nothing.
package actuate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/resource"
)

// Objects changes objects of the API server.
type Objects struct {
	// Client writes to the API server and reads from the cache; Live reads past the cache.
	Client client.Client
	Live   client.Reader
	// Wait lets time pass between two tries; nil for the real clock.
	Wait func(context.Context, time.Duration) error
}

// Actor carries commands out.
type Actor struct {
	Objects
	Cloud cloudprovider.Instances
	Now   func() time.Time
	// Names numbers the resources of a command's vectors.
	Names func() *resource.Names
}

// wait lets time pass unless the context ends first.
func (o *Objects) wait(ctx context.Context, d time.Duration) error {
	if o.Wait != nil {
		return o.Wait(ctx, d)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// result is what a command's file returns: the writes it made, and what else the outcome should say.
type result struct {
	writes       []command.Write
	refused      bool
	refusal      command.Refusal
	unavailable  []command.UnavailableOffering
	instanceGone bool
	retryAfter   time.Duration
	unsure       bool
}

// Do carries a command out and says what became of it.
func (a *Actor) Do(ctx context.Context, c command.Command) command.Outcome {
	r, err := a.do(ctx, c)
	return command.Outcome{
		Command: c, At: a.Now(), Err: err, Writes: r.writes, Refused: r.refused, Refusal: r.refusal,
		Unavailable: r.unavailable, InstanceGone: r.instanceGone, RetryAfter: r.retryAfter, Unsure: r.unsure,
	}
}

func (a *Actor) do(ctx context.Context, c command.Command) (result, error) {
	switch c := c.(type) {
	case command.CreateClaim:
		return a.createClaim(ctx, c)
	case command.Adopt:
		return a.adopt(ctx, c)
	case command.LaunchInstance:
		return a.launchInstance(ctx, c)
	case command.Register:
		return a.register(ctx, c)
	case command.Open:
		return a.openNode(ctx, c)
	case command.Initialize:
		return a.initialize(ctx, c)
	case command.Fence:
		return a.fence(ctx, c)
	case command.Unfence:
		return a.unfence(ctx, c)
	case command.DeleteClaim:
		return a.deleteClaim(ctx, c)
	case command.DeleteNode:
		return a.deleteNode(ctx, c)
	case command.Evict:
		return a.evict(ctx, c)
	case command.Nominate:
		return a.nominate(ctx, c)
	case command.Bind:
		return a.bind(ctx, c)
	case command.Terminate:
		return a.terminate(ctx, c)
	case command.Release:
		return a.release(ctx, c)
	case command.SetPool:
		return a.setPool(ctx, c)
	case command.SetClaim:
		return a.setClaim(ctx, c)
	case command.WritePoolHash:
		return a.writePoolHash(ctx, c)
	case command.WriteClaimHash:
		return a.writeClaimHash(ctx, c)
	}
	return result{}, fmt.Errorf("no way to carry out %T", c)
}

// editNode changes a node's metadata and spec. The first try works on the cached object; after a conflict the object is
// read live. A node that is gone is no error: there is nothing left to change.
func (o *Objects) editNode(ctx context.Context, name string, edit func(*corev1.Node)) ([]command.Write, error) {
	node := &corev1.Node{}
	err := o.edit(ctx, name, node, func() { edit(node) }, func(base client.Object) error {
		return o.patchNode(ctx, base.(*corev1.Node), node)
	})
	if err != nil || node.Name == "" {
		return nil, client.IgnoreNotFound(err)
	}
	return []command.Write{{Kind: command.KindNode, Name: name, Version: node.ResourceVersion}}, nil
}

// editClaim changes a claim's metadata.
func (o *Objects) editClaim(ctx context.Context, name string, edit func(*v1.NodeClaim)) ([]command.Write, error) {
	return o.writeClaim(ctx, name, edit, func(claim *v1.NodeClaim, base client.Object) error {
		return o.Client.Patch(ctx, claim, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
}

// editClaimStatus changes a claim's status.
func (o *Objects) editClaimStatus(ctx context.Context, name string, edit func(*v1.NodeClaim)) ([]command.Write, error) {
	return o.writeClaim(ctx, name, edit, func(claim *v1.NodeClaim, base client.Object) error {
		return o.Client.Status().Patch(ctx, claim, client.MergeFromWithOptions(base,
			client.MergeFromWithOptimisticLock{}))
	})
}

func (o *Objects) writeClaim(ctx context.Context, name string, edit func(*v1.NodeClaim), patch func(claim *v1.NodeClaim,
	base client.Object) error) ([]command.Write, error) {
	claim := &v1.NodeClaim{}
	err := o.edit(ctx, name, claim, func() { edit(claim) }, func(base client.Object) error {
		return patch(claim, base)
	})
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return []command.Write{{Kind: command.KindClaim, Name: name, Version: claim.ResourceVersion}}, nil
}

// maxTries is how often an edit is tried that runs into conflicts; between two lies breath.
const (
	maxTries   = 5
	retryPause = 10 * time.Millisecond
)

// edit reads, changes and patches an object, reading live after the first conflict.
func (o *Objects) edit(ctx context.Context, name string, obj client.Object, change func(),
	patch func(base client.Object) error) error {
	var reader client.Reader = o.Client
	var err error
	for try := 1; ; try++ {
		err = o.editOnce(ctx, reader, name, obj, change, patch)
		if !apierrors.IsConflict(err) || try == maxTries || o.wait(ctx, retryPause) != nil {
			break
		}
		reader = o.Live
	}
	if err != nil {
		return fmt.Errorf("changing %T %s: %w", obj, name, err)
	}
	return nil
}

func (o *Objects) editOnce(ctx context.Context, reader client.Reader, name string, obj client.Object, change func(),
	patch func(base client.Object) error) error {
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, obj); err != nil {
		return err
	}
	base := obj.DeepCopyObject().(client.Object)
	change()
	return patch(base)
}
