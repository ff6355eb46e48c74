package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// attach finds the kinds whose affinity nobody but a DaemonSet's pods can meet: they go where those come.
func (l *ledger) attach(sh *shop, kinds []*kind) {
	if len(l.s.Daemons) == 0 {
		return
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(l.s.Daemons, func(d *cluster.Daemon) bool { return befriends(l.s, k.class, d) }) {
			continue
		}
		k.attached = !slices.ContainsFunc(k.carries, func(id int32) bool {
			t := &l.rules[id]
			// A pod that is there helps on a new node only if it need not be on the same one.
			return t.rule.Kind == cluster.Affinity && (t.total > 0 && !l.keys[t.key].host || slices.ContainsFunc(kinds, func(other *kind) bool {
				_, counted := slices.BinarySearch(other.counted, id)
				return counted && len(other.pods) > 0
			}))
		})
		sh.attached[k.class] = sh.attached[k.class] || k.attached
	}
}

// befriends reports whether the daemon's pods are what the class's affinity asks for, if it has any.
func befriends(s *cluster.Snapshot, c *cluster.PodClass, d *cluster.Daemon) bool {
	any := false
	for _, r := range c.Rules {
		if r.Kind != cluster.Affinity {
			continue
		}
		if any = true; !chooses(s, r, d) {
			return false
		}
	}
	return any
}

// repels reports whether the class's anti-affinity keeps it from every node of the market that the daemon is on. A node
// without the rule's label is in nobody's domain.
func (m *market) repels(s *cluster.Snapshot, c *cluster.PodClass, d *cluster.Daemon) bool {
	return slices.ContainsFunc(c.Rules, func(r *cluster.Rule) bool {
		return r.Kind == cluster.AntiAffinity && m.labels(r.Topology) && chooses(s, r, d)
	})
}

// labels reports whether the market's nodes carry the label.
func (m *market) labels(key string) bool {
	_, fixed := m.fixed.Get(key)
	_, open := m.open.Get(key)
	return key == cluster.HostnameLabel || fixed || open || m.pool.Catalog.Index().Knows(key)
}

// chooses reports whether the rule selects the daemon's pods.
func chooses(s *cluster.Snapshot, r *cluster.Rule, d *cluster.Daemon) bool {
	for i := range r.Selectors {
		if !r.Selectors[i].Selects(d.Namespace, s.Namespaces[d.Namespace], d.Labels) {
			return false
		}
	}
	return len(r.Selectors) > 0
}

// restrict takes the offerings out of a site's alternative on which daemonsets leave no place for the class: they occupy
// its ports, its anti-affinity avoids them, or its affinity asks for one that does not come there.
func (m *market) restrict(s *cluster.Snapshot, w *want, c *cluster.PodClass, attached bool) {
	if len(c.Rules) == 0 && len(c.Ports) == 0 {
		return
	}
	friends, wanted := w.bits.AndNot(w.bits), false
	for _, d := range m.daemons {
		if clash(c.Ports, d.daemon.Class.Ports) || m.repels(s, c, d.daemon) {
			w.bits = w.bits.AndNot(d.bits)
		}
		if attached && befriends(s, c, d.daemon) {
			friends, wanted = friends.Or(d.bits), true
		}
	}
	if wanted {
		w.bits = w.bits.And(friends)
	}
}

// staffCrate counts the pods that DaemonSets will put on a new node, whatever it becomes.
func (l *ledger) staffCrate(c *crate, sp *spot) {
	for i, d := range l.s.Daemons {
		for _, landing := range c.m.daemons {
			if landing.daemon == d && !c.rows.AndNot(landing.bits).Any() {
				l.employ(l.daemons[i], sp)
			}
		}
	}
}

func (l *ledger) employ(d *cluster.Pod, sp *spot) {
	hard, _ := l.carried(d.Class)
	l.addRules(sp.at, sp.counts, hard, l.census.counted(d), 1, false)
}

// staff counts the pods that DaemonSets will put on a node that is on its way.
func (l *ledger) staff(h *cluster.Host, sp *spot) {
	for i, d := range l.daemons {
		there := slices.ContainsFunc(h.Pods, l.s.Daemons[i].Made)
		if !there && h.Takes(d.Class) {
			l.employ(d, sp)
		}
	}
}
