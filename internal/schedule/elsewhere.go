package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// findElsewhere finds the DaemonSets that fit on no instance type of one pool and on some of another. As long as a pod
// has the choice it goes where both have room, so nothing is for sale at first on which one of them would run and
// can't.
func (sh *shop) findElsewhere() {
	omitted := make(map[*cluster.Daemon]bool)
	for _, m := range sh.markets {
		for i := range m.omitted {
			omitted[m.omitted[i].Daemon] = true
		}
	}
	if len(omitted) == 0 {
		return
	}
	for _, m := range sh.markets {
		for _, l := range m.daemons {
			if !omitted[l.daemon] {
				continue
			}
			if sh.elsewhere == nil {
				sh.elsewhere = make(map[*cluster.Daemon]bool)
			}
			sh.elsewhere[l.daemon] = true
		}
	}
	if sh.elsewhere == nil {
		return
	}
	for _, m := range sh.markets {
		if slices.ContainsFunc(m.omitted, func(o Omission) bool { return sh.elsewhere[o.Daemon] }) {
			m.makeRoom(everyDaemonOfAnyPool(sh.elsewhere))
		}
	}
}

// settleFor buys nodes without DaemonSets that fit in other pools only, for pods that no pool holds together with all
// DaemonSets. The kinds of these pods are returned; what is for sale is left to each pool's own rule.
func (p *Placement) settleFor(
	book *ledger,
	sh *shop,
	kinds []*kind,
	settler *settler,
	crates []*crate,
) ([]*crate, []*kind) {
	if sh.elsewhere == nil {
		return crates, nil
	}
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k *kind) bool {
		return len(k.pods) == 0 || slices.ContainsFunc(sh.markets, func(m *market) bool { return m.suits(k.class) })
	})
	if len(kinds) == 0 {
		return crates, nil
	}
	for _, k := range kinds {
		k.doomed = false // what there is for it depends on who else is there
	}
	first := len(crates)
	sh.await(everyDaemon())
	crates = buyAll(book, sh, kinds, settler, crates)
	for _, m := range sh.markets {
		if !slices.ContainsFunc(crates[first:], func(c *crate) bool { return c.house == nil && c.m == m }) {
			continue
		}
		for _, o := range m.omitted {
			if o.Elsewhere = sh.elsewhere[o.Daemon]; o.Elsewhere {
				p.Omitted = append(p.Omitted, o)
			}
		}
	}
	return crates, kinds
}

// suits reports whether a pod of the class may go to some offering of the pool and fits on it beside the DaemonSets,
// whether or not it can be bought now.
func (m *market) suits(class *cluster.PodClass) bool {
	if _, tainted := cluster.Untolerated(class.Tolerations, m.pool.Template.Taints); tainted {
		return false
	}
	for _, w := range m.match(class.Terms) {
		for i := range w.bits.All {
			if m.holds(i, &class.Requests) {
				return true
			}
		}
	}
	return false
}
