package plan_test

import (
	"maps"
	"slices"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// daemonsFor are the DaemonSets that want a pod on a node with such labels and taints.
func daemonsFor(daemons []*cluster.Daemon, n *cluster.Node) []*cluster.Daemon {
	return slices.DeleteFunc(slices.Clone(daemons), func(d *cluster.Daemon) bool {
		return !cluster.MayRunOn(d.Class, n.Labels, n.Taints)
	})
}

// coming are the DaemonSets, in the order of their priority, that kube-scheduler lets in on a node with so much room:
// each displaces pods of lower priority only, so that whoever is meant for the node and no less important comes before
// it.
func coming(daemons []*cluster.Daemon, room resource.Vector, pods []*cluster.Pod) []*cluster.Daemon {
	var out []*cluster.Daemon
	for _, d := range daemons {
		first := slices.DeleteFunc(slices.Clone(pods), func(p *cluster.Pod) bool {
			return p.Class.Priority < d.Class.Priority
		})
		left := room.Sub(together(first))
		for _, e := range out {
			left = left.Sub(e.Class.Requests)
		}
		if d.Class.Requests.Fits(left) {
			out = append(out, d)
		}
	}
	return out
}

// meantFor are the pods of a node, daemons' aside, and those that have a seat there.
func (w *world) meantFor(n *cluster.Node) []*cluster.Pod {
	var out []*cluster.Pod
	free := make(map[string]int)
	for _, c := range w.claims {
		if c.NodeName == n.Name || c.ProviderID == n.ProviderID {
			for _, seat := range c.Seats {
				free[seat.Class] += seat.Count
			}
		}
	}
	names := slices.Sorted(maps.Keys(w.pods))
	for _, name := range names {
		p := w.pods[name]
		if p.Node == n.Name && !p.Finished && !p.Daemon {
			free[p.Class.Key]--
			out = append(out, p)
		}
	}
	for _, name := range names {
		p := w.pods[name]
		if p.Node == "" && free[p.Class.Key] > 0 {
			free[p.Class.Key]--
			out = append(out, p)
		}
	}
	return out
}
