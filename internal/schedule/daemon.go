package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// markDaemonFollowers finds the pod sets whose affinity nobody but a DaemonSet's pods can meet: they go where those
// come.
func (tc *topologyCounts) markDaemonFollowers(mk *market, podSets []*podSet) {
	if len(tc.s.Daemons) == 0 {
		return
	}
	for _, p := range podSets {
		if !slices.ContainsFunc(tc.s.Daemons, func(d *cluster.Daemon) bool {
			return daemonMeetsAffinity(tc.s, p.class, d)
		}) {
			continue
		}
		p.followsDaemon = !slices.ContainsFunc(p.declared, func(id int32) bool {
			t := &tc.rules[id]
			// A pod that is there helps on a new node only if it need not be on the same one.
			return t.rule.Kind == cluster.Affinity && (t.total > 0 && !tc.keys[t.key].isHostname ||
				slices.ContainsFunc(podSets, func(other *podSet) bool {
					_, counted := slices.BinarySearch(other.selectedBy, id)
					return counted && len(other.pods) > 0
				}))
		})
		mk.followDaemon[p.class] = mk.followDaemon[p.class] || p.followsDaemon
	}
}

// daemonMeetsAffinity reports whether the daemon's pods are what the class's affinity asks for, if it has any.
func daemonMeetsAffinity(s *cluster.Snapshot, c *cluster.PodClass, d *cluster.Daemon) bool {
	any := false
	for _, r := range c.Rules {
		if r.Kind != cluster.Affinity {
			continue
		}
		if any = true; !r.Selects(s, d.Namespace, d.Labels) {
			return false
		}
	}
	return any
}

// daemonRepels reports whether the class's anti-affinity keeps it from every node of the market that the daemon is on.
// A node without the rule's label is in nobody's domain.
func (pm *poolMarket) daemonRepels(s *cluster.Snapshot, c *cluster.PodClass, d *cluster.Daemon) bool {
	return slices.ContainsFunc(c.Rules, func(r *cluster.Rule) bool {
		return r.Kind == cluster.AntiAffinity && pm.hasLabel(r.TopologyKey) && r.Selects(s, d.Namespace, d.Labels)
	})
}

// hasLabel reports whether the market's nodes carry the label.
func (pm *poolMarket) hasLabel(key string) bool {
	_, fixed := pm.fixedLabels.Get(key)
	_, open := pm.openRequirements.Get(key)
	return key == cluster.HostnameLabel || fixed || open || pm.pool.Catalog.Index().Knows(key)
}

// restrictByDaemons takes the offerings out of a feasible set's alternative on which daemonsets leave no place for the
// class: they occupy its ports, its anti-affinity avoids them, or its affinity asks for one that does not come there.
func (pm *poolMarket) restrictByDaemons(s *cluster.Snapshot, tm *termMatch, c *cluster.PodClass, attached bool) {
	if !c.IsTied() {
		return
	}
	friends, wanted := tm.offerings.AndNot(tm.offerings), false
	for _, d := range pm.daemons {
		if portsClash(c.Ports, d.daemon.Class.Ports) || pm.daemonRepels(s, c, d.daemon) {
			tm.offerings = tm.offerings.AndNot(d.offerings)
		}
		if attached && daemonMeetsAffinity(s, c, d.daemon) {
			friends, wanted = friends.Or(d.offerings), true
		}
	}
	if wanted {
		tm.offerings = tm.offerings.And(friends)
	}
}

// addDaemonsToBin counts the pods that DaemonSets will put on a new node, whatever it becomes.
func (tc *topologyCounts) addDaemonsToBin(b *openBin, pos *position) {
	for i, d := range tc.s.Daemons {
		for _, landing := range b.market.daemons {
			if landing.daemon == d && !b.offerings.AndNot(landing.offerings).Any() {
				tc.addDaemonPod(tc.daemons[i], pos)
			}
		}
	}
}

func (tc *topologyCounts) addDaemonPod(d *cluster.Pod, pos *position) {
	required, _ := tc.rulesOf(d.Class)
	tc.addToRules(pos.domains, pos.countsForSpread, required, tc.matcher.rulesSelecting(d), 1, false)
}

// addDaemonsToHost counts the pods that DaemonSets will put on a node that is on its way.
func (tc *topologyCounts) addDaemonsToHost(h *cluster.Host, pos *position) {
	for i, d := range tc.daemons {
		there := slices.ContainsFunc(h.Pods, tc.s.Daemons[i].Owns)
		if !there && h.Allows(d.Class) {
			tc.addDaemonPod(d, pos)
		}
	}
}
