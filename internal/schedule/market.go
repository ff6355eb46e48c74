package schedule

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// market is one pool as a place to buy nodes: its offerings, what daemonsets leave of each, and what its limits leave.
type market struct {
	number int // its place among all markets
	names  *resource.Names
	pool   *cluster.Pool
	// fixed are the labels that every node of the pool has; open are the pool's requirements on keys that neither the
	// catalog nor the template decides: a node gets the value that its pods ask for.
	fixed cluster.Labels
	open  require.Set
	// offered are the offerings that the pool's requirements allow; forSale those that are available and hold their
	// daemons; buyable those of them that limits and reservations allow now.
	offered, forSale, buyable require.Bits
	// room is what pods can use of each offering once the daemonsets have taken their share.
	room []resource.Vector
	// uniform says that all offerings of a type have the same room.
	uniform bool
	// lands are where DaemonSets' pods may go, daemons those that room is kept for; omitted are the DaemonSets that
	// find room on no offering.
	lands   []landing
	daemons []landing
	omitted []Omission
	left    left
	// rankings are kept for as long as the wants that they were made for.
	rankings []knownRanking
	// priced are the offerings for sale by price, once somebody has asked for them.
	priced []int
	// hints are for pods that find no place.
	hints hints
}

// left is what a pool's limits still allow.
type left struct {
	limits *cluster.Limits
	used   resource.Vector
	nodes  int64
}

// want is one alternative of a site in a market: the offerings that meet it, and what it settles of the open labels.
type want struct {
	bits require.Bits
	open cluster.Labels
	term require.Set
	// brief is what a claim says of the term; see asks.
	brief   require.Set
	briefed bool
}

// marketTiers sorts the usable pools into tiers of equal weight, heaviest first.
func marketTiers(s *cluster.Snapshot) [][]*market {
	pools := slices.Clone(s.Pools)
	slices.SortFunc(pools, func(a, b *cluster.Pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name))
	})
	var tiers [][]*market
	last, number := int32(-1), 0
	for _, p := range pools {
		if !p.Usable() {
			continue
		}
		if p.Weight != last {
			tiers = append(tiers, nil)
			last = p.Weight
		}
		m := newMarket(s, p)
		m.number = number
		number++
		tiers[len(tiers)-1] = append(tiers[len(tiers)-1], m)
	}
	return tiers
}

func newMarket(s *cluster.Snapshot, p *cluster.Pool) *market {
	m := &market{names: s.Names, pool: p}
	m.fixed = p.Template.Labels.With(cluster.PoolLabel, p.Name).
		With(cluster.RegisteredLabel, "true").With(cluster.InitializedLabel, "true")
	index := p.Catalog.Index()
	m.offered = require.AllBits(index.Len())
	for _, label := range m.fixed {
		if index.Knows(label.Key) {
			m.offered = m.offered.And(index.Match(label.Key, require.Only(label.Value)))
		}
	}
	for _, e := range p.Template.Requirements {
		if _, decided := m.fixed.Get(e.Key); decided {
			continue
		}
		if index.Knows(e.Key) {
			m.offered = m.offered.And(index.Match(e.Key, e.Values))
			continue
		}
		m.open = m.open.With(e.Key, e.Values)
	}
	m.land(s.Daemons)
	m.makeRoom(everyDaemon())
	m.left = newLeft(s, p)
	return m
}

// stockUp finds what limits and reservations let the pool buy now.
func (m *market) stockUp(stocks map[string]int) {
	if !m.pool.Limits.Any() && len(stocks) == 0 {
		m.buyable = m.forSale
		return
	}
	m.buyable = require.NewBits(len(m.room))
	kind, allowed := -1, 0
	for i := range m.forSale.All {
		o := &m.pool.Catalog.Offerings[i]
		if o.Type != kind {
			kind = o.Type
			allowed, _ = m.left.allows(m.pool.Catalog.Types[o.Type].Capacity, 1)
		}
		if allowed > 0 && (o.Reservation == "" || stocks[o.Reservation] > 0) {
			m.buyable.Set(i)
		}
	}
}

// holds reports whether an offering has room for the need beside its daemons. One that is too small for its daemons
// alone holds nothing, not even a pod that asks for nothing.
func (m *market) holds(row int, need *resource.Vector) bool {
	room := &m.room[row]
	for i := range room {
		if need[i] > room[i] || room[i] < 0 {
			return false
		}
	}
	return true
}

