// Package price says what EC2's offerings cost, in US dollars per hour.
//
// Three sources, each better than the one before: the table embedded in the product (every region, so that planning
// works from the first second and in networks that can't reach the Pricing API), the Pricing API for on-demand prices,
// and the spot price history for spot prices of each zone. Book holds the best that is known and says how old it is.
// For a type that is in none of them it has an estimate.
//
// It belongs to the AWS provider, an edge. It calls AWS only when told to refresh and keeps nothing but prices.
package price

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Kind is which of the two prices is meant; their ages differ.
type Kind string

const (
	OnDemand Kind = "on-demand"
	Spot     Kind = "spot"
)

// Book is the price book of a region. It is safe for concurrent use.
type Book struct {
	region string
	now    func() time.Time
	table  *Table

	mu       sync.RWMutex
	local    map[string]*Table // Local Zones, read when first asked for
	onDemand map[string]float64
	spot     map[string]map[string]float64 // type -> zone -> price; nil until the history was read
	asked    map[Kind]time.Time            // when the source was last read in full
	revision uint64
	// shapes are the types that are sold; estimator compares them, and is nil until it is asked or if something has
	// changed.
	shapes    []Shape
	estimator *estimator
}

// NewBook opens the embedded table of the region.
func NewBook(region string, now func() time.Time) (*Book, error) {
	table, err := Embedded(region)
	if err != nil {
		return nil, err
	}
	return &Book{region: region, now: now, table: table, local: map[string]*Table{}, asked: map[Kind]time.Time{}}, nil
}

// OnDemand is the on-demand price of a type in a zone; false if it isn't known. Local Zones have prices of their own,
// which the Pricing API lists apart from the region's: they come from the embedded table, and else are the region's.
func (b *Book) OnDemand(instanceType, zone string) (float64, bool) {
	if table := b.localTable(zone); table != nil {
		if p, ok := table.OnDemand(instanceType); ok {
			return p, true
		}
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if p, ok := b.onDemand[instanceType]; ok {
		return p, true
	}
	return b.table.OnDemand(instanceType)
}

// Spot is the spot price of a type in a zone; false if it isn't known. Once the history was read, a type without a
// price in a zone is not sold there as spot. Before, the mean of what the embedded table knows of the region stands for
// every zone, and else the on-demand price, which spot never exceeds for long.
func (b *Book) Spot(instanceType, zone string) (float64, bool) {
	b.mu.RLock()
	history := b.spot
	b.mu.RUnlock()
	if history != nil {
		p, ok := history[instanceType][zone]
		return p, ok
	}
	table := b.table
	if t := b.localTable(zone); t != nil {
		table = t
	}
	if zones := table.SpotZones(instanceType); len(zones) > 0 {
		sum := 0.0
		for _, p := range zones {
			sum += p
		}
		return sum / float64(len(zones)), true
	}
	return b.OnDemand(instanceType, zone)
}

// Age is how old the prices of a kind are: since they were last read from AWS, or since the day of the embedded table.
func (b *Book) Age(kind Kind) time.Duration {
	b.mu.RLock()
	defer b.mu.RUnlock()
	since, ok := b.asked[kind]
	if !ok {
		since = b.table.Date()
	}
	return max(b.now().Sub(since), 0)
}

// Live says whether prices of this kind have been read from AWS since the start.
func (b *Book) Live(kind Kind) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	_, ok := b.asked[kind]
	return ok
}

// Revision changes whenever a price does, so that whoever keeps what follows from prices knows when to make it anew.
func (b *Book) Revision() uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.revision
}

// setOnDemand takes over what the Pricing API said. Types that it left out keep the price that was known.
func (b *Book) setOnDemand(prices map[string]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	merged := maps.Clone(b.onDemand)
	if merged == nil {
		merged = map[string]float64{}
	}
	maps.Copy(merged, prices)
	if !maps.Equal(merged, b.onDemand) {
		b.onDemand = merged
		b.estimator = nil
		b.revision++
	}
	b.asked[OnDemand] = b.now()
}

// setSpot takes over the whole history: a type that is no longer in it is no longer sold.
func (b *Book) setSpot(prices map[string]map[string]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spot == nil || !maps.EqualFunc(prices, b.spot, maps.Equal[map[string]float64, map[string]float64]) {
		b.spot = prices
		b.revision++
	}
	b.asked[Spot] = b.now()
}

// localTable is the embedded table of a Local Zone such as us-west-2-lax-1a; nil for a zone of the region itself. The
// table bears the zone's name without the letter at the end.
func (b *Book) localTable(zone string) *Table {
	if !strings.HasPrefix(zone, b.region+"-") {
		return nil
	}
	place := strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz")
	b.mu.RLock()
	table, ok := b.local[place]
	b.mu.RUnlock()
	if ok {
		return table
	}
	table, err := Embedded(place)
	if err != nil {
		return nil // The same file gave the region's table, so this can't be; the region's prices serve.
	}
	b.mu.Lock()
	b.local[place] = table
	b.mu.Unlock()
	return table
}

// EndpointRegion is the region whose Pricing API knows the prices of a region: there are few of them.
func EndpointRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "ap-"), strings.HasPrefix(region, "me-"):
		return "ap-south-1"
	case strings.HasPrefix(region, "eu-"), strings.HasPrefix(region, "af-"), strings.HasPrefix(region, "il-"):
		return "eu-central-1"
	default:
		return "us-east-1"
	}
}

// refreshError says which source could not be read and what holds meanwhile.
func refreshError(kind Kind, age time.Duration, err error) error {
	return fmt.Errorf("refreshing %s prices (those from %s ago stay in use): %w", kind, age.Round(time.Second), err)
}
