package ownership

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// ScanAgainAfter is how long to wait before EC2 is looked at again for what a process before this one has launched.
const ScanAgainAfter = 500 * time.Millisecond

// predecessorClaims is what a process before this one has left: claims that it may have launched instances for which
// EC2 does not show yet. Launches of several claims are known to EC2 by all of them together, so a claim that comes
// back in other company would get a second instance.
type predecessorClaims struct {
	// reading lets one caller at a time ask the API server; it can be waited for with a context.
	reading chan struct{}
	read    bool
	claims  map[types.UID]bool
	// instances are those of claims that were young then: EC2 may not show them yet either.
	instances map[string]bool
}

func newPredecessorClaims() *predecessorClaims {
	return &predecessorClaims{reading: make(chan struct{}, 1)}
}

// load is what was left, by UID.
func (pc *predecessorClaims) load(ctx context.Context, o *Options) (map[types.UID]bool, error) {
	select {
	case pc.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-pc.reading }()
	if pc.read || o.Claims == nil {
		return pc.claims, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaimList"))
	if err := o.Claims.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing NodeClaims that another controller may have launched instances for: %w", err)
	}
	pc.claims, pc.instances = map[types.UID]bool{}, map[string]bool{}
	for k := range list.Items {
		c := &list.Items[k]
		providerID, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		id, err := InstanceID(providerID)
		switch {
		case providerID == "":
			pc.claims[c.GetUID()] = true
		case err == nil && o.Now().Sub(c.GetCreationTimestamp().Time) < visibleWithin:
			pc.instances[id] = true
		}
	}
	pc.read = true
	return pc.claims, nil
}
