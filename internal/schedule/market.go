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
	names *resource.Names
	pool  *cluster.Pool
	// fixed are the labels that every node of the pool has; open are the pool's requirements on keys that neither the
	// catalog nor the template decides: a node gets the value that its pods ask for.
	fixed cluster.Labels
	open  require.Set
	// offered are the offerings that the pool's requirements allow; forSale those that are available too.
	offered, forSale require.Bits
	// room is what pods can use of each offering once the daemonsets have taken their share.
	room []resource.Vector
	left left
	// wants caches, by class, where pods of the class may go.
	wants map[string][]want
}

// left is what a pool's limits still allow.
type left struct {
	limits *cluster.Limits
	used   resource.Vector
	nodes  int64
}

// want is one alternative of a class in a market: the offerings that meet it, and what it asks of the open labels.
type want struct {
	bits require.Bits
	open require.Set
	term require.Set
}

// marketTiers sorts the usable pools into tiers of equal weight, heaviest first.
func marketTiers(s *cluster.Snapshot) [][]*market {
	pools := slices.Clone(s.Pools)
	slices.SortFunc(pools, func(a, b *cluster.Pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name))
	})
	var tiers [][]*market
	last := int32(-1)
	for _, p := range pools {
		if !p.Usable() {
			continue
		}
		if p.Weight != last {
			tiers = append(tiers, nil)
			last = p.Weight
		}
		tiers[len(tiers)-1] = append(tiers[len(tiers)-1], newMarket(s, p))
	}
	return tiers
}

func newMarket(s *cluster.Snapshot, p *cluster.Pool) *market {
	m := &market{names: s.Names, pool: p, wants: make(map[string][]want)}
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
	m.room = m.rooms(s.Daemons)
	m.forSale = m.fitting(m.offered.And(p.Catalog.Available()), resource.Vector{})
	m.left = newLeft(s, p)
	return m
}

// rooms takes the daemonsets' share off every offering.
func (m *market) rooms(daemons []*cluster.Daemon) []resource.Vector {
	c := m.pool.Catalog
	room := make([]resource.Vector, len(c.Offerings))
	for i := range c.Offerings {
		room[i] = c.Types[c.Offerings[i].Type].Allocatable
	}
	for _, d := range daemons {
		lands := require.NewBits(len(room))
		for _, w := range m.match(d.Class) {
			lands = lands.Or(w.bits)
		}
		for i := range lands.All {
			room[i] = room[i].Sub(d.Class.Requests)
		}
	}
	return room
}

// holds reports whether an offering has room for the need beside its daemons. One that is too small for its daemons
// alone holds nothing, not even a pod that asks for nothing.
func (m *market) holds(row int, need resource.Vector) bool {
	return need.Fits(m.room[row]) && resource.Vector{}.Within(m.room[row])
}

func newLeft(s *cluster.Snapshot, p *cluster.Pool) left {
	l := left{limits: &p.Limits}
	for _, c := range s.ClaimsOf(p.Name) {
		l.nodes++
		l.used = l.used.Add(Charge(s, p, c))
	}
	return l
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

// wantsOf is where pods of the class may go in this market, an entry for each alternative that can hold at all.
func (m *market) wantsOf(class *cluster.PodClass) []want {
	w, ok := m.wants[class.Key]
	if !ok {
		w = m.match(class)
		m.wants[class.Key] = w
	}
	return w
}

func (m *market) match(class *cluster.PodClass) []want {
	if _, tainted := cluster.Untolerated(class.Tolerations, m.pool.Template.Taints); tainted {
		return nil
	}
	var out []want
	for _, term := range class.Terms {
		if w, _, ok := m.matchTerm(term); ok && w.bits.Any() {
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
		if !open {
			if !e.Values.AllowsAbsent() {
				return want{}, e, false
			}
			continue
		}
		both := have.And(e.Values)
		if both.IsEmpty() {
			return want{}, e, false
		}
		w.open = w.open.With(e.Key, e.Values)
	}
	return w, require.Entry{}, true
}
