package schedule

import (
	"maps"
	"slices"
	"strconv"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// copyTo makes out a copy of what the ledger has counted, in the memory that out has; rules, kinds and the numbers of domains are
// shared. It is for as long as the ledger that it came from does not change. Rules and spreads that are not among those that are
// asked for stay empty; nil asks for all. Where only some are asked for, it is for nodes to come: what keeps pods off the nodes that are
// there is left out. A search makes thousands of copies: without the memory of the last one, most of what
// it allocates would be these.
func (l *ledger) copyTo(out *ledger, rules, spreads []bool) *ledger {
	old := *out
	*out = *l
	out.volumes = l.volumes.copyTo(old.volumes)
	out.keys = resized(old.keys, len(l.keys))
	for i := range l.keys {
		own := out.keys[i].own
		if own == nil {
			own = make(map[string]int32)
		}
		clear(own)
		if l.keys[i].copied {
			maps.Copy(own, l.keys[i].own)
		}
		out.keys[i] = l.keys[i]
		out.keys[i].copied, out.keys[i].own, out.keys[i].names = true, own, slices.Clip(l.keys[i].names)
	}
	out.rules = resized(old.rules, len(l.rules))
	for i := range l.rules {
		t, match, carry, from := &l.rules[i], out.rules[i].match[:0], out.rules[i].carry[:0], l.rules[i].from
		switch {
		case rules == nil || rules[i] && !(t.rule.Kind == cluster.AntiAffinity && l.keys[t.key].host):
			match, carry = append(match, t.match...), append(carry, t.carry...)
		case rules[i]:
			from = int32(len(l.keys[t.key].names))
		}
		out.rules[i] = *t
		out.rules[i].match, out.rules[i].carry, out.rules[i].from = match, carry, from
	}
	out.spreads = resized(old.spreads, len(l.spreads))
	for i := range l.spreads {
		s, match, levels := &l.spreads[i], out.spreads[i].match[:0], out.spreads[i].levels[:0]
		idle := spreads != nil && !spreads[i]
		if !idle {
			match, levels = append(match, s.match...), append(levels, s.levels...)
		}
		out.spreads[i] = *s
		out.spreads[i].match, out.spreads[i].levels, out.spreads[i].idle = match, levels, s.idle || idle
	}
	return out
}

// resized has n elements; what the list holds already, behind its end too, stays where it is.
func resized[E any](list []E, n int) []E {
	list = list[:cap(list)]
	if n > len(list) {
		list = append(list, make([]E, n-len(list))...)
	}
	return list[:n]
}

// referee lets the pods move into their new nodes one after the other, as kube-scheduler will, in any order in which the
// rules let them. Who never gets in is taken out again: a node must not be bought for a pod that can't use it. The
// ledger then counts those who did.
func referee(l *ledger, sh *shop, crates []*crate, first int) (kept []*crate, dropped int) {
	defer func() {
		for _, c := range kept {
			for i := range c.loads {
				l.volumes.claim(c.loads[i].kind.exclusive)
			}
		}
	}()
	if len(l.rules) == 0 {
		return crates, 0
	}
	spots := make([]*spot, len(crates))
	for i, c := range crates {
		if c.house != nil {
			spots[i] = c.house.spot
			continue
		}
		h := c.host("new-" + strconv.Itoa(first+i))
		spots[i] = l.open(&h)
		l.mayOpen(c, &h, spots[i])
		l.staffCrate(c, spots[i])
	}
	in := make([][]int, len(crates)) // by crate and load: how many pods have got in
	for i, c := range crates {
		in[i] = make([]int, len(c.loads))
	}
	// Whoever has no rule of his own may come first, then those who were dealt, in that order, then anybody.
	for _, strangers := range []bool{true, false} {
		if !strangers {
			l.recall(crates, spots, in)
		}
		for again := true; again; {
			again = false
			for i, c := range crates {
				for j := range c.loads {
					if ld := &c.loads[j]; !strangers || len(ld.kind.carries) == 0 {
						again = l.enter(spots[i], ld, &in[i][j]) || again
					}
				}
			}
		}
	}
	for i, c := range crates {
		out := c.evict(in[i])
		dropped += out
		if len(c.loads) > 0 {
			if kept = append(kept, c); out > 0 && c.house == nil {
				c.shrink()
			}
			continue
		}
		if c.house != nil { // its room was kept in vain, which nobody else will miss in this placement
			continue
		}
		c.m.left.charge(c.Capacity, -1)
		if id := c.m.pool.Catalog.Offerings[c.row].Reservation; id != "" {
			sh.stocks[id]++
		}
	}
	return kept, dropped
}

// berth is a place that was bought for pods of a kind.
type berth struct{ crate, load int }

// recall lets pods that are spread in in the order in which they were dealt: then each found its place allowed.
func (l *ledger) recall(crates []*crate, spots []*spot, in [][]int) {
	type dealt struct {
		kind *kind
		site *site
	}
	berths, seen := make(map[dealt][]berth), make(map[*kind]bool)
	var kinds []*kind
	for i, c := range crates {
		for j := range c.loads {
			k := c.loads[j].kind
			if len(k.order) == 0 {
				continue
			}
			at := dealt{k, c.loads[j].site}
			berths[at] = append(berths[at], berth{i, j})
			if !seen[k] {
				seen[k], kinds = true, append(kinds, k)
			}
		}
	}
	slices.SortStableFunc(kinds, compareKinds)
	for again := true; again; {
		again = false
		for _, k := range kinds {
			for len(k.order) > 0 {
				at := dealt{k, k.order[0]}
				for len(berths[at]) > 0 && full(crates, in, berths[at][0]) {
					berths[at] = berths[at][1:]
				}
				if len(berths[at]) > 0 {
					b := berths[at][0]
					if _, ok := l.allows(spots[b.crate].at, k); !ok {
						break
					}
					l.add(spots[b.crate].at, spots[b.crate].counts, k, 1)
					in[b.crate][b.load]++
					again = true
				}
				k.order = k.order[1:]
			}
		}
	}
}

func full(crates []*crate, in [][]int, b berth) bool {
	return in[b.crate][b.load] == len(crates[b.crate].loads[b.load].pods)
}

// enter lets the load's pods in if the rules allow it: all at once if they have none, else as many as the rules allow, and
// one at a time where they are spread, so that none of the places is used up before the others.
func (l *ledger) enter(sp *spot, ld *load, in *int) (progress bool) {
	for *in < len(ld.pods) {
		n := 1
		if ld.kind.free() {
			n = len(ld.pods)
		} else if _, ok := l.allows(sp.at, ld.kind); !ok {
			break
		}
		l.add(sp.at, sp.counts, ld.kind, n)
		*in += n
		if progress = true; len(ld.kind.spreads) > 0 {
			break
		}
	}
	return progress
}

// evict gives the pods back that are not in.
func (c *crate) evict(in []int) (dropped int) {
	loads := c.loads[:0]
	for j, ld := range c.loads {
		out := ld.pods[in[j]:]
		dropped += len(out)
		ld.kind.pods = append(ld.kind.pods, out...)
		if ld.pods = ld.pods[:in[j]]; len(ld.pods) > 0 {
			loads = append(loads, ld)
		}
	}
	c.loads = loads
	return dropped
}

// shrink buys the cheapest node for what is left in the crate.
func (c *crate) shrink() {
	var content resource.Vector
	var sites []*site
	for _, ld := range c.loads {
		content = content.Add(ld.kind.class.Requests.Times(int64(len(ld.pods))))
		if !slices.Contains(sites, ld.site) {
			sites = append(sites, ld.site)
		}
	}
	slices.SortFunc(sites, func(x, y *site) int { return x.number - y.number })
	rows, catalog := c.m.forSale, c.m.pool.Catalog
	for _, st := range sites {
		rows = rows.And(st.rows[c.m.number])
	}
	best, own := c.row, &catalog.Offerings[c.row]
	for i := range rows.All {
		o := &catalog.Offerings[i]
		if o.Reservation == own.Reservation && o.Price < catalog.Offerings[best].Price && c.m.holds(i, &content) &&
			c.m.withinLimited(&catalog.Types[o.Type].Capacity, &catalog.Types[own.Type].Capacity) {
			best = i
		}
	}
	p := newPurchase(c.m, best, sites, content)
	b := p.bin()
	if len(p.wants) < len(sites) || b.Relaxed && !c.Relaxed {
		return // no single alternative does; what was bought still does
	}
	c.m.left.charge(c.Capacity, -1)
	c.m.left.charge(b.Capacity, 1)
	c.Bin, c.row, c.rows = b, best, p.rows
}

// host is the node that the crate will become, as far as that is decided.
func (c *crate) host(name string) cluster.Host {
	labels := c.Labels
	for _, e := range c.Requirements {
		if values, finite := e.Values.Listed(); finite && len(values) == 1 && !e.Values.AllowsAbsent() {
			labels = labels.With(e.Key, values[0])
		}
	}
	return cluster.Future(name, labels, c.m.pool.Template.Taints, func(key string) (require.Values, bool) {
		_, decided := labels.Get(key)
		may, _ := c.Requirements.Get(key)
		return may, !decided && c.m.pool.Catalog.Index().Knows(key)
	})
}

// mayOpen makes the domains count in which the node may turn out to be: a spread must hold whatever the launch decides.
func (l *ledger) mayOpen(c *crate, h *cluster.Host, sp *spot) {
	for i := range l.spreads {
		s := &l.spreads[i]
		if s.idle || sp.at[s.key] != unknown {
			continue
		}
		rule := l.rules[s.rule].rule
		if !rule.AnyNode && !h.MayMeet(s.class.Own()) {
			continue
		}
		if _, tainted := cluster.Untolerated(s.class.Tolerations, h.Taints); tainted && rule.HonorTaints {
			continue
		}
		asked, _ := c.Requirements.Get(l.keys[s.key].key)
		listed, finite := asked.Listed()
		if !finite {
			continue
		}
		for _, value := range listed {
			s.present(l.domain(s.key, value))
		}
	}
}

// seal writes down who is in the crate.
func (c *crate) seal() Bin {
	b := c.Bin
	counts := make(map[*cluster.PodClass]int, len(c.loads))
	for _, ld := range c.loads {
		b.Pods = append(b.Pods, ld.pods...)
		if n, seen := counts[ld.kind.class]; seen {
			b.Seats[n].Count += len(ld.pods)
			continue
		}
		counts[ld.kind.class] = len(b.Seats)
		b.Seats = append(b.Seats, cluster.Seat{Class: ld.kind.class.Key, Count: len(ld.pods)})
	}
	return b
}

// bound is a price that no choice of nodes for the crates' pods can undercut, whatever pool they come from.
func bound(sh *shop, crates []*crate) float64 {
	if len(crates) == 0 {
		return 0
	}
	sh.restockFully()
	counts := make(map[stackKey]*stack)
	var stacks []*stack
	for _, c := range crates {
		for _, ld := range c.loads {
			st := sh.site([]*cluster.PodClass{ld.kind.class}, nil)
			key := stackKey{need: ld.kind.class.Requests, site: st}
			s := counts[key]
			if s == nil {
				s = &stack{site: st, loose: st, Stack: pack.Stack{Need: ld.kind.class.Requests}}
				counts[key] = s
				stacks = append(stacks, s)
			}
			s.Count += len(ld.pods)
		}
	}
	return pack.Bound(&newBuyer(sh, sh.markets, stacks, newTaste(nil, false)).problem)
}

// restockFully forgets limits: they never make anything cheaper.
func (sh *shop) restockFully() {
	for _, m := range sh.markets {
		m.buyable = m.forSale
	}
	sh.forget()
}
