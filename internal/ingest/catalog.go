package ingest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// refreshCatalog is how often the cloud is asked what it sells; retryCatalog after it could not say.
	refreshCatalog = 5 * time.Minute
	retryCatalog   = 5 * time.Second
)

// shelfEntry is what a pool can buy.
type shelfEntry struct {
	stock   *measured
	err     string
	fetched int64 // generation of the pool that it was fetched for; −1 if it must be fetched anew
	due     time.Time
	// catalog is stock as it is sold now; soldOut the offerings that were left out of it.
	catalog *cluster.Catalog
	base    *cluster.Catalog
	soldOut map[command.Exhausted]bool
}

// measured is a provider's list of types. Pools that get the same list share it and what is made of it.
type measured struct{ types []*cloudprovider.InstanceType }

// wantCatalog asks for a pool's catalog to be fetched unless it was for this generation. The lock is held.
func (b *Book) wantCatalog(pool string, generation int64) {
	e := b.shelf[pool]
	if e == nil {
		e = &shelfEntry{fetched: -1}
		b.shelf[pool] = e
	}
	if e.fetched != generation || generation < 0 {
		e.fetched, e.due = -1, time.Time{}
		b.fetchSoon()
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
	for {
		for _, e := range b.dueCatalogs() {
			types, err := provider.InstanceTypes(ctx, e.object)
			if ctx.Err() != nil {
				return nil
			}
			b.setCatalog(e.pool.Name, e.object.Generation, types, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.fetch:
		case <-time.After(retryCatalog):
		}
	}
}

// dueCatalogs lists the pools whose catalog is to be fetched. Only pools whose NodeClass is there are asked about.
func (b *Book) dueCatalogs() []*poolEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	var out []*poolEntry
	for _, name := range slices.Sorted(maps.Keys(b.shelf)) {
		e, p := b.shelf[name], b.pools[name]
		if p == nil || now.Before(e.due) || !b.classState(p.pool.Template.NodeClass).Ready {
			continue
		}
		out = append(out, p)
	}
	return out
}

func (b *Book) setCatalog(pool string, generation int64, types []*cloudprovider.InstanceType, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.shelf[pool]
	if e == nil {
		return
	}
	defer b.touch()
	if err != nil {
		e.err, e.due = err.Error(), b.now().Add(retryCatalog)
		return
	}
	e.err, e.fetched, e.due = "", generation, b.now().Add(refreshCatalog)
	e.stock, e.catalog, e.base = b.share(types), nil, nil
}

// share finds the stock of another pool that has the same list. The lock is held.
func (b *Book) share(types []*cloudprovider.InstanceType) *measured {
	for _, e := range b.shelf {
		if e.stock != nil && slices.Equal(e.stock.types, types) {
			return e.stock
		}
	}
	return &measured{types: types}
}

// catalogNow is what the pool can buy now; nil with a reason if that is not known. The lock is held.
func (b *Book) catalogNow(pool string) (*cluster.Catalog, string) {
	e := b.shelf[pool]
	if e == nil || e.stock == nil {
		if e != nil && e.err != "" {
			return nil, e.err
		}
		return nil, ""
	}
	base := b.converted[e.stock]
	if base == nil {
		base = b.convert(e.stock.types)
		b.converted[e.stock] = base
	}
	if e.catalog == nil || e.base != base || !b.sameSoldOut(e.soldOut) {
		e.base, e.soldOut = base, b.soldOutNow()
		e.catalog = base.Without(func(o *cluster.Offering) bool {
			return e.soldOut[command.Exhausted{Type: base.Types[o.Type].Name, Zone: o.Zone, CapacityType: o.CapacityType}]
		})
	}
	return e.catalog, ""
}

func (b *Book) soldOutNow() map[command.Exhausted]bool {
	out := make(map[command.Exhausted]bool, len(b.exhausted))
	for e := range b.exhausted {
		out[e] = true
	}
	return out
}

func (b *Book) sameSoldOut(have map[command.Exhausted]bool) bool {
	if len(have) != len(b.exhausted) {
		return false
	}
	for e := range b.exhausted {
		if !have[e] {
			return false
		}
	}
	return true
}

// convert numbers a provider's list. The lock is held.
func (b *Book) convert(in []*cloudprovider.InstanceType) *cluster.Catalog {
	var types []cluster.Type
	var offerings []cluster.Offering
	for i, t := range in {
		types = append(types, cluster.Type{Name: t.Name, Capacity: b.measure(t.Capacity), Allocatable: b.measure(t.Allocatable())})
		for _, variant := range variants(t.Labels) {
			for _, o := range t.Offerings {
				labels := variant.Merge(cluster.LabelsOf(o.Labels)).With(cluster.InstanceTypeLabel, t.Name)
				offerings = append(offerings, cluster.Offering{
					Type: i, Labels: labels, Zone: o.Labels[cluster.ZoneLabel], CapacityType: o.Labels[cluster.CapacityTypeLabel],
					Price: o.Price, Available: o.Available,
				})
			}
		}
	}
	return cluster.NewCatalog(types, offerings)
}

// variants decides every label that a type leaves open, in every way.
func variants(labels map[string][]string) []cluster.Labels {
	out := []cluster.Labels{nil}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		var next []cluster.Labels
		for _, value := range labels[key] {
			for _, l := range out {
				next = append(next, l.With(key, value))
			}
		}
		if len(labels[key]) > 0 {
			out = next
		}
	}
	return out
}
