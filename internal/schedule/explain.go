package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// explainKinds says of the kinds' pods that are left why they found no place.
func (p *Placement) explainKinds(s *cluster.Snapshot, sh *shop, l *ledger, kinds []*kind) {
	for _, k := range kinds {
		explain(s, sh, l, k, p)
	}
}

// explain records why the pods that are left of the kind found no place. The reasons are worked out once a kind.
func explain(s *cluster.Snapshot, sh *shop, l *ledger, k *kind, out *Placement) {
	if len(k.pods) == 0 {
		return
	}
	taken := l.volumes.holder(k.exclusive)
	var misses []PoolMiss
	for _, p := range s.Pools {
		if i := slices.IndexFunc(sh.markets, func(m *market) bool { return m.pool == p }); i >= 0 {
			misses = append(misses, sh.markets[i].miss(l, k))
			continue
		}
		misses = append(misses, PoolMiss{Pool: p.Name, NotUsable: unusable(p)})
	}
	others := len(s.OtherPools)
	out.remember(k, Unplaced{Taken: taken, Pools: misses, Others: others})
	for _, pod := range k.pods {
		out.Unplaced = append(out.Unplaced, Unplaced{Pod: pod, Taken: taken, Pools: misses, Others: others})
	}
	k.pods = nil
}

func unusable(p *cluster.Pool) string {
	switch {
	case p.Deleting:
		return "it is being deleted"
	case p.Static:
		return "it is static (spec.replicas is set) and takes no part in provisioning"
	case len(p.Problems) > 0:
		return "it is not valid: " + p.Problems[0].Field + ": " + p.Problems[0].Text
	case !p.NodeClass.Ready:
		return "its NodeClass is not ready: " + p.NodeClass.Message
	case p.Held:
		return "the cloud has refused its launches; the next try is at " + p.HeldUntil.UTC().Format("15:04:05") + " UTC"
	case p.CatalogError != "":
		return "its instance types are not known: " + p.CatalogError
	}
	return "its instance types are not known yet"
}

// miss counts what ruled out the pool's types for the kind. A type counts under the hurdle at which the last of its
// offerings fell.
func (m *market) miss(l *ledger, k *kind) PoolMiss {
	out, class := PoolMiss{Pool: m.pool.Name}, k.class
	if taint, tainted := cluster.Untolerated(class.Tolerations, m.pool.Template.Taints); tainted {
		out.Taint = &taint
		return out
	}
	wants := m.match(class.Terms)
	if len(wants) == 0 && m.missByLabel(&out, class) {
		return out
	}
	matched := require.NewBits(len(m.room))
	for _, w := range wants {
		matched = matched.Or(w.bits)
	}
	fits := m.fitting(matched, class.Requests)
	sold := fits.And(m.forSale)
	out.Types = m.countTypes(m.offered)
	out.ByRequirement = out.Types - m.countTypes(matched)
	out.ByResources = m.countTypes(matched) - m.countTypes(fits)
	if out.ByOffering = m.countTypes(fits) - m.countTypes(sold); out.ByOffering > 0 {
		out.Why = m.refusals(fits, sold)
	}
	if out.ByRequirement > 0 {
		m.missByKey(&out, class)
	}
	if out.ByResources > 0 {
		m.nearest(&out, matched, class.Requests)
	}
	free := m.missByPort(&out, k, sold)
	allowed := m.missByLimit(&out, free)
	if k.why != nil && allowed.Any() {
		out.ByTopology, out.Rule, out.Inverse, out.Waits = m.countTypes(allowed), k.why.rule, k.why.inverse, k.why.waits
		out.Unlabelled = !m.labels(k.why.rule.Topology)
		return out
	}
	for _, w := range wants {
		if rows := allowed.And(w.bits); rows.Any() {
			out.MinValues = m.shortOfValues(rows)
		}
	}
	if out.MinValues == "" && out.ByLimit == 0 && sold.Any() {
		out.MinValues = m.choosy() // nothing else can have kept the pod out
	}
	return out
}

// mostRefusals is how many reasons of the cloud a sentence repeats.
const mostRefusals = 2

