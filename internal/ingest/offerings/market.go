package offerings

import (
	"iter"
	"maps"
	"slices"
	"time"

	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/resource"
)

const (
	// catalogRefresh is how often the cloud is asked what it sells; CatalogRetry after it could not say.
	catalogRefresh = 5 * time.Minute
	CatalogRetry   = 5 * time.Second
	// FirstCatalogWait is how long the other pools wait for a pool's first catalog.
	FirstCatalogWait = 5 * time.Second

	NotAnswered = "the cloud has not answered yet"
)

// Market is what each pool can buy.
type Market struct {
	// Shortages is what can't be bought for now.
	Shortages Shortages
	observed  observedNodes
	pools     map[string]*poolCatalog
	numbered  map[catalogKey]*cluster.Catalog
	measure   func(*cloudprovider.InstanceType) (capacity, allocatable resource.Vector)
}

// NewMarket sells nothing yet. measure tells what nodes of a type have.
func NewMarket(measure func(*cloudprovider.InstanceType) (capacity, allocatable resource.Vector)) Market {
	return Market{Shortages: newShortages(),
		observed: observedNodes{byClass: make(map[cluster.ClassRef]*observedTypes)},
		pools:    make(map[string]*poolCatalog), numbered: make(map[catalogKey]*cluster.Catalog), measure: measure}
}

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

// Request asks for a pool's catalog to be fetched unless it was asked for this generation, and reports whether it was
// not. A negative generation is always a new wish.
func (m *Market) Request(pool string, generation int64) (news bool) {
	c := m.pools[pool]
	if c == nil {
		c = &poolCatalog{wantedGeneration: -1}
		m.pools[pool] = c
	}
	if c.wantedGeneration == generation && generation >= 0 {
		return false
	}
	c.wantedGeneration = max(c.wantedGeneration, generation)
	c.requests++
	c.due = time.Time{}
	return true
}

// RequestAll asks for the catalogs of all pools.
func (m *Market) RequestAll() {
	for pool := range m.pools {
		m.Request(pool, -1)
	}
}

// Drop forgets a pool.
func (m *Market) Drop(pool string) { delete(m.pools, pool) }

// Done notes that a pool's catalog is not being fetched any longer, and reports whether the pool is there.
func (m *Market) Done(pool string) bool {
	c := m.pools[pool]
	if c == nil {
		return false
	}
	c.fetching = false
	return true
}

// Due lists the pools whose catalog is to be fetched, and marks them as being fetched. Only pools that are ready are
// asked about. late is how many have just taken longer for their first answer than others can wait.
func (m *Market) Due(now time.Time, ready func(pool string) bool) (pools []string, late int) {
	m.dropUnusedLists()
	for _, name := range slices.Sorted(maps.Keys(m.pools)) {
		c := m.pools[name]
		if c.isLate(now) && !c.late {
			c.late = true
			late++
		}
		if c.fetching || now.Before(c.due) || !ready(name) {
			continue
		}
		c.fetching, c.requestsAtFetch = true, c.requests
		if c.firstFetch.IsZero() {
			c.firstFetch = now
		}
		pools = append(pools, name)
	}
	return pools, late
}

// Answer is what taking in a provider's answer has changed.
type Answer struct {
	// News says that the pool can buy something else, or that something else is told about it; NewTypes that the list
	// of types is a new one.
	News, NewTypes bool
	// Again says that the catalog is to be fetched again at once.
	Again bool
}

// Set takes in what the provider said a pool of the generation can buy, or why it could not say.
func (m *Market) Set(pool string, generation int64, types []*cloudprovider.InstanceType, err error,
	now time.Time) (out Answer) {
	c := m.pools[pool]
	if c == nil {
		return out
	}
	wait, before := catalogRefresh, c.err
	if err != nil {
		c.err, wait = err.Error(), CatalogRetry
	} else {
		c.err, c.answeredAt = "", now
	}
	switch {
	case err == nil && (c.list == nil || !sameTypes(c.list.types, types)):
		c.list, c.catalog, c.base = m.sharedList(types, c.list.latest()), nil, nil
		m.dropUnusedLists()
		out.News, out.NewTypes = true, true
	case c.err != before:
		out.News = true
	}
	c.due = now.Add(wait)
	if c.requests != c.requestsAtFetch || generation < c.wantedGeneration {
		c.due = time.Time{}
		out.Again = true
	}
	return out
}

// Remeasure has catalogs numbered anew.
func (m *Market) Remeasure() { clear(m.numbered) }

// ReservationOf is the reservation that a claim's instance was taken from; empty if there is none, or nobody sells it.
func (m *Market) ReservationOf(c *cluster.Claim) string {
	pc := m.pools[c.Pool]
	if pc == nil || pc.list == nil {
		return ""
	}
	for id, label := range pc.list.reservations {
		if value, _ := c.Labels.Get(label); value == id {
			return id
		}
	}
	return ""
}

// Observe takes in what a node has that is ready for pods, and reports whether that makes a difference to what is sold.
func (m *Market) Observe(n NodeSeen) bool { return m.observed.learn(n) && m.renumber(n.Class) }

