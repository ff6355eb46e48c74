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
)

const (
	// refreshCatalog is how often the cloud is asked what it sells; retryCatalog after it could not say.
	refreshCatalog = 5 * time.Minute
	retryCatalog   = 5 * time.Second
	// catalogTimeout bounds one answer; catalogsAtOnce is how many are waited for at the same time.
	catalogTimeout = 30 * time.Second
	catalogsAtOnce = 8
	// catalogPatience is how long the other pools wait for a pool's first catalog.
	catalogPatience = 5 * time.Second
	lookForDue      = time.Second

	notAnswered = "the cloud has not answered yet"
)

// shelfEntry is what a pool can buy.
type shelfEntry struct {
	stock *measured
	err   string // why the latest fetch failed, even if an older stock is still sold
	due   time.Time
	// wished is the generation of the pool that was last asked for. Each wish counts in asked; begun is the count when
	// the latest fetch began, so that a wish which arrives meanwhile is not lost.
	wished       int64
	asked, begun uint64
	busy         bool
	since        time.Time // of the first fetch; zero if there was none
	late         bool      // the first answer has taken longer than others can wait
	// catalog is stock as it is sold now; scarce is what was held against which offerings.
	catalog *cluster.Catalog
	base    *cluster.Catalog
	scarce  map[command.Exhausted]held
	// within are the values of labels that some of scarce are narrowed down to.
	within []string
	// told is when the provider last answered; pinned how many of each reservation were taken since, in catalog.
	told   time.Time
	pinned map[string]int
}

// measured is a provider's list of types. Pools that get the same list share it and what is made of it.
type measured struct {
	types        []*cloudprovider.InstanceType
	reservations map[string]string // the label of each reservation
	// sold is the catalog that was made of it first, which all others share what they can with; until there is one, before is
	// the catalog of the list before.
	sold, before *cluster.Catalog
}

// wantCatalog asks for a pool's catalog to be fetched unless it was asked for this generation. A negative generation is
// always a new wish. The lock is held.
func (b *Book) wantCatalog(pool string, generation int64) {
	e := b.shelf[pool]
	if e == nil {
		e = &shelfEntry{wished: -1}
		b.shelf[pool] = e
	}
	if e.wished == generation && generation >= 0 {
		return
	}
	e.wished = max(e.wished, generation)
	e.asked++
	e.due = time.Time{}
	b.fetchSoon()
}

// Restock has the catalogs of all pools fetched soon: the cloud has said that prices, or what it sells, have changed.
func (b *Book) Restock() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for pool := range b.shelf {
		b.wantCatalog(pool, -1)
	}
}

// fetchSoon wakes Catalogs.
func (b *Book) fetchSoon() {
	select {
	case b.fetch <- struct{}{}:
	default:
	}
}

// Catalogs keeps every pool's catalog fresh until the context ends. It is the only part of ingest that asks the cloud.
func (b *Book) Catalogs(ctx context.Context, provider cloudprovider.Catalog) error {
	slots := make(chan struct{}, catalogsAtOnce)
	for {
		for _, e := range b.dueCatalogs() {
			go b.fetchCatalog(ctx, provider, e.object, slots)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.fetch:
		case <-time.After(lookForDue):
		}
	}
}

