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

// lookAgain is how long to wait before EC2 is looked at again for what a process before this one has launched.
const lookAgain = 500 * time.Millisecond

// estate is what a process before this one has left: claims that it may have launched instances for which EC2 does not show
// yet. Launches of several claims are known to EC2 by all of them together, so a claim that comes back in other company
// would get a second instance.
type estate struct {
	// reading lets one caller at a time ask the API server; it can be waited for with a context.
	reading chan struct{}
	read    bool
	claims  map[types.UID]bool
	// instances are those of claims that were young then: EC2 may not show them yet either.
	instances map[string]bool
}

func newEstate() *estate { return &estate{reading: make(chan struct{}, 1)} }

// Lead notes that this process launches instances from now on. What NodeClaims there are without an instance may have been
// launched by another; those that come later can't. It is called when the process becomes the leader (Start does); if
// nobody calls it, the first launch does, and then has to take claims of its own for another's.
func (p *Provider) Lead(ctx context.Context) error {
	p.looks.begin(p.now())
	_, err := p.estate.of(ctx, p)
	return err
}

// of is what was left, by UID.
func (e *estate) of(ctx context.Context, p *Provider) (map[types.UID]bool, error) {
	select {
	case e.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-e.reading }()
	if e.read || p.live == nil {
		return e.claims, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1.GroupVersion().WithKind("NodeClaimList"))
	if err := p.live.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing NodeClaims that another controller may have launched instances for: %w", err)
	}
	e.claims, e.instances = map[types.UID]bool{}, map[string]bool{}
	for k := range list.Items {
		c := &list.Items[k]
		providerID, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
		id, err := instanceID(providerID)
		switch {
		case providerID == "":
			e.claims[c.GetUID()] = true
		case err == nil && p.now().Sub(c.GetCreationTimestamp().Time) < showsIn:
			e.instances[id] = true
		}
	}
	e.read = true
	return e.claims, nil
}

// mayBeHidden tells whether EC2 may not show the instance yet although a process before this one has launched it.
func (p *Provider) mayBeHidden(ctx context.Context, id string) bool {
	if p.looks.isSettled(p.now()) {
		return false
	}
	_, err := p.estate.of(ctx, p)
	return err != nil || p.estate.instances[id]
}

// errHidden says that EC2 may not show yet what a process before this one has launched for the claim.
var errHidden = errors.New("EC2 may not show the claim's instance yet")

// inherited finds what a process before this one has launched for the claim. As long as EC2 may not show it yet, and the
// claim is old enough to have been launched by another, it is to be waited for.
func (p *Provider) inherited(ctx context.Context, claim *v1.NodeClaim) (*holding, error) {
	if p.looks.begin(p.now()) {
		return nil, nil
	}
	left, err := p.estate.of(ctx, p)
	if err != nil {
		return nil, err
	}
	if _, err := p.survey(ctx); err != nil {
		return nil, err
	}
	h := p.register.recall(claim)
	if h == nil && left[claim.UID] && !p.looks.isSure() {
		return nil, errHidden
	}
	return h, nil
}
