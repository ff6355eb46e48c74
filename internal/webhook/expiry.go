package webhook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// expiryFrom asks the API server what a pool says. It is asked past any cache, because caches are filled with the
// webhook's help. The pool is read without its type: something else in it that can't be read is no matter of its
// claims. A time that can't be read ends no node.
func expiryFrom(c client.Reader) Expiry {
	return func(ctx context.Context, name string) (v1.NillableDuration, error) {
		pool := &unstructured.Unstructured{}
		pool.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePool"))
		err := c.Get(ctx, client.ObjectKey{Name: name}, pool)
		if err != nil && !apierrors.IsNotFound(err) {
			return v1.NillableDuration{}, err
		}
		text, _, _ := unstructured.NestedString(pool.Object, "spec", "template", "spec", "expireAfter")
		expiry, err := v1.ParseNillableDuration(text)
		if err != nil {
			return v1.NeverDuration(), nil
		}
		return expiry, nil
	}
}

// setExpiry gives a NodeClaim of v1beta1 what its pool says, because v1 has it on the claim.
func (c *converter) setExpiry(ctx context.Context, object runtime.Object) error {
	claim, ok := object.(*v1.NodeClaim)
	if !ok || !claim.Spec.ExpireAfter.IsZero() {
		return nil
	}
	expiry, err := c.poolSays(ctx, claim)
	if err != nil {
		return fmt.Errorf("looking up when nodes of its NodePool expire, for NodeClaim %s: %w", claim.Name, err)
	}
	claim.Spec.ExpireAfter = expiry
	return nil
}

// withoutExpiry takes out of a NodeClaim what setExpiry would put in again, so that v1beta1 has nothing to note.
func (c *converter) withoutExpiry(ctx context.Context, claim *v1.NodeClaim) *v1.NodeClaim {
	if claim.Spec.ExpireAfter.IsZero() {
		return claim
	}
	expiry, err := c.poolSays(ctx, claim)
	if err != nil || expiry.String() != claim.Spec.ExpireAfter.String() {
		return claim // then it is noted
	}
	claim = claim.DeepCopy()
	claim.Spec.ExpireAfter = v1.NillableDuration{}
	return claim
}

// poolSays is when the nodes of a claim's pool expire.
func (c *converter) poolSays(ctx context.Context, claim *v1.NodeClaim) (v1.NillableDuration, error) {
	pool := claim.Labels[v1.NodePoolLabelKey]
	if pool == "" {
		return v1.NeverDuration(), nil
	}
	expiry, err := c.expiry(ctx, pool)
	if err == nil && expiry.IsZero() {
		return v1.NeverDuration(), nil
	}
	return expiry, err
}