// Reobserve is Observe for a type of which a node shows more than it did: what it taught before was not the truth about
// the type, so that this is learned anew from the nodes that are there. known is false if nothing was learned before.
func (m *Market) Reobserve(class cluster.ClassRef, kind string, nodes iter.Seq[NodeSeen]) (changed, known bool) {
	if !m.observed.unlearn(class, kind) {
		return false, false
	}
	for n := range nodes {
		if n.Class == class && n.Type == kind {
			m.Observe(n)
		}
	}
	return m.renumber(class), true
}

// ForgetClass forgets what is known of the nodes of a NodeClass that has changed.
func (m *Market) ForgetClass(class cluster.ClassRef, now time.Time) {
	m.observed.byClass[class] = &observedTypes{since: now, types: make(map[string]*observedCapacity)}
	m.renumber(class)
}

// DropClass forgets a NodeClass.
func (m *Market) DropClass(class cluster.ClassRef) {
	delete(m.observed.byClass, class)
	m.renumber(class)
}

// renumber has the catalogs of a NodeClass made anew, and reports whether what was learned makes a difference to them.
func (m *Market) renumber(class cluster.ClassRef) (changed bool) {
	old := make(map[*typeList]*cluster.Catalog)
	for key, have := range m.numbered {
		if key.class == class {
			old[key.list] = have
		}
	}
	for list, have := range old {
		delete(m.numbered, catalogKey{list, class})
		changed = m.catalogFor(list, class) != have || changed
	}
	return changed
}

// inOrder lists the pools' catalogs by the names of the pools.
func (m *Market) inOrder() []*poolCatalog {
	out := make([]*poolCatalog, 0, len(m.pools))
	for _, name := range slices.Sorted(maps.Keys(m.pools)) {
		out = append(out, m.pools[name])
	}
	return out
}

// isLate reports whether the first answer takes longer than other pools can wait.
func (c *poolCatalog) isLate(now time.Time) bool {
	return c.list == nil && !c.firstFetch.IsZero() && now.Sub(c.firstFetch) >= FirstCatalogWait
}

// errorNow says why a pool's catalog could not be fetched last time, even if an older one is still in use; empty
// if all is well.
func (c *poolCatalog) errorNow(now time.Time) string {
	if c == nil {
		return ""
	}
	if c.err == "" && c.isLate(now) {
		return NotAnswered
	}
	return c.err
}

// dropUnusedLists forgets lists that no pool buys from any more.
func (m *Market) dropUnusedLists() {
	used := make(map[*typeList]bool, len(m.pools))
	for _, c := range m.pools {
		used[c.list] = true
	}
	maps.DeleteFunc(m.numbered, func(key catalogKey, _ *cluster.Catalog) bool { return !used[key.list] })
}

// sharedList finds the stock of another pool that has the same list.
func (m *Market) sharedList(types []*cloudprovider.InstanceType, before *cluster.Catalog) *typeList {
	for _, c := range m.pools {
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

// Now is what the pool can buy now; nil with a reason if that is not known. claims are those that there are, asked
// those that are being made.
func (m *Market) Now(pool string, class cluster.ClassRef, now time.Time, claims iter.Seq[*cluster.Claim],
	asked iter.Seq[command.CreateClaim]) (*cluster.Catalog, string) {
	c := m.pools[pool]
	if c == nil || c.list == nil {
		return nil, c.errorNow(now)
	}
	base := m.catalogFor(c.list, class)
	pinned := countPinned(c.list.reservations, c.answeredAt, claims, asked)
	if c.catalog == nil || c.base != base || !m.Shortages.same(c.unavailable) || !maps.Equal(c.pinned, pinned) {
		c.base, c.unavailable, c.pinned = base, m.Shortages.now(), pinned
		c.within = withinValues(c.unavailable)
		c.catalog = m.availableNow(c)
	}
	return c.catalog, ""
}

// availableNow is the pool's list without what can't be bought. Pools of which the same is to be said share it, and it
// is the list itself if there is nothing to say.
func (m *Market) availableNow(c *poolCatalog) *cluster.Catalog {
	for _, other := range m.pools {
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
// nothing was learned share it.
func (m *Market) catalogFor(list *typeList, class cluster.ClassRef) *cluster.Catalog {
	key := catalogKey{list, class}
	if have := m.numbered[key]; have != nil {
		return have
	}
	if types, less := m.observed.apply(list.types, class); less {
		m.numbered[key] = m.number(list, types)
		return m.numbered[key]
	}
	plain := catalogKey{list: list}
	if m.numbered[plain] == nil {
		m.numbered[plain] = m.number(list, list.types)
	}
	m.numbered[key] = m.numbered[plain]
	return m.numbered[key]
}

// Sold are the names of the resources that some type has.
func (m *Market) Sold() map[string]bool {
	out := make(map[string]bool)
	seen := make(map[*typeList]bool)
	for _, c := range m.pools {
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

// VolumeLimits is what types can attach, by type and driver, and the drivers. Of two limits of a type the last one
// stands, always the same.
func (m *Market) VolumeLimits() (limits map[string]map[string]int32, drivers []string) {
	limits = make(map[string]map[string]int32)
	for _, c := range m.inOrder() {
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
