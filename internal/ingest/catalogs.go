package ingest

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
	"github.com/tenon-sh/tenon/internal/resource"
)

const (
	// catalogTimeout bounds one answer; catalogsAtOnce is how many are waited for at the same time.
	catalogTimeout   = 30 * time.Second
	catalogsAtOnce   = 8
	dueCheckInterval = time.Second
)

// requestCatalog asks for a pool's catalog to be fetched unless it was asked for this generation. A negative generation
// is always a new wish. The lock is held.
func (b *Book) requestCatalog(pool string, generation int64) {
	if b.market.Request(pool, generation) {
		b.wakeCatalogs()
	}
}

// wakeCatalogs wakes KeepCatalogs.
func (b *Book) wakeCatalogs() {
	select {
	case b.catalogWake <- struct{}{}:
	default:
	}
}

// RefetchCatalogs has the catalogs of all pools fetched soon: the cloud has said that prices, or what it sells, have
// changed.
func (b *Book) RefetchCatalogs() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.market.RequestAll()
	b.wakeCatalogs()
}

// KeepCatalogs keeps every pool's catalog fresh until the context ends. It is the only part of ingest that asks the
// cloud.
func (b *Book) KeepCatalogs(ctx context.Context, provider cloudprovider.Catalog) error {
	slots := make(chan struct{}, catalogsAtOnce)
	for {
		for _, e := range b.dueCatalogs() {
			go b.fetchCatalog(ctx, provider, e.Object, slots)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.catalogWake:
		case <-time.After(dueCheckInterval):
		}
	}
}

// fetchCatalog asks for one pool's catalog. A provider that does not answer in time holds up neither other pools nor,
// since its slot is given back, more than its own next fetch.
func (b *Book) fetchCatalog(ctx context.Context, provider cloudprovider.Catalog, pool *v1.NodePool,
	slots chan struct{}) {
	defer b.fetchDone(pool.Name)
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	limited, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	answered := make(chan struct{})
	var types []*cloudprovider.InstanceType
	var err error
	go func() {
		defer close(answered)
		types, err = b.askTypes(limited, provider, pool)
	}()
	select {
	case <-answered:
		<-slots
		if ctx.Err() == nil {
			if broken := b.contain("the catalog of NodePool "+pool.Name, func() {
				b.setCatalog(pool.Name, pool.Generation, types, err)
			}); broken != nil {
				b.setCatalog(pool.Name, pool.Generation, nil, broken)
			}
		}
	case <-limited.Done():
		<-slots
		if ctx.Err() != nil {
			return
		}
		b.setCatalog(pool.Name, pool.Generation, nil, fmt.Errorf("the cloud did not answer within %s", catalogTimeout))
		<-answered
	}
}

// askTypes asks the provider. One that panics has not answered.
func (b *Book) askTypes(ctx context.Context, provider cloudprovider.Catalog,
	pool *v1.NodePool) (types []*cloudprovider.InstanceType, err error) {
	if broken := b.contain("the catalog of NodePool "+pool.Name, func() {
		types, err = provider.InstanceTypes(ctx, pool)
	}); broken != nil {
		return nil, broken
	}
	return types, err
}

// FetchCatalogs asks, one after the other, for every catalog that is due: one round of what Catalogs does without end.
// It is for whoever has a clock of their own.
func (b *Book) FetchCatalogs(ctx context.Context, provider cloudprovider.Catalog) {
	for _, e := range b.dueCatalogs() {
		types, err := provider.InstanceTypes(ctx, e.Object)
		b.setCatalog(e.Object.Name, e.Object.Generation, types, err)
		b.fetchDone(e.Object.Name)
	}
}

func (b *Book) fetchDone(pool string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.market.Done(pool) {
		b.wakeCatalogs()
	}
}

// dueCatalogs lists the pools whose catalog is to be fetched, and marks them as being fetched. Only pools whose
// NodeClass is there are asked about.
func (b *Book) dueCatalogs() []*pools.Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	names, late := b.market.Due(b.now(), func(pool string) bool {
		p := b.pools[pool]
		return p != nil && b.nodeClassNow(p.Pool.Template.NodeClass).Ready
	})
	for range late {
		b.noteAndWake(change.Room) // the others wait no longer
	}
	out := make([]*pools.Entry, 0, len(names))
	for _, name := range names {
		out = append(out, b.pools[name])
	}
	return out
}

