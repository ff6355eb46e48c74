package fake

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// Cloud is what the providers of this package talk to. Its exported methods are for tests: they make happen what
// happens to real clouds.
type Cloud struct {
	types []*cloudprovider.InstanceType

	mu        sync.Mutex
	instances map[string]*cloudprovider.Instance
	exhausted map[cloudprovider.OfferingRef]bool
	blocked   map[string]string
	drift     map[string]cloudprovider.DriftReason
}

// NewCloud returns a cloud that sells the types, or a small catalog of its own if none are given.
func NewCloud(types ...*cloudprovider.InstanceType) *Cloud {
	if len(types) == 0 {
		types = smallCatalog()
	}
	types = slices.Clone(types)
	slices.SortFunc(types, func(a, b *cloudprovider.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return &Cloud{
		types:     types,
		instances: map[string]*cloudprovider.Instance{},
		exhausted: map[cloudprovider.OfferingRef]bool{},
		blocked:   map[string]string{},
		drift:     map[string]cloudprovider.DriftReason{},
	}
}

// Exhaust makes launches on the offerings fail, although the catalog still lists them as available: clouds don't
// announce a shortage.
func (c *Cloud) Exhaust(offerings ...cloudprovider.OfferingRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range offerings {
		c.exhausted[o] = true
	}
}

// Kill makes an instance vanish without anyone having asked for it.
func (c *Cloud) Kill(providerID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.instances, providerID)
}

// BlockNodeClass makes the NodeClass not ready, for the reason given; an empty one makes it ready again.
func (c *Cloud) BlockNodeClass(name, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked[name] = why
}

// Drift makes the instance drift for the reason given; an empty one ends it.
func (c *Cloud) Drift(providerID string, reason cloudprovider.DriftReason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drift[providerID] = reason
}

// launch starts the first candidate that can be had, unless the claim has an instance already. It holds the lock all
// along, so two calls for one claim can't both launch.
func (c *Cloud) launch(claim *v1.NodeClaim, ranked []choose.Candidate) (*cloudprovider.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := "fake://" + string(claim.UID)
	if there, ok := c.instances[id]; ok {
		return there.DeepCopy(), nil
	}
	class := claim.Spec.NodeClassRef.Name
	if why := c.blocked[class]; why != "" {
		return nil, &cloudprovider.NotReadyError{NodeClass: class, Message: why}
	}
	chosen, err := choose.Available(ranked, func(o cloudprovider.OfferingRef) bool { return c.exhausted[o] })
	if err != nil {
		return nil, err
	}
	launched := chosen.Instance(claim)
	launched.ProviderID = id
	launched.CreatedAt = time.Now()
	c.instances[id] = launched
	return launched.DeepCopy(), nil
}

func (c *Cloud) get(id string) (*cloudprovider.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	there, ok := c.instances[id]
	if !ok {
		return nil, &cloudprovider.NotFoundError{ProviderID: id}
	}
	return there.DeepCopy(), nil
}

func (c *Cloud) list() []*cloudprovider.Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*cloudprovider.Instance, 0, len(c.instances))
	for _, id := range slices.Sorted(maps.Keys(c.instances)) {
		out = append(out, c.instances[id].DeepCopy())
	}
	return out
}

// end takes two calls, as real instances take time to go: the first begins it, the second finds it done.
func (c *Cloud) end(id string, owner cloudprovider.Owner) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	there, ok := c.instances[id]
	switch {
	case !ok:
		return &cloudprovider.NotFoundError{ProviderID: id}
	case !owner.Of(there.ClaimUID):
		return &cloudprovider.NotOwnedError{ProviderID: id, Want: owner, Owner: there.Owner()}
	case there.Terminating:
		delete(c.instances, id)
		return &cloudprovider.NotFoundError{ProviderID: id}
	default:
		there.Terminating = true
		return nil
	}
}

func (c *Cloud) driftOf(id string) cloudprovider.DriftReason {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drift[id]
}
