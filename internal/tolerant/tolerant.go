// Package tolerant reads NodePools and NodeClaims one by one, so that one that can't be read hides no other.
//
// It stands on floor 4, above ingest, which knows how such an object is read in part.
package tolerant

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// Reader reads NodePools and NodeClaims as they are stored and then object by object into their Go types. A
// typed read would start a typed watch, which knows nothing as soon as one object of the kind can't be read.
type Reader struct{ client.Reader }

func (r Reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	u := storedAs(obj)
	if u == nil {
		return r.Reader.Get(ctx, key, obj, opts...)
	}
	if err := r.Reader.Get(ctx, key, u, opts...); err != nil {
		return err
	}
	return readInto(u, obj)
}

// List reads lists of NodePools and NodeClaims. What Get refuses is left out: a NodeClaim that is not launched and
// can't be read in full.
func (r Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch into := list.(type) {
	case *v1.NodePoolList:
		return listStored(ctx, r.Reader, into, &into.Items, "NodePoolList", opts)
	case *v1.NodeClaimList:
		return listStored(ctx, r.Reader, into, &into.Items, "NodeClaimList", opts)
	}
	return r.Reader.List(ctx, list, opts...)
}

func listStored[T any, P interface {
	*T
	client.Object
}](ctx context.Context, from client.Reader, list client.ObjectList, items *[]T, kind string,
	opts []client.ListOption) error {
	stored := &unstructured.UnstructuredList{}
	stored.SetGroupVersionKind(v1.GroupVersion().WithKind(kind))
	if err := from.List(ctx, stored, opts...); err != nil {
		return err
	}
	*items = nil
	for i := range stored.Items {
		var item T
		if readInto(&stored.Items[i], P(&item)) == nil {
			*items = append(*items, item)
		}
	}
	list.SetResourceVersion(stored.GetResourceVersion())
	list.SetContinue(stored.GetContinue())
	list.SetRemainingItemCount(stored.GetRemainingItemCount())
	return nil
}

// Client is a client that reads like Reader, the answers to its patches included: the status of a pool
// that can't be read in full is where its owner is told so.
type Client struct{ client.Client }

func (c Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return Reader{c.Client}.Get(ctx, key, obj, opts...)
}

func (c Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return Reader{c.Client}.List(ctx, list, opts...)
}

func (c Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return patchStored(obj, patch, func(obj client.Object, patch client.Patch) error {
		return c.Client.Patch(ctx, obj, patch, opts...)
	})
}

func (c Client) Status() client.SubResourceWriter { return status{c.Client.Status()} }

type status struct{ client.SubResourceWriter }

func (s status) Patch(ctx context.Context, obj client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption) error {
	return patchStored(obj, patch, func(obj client.Object, patch client.Patch) error {
		return s.SubResourceWriter.Patch(ctx, obj, patch, opts...)
	})
}

// patchStored sends a patch that was made from the Go type, and reads the answer object by object.
func patchStored(obj client.Object, patch client.Patch, send func(client.Object, client.Patch) error) error {
	u := storedAs(obj)
	if u == nil {
		return send(obj, patch)
	}
	data, err := patch.Data(obj)
	if err != nil {
		return fmt.Errorf("making a patch of %s %s: %w", u.GetKind(), obj.GetName(), err)
	}
	u.SetName(obj.GetName())
	if err := send(u, client.RawPatch(patch.Type(), data)); err != nil {
		return err
	}
	return readInto(u, obj)
}

// storedAs is an empty object of the same kind without its Go type; nil for kinds that are read directly.
func storedAs(obj client.Object) *unstructured.Unstructured {
	var kind string
	switch obj.(type) {
	case *v1.NodePool:
		kind = "NodePool"
	case *v1.NodeClaim:
		kind = "NodeClaim"
	default:
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion().WithKind(kind))
	return u
}

// readInto leaves out what can't be read. That is safe for edits, which send only what they have changed, and for
// ending a machine; but a machine must not be made from half of what was asked for.
func readInto(u *unstructured.Unstructured, obj client.Object) error {
	switch o := obj.(type) {
	case *v1.NodePool:
		pool, _ := decode.ReadPool(u)
		*o = *pool
	case *v1.NodeClaim:
		claim, lost := decode.ReadClaim(u)
		if len(lost) > 0 && claim.Status.ProviderID == "" && claim.DeletionTimestamp == nil {
			return fmt.Errorf("reading NodeClaim %s: %s: %w (delete the claim and create it anew without that)",
				claim.Name, lost[0].Path, lost[0].Err)
		}
		*o = *claim
	}
	return nil
}
