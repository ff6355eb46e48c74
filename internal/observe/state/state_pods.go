package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// podFamilies are gauges about each pod. All but the first are about pods that have not started, of which there are few
// for long.
type podFamilies struct {
	state, unbound, unstarted, provisioningUnbound, provisioningUnstarted, undecided *series.Family
}

func newPodFamilies() podFamilies {
	waiting := func(name, help string, labels ...string) *series.Family {
		return series.NewFamily("karpenter_pods_"+name, help, append([]string{"name", "namespace"}, labels...)...)
	}
	return podFamilies{
		state: series.NewFamily("karpenter_pods_state", "1 for each pod; its labels say how it is.", "name",
			"namespace",
			"owner", "phase", "ready",
			"node", "scheduled", "nodepool", "zone", "arch", "capacity_type", "instance_type", "managed"),
		unbound: waiting("unbound_time_seconds", "For how long a pod has existed without a node.",
			"dynamic_resources"),
		unstarted: waiting("unstarted_time_seconds", "For how long a pod has existed without being ready."),
		provisioningUnbound: waiting("provisioning_unbound_time_seconds", "For how long a pod that was given a "+
			"place has not been bound to it.", "dynamic_resources"),
		provisioningUnstarted: waiting("provisioning_unstarted_time_seconds", "For how long a pod that was given a "+
			"place has not been ready."),
		undecided: waiting("provisioning_scheduling_undecided_time_seconds", "For how long a pod that "+
			"needs a place has not been planned for."),
	}
}

func (f *podFamilies) all() []*series.Family {
	return []*series.Family{f.state, f.unbound, f.unstarted, f.provisioningUnbound, f.provisioningUnstarted,
		f.undecided}
}

// hostLabels is how many labels of a pod's series are those of its node.
const hostLabels = 8

// hostSeries is a node, or the lack of one, as the series of its pods show it.
type hostSeries struct {
	labels [hostLabels]*dto.LabelPair
	// class is the labels by which series are sorted before they are by the pod's name, rank its place among the
	// others.
	class string
	rank  int
}

// podSeries is a pod and where it is.
type podSeries struct {
	pod *cluster.Pod
	*hostSeries
}

func (c *scrape) podStates(f *podFamilies) {
	owners := c.owners()
	nobody := c.Shared("owner", "")
	for _, t := range c.sortedPods() {
		p, owner := t.pod, nobody
		if o := owners[p.Owner]; o != nil {
			owner = o.of(p.Namespace)
		}
		row := append(c.buffer[:0], series.Pair("name", p.Name), c.Shared("namespace", p.Namespace), owner,
			c.Shared("phase", phase(p)), c.Shared("ready", series.Truth(p.Ready)))
		c.buffer = append(row, t.labels[:]...)
		c.send(f.state, 1, c.buffer...)
	}
}

// sortedPods lists the pods in the order of their series: the library sorts what it is given, label by label, and takes
// much longer for it than we do.
func (c *scrape) sortedPods() []podSeries {
	hosts := make(map[string]*hostSeries, len(c.Nodes)+1)
	out := make([]podSeries, 0, len(c.Pods))
	for _, p := range c.Pods {
		h := hosts[p.Node]
		if h == nil {
			h = &hostSeries{labels: c.hostRow(p.Node)}
			h.class = h.labels[4].GetValue() + "\x00" + h.labels[5].GetValue() + "\x00" + h.labels[6].GetValue() +
				"\x00" + h.labels[7].GetValue()
			hosts[p.Node] = h
		}
		out = append(out, podSeries{p, h})
	}
	ranked := slices.SortedFunc(maps.Values(hosts), func(a, b *hostSeries) int {
		return strings.Compare(a.class, b.class)
	})
	for i, h := range ranked {
		if i > 0 {
			h.rank = ranked[i-1].rank
			if h.class != ranked[i-1].class {
				h.rank++
			}
		}
	}
	slices.SortFunc(out, func(a, b podSeries) int {
		if order := cmp.Compare(a.rank, b.rank); order != 0 {
			return order
		}
		return strings.Compare(a.pod.Name, b.pod.Name)
	})
	return out
}

func (c *scrape) hostRow(name string) [hostLabels]*dto.LabelPair {
	var labels cluster.Labels
	if n := c.Node(name); n != nil {
		labels = n.Labels
	}
	pool := series.Label(labels, cluster.PoolLabel)
	return [...]*dto.LabelPair{
		series.Pair("node", name), c.Shared("scheduled", series.Truth(name != "")), c.Shared("nodepool", pool),
		c.Shared("zone", series.Label(labels, cluster.ZoneLabel)),
		c.Shared("arch", series.Label(labels, corev1.LabelArchStable)), c.Shared("capacity_type",
			series.Label(labels, cluster.CapacityTypeLabel)),
		c.Shared("instance_type", series.Label(labels, cluster.InstanceTypeLabel)),
		c.Shared("managed", series.Truth(pool != "")),
	}
}

// phase is the pod's phase or, where nobody has said, what its other fields tell of it.
func phase(p *cluster.Pod) string {
	switch {
	case p.Phase != "":
		return p.Phase
	case p.Finished:
		return string(corev1.PodSucceeded)
	case p.Ready:
		return string(corev1.PodRunning)
	}
	return string(corev1.PodPending)
}

// podOwner is what made pods, and the label that says so once it is needed.
type podOwner struct {
	kind, name string
	pair       *dto.LabelPair
}

// owners lists what makes pods, by UID.
func (c *scrape) owners() map[string]*podOwner {
	out := make(map[string]*podOwner, len(c.Owners)+len(c.Daemons))
	for uid, o := range c.Owners {
		if o.Name != "" {
			out[uid] = &podOwner{kind: o.Kind, name: o.Name}
		}
	}
	for _, d := range c.Daemons {
		out[d.UID] = &podOwner{kind: "DaemonSet", name: d.Name}
	}
	return out
}

// of is the label that names the owner by its address on the API server, as the contract writes it.
func (o *podOwner) of(namespace string) *dto.LabelPair {
	if o.pair == nil {
		version := map[string]string{"Job": "batch/v1", "ReplicationController": "v1"}[o.kind]
		if version == "" {
			version = "apps/v1"
		}
		o.pair = series.Pair("owner", "/apis/"+version+"/namespaces/"+namespace+"/"+strings.ToLower(o.kind)+"s/"+o.name)
	}
	return o.pair
}

// podTimes tells for how long pods have been waiting for what.
func (c *scrape) podTimes(f *podFamilies, s *PodStarts) {
	static := c.Shared("dynamic_resources", "false") // pods that ask for others are not planned for
	s.each(func(w startingPod) {
		name, namespace := series.Pair("name", w.pod.Name), c.Shared("namespace", w.pod.Namespace)
		c.send(f.unstarted, c.since(w.pod.Created), name, namespace)
		if !w.placed.IsZero() {
			c.send(f.provisioningUnstarted, c.since(w.placed), name, namespace)
		}
		if w.pod.Node != "" {
			return
		}
		c.send(f.unbound, c.since(w.pod.Created), name, namespace, static)
		if !w.placed.IsZero() {
			c.send(f.provisioningUnbound, c.since(w.placed), name, namespace, static)
		}
		if w.decided.IsZero() && w.pod.IsPending() {
			c.send(f.undecided, c.since(w.pod.PendingSince()), name, namespace)
		}
	})
}
