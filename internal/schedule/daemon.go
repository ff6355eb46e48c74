package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/topology"
)

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
		if topology.PortsClash(c.Ports, d.daemon.Class.Ports) || pm.daemonRepels(s, c, d.daemon) {
			tm.offerings = tm.offerings.AndNot(d.offerings)
		}
		if attached && topology.DaemonMeetsAffinity(s, c, d.daemon) {
			friends, wanted = friends.Or(d.offerings), true
		}
	}
	if wanted {
		tm.offerings = tm.offerings.And(friends)
	}
}

// noteDaemonFollowers notes the classes that can only go where a DaemonSet's pods come.
func (mk *market) noteDaemonFollowers(podSets []*topology.PodSet) {
	for _, p := range podSets {
		if p.FollowsDaemon {
			mk.followDaemon[p.Class] = true
		}
	}
}
