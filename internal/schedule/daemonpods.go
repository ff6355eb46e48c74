package schedule

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// markDaemonFollowers finds the pod sets whose affinity nobody but a DaemonSet's pods can meet: they go where those
// come.
func (tc *topologyCounts) markDaemonFollowers(podSets []*podSet) {
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
			return t.rule.Kind == cluster.Affinity && (t.total > 0 && !t.onHostname ||
				slices.ContainsFunc(podSets, func(other *podSet) bool {
					_, counted := slices.BinarySearch(other.selectedBy, id)
					return counted && len(other.pods) > 0
				}))
		})

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

// addDaemons counts the pods of the DaemonSets that will come to a node.
func (tc *topologyCounts) addDaemons(pos *position, comes func(*cluster.Daemon) bool) {
	for i, d := range tc.s.Daemons {
		if comes(d) {
			required, _ := tc.rulesOf(d.Class)
			tc.addToRules(pos, required, tc.matcher.rulesSelecting(tc.daemons[i]), 1, false)
		}
	}
}