// refusals says what people could do about types of which nothing is for sale; empty if they can only wait.
func (m *market) refusals(fits, sold require.Bits) string {
	open := map[int]bool{}
	for i := range sold.All {
		open[m.pool.Catalog.Offerings[i].Type] = true
	}
	var out []string
	for i := range fits.AndNot(sold).All {
		if o := &m.pool.Catalog.Offerings[i]; o.Why != "" && !open[o.Type] && !slices.Contains(out, o.Why) {
			out = append(out, o.Why)
		}
	}
	slices.Sort(out)
	if more := len(out) - mostRefusals; more > 0 {
		return fmt.Sprintf("%s; and %d other reasons", strings.Join(out[:mostRefusals], "; "), more)
	}
	return strings.Join(out, "; ")
}

// missByPort counts the types on which a daemonset occupies a port that the pod needs.
func (m *market) missByPort(out *PoolMiss, k *kind, sold require.Bits) require.Bits {
	free := sold
	for _, d := range m.daemons {
		if clash(k.class.Ports, d.daemon.Class.Ports) {
			free = free.AndNot(d.bits)
		}
	}
	out.ByPort = m.countTypes(sold) - m.countTypes(free)
	return free
}

// holder names an exclusive volume that another pod has; empty if there is none.
func (v *volumes) holder(handles []string) string {
	for _, handle := range handles {
		if v.taken[handle] {
			return handle
		}
	}
	return ""
}

func (m *market) fitting(rows require.Bits, need resource.Vector) require.Bits {
	out := require.NewBits(len(m.room))
	for i := range rows.All {
		if m.holds(i, &need) {
			out.Set(i)
		}
	}
	return out
}

// missByLimit counts the types that the limits rule out, and returns the offerings that they leave.
func (m *market) missByLimit(out *PoolMiss, sold require.Bits) (allowed require.Bits) {
	if !m.pool.Limits.Any() {
		return sold
	}
	allowed = require.NewBits(len(m.room))
	last := -1
	for i := range sold.All {
		t := m.pool.Catalog.Offerings[i].Type
		n, binds := m.left.allows(m.pool.Catalog.Types[t].Capacity, 1)
		if n > 0 {
			allowed.Set(i)
			continue
		}
		if t == last {
			continue
		}
		last = t
		out.ByLimit++
		switch {
		case m.pool.Limits.Broken != "":
			out.Limit = m.pool.Limits.Broken
		case binds == resource.Size:
			out.Limit = "nodes " + resource.Format(resource.Pods, m.pool.Limits.Nodes)
		default:
			out.Limit = m.names.Name(binds) + " " + resource.Format(binds, m.pool.Limits.Amount[binds])
		}
	}
	return allowed
}

func (m *market) countTypes(rows require.Bits) int {
	n, last := 0, -1
	for i := range rows.All {
		if t := m.pool.Catalog.Offerings[i].Type; t != last {
			n, last = n+1, t
		}
	}
	return n
}

// nearest finds, among the offerings that are too small, the dimension in which even the largest falls short; if each
// dimension is met by some offering, the one in which an offering with enough of everything else comes closest.
func (m *market) nearest(out *PoolMiss, rows require.Bits, need resource.Vector) {
	var best, alone resource.Vector
	crowded, overdrawn := -1, int64(0)
	for i := range rows.All {
		room := m.room[i]
		if m.holds(i, &need) {
			continue
		}
		best = best.Max(room)
		dim := need.Short(room)
		if dim < 0 { // its daemons alone are too much
			crowded = room.Times(-1).Short(resource.Vector{})
			overdrawn = room[crowded]
			continue
		}
		rest := need
		rest[dim] = 0
		if rest.Fits(room) {
			alone[dim] = max(alone[dim], room[dim])
		}
	}
	dim := need.Short(best)
	switch {
	case dim >= 0:
		out.shortage(m.names, dim, need[dim], best[dim])
	case crowded >= 0 && alone.IsZero():
		out.shortage(m.names, crowded, need[crowded], overdrawn)
		out.Crowded = true
	default:
		dim = closest(need, alone)
		out.shortage(m.names, dim, need[dim], alone[dim])
	}
}

// closest is the needed dimension of which there is the largest part.
func closest(need, have resource.Vector) int {
	closest, most := -1, -1.0
	for dim := range need {
		if need[dim] <= 0 {
			continue
		}
		if part := float64(have[dim]) / float64(need[dim]); part > most {
			closest, most = dim, part
		}
	}
	return closest
}
