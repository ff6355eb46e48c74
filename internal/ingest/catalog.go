package ingest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/resource"
)

const (
	// catalogRefresh is how often the cloud is asked what it sells; catalogRetry after it could not say.
	catalogRefresh = 5 * time.Minute
	catalogRetry   = 5 * time.Second
	// catalogTimeout bounds one answer; catalogsAtOnce is how many are waited for at the same time.
	catalogTimeout = 30 * time.Second
	catalogsAtOnce = 8
	// firstCatalogWait is how long the other pools wait for a pool's first catalog.
	firstCatalogWait = 5 * time.Second
	dueCheckInterval = time.Second

	notAnswered = "the cloud has not answered yet"
)

// poolCatalog is what a pool can buy.
type poolCatalog struct {
	list *typeList
	err  string // why the latest fetch failed, even if an older list is still sold
	due  time.Time
	// wantedGeneration is the generation of the pool that was last asked for. Each wish counts in requests;
	// requestsAtFetch is the count when the latest fetch began, so that a wish which arrives meanwhile is not lost.
	wantedGeneration          int64
	requests, requestsAtFetch uint64
	fetching                  bool
	firstFetch                time.Time // of the first fetch; zero if there was none
	late                      bool      // the first answer has taken longer than others can wait
	// catalog is list as it is sold now; unavailable is what was held against which offerings.
	catalog     *cluster.Catalog
	base        *cluster.Catalog
	unavailable map[command.UnavailableOffering]offeringState
	// within are the values of labels that some of unavailable are narrowed down to.
	within []string
	// answeredAt is when the provider last answered; pinned how many of each reservation were taken since, in catalog.
	answeredAt time.Time
	pinned     map[string]int
}

// typeList is a provider's list of types. Pools that get the same list share it and what is made of it.
type typeList struct {
	types        []*cloudprovider.InstanceType
	reservations map[string]string // the label of each reservation
	// catalog is the catalog that was made of it first, which all others share what they can with; until there is one,
	// lastCatalog is the catalog of the list before.
	catalog, lastCatalog *cluster.Catalog
}

// requestCatalog asks for a pool's catalog to be fetched unless it was asked for this generation. A negative generation
// is always a new wish. The lock is held.
func (b *Book) requestCatalog(pool string, generation int64) {
	c := b.poolCatalogs[pool]
	if c == nil {
		c = &poolCatalog{wantedGeneration: -1}
		b.poolCatalogs[pool] = c
	}
	if c.wantedGeneration == generation && generation >= 0 {
		return
	}
	c.wantedGeneration = max(c.wantedGeneration, generation)
	c.requests++
	c.due = time.Time{}
	b.wakeCatalogs()
}

// RefetchCatalogs has the catalogs of all pools fetched soon: the cloud has said that prices, or what it sells, have
// changed.
func (b *Book) RefetchCatalogs() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for pool := range b.poolCatalogs {
		b.requestCatalog(pool, -1)
	}
}

// wakeCatalogs wakes Catalogs.
func (b *Book) wakeCatalogs() {
	select {
	case b.catalogWake <- struct{}{}:
	default:
	}
}

