package topology

import (
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// MarkDaemonFollowers finds the pod sets whose affinity nobody but a DaemonSet's pods can meet: they go where those
// come.
func (tc *Counts) MarkDaemonFollowers(podSets []*PodSet) {
	if len(tc.s.Daemons) == 0 {
		return
	}
	for _, p := range podSets {
		if !slices.ContainsFunc(tc.s.Daemons, func(d *cluster.Daemon) bool {
			return DaemonMeetsAffinity(tc.s, p.Class, d)
		}) {
			continue
		}
		p.FollowsDaemon = !slices.ContainsFunc(p.Declared, func(id int32) bool {
			t := &tc.Rules[id]
			// A pod that is there helps on a new node only if it need not be on the same one.
			return t.Rule.Kind == cluster.Affinity && (t.Total > 0 && !t.OnHostname ||
				slices.ContainsFunc(podSets, func(other *PodSet) bool {
					_, counted := slices.BinarySearch(other.SelectedBy, id)
					return counted && len(other.Pods) > 0
				}))
		})

	}
}

// DaemonMeetsAffinity reports whether the daemon's pods are what the class's affinity asks for, if it has any.
func DaemonMeetsAffinity(s *cluster.Snapshot, c *cluster.PodClass, d *cluster.Daemon) bool {
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

// AddDaemons counts the pods of the DaemonSets that will come to a node.
func (tc *Counts) AddDaemons(pos *Position, comes func(*cluster.Daemon) bool) {
	for i, d := range tc.s.Daemons {
		if comes(d) {
			required, _ := tc.rulesOf(d.Class)
			tc.addToRules(pos, required, tc.matcher.rulesSelecting(tc.daemons[i]), 1, false)
		}
	}
}
