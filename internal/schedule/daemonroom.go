package schedule

import (
	"math"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// landing is where a daemonset's pods go.
type landing struct {
	daemon *cluster.Daemon
	bits   require.Bits
}

// awaited says which DaemonSets a market keeps room for.
type awaited struct {
	// each asks every offering by itself: a DaemonSet that is too large for one is not awaited there, and the offering
	// is for sale all the same.
	each bool
	// above is the priority beyond which DaemonSets are awaited at all.
	above int64
	// elsewhere are DaemonSets that fit in some pool: where they don't, nothing is for sale on which they would run.
	elsewhere map[*cluster.Daemon]bool
}

// everyDaemon is the rule: all that fit on some offering of the pool are awaited on each, so that a node which is too
// small for one is not bought.
func everyDaemon() awaited { return awaited{above: math.MinInt64} }

// everyDaemonOfAnyPool is the rule as long as there is choice among pools: a node that is too small for a DaemonSet
// which fits in another pool is not bought.
func everyDaemonOfAnyPool(elsewhere map[*cluster.Daemon]bool) awaited {
	return awaited{above: math.MinInt64, elsewhere: elsewhere}
}

// whoFits leaves those out of an offering that find no room there even on an empty node.
func whoFits() awaited { return awaited{each: true, above: math.MinInt64} }

// whoPreempts awaits only those that would take the place of a pod of the priority.
func whoPreempts(priority int32) awaited { return awaited{each: true, above: int64(priority)} }

// Omission is a DaemonSet that new nodes of a pool are planned without, because no instance type of the pool has room
// for it.
type Omission struct {
	Pool   string
	Daemon *cluster.Daemon
	// Elsewhere says that another pool has room for it: only a pod that can't go there is given a node of this one.
	Elsewhere bool
	// Resource is what there is too little of, for DaemonSets of its priority; Asked is how much of it a pod asks for,
	// and Most what some instance type has beside the DaemonSets that come first. Empty if one lacks this and another
	// that.
	Resource, Asked, Most string
	// Taken says that DaemonSets of higher priority take some of it: without them there would be more than Most.
	Taken bool
}

// land finds where the DaemonSets' pods may go, room aside.
func (m *market) land(daemons []*cluster.Daemon) {
	for _, d := range daemons {
		if _, tainted := cluster.Untolerated(d.Class.Tolerations, m.pool.Template.Taints); tainted {
			continue
		}
		lands := require.NewBits(len(m.pool.Catalog.Offerings))
		for _, term := range d.Class.Terms {
			if w, _, ok := m.matchTerm(term); ok {
				lands = lands.Or(w.bits)
			}
		}
		if lands.Any() {
			m.lands = append(m.lands, landing{d, lands})
		}
	}
}

// makeRoom takes the share of the DaemonSets that are awaited off every offering, and finds what is for sale then. They
// come in the order of their priority, as kube-scheduler lets them in; among equals nobody knows the order.
func (m *market) makeRoom(which awaited) {
	c := m.pool.Catalog
	m.room, m.daemons, m.omitted, m.priced = make([]resource.Vector, len(c.Offerings)), nil, nil, nil
	for i := range c.Offerings {
		m.room[i] = c.Types[c.Offerings[i].Type].Allocatable
	}
	a := &admission{m: m, which: which, high: m.room}
	for rest := m.lands; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].daemon.Class.Priority == rest[0].daemon.Class.Priority {
			n++
		}
		if int64(rest[0].daemon.Class.Priority) > which.above {
			a.admit(rest[:n])
		}
		rest = rest[n:]
	}
	m.uniform = true
	last := -1
	for i := range m.offered.All {
		if last >= 0 && c.Offerings[last].Type == c.Offerings[i].Type && m.room[last] != m.room[i] {
			m.uniform = false
		}
		last = i
	}
	m.forSale = m.fitting(m.offered.And(c.Available()), resource.Vector{})
}

// omit notes that a DaemonSet finds room nowhere, of what is left at most.
func (m *market) omit(l landing, high []resource.Vector) {
	var most, whole resource.Vector
	c := m.pool.Catalog
	for i := range l.bits.All {
		most = most.Max(high[i])
		whole = whole.Max(c.Types[c.Offerings[i].Type].Allocatable)
	}
	o, need := Omission{Pool: m.pool.Name, Daemon: l.daemon}, l.daemon.Class.Requests
	if dim := need.Short(most); dim >= 0 {
		o.Resource, o.Asked, o.Most = m.names.Name(dim), resource.Format(dim, need[dim]), resource.Format(dim, most[dim])
		o.Taken = most[dim] < whole[dim]
	}
	m.omitted = append(m.omitted, o)
}