// KeepCatalogs keeps every pool's catalog fresh until the context ends. It is the only part of ingest that asks the
// cloud.
func (b *Book) KeepCatalogs(ctx context.Context, provider cloudprovider.Catalog) error {
	slots := make(chan struct{}, catalogsAtOnce)
	for {
		for _, e := range b.dueCatalogs() {
			go b.fetchCatalog(ctx, provider, e.object, slots)
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

func (b *Book) fetchDone(pool string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.poolCatalogs[pool]; c != nil {
		c.fetching = false
		b.wakeCatalogs()
	}
}

// dueCatalogs lists the pools whose catalog is to be fetched, and marks them as being fetched. Only pools whose
// NodeClass is there are asked about.
func (b *Book) dueCatalogs() []*poolEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropUnusedLists()
	now := b.now()
	var out []*poolEntry
	for _, name := range slices.Sorted(maps.Keys(b.poolCatalogs)) {
		c, p := b.poolCatalogs[name], b.pools[name]
		if b.isLate(c) && !c.late {
			c.late = true
			b.noteAndWake(changesRoom) // the others wait no longer
		}
		if p == nil || c.fetching || now.Before(c.due) || !b.nodeClassNow(p.pool.Template.NodeClass).Ready {
			continue
		}
		c.fetching, c.requestsAtFetch = true, c.requests
		if c.firstFetch.IsZero() {
			c.firstFetch = now
		}
		out = append(out, p)
	}
	return out
}

func (b *Book) isLate(c *poolCatalog) bool {
	return c.list == nil && !c.firstFetch.IsZero() && b.now().Sub(c.firstFetch) >= firstCatalogWait
}

func (b *Book) setCatalog(pool string, generation int64, types []*cloudprovider.InstanceType, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.poolCatalogs[pool]
	if c == nil {
		return
	}
	wait, before := catalogRefresh, c.err
	if err != nil {
		c.err, wait = err.Error(), catalogRetry
	} else {
		c.err, c.answeredAt = "", b.now()
	}
	switch {
	case err == nil && (c.list == nil || !sameTypes(c.list.types, types)):
		c.list, c.catalog, c.base = b.sharedList(types, c.list.latest()), nil, nil
		b.dropUnusedLists()
		b.readTypeLimits()
		b.specs.Dims.SetSold(b.sold())
		b.noteAndWake(changesRoom)
	case c.err != before:
		b.noteAndWake(changesRoom)
	}
	c.due = b.now().Add(wait)
	if c.requests != c.requestsAtFetch || generation < c.wantedGeneration {
		c.due = time.Time{}
		b.wakeCatalogs()
	}
}

// catalogError says why a pool's catalog could not be fetched last time, even if an older one is still in use; empty
// if all is well. The lock is held.
func (b *Book) catalogError(pool string) string {
	c := b.poolCatalogs[pool]
	if c == nil {
		return ""
	}
	if c.err == "" && b.isLate(c) {
		return notAnswered
	}
	return c.err
}

// dropUnusedLists forgets lists that no pool buys from any more. The lock is held.
func (b *Book) dropUnusedLists() {
	used := make(map[*typeList]bool, len(b.poolCatalogs))
	for _, c := range b.poolCatalogs {
		used[c.list] = true
	}
	maps.DeleteFunc(b.numberedCatalogs, func(key catalogKey, _ *cluster.Catalog) bool { return !used[key.list] })
}

// sharedList finds the stock of another pool that has the same list. The lock is held.
func (b *Book) sharedList(types []*cloudprovider.InstanceType, before *cluster.Catalog) *typeList {
	for _, c := range b.poolCatalogs {
		if c.list != nil && sameTypes(c.list.types, types) {
			return c.list
		}
	}
	return &typeList{types: types, reservations: reservationsOf(types), lastCatalog: before}
}

// sameTypes reports whether two lists sell the same. Providers that have nothing new to say hand out the same values,
// so most of the time only pointers are compared.
func sameTypes(a, b []*cloudprovider.InstanceType) bool {
	return slices.EqualFunc(a, b, func(x, y *cloudprovider.InstanceType) bool { return x == y || sameType(x, y) })
}

func sameType(x, y *cloudprovider.InstanceType) bool {
	return x.Name == y.Name && maps.EqualFunc(x.Labels, y.Labels, slices.Equal) && maps.Equal(x.VolumeLimits,
		y.VolumeLimits) &&
		maps.EqualFunc(x.Capacity, y.Capacity, apiresource.Quantity.Equal) && maps.EqualFunc(x.Overhead, y.Overhead,
		apiresource.Quantity.Equal) &&
		slices.EqualFunc(x.Offerings, y.Offerings, func(o, p cloudprovider.Offering) bool {
			return o.Price == p.Price && o.PriceEstimated == p.PriceEstimated && o.Available == p.Available &&
				o.ReservationID == p.ReservationID &&
				o.ReservationCapacity == p.ReservationCapacity && maps.Equal(o.Labels, p.Labels)
		})
}

// catalogNow is what the pool can buy now; nil with a reason if that is not known. The lock is held.
func (b *Book) catalogNow(pool string) (*cluster.Catalog, string) {
	c := b.poolCatalogs[pool]
	if c == nil || c.list == nil {
		return nil, b.catalogError(pool)
	}
	var class cluster.ClassRef
	if p := b.pools[pool]; p != nil {
		class = p.pool.Template.NodeClass
	}
	base := b.catalogFor(c.list, class)
	pinned := b.countPinned(c.list.reservations, c.answeredAt)
	if c.catalog == nil || c.base != base || !b.sameUnavailable(c.unavailable) || !maps.Equal(c.pinned, pinned) {
		c.base, c.unavailable, c.pinned = base, b.unavailableNow(), pinned
		c.within = withinValues(c.unavailable)
		c.catalog = b.availableNow(c)
	}
	return c.catalog, ""
}

// availableNow is the pool's list without what can't be bought. Pools of which the same is to be said share it, and it
// is the list itself if there is nothing to say. The lock is held.
func (b *Book) availableNow(c *poolCatalog) *cluster.Catalog {
	for _, other := range b.poolCatalogs {
		if other != c && other.catalog != nil && other.base == c.base && maps.Equal(other.unavailable, c.unavailable) &&
			maps.Equal(other.pinned, c.pinned) {
			return other.catalog
		}
	}
	if !slices.ContainsFunc(c.base.Offerings, func(o cluster.Offering) bool {
		return o.Reservation != "" || c.stateOf(c.base, &o).availability != 0
	}) {
		return c.base
	}
	out := c.base.Without(func(o *cluster.Offering) bool {
		return o.Reservation != "" && o.ReservationLeft <= c.pinned[o.Reservation] ||
			c.stateOf(c.base, o).availability == notAvailable
	})
	for i := range out.Offerings {
		o := &out.Offerings[i] // Without has made a list of its own
		o.ReservationLeft = max(0, o.ReservationLeft-c.pinned[o.Reservation])
		said := c.stateOf(c.base, o)
		o.Probing, o.Advice = said.availability == beingProbed, said.advice
	}
	return out
}

// stateOf is what is held against an offering of the catalog.
func (pc *poolCatalog) stateOf(c *cluster.Catalog, o *cluster.Offering) offeringState {
	if len(pc.unavailable) == 0 {
		return offeringState{}
	}
	plain := command.UnavailableOffering{Type: c.Types[o.Type].Name, Zone: o.Zone, CapacityType: o.CapacityType}
	worst := stateOf(pc.unavailable, plain)
	for _, value := range pc.within {
		if worst.availability != notAvailable && (hasValue(o.Labels, value) || hasValue(o.Common, value)) {
			plain.Within = value
			worst = worse(worst, stateOf(pc.unavailable, plain))
		}
	}
	return worst
}

// catalogKey is where a list is sold to a NodeClass: what was learned of its nodes is particular to the class.
type catalogKey struct {
	list  *typeList
	class cluster.ClassRef
}

// catalogFor is a provider's list, numbered, with what has been learned of the nodes of the class. Classes of which
// nothing was learned share it. The lock is held.
func (b *Book) catalogFor(list *typeList, class cluster.ClassRef) *cluster.Catalog {
	key := catalogKey{list, class}
	if have := b.numberedCatalogs[key]; have != nil {
		return have
	}
	if types, less := b.withObservedCapacity(list.types, class); less {
		b.numberedCatalogs[key] = b.numberCatalog(list, types)
		return b.numberedCatalogs[key]
	}
	plain := catalogKey{list: list}
	if b.numberedCatalogs[plain] == nil {
		b.numberedCatalogs[plain] = b.numberCatalog(list, list.types)
	}
	b.numberedCatalogs[key] = b.numberedCatalogs[plain]
	return b.numberedCatalogs[key]
}

// sold are the names of the resources that some type has.
func (b *Book) sold() map[string]bool {
	out := make(map[string]bool)
	seen := make(map[*typeList]bool)
	for _, c := range b.poolCatalogs {
		if c.list == nil || seen[c.list] {
			continue
		}
		seen[c.list] = true
		for _, t := range c.list.types {
			for name, q := range t.Capacity {
				if q.Sign() > 0 {
					out[string(name)] = true
				}
			}
			for driver := range t.VolumeLimits {
				out[resource.AttachPrefix+driver] = true
			}
		}
	}
	return out
}

// volumeLimits is what types can attach, by type and driver, and the drivers. Of two limits of a type the last one
// stands, always the same.
func (b *Book) volumeLimits() (limits map[string]map[string]int32, drivers []string) {
	limits = make(map[string]map[string]int32)
	for _, c := range valuesByKey(b.poolCatalogs) {
		if c.list == nil {
			continue
		}
		for _, t := range c.list.types {
			if len(t.VolumeLimits) > 0 {
				limits[t.Name] = t.VolumeLimits
				drivers = slices.AppendSeq(drivers, maps.Keys(t.VolumeLimits))
			}
		}
	}
	slices.Sort(drivers)
	return limits, slices.Compact(drivers)
}
