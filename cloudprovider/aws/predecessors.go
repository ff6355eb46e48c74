package aws

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// scanAgainAfter is how long to wait before EC2 is looked at again for what a process before this one has launched.
const scanAgainAfter = 500 * time.Millisecond

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

// Lead notes that this process launches instances from now on. What NodeClaims there are without an instance may have
// been launched by another; those that come later can't. It is called when the process becomes the leader (Start does);
// if nobody calls it, the first launch does, and then has to take claims of its own for another's.
func (p *Provider) Lead(ctx context.Context) error {
	p.scans.begin(p.now())
	_, err := p.predecessors.load(ctx, p)
	return err
}

// load is what was left, by UID.
func (pc *predecessorClaims) load(ctx context.Context, p *Provider) (map[types.UID]bool, error) {
	select {
	case pc.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-pc.reading }()
	if pc.read || p.liveClaims == nil {
		return pc.claims, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaimList"))
	if err := p.liveClaims.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing NodeClaims that another controller may have launched instances for: %w", err)
	}
	pc.claims, pc.instances = map[types.UID]bool{}, map[string]bool{}
	for k := range list.Items {
		c := &list.Items[k]
		providerID, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		id, err := instanceID(providerID)
		switch {
		case providerID == "":
			pc.claims[c.GetUID()] = true
		case err == nil && p.now().Sub(c.GetCreationTimestamp().Time) < visibleWithin:
			pc.instances[id] = true
		}
	}
	pc.read = true
	return pc.claims, nil
}

// mayBeHidden tells whether EC2 may not show the instance yet although a process before this one has launched it.
func (p *Provider) mayBeHidden(ctx context.Context, id string) bool {
	if p.scans.isSettled(p.now()) {
		return false
	}
	_, err := p.predecessors.load(ctx, p)
	return err != nil || p.predecessors.instances[id]
}

// errMayBeHidden says that EC2 may not show yet what a process before this one has launched for the claim.
var errMayBeHidden = errors.New("EC2 may not show the claim's instance yet")

// fromPredecessor finds what a process before this one has launched for the claim. As long as EC2 may not show it yet,
// and the claim is old enough to have been launched by another, it is to be waited for.
func (p *Provider) fromPredecessor(ctx context.Context, claim *v1.NodeClaim) (*assignment, error) {
	if p.scans.begin(p.now()) {
		return nil, nil
	}
	left, err := p.predecessors.load(ctx, p)
	if err != nil {
		return nil, err
	}
	if _, err := p.scan(ctx); err != nil {
		return nil, err
	}
	a := p.ownership.recallInstance(claim)
	if a == nil && left[claim.UID] && !p.scans.isComplete() {
		return nil, errMayBeHidden
	}
	return a, nil
}
