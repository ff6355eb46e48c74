package conformance

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/fake"
)

type mistake struct {
	what     string
	caughtBy string
	make     func(b *broken, cloud *Cloud)
}

func mistakes() []mistake {
	return slices.Concat(catalogMistakes(), createMistakes(), capacityMistakes(), endMistakes(), robustnessMistakes())
}

func catalogMistakes() []mistake {
	changed := func(b *broken, change func([]*cloudprovider.InstanceType)) {
		b.types = func(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
			good, err := b.Provider.InstanceTypes(ctx, pool)
			var out []*cloudprovider.InstanceType
			for _, t := range good {
				copied := *t
				copied.Offerings = slices.Clone(t.Offerings)
				out = append(out, &copied)
			}
			change(out)
			return out, err
		}
	}
	return []mistake{
		{"shouts its name", "Identity", func(b *broken, _ *Cloud) { b.name = func() string { return "My Cloud" } }},
		{"lists types in any order", "CatalogOrder", func(b *broken, _ *Cloud) {
			changed(b, func(t []*cloudprovider.InstanceType) { slices.Reverse(t) })
		}},
		{"gives things away", "CatalogContent", func(b *broken, _ *Cloud) {
			changed(b, func(t []*cloudprovider.InstanceType) { t[0].Offerings[0].Price = 0 })
		}},
		{"sells the same thing twice", "CatalogContent", func(b *broken, _ *Cloud) {
			changed(b, func(t []*cloudprovider.InstanceType) {
				t[0].Offerings = append(t[0].Offerings, t[0].Offerings[0])
			})
		}},
		{"has types that can't be bought", "CatalogContent", func(b *broken, _ *Cloud) {
			changed(b, func(t []*cloudprovider.InstanceType) { t[1].Offerings = nil })
		}},
		{"keeps more than there is", "CatalogContent", func(b *broken, _ *Cloud) {
			changed(b, func(t []*cloudprovider.InstanceType) {
				t[0].Overhead = t[1].Capacity
				t[1].Overhead = t[0].Capacity
			})
		}},
	}
}

func createMistakes() []mistake {
	return []mistake{
		{"forgets the zone", "CreateAnswer", func(b *broken, _ *Cloud) {
			b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
				i, err := b.Provider.Create(ctx, claim)
				if i != nil {
					delete(i.Labels, corev1.LabelTopologyZone)
				}
				return i, err
			}
		}},
		{"buys on demand only", "CreateCheapest", func(b *broken, _ *Cloud) {
			b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
				dear := claim.DeepCopy()
				dear.Spec.Requirements = append(dear.Spec.Requirements, in(v1.CapacityTypeLabelKey,
					v1.CapacityTypeOnDemand))
				return b.Provider.Create(ctx, dear)
			}
		}},
		{"ignores requirements", "CreateCheapest", func(b *broken, _ *Cloud) {
			b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
				free := claim.DeepCopy()
				free.Spec.Requirements = nil
				return b.Provider.Create(ctx, free)
			}
		}},
		{"ignores requests", "CreateHoldsRequests Impossible", func(b *broken, _ *Cloud) {
			b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
				small := claim.DeepCopy()
				small.Spec.Resources.Requests = nil
				return b.Provider.Create(ctx, small)
			}
		}},
		{"launches at every call", "CreateOnce CreateOnceConcurrently CreateOnceAfterRestart ShortageAfterLaunch",
			func(b *broken, _ *Cloud) {
				b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
					return b.Provider.Create(ctx, anotherUID(claim))
				}
			}},
		{"looks, then launches", "CreateOnceConcurrently", func(b *broken, _ *Cloud) {
			var calls atomic.Int32
			both := make(chan struct{})
			b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
				if calls.Add(1) == 2 { // the second call comes while the first has looked and not launched
					defer close(both)
					return b.Provider.Create(ctx, anotherUID(claim))
				}
				<-both
				return b.Provider.Create(ctx, claim)
			}
		}},
		{"forgets all when it restarts", "CreateOnceAfterRestart", func(_ *broken, c *Cloud) {
			c.Restart = func(context.Context) (cloudprovider.Provider, error) { return fake.New(fake.NewCloud()), nil }
		}},
		{"goes by the claim's name", "CreateForEachClaim", func(b *broken, _ *Cloud) {
			b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
				named := claim.DeepCopy()
				named.UID = types.UID(claim.Name)
				return b.Provider.Create(ctx, named)
			}
		}},
	}
}

func capacityMistakes() []mistake {
	onNoCapacity := func(b *broken, then func(none *cloudprovider.NoCapacityError, claim *v1.NodeClaim) error) {
		b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
			i, err := b.Provider.Create(ctx, claim)
			if none, ok := errors.AsType[*cloudprovider.NoCapacityError](err); ok {
				return nil, then(none, claim)
			}
			return i, err
		}
	}
	return []mistake{
		{"hides a shortage in a plain error", "NoCapacity Impossible", func(b *broken, _ *Cloud) {
			onNoCapacity(b, func(none *cloudprovider.NoCapacityError, _ *v1.NodeClaim) error {
				return errors.New(none.Message)
			})
		}},
		{"does not say what is exhausted", "NoCapacity", func(b *broken, _ *Cloud) {
			onNoCapacity(b, func(none *cloudprovider.NoCapacityError, _ *v1.NodeClaim) error {
				return &cloudprovider.NoCapacityError{Message: none.Message}
			})
		}},
		{"gives up when the cheapest is exhausted", "NextCheapest", func(b *broken, c *Cloud) {
			exhaust := c.Exhaust
			c.Exhaust = func(ctx context.Context, offerings ...cloudprovider.OfferingRef) error {
				b.create = func(context.Context, *v1.NodeClaim) (*cloudprovider.Instance, error) {
					return nil, &cloudprovider.NoCapacityError{Exhausted: offerings}
				}
				return exhaust(ctx, offerings...)
			}
		}},
		{"looks for capacity before it looks for the instance", "ShortageAfterLaunch", func(b *broken, c *Cloud) {
			exhaust := c.Exhaust
			c.Exhaust = func(ctx context.Context, offerings ...cloudprovider.OfferingRef) error {
				b.create = func(context.Context, *v1.NodeClaim) (*cloudprovider.Instance, error) {
					return nil, &cloudprovider.NoCapacityError{Exhausted: offerings}
				}
				return exhaust(ctx, offerings...)
			}
		}},
		{"launches with any NodeClass", "NotReady", func(_ *broken, c *Cloud) {
			c.BlockNodeClass = func(context.Context) error { return nil }
		}},
	}
}

