package market

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/topology"
)

// daemonRepels reports whether the class's anti-affinity keeps it from every node of the market that the daemon is on.
// A node without the rule's label is in nobody's domain.
func (pm *Pool) daemonRepels(s *cluster.Snapshot, c *cluster.PodClass, d *cluster.Daemon) bool {
	return slices.ContainsFunc(c.Rules, func(r *cluster.Rule) bool {
		return r.Kind == cluster.AntiAffinity && pm.HasLabel(r.TopologyKey) && r.Selects(s, d.Namespace, d.Labels)
	})
}

// HasLabel reports whether the market's nodes carry the label.
func (pm *Pool) HasLabel(key string) bool {
	_, fixed := pm.FixedLabels.Get(key)
	_, open := pm.OpenRequirements.Get(key)
	return key == cluster.HostnameLabel || fixed || open || pm.Spec.Catalog.Index().Knows(key)
}

// restrictByDaemons takes the offerings out of a feasible set's alternative on which daemonsets leave no place for the
// class: they occupy its ports, its anti-affinity avoids them, or its affinity asks for one that does not come there.
func (pm *Pool) restrictByDaemons(s *cluster.Snapshot, tm *termMatch, c *cluster.PodClass, attached bool) {
	if !c.IsTied() {
		return
	}
	friends, wanted := tm.Offerings.AndNot(tm.Offerings), false
	for _, d := range pm.Daemons {
		if topology.PortsClash(c.Ports, d.Daemon.Class.Ports) || pm.daemonRepels(s, c, d.Daemon) {
			tm.Offerings = tm.Offerings.AndNot(d.Offerings)
		}
		if attached && topology.DaemonMeetsAffinity(s, c, d.Daemon) {
			friends, wanted = friends.Or(d.Offerings), true
		}
	}
	if wanted {
		tm.Offerings = tm.Offerings.And(friends)
	}
}

// NoteDaemonFollowers notes the classes that can only go where a DaemonSet's pods come.
func (mk *Market) NoteDaemonFollowers(podSets []*topology.PodSet) {
	for _, p := range podSets {
		if p.FollowsDaemon {
			mk.followDaemon[p.Class] = true
		}
	}
}