func (b *Book) setCatalog(pool string, generation int64, types []*cloudprovider.InstanceType, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.market.Set(pool, generation, types, err, b.now())
	if got.NewTypes {
		b.readTypeLimits()
		b.specs.Dims.SetSold(b.market.Sold())
	}
	if got.News {
		b.noteAndWake(change.Room)
	}
	if got.Again {
		b.wakeCatalogs()
	}
}

// measureType is what nodes of a type have, and what of it pods may use. The lock is held.
func (b *Book) measureType(t *cloudprovider.InstanceType) (capacity, allocatable resource.Vector) {
	d := &b.specs.Dims
	return d.Measure(t.Capacity), d.WithAttachLimits(d.Measure(t.Allocatable()), t.VolumeLimits)
}

// asked yields the claims that are being made and that the watch has not shown. The lock is held.
func (b *Book) asked(yield func(command.CreateClaim) bool) {
	for c := range b.commands.Each {
		if create, ok := c.(command.CreateClaim); ok && b.claims[create.Name] == nil && !yield(create) {
			return
		}
	}
}

// SetShortageBackoff says how long offerings are left alone that the cloud could not sell. It comes before anything is
// taken in.
func (b *Book) SetShortageBackoff(backoff offerings.Backoff) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.market.Shortages.Backoff = backoff
}

// Unavailable says of offerings whether they can't be bought for now, as the plans of this moment take it. A NodeClaim
// names types and zones, and any of its types in any of its zones will do for its pods, also one that no plan would
// choose now: the provider asks.
func (b *Book) Unavailable() func(cloudprovider.OfferingRef) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.market.Shortages.Unavailable()
}

// seen is what a node teaches about its type, if it is ready for pods. The lock is held.
func (b *Book) seen(n *cluster.Node) (out offerings.NodeSeen, ready bool) {
	value, _ := n.Labels.Get(cluster.InitializedLabel)
	e := b.nodes[n.Name]
	if !n.Ours || value != "true" || e == nil {
		return out, false
	}
	kind, named := n.Labels.Get(cluster.InstanceTypeLabel)
	class, found := b.nodeClassNamedBy(n)
	return offerings.NodeSeen{Class: class, Type: kind, Created: n.Created, Most: e.MostAllocatable,
		Limits: b.attachLimits.OfNodeItself(n.Name)}, found && named
}

// observeCapacity takes in what a node has that is ready for pods. The lock is held.
func (b *Book) observeCapacity(n *cluster.Node) change.Kind {
	if seen, ready := b.seen(n); ready && b.market.Observe(seen) {
		return change.Supply
	}
	return change.None
}

// reobserveCapacity is observeCapacity for a node that shows more than it did: what it taught before was not the truth
// about its type, so that this is learned anew from the nodes that are there. The lock is held.
func (b *Book) reobserveCapacity(n *cluster.Node) change.Kind {
	kind, named := n.Labels.Get(cluster.InstanceTypeLabel)
	class, found := b.nodeClassNamedBy(n)
	if !named || !found {
		return change.None
	}
	changed, known := b.market.Reobserve(class, kind, func(yield func(offerings.NodeSeen) bool) {
		for _, e := range b.nodes {
			if seen, ready := b.seen(e.Node); ready && !yield(seen) {
				return
			}
		}
	})
	switch {
	case changed:
		return change.Room
	case known:
		return change.GivesRoom
	}
	return change.None
}

// nodeClassNamedBy is the NodeClass that a node's labels name.
func (b *poolState) nodeClassNamedBy(n *cluster.Node) (ref cluster.ClassRef, found bool) {
	for kind := range b.nodeClassKinds {
		if name, has := n.Labels.Get(v1.NodeClassLabelKey(kind.Group, kind.Kind)); has {
			return cluster.ClassRef{Group: kind.Group, Kind: kind.Kind, Name: name}, true
		}
	}
	return cluster.ClassRef{}, false
}

// forgetLaunches forgets what is known of the launches of a NodeClass that has changed: the change may be the cure. The
// lock is held.
func (b *Book) forgetLaunches(ref cluster.ClassRef) {
	for name, e := range b.pools {
		if e.Pool.Template.NodeClass == ref {
			b.launches.Forget(name)
		}
	}
}
