package state

import (
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/series"
	"github.com/tenon-sh/tenon/internal/resource"
)

// nodeFamilies are gauges about each node.
type nodeFamilies struct {
	// keys are the labels of a node that its series carry, names what they are called there.
	keys, names                                                                           []string
	allocatable, podRequests, podLimits, daemonRequests, daemonLimits, overhead, lifetime *series.Family
}

// nodeKeys are the labels of a node that its series carry: the contract's well-known ones and the provider's, by the
// last part of their key. A series can't have two labels of the same name: the first counts, and the contract's come
// first.
func nodeKeys(o Shown) (keys, names []string) {
	known := append([]string{cluster.PoolLabel, cluster.ZoneLabel, corev1.LabelTopologyRegion,
		cluster.InstanceTypeLabel, corev1.LabelArchStable,
		corev1.LabelOSStable, cluster.CapacityTypeLabel, corev1.LabelWindowsBuild},
		slices.Sorted(slices.Values(o.NodeLabels))...)
	taken := []string{"node_name", "phase", "managed", "resource_type"}
	for _, kind := range o.NodeClasses { // which class a node has is no label of its series in the contract
		taken = append(taken, lastPart(v1.NodeClassLabelKey(kind.Group, kind.Kind)))
	}
	for _, key := range known {
		if name := lastPart(key); !slices.Contains(taken, name) {
			keys, names, taken = append(keys, key), append(names, name), append(taken, name)
		}
	}
	return keys, names
}

// lastPart writes what follows the slash in the key of a label as the name of a metric's. A key without one is taken
// whole.
func lastPart(key string) string {
	return series.LabelName(strings.ToLower(key[strings.LastIndexByte(key, '/')+1:]))
}

func newNodeFamilies(o Shown) nodeFamilies {
	keys, called := nodeKeys(o)
	names := append(called[:len(called):len(called)], "node_name", "phase", "managed")
	perResource := func(name, help string) *series.Family {
		return series.NewFamily("karpenter_nodes_"+name, help, append(names[:len(names):len(names)],
			"resource_type")...)
	}
	return nodeFamilies{
		keys: keys, names: called,
		allocatable: perResource("allocatable", "What a node offers to pods."),
		podRequests: perResource("total_pod_requests", "What the pods on a node have asked for, DaemonSets' "+
			"included."),
		podLimits: perResource("total_pod_limits",
			"What the pods on a node may use at most, DaemonSets' included."),
		daemonRequests: perResource("total_daemon_requests", "What the DaemonSets' pods on a node have asked for."),
		daemonLimits:   perResource("total_daemon_limits", "What the DaemonSets' pods on a node may use at most."),
		overhead: perResource("system_overhead", "What a node keeps for itself: its capacity less what it "+
			"offers to pods."),
		lifetime: series.NewFamily("karpenter_nodes_current_lifetime_seconds", "Age of a node.", names...),
	}
}

func (f *nodeFamilies) all() []*series.Family {
	return []*series.Family{f.allocatable, f.podRequests, f.podLimits, f.daemonRequests, f.daemonLimits, f.overhead,
		f.lifetime}
}

// nodeLoad is what the pods on a node add up to.
type nodeLoad struct{ requests, limits, daemonRequests, daemonLimits resource.Vector }

func (l *nodeLoad) add(p *cluster.Pod) {
	l.requests = l.requests.Add(p.Class.Requests)
	if p.Daemon {
		l.daemonRequests = l.daemonRequests.Add(p.Class.Requests)
	}
	if p.Limits == nil {
		return
	}
	l.limits = l.limits.Add(*p.Limits)
	if p.Daemon {
		l.daemonLimits = l.daemonLimits.Add(*p.Limits)
	}
}

func (c *scrape) nodeGauges(f *nodeFamilies) {
	dimensions := c.dimensions()
	for _, n := range c.sortedNodes() {
		row := c.nodeRow(f, n)
		c.send(f.lifetime, c.since(n.Created), row...)
		var sum nodeLoad
		for _, p := range c.PodsOn(n.Name) {
			sum.add(p)
		}
		amounts := [...]struct {
			family *series.Family
			amount resource.Vector
			always bool // tell the resource even if there is none of it
		}{
			{f.allocatable, n.Allocatable, true}, {f.overhead, n.Capacity.Sub(n.Allocatable), true},
			{f.podRequests, sum.requests, false},
			{f.daemonRequests, sum.daemonRequests, false}, {f.podLimits, sum.limits, false},
			{f.daemonLimits, sum.daemonLimits, false},
		}
		for _, d := range dimensions {
			there := n.Capacity[d.index] != 0 || n.Allocatable[d.index] != 0
			for _, a := range amounts {
				if amount := a.amount[d.index]; amount != 0 || a.always && there {
					c.send(a.family, series.InUnits(d.index, amount), append(row, d.kind)...)
				}
			}
		}
	}
}

// sortedNodes lists the nodes in the order of their series; see tenants.
func (c *scrape) sortedNodes() []*cluster.Node {
	class := make(map[*cluster.Node]string, len(c.Nodes))
	for _, n := range c.Nodes {
		_, managed := n.Labels.Get(cluster.PoolLabel)
		class[n] = series.Label(n.Labels, corev1.LabelArchStable) + "\x00" + series.Label(n.Labels,
			cluster.CapacityTypeLabel) +
			"\x00" +
			series.Label(n.Labels, cluster.InstanceTypeLabel) + "\x00" + series.Truth(managed) + "\x00" + n.Name
	}
	return slices.SortedFunc(slices.Values(c.Nodes), func(a, b *cluster.Node) int {
		return strings.Compare(class[a], class[b])
	})
}

// nodeRow is the labels that all series of a node share, with room for one more.
func (c *scrape) nodeRow(f *nodeFamilies, n *cluster.Node) []*dto.LabelPair {
	row := make([]*dto.LabelPair, 0, len(f.keys)+4)
	for i, key := range f.keys {
		row = append(row, c.Shared(f.names[i], series.Label(n.Labels, key)))
	}
	_, managed := n.Labels.Get(cluster.PoolLabel)
	return append(row, series.Pair("node_name", n.Name), c.Shared("phase", ""),
		c.Shared("managed", series.Truth(managed)))
}