// fetchCatalog asks for one pool's catalog. A provider that does not answer in time holds up neither other pools nor,
// since its slot is given back, more than its own next fetch.
func (b *Book) fetchCatalog(ctx context.Context, provider cloudprovider.Catalog, pool *v1.NodePool, slots chan struct{}) {
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
			if broken := b.shield("the catalog of NodePool "+pool.Name, func() { b.setCatalog(pool.Name, pool.Generation, types, err) }); broken != nil {
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
func (b *Book) askTypes(ctx context.Context, provider cloudprovider.Catalog, pool *v1.NodePool) (types []*cloudprovider.InstanceType, err error) {
	if broken := b.shield("the catalog of NodePool "+pool.Name, func() { types, err = provider.InstanceTypes(ctx, pool) }); broken != nil {
		return nil, broken
	}
	return types, err
}

func (b *Book) fetchDone(pool string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.shelf[pool]; e != nil {
		e.busy = false
		b.fetchSoon()
	}
}

// dueCatalogs lists the pools whose catalog is to be fetched, and marks them as being fetched. Only pools whose
// NodeClass is there are asked about.
func (b *Book) dueCatalogs() []*poolEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dropUnusedStock()
	now := b.now()
	var out []*poolEntry
	for _, name := range slices.Sorted(maps.Keys(b.shelf)) {
		e, p := b.shelf[name], b.pools[name]
		if b.isLate(e) && !e.late {
			e.late = true
			b.touch(room) // the others wait no longer
		}
		if p == nil || e.busy || now.Before(e.due) || !b.classState(p.pool.Template.NodeClass).Ready {
			continue
		}
		e.busy, e.begun = true, e.asked
		if e.since.IsZero() {
			e.since = now
		}
		out = append(out, p)
	}
	return out
}

func (b *Book) isLate(e *shelfEntry) bool {
	return e.stock == nil && !e.since.IsZero() && b.now().Sub(e.since) >= catalogPatience
}

func (b *Book) setCatalog(pool string, generation int64, types []*cloudprovider.InstanceType, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.shelf[pool]
	if e == nil {
		return
	}
	wait, before := refreshCatalog, e.err
	if err != nil {
		e.err, wait = err.Error(), retryCatalog
	} else {
		e.err, e.told = "", b.now()
	}
	switch {
	case err == nil && (e.stock == nil || !sameTypes(e.stock.types, types)):
		e.stock, e.catalog, e.base = b.share(types, e.stock.latest()), nil, nil
		b.dropUnusedStock()
		b.readTypeLimits()
		b.readSold()
		b.touch(room)
	case e.err != before:
		b.touch(room)
	}
	e.due = b.now().Add(wait)
	if e.asked != e.begun || generation < e.wished {
		e.due = time.Time{}
		b.fetchSoon()
	}
}

// catalogTrouble says why a pool's catalog could not be fetched last time, even if an older one is still in use; empty
// if all is well. The lock is held.
func (b *Book) catalogTrouble(pool string) string {
	e := b.shelf[pool]
	if e == nil {
		return ""
	}
	if e.err == "" && b.isLate(e) {
		return notAnswered
	}
	return e.err
}

// dropUnusedStock forgets lists that no pool buys from any more. The lock is held.
func (b *Book) dropUnusedStock() {
	used := make(map[*measured]bool, len(b.shelf))
	for _, e := range b.shelf {
		used[e.stock] = true
	}
	maps.DeleteFunc(b.converted, func(key counter, _ *cluster.Catalog) bool { return !used[key.stock] })
}

// share finds the stock of another pool that has the same list. The lock is held.
func (b *Book) share(types []*cloudprovider.InstanceType, before *cluster.Catalog) *measured {
	for _, e := range b.shelf {
		if e.stock != nil && sameTypes(e.stock.types, types) {
			return e.stock
		}
	}
	return &measured{types: types, reservations: reservationsOf(types), before: before}
}

// sameTypes reports whether two lists sell the same. Providers that have nothing new to say hand out the same values, so
// most of the time only pointers are compared.
func sameTypes(a, b []*cloudprovider.InstanceType) bool {
	return slices.EqualFunc(a, b, func(x, y *cloudprovider.InstanceType) bool { return x == y || sameType(x, y) })
}

func sameType(x, y *cloudprovider.InstanceType) bool {
	return x.Name == y.Name && maps.EqualFunc(x.Labels, y.Labels, slices.Equal) && maps.Equal(x.VolumeLimits, y.VolumeLimits) &&
		maps.EqualFunc(x.Capacity, y.Capacity, apiresource.Quantity.Equal) && maps.EqualFunc(x.Overhead, y.Overhead, apiresource.Quantity.Equal) &&
		slices.EqualFunc(x.Offerings, y.Offerings, func(o, p cloudprovider.Offering) bool {
			return o.Price == p.Price && o.PriceEstimated == p.PriceEstimated && o.Available == p.Available && o.ReservationID == p.ReservationID &&
				o.ReservationCapacity == p.ReservationCapacity && maps.Equal(o.Labels, p.Labels)
		})
}

// catalogNow is what the pool can buy now; nil with a reason if that is not known. The lock is held.
func (b *Book) catalogNow(pool string) (*cluster.Catalog, string) {
	e := b.shelf[pool]
	if e == nil || e.stock == nil {
		return nil, b.catalogTrouble(pool)
	}
	var class cluster.ClassRef
	if p := b.pools[pool]; p != nil {
		class = p.pool.Template.NodeClass
	}
	base := b.catalogFor(e.stock, class)
	pinned := b.pinned(e.stock.reservations, e.told)
	if e.catalog == nil || e.base != base || !b.sameScarcity(e.scarce) || !maps.Equal(e.pinned, pinned) {
		e.base, e.scarce, e.pinned = base, b.scarceNow(), pinned
		e.within = withins(e.scarce)
		e.catalog = b.soldNow(e)
	}
	return e.catalog, ""
}

// soldNow is the pool's list without what can't be bought. Pools of which the same is to be said share it, and it is the
// list itself if there is nothing to say. The lock is held.
func (b *Book) soldNow(e *shelfEntry) *cluster.Catalog {
	for _, other := range b.shelf {
		if other != e && other.catalog != nil && other.base == e.base && maps.Equal(other.scarce, e.scarce) && maps.Equal(other.pinned, e.pinned) {
			return other.catalog
		}
	}
	if !slices.ContainsFunc(e.base.Offerings, func(o cluster.Offering) bool {
		return o.Reservation != "" || e.heldAgainst(e.base, &o).scarcity != 0
	}) {
		return e.base
	}
	out := e.base.Without(func(o *cluster.Offering) bool {
		return o.Reservation != "" && o.Left <= e.pinned[o.Reservation] || e.heldAgainst(e.base, o).scarcity == shut
	})
	for i := range out.Offerings {
		o := &out.Offerings[i] // Without has made a list of its own
		o.Left = max(0, o.Left-e.pinned[o.Reservation])
		said := e.heldAgainst(e.base, o)
		o.Trial, o.Why = said.scarcity == onTrial, said.why
	}
	return out
}

// heldAgainst is what is held against an offering of the catalog.
func (e *shelfEntry) heldAgainst(c *cluster.Catalog, o *cluster.Offering) held {
	if len(e.scarce) == 0 {
		return held{}
	}
	plain := command.Exhausted{Type: c.Types[o.Type].Name, Zone: o.Zone, CapacityType: o.CapacityType}
	worst := against(e.scarce, plain)
	for _, value := range e.within {
		if worst.scarcity != shut && (hasValue(o.Labels, value) || hasValue(o.Common, value)) {
			plain.Within = value
			worst = worse(worst, against(e.scarce, plain))
		}
	}
	return worst
}

// counter is where a list is sold to a NodeClass: what was learned of its nodes is particular to the class.
type counter struct {
	stock *measured
	class cluster.ClassRef
}

// catalogFor is a provider's list, numbered, with what has been learned of the nodes of the class. Classes of which nothing
// was learned share it. The lock is held.
func (b *Book) catalogFor(stock *measured, class cluster.ClassRef) *cluster.Catalog {
	key := counter{stock, class}
	if have := b.converted[key]; have != nil {
		return have
	}
	if types, less := b.lessened(stock.types, class); less {
		b.converted[key] = b.convert(stock, types)
		return b.converted[key]
	}
	plain := counter{stock: stock}
	if b.converted[plain] == nil {
		b.converted[plain] = b.convert(stock, stock.types)
	}
	b.converted[key] = b.converted[plain]
	return b.converted[key]
}