func newLeft(s *cluster.Snapshot, p *cluster.Pool) left {
	l := left{limits: &p.Limits}
	for _, c := range s.ClaimsOf(p.Name) {
		l.nodes++
		l.used = l.used.Add(Charge(s, p, c))
	}
	return l
}

// Headroom is what a pool's limits leave.
type Headroom struct{ left left }

// HeadroomOf counts what the limits of a pool leave beside the claims that it has.
func HeadroomOf(s *cluster.Snapshot, p *cluster.Pool) *Headroom { return &Headroom{newLeft(s, p)} }

// Take reports whether one more node of that capacity is within the limits, and counts it if so.
func (h *Headroom) Take(capacity resource.Vector) bool {
	if n, _ := h.left.allows(capacity, 1); n < 1 {
		return false
	}
	h.left.charge(capacity, 1)
	return true
}

// Fits reports whether one more node of that capacity is within the limits.
func (h *Headroom) Fits(capacity resource.Vector) bool {
	n, _ := h.left.allows(capacity, 1)
	return n == 1
}

// Charge is what a claim counts for against its pool's limits: what its node has or, until that is known, the most that
// it may turn out to have.
func Charge(s *cluster.Snapshot, p *cluster.Pool, c *cluster.Claim) resource.Vector {
	if n := s.NodeOf(c.Name); n != nil && !n.Capacity.IsZero() {
		return n.Capacity
	}
	if !c.Capacity.IsZero() || p.Catalog == nil {
		return c.Capacity
	}
	var most resource.Vector
	for _, name := range c.Types() {
		if t, ok := p.Catalog.Type(name); ok {
			most = most.Max(t.Capacity)
		}
	}
	return most
}

// allows says how many more nodes with the capacity the limits allow, at most n, and which resource binds if it is
// fewer.
func (l *left) allows(capacity resource.Vector, n int) (count int, binds int) {
	count, binds = n, -1
	if l.limits.Broken != "" {
		return 0, resource.Size
	}
	if l.limits.HasNodes && l.limits.Nodes-l.nodes < int64(count) {
		count, binds = int(max(l.limits.Nodes-l.nodes, 0)), resource.Size
	}
	for dim, set := range l.limits.Set {
		if !set || capacity[dim] <= 0 {
			continue
		}
		if more := max(l.limits.Amount[dim]-l.used[dim], 0) / capacity[dim]; more < int64(count) {
			count, binds = int(more), dim
		}
	}
	return count, binds
}

func (l *left) charge(capacity resource.Vector, n int) {
	l.nodes += int64(n)
	l.used = l.used.Add(capacity.Times(int64(n)))
}

// match finds the alternatives of a term list in the market, those that can hold at all. One that asks the same of the
// market as an earlier one is left out: nobody would ever choose it.
func (m *market) match(terms []require.Set) []want {
	var out []want
	for _, term := range terms {
		w, _, ok := m.matchTerm(term)
		same := func(o want) bool { return slices.Equal(o.open, w.open) && slices.Equal(o.bits, w.bits) }
		if ok && w.bits.Any() && !slices.ContainsFunc(out, same) {
			out = append(out, w)
		}
	}
	return out
}

// matchTerm resolves each demand where it is decided: by the pool, by the catalog, or by the pods themselves. If the
// pool rules the term out altogether, miss is the entry that does it.
func (m *market) matchTerm(term require.Set) (w want, miss require.Entry, ok bool) {
	w = want{bits: m.offered, term: term}
	index := m.pool.Catalog.Index()
	for _, e := range term {
		if value, decided := m.fixed.Get(e.Key); decided {
			if !e.Values.Matches(value, true) {
				return want{}, e, false
			}
			continue
		}
		if index.Knows(e.Key) {
			w.bits = w.bits.And(index.Match(e.Key, e.Values))
			continue
		}
		have, open := m.open.Get(e.Key)
		if e.Key == cluster.HostnameLabel || e.Key == cluster.NameField { // a name that nobody has yet
			if !e.Values.Matches("", true) {
				return want{}, e, false
			}
			continue
		}
		if !open {
			if !e.Values.AllowsAbsent() {
				return want{}, e, false
			}
			continue
		}
		value, ok := have.And(e.Values).Pick()
		if !ok {
			return want{}, e, false
		}
		w.open = w.open.With(e.Key, value)
	}
	return w, require.Entry{}, true
}