func endMistakes() []mistake {
	return []mistake{
		{"lists half", "Found Concurrent CreateForEachClaim", func(b *broken, _ *Cloud) {
			b.list = func(ctx context.Context) ([]*cloudprovider.Instance, error) {
				all, err := b.Provider.List(ctx)
				return all[:len(all)/2], err
			}
		}},
		{"forgets the price", "Found", func(b *broken, _ *Cloud) {
			b.get = func(ctx context.Context, id string) (*cloudprovider.Instance, error) {
				i, err := b.Provider.Get(ctx, id)
				if i != nil {
					i.Price = 0
				}
				return i, err
			}
		}},
		{"does not say what was not found", "Unknown", func(b *broken, _ *Cloud) {
			b.get = func(ctx context.Context, id string) (*cloudprovider.Instance, error) {
				i, err := b.Provider.Get(ctx, id)
				if err != nil {
					return nil, &cloudprovider.NotFoundError{}
				}
				return i, nil
			}
		}},
		{"never finishes a Delete", "Delete", func(b *broken, _ *Cloud) {
			b.end = func(context.Context, string, cloudprovider.Owner) error { return nil }
		}},
		{"says it deleted and did not", "Delete", func(b *broken, _ *Cloud) {
			b.end = func(_ context.Context, id string, _ cloudprovider.Owner) error {
				return &cloudprovider.NotFoundError{ProviderID: id}
			}
		}},
		{"deletes everything", "Delete", func(b *broken, _ *Cloud) {
			b.end = func(ctx context.Context, id string, owner cloudprovider.Owner) error {
				all, err := b.Provider.List(ctx)
				for _, i := range all {
					err = errors.Join(err, b.Provider.Delete(ctx, i.ProviderID, i.Owner()))
				}
				return errors.Join(err, b.Provider.Delete(ctx, id, owner))
			}
		}},
		{"does not ask whose the instance is", "Owner", func(b *broken, _ *Cloud) {
			b.end = func(ctx context.Context, id string, _ cloudprovider.Owner) error {
				i, err := b.Provider.Get(ctx, id)
				if err != nil {
					return err
				}
				return b.Provider.Delete(ctx, id, i.Owner())
			}
		}},
		{"takes a namesake for the owner", "Owner", func(b *broken, _ *Cloud) {
			b.end = func(ctx context.Context, id string, owner cloudprovider.Owner) error {
				i, err := b.Provider.Get(ctx, id)
				if err == nil && i.ClaimName == owner.ClaimName {
					owner = i.Owner()
				}
				return b.Provider.Delete(ctx, id, owner)
			}
		}},
		{"does not say whose the instance is", "Owner", func(b *broken, _ *Cloud) {
			b.end = func(ctx context.Context, id string, owner cloudprovider.Owner) error {
				if err := b.Provider.Delete(ctx, id, owner); !cloudprovider.IsNotOwned(err) {
					return err
				}
				return &cloudprovider.NotOwnedError{ProviderID: id, Want: owner}
			}
		}},
		{"does not notice that an instance died", "Killed", func(_ *broken, c *Cloud) {
			c.Kill = func(context.Context, string) error { return nil }
		}},
		{"sees drift everywhere", "NoDrift", func(b *broken, _ *Cloud) {
			b.drift = func() cloudprovider.DriftReason { return "Always" }
		}},
	}
}

func robustnessMistakes() []mistake {
	return []mistake{
		{"ignores its context", "Cancelled", func(b *broken, _ *Cloud) {
			b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
				return b.Provider.Create(context.WithoutCancel(ctx), claim)
			}
		}},
		{"never comes back", "Cancelled", func(b *broken, _ *Cloud) {
			b.get = func(ctx context.Context, id string) (*cloudprovider.Instance, error) {
				if ctx.Err() != nil {
					select {}
				}
				return b.Provider.Get(ctx, id)
			}
		}},
		{"takes a cancelled call for an absence", "Cancelled", func(b *broken, _ *Cloud) {
			b.end = func(ctx context.Context, id string, owner cloudprovider.Owner) error {
				if ctx.Err() != nil {
					return &cloudprovider.NotFoundError{ProviderID: id}
				}
				return b.Provider.Delete(ctx, id, owner)
			}
		}},
		{"hands out its own memory", "OwnAnswer", func(b *broken, _ *Cloud) {
			memory := map[string]*cloudprovider.Instance{}
			b.create = func(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
				i, err := b.Provider.Create(ctx, claim)
				if err == nil {
					memory[i.ProviderID] = i
				}
				return i, err
			}
			b.get = func(_ context.Context, id string) (*cloudprovider.Instance, error) {
				shallow := *memory[id]
				return &shallow, nil
			}
		}},
	}
}
