package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

const (
	zone     = corev1.LabelTopologyZone
	hostname = corev1.LabelHostname
)

// podCounts tells where the pods of each application are.
type podCounts struct {
	w     *world
	nodes map[string]corev1.Node
	apps  map[string][]corev1.Pod
}

// countPods counts at a moment at which every pod runs, and on a node that is known: consolidation may move pods at any
// time, also between the list of pods and that of nodes.
func (w *world) countPods() *podCounts {
	w.Helper()
	c := &podCounts{w: w}
	w.eventually(c.count)
	return c
}

// count says what was on its way while it counted.
func (c *podCounts) count() string {
	c.nodes, c.apps = map[string]corev1.Node{}, map[string][]corev1.Pod{}
	pods := c.w.workers()
	for _, n := range c.w.nodes() {
		c.nodes[n.Name] = n
	}
	for _, p := range pods {
		app := p.Labels["app"]
		if tenant := p.Labels["tenant"]; tenant != "" {
			app = "tenant-" + tenant
		}
		_, known := c.nodes[p.Spec.NodeName]
		runs := known && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
		if gated := len(p.Spec.SchedulingGates) > 0; !gated && !runs {
			return fmt.Sprintf("pod %s is on its way: on node %q (known: %v), %s, deleted at %v",
				p.Name, p.Spec.NodeName, known, p.Status.Phase, p.DeletionTimestamp)
		}
		c.apps[app] = append(c.apps[app], p)
	}
	return ""
}

// by counts the pods of an application by a label of their nodes.
func (c *podCounts) by(app, key string) map[string]int {
	out := map[string]int{}
	for _, p := range c.apps[app] {
		out[c.nodes[p.Spec.NodeName].Labels[key]]++
	}
	if len(out) == 0 {
		c.w.Errorf("there are no pods of %s", app)
	}
	return out
}

// even tests that the pods of an application are in exactly n domains and nowhere more than once more than elsewhere.
func (c *podCounts) even(app, key string, n int) {
	have := c.by(app, key)
	counts := slices.Sorted(maps.Values(have))
	if len(have) != n || counts[len(counts)-1]-counts[0] > 1 {
		c.w.Errorf("%s is spread over %s as %v, want %d values with a skew of at most 1", app, key, have, n)
	}
}

// among tests that all pods of an application are on nodes with one of the values.
func (c *podCounts) among(app, key string, values ...string) {
	for value, n := range c.by(app, key) {
		if !slices.Contains(values, value) {
			c.w.Errorf("%d pods of %s are on nodes with %s=%q, want %q", n, app, key, value, values)
		}
	}
}

// near tests that each pod of one application has one of the other in its domain; apart that none has.
func (c *podCounts) near(app, other, key string, want bool) {
	others := c.by(other, key)
	for value, n := range c.by(app, key) {
		if (others[value] > 0) != want {
			c.w.Errorf("%d pods of %s and %d of %s are in %s %q", n, app, others[value], other, key, value)
		}
	}
}

// checkRules looks at the result without asking who decided it.
func (w *world) checkRules() {
	w.Helper()
	c := w.countPods()
	c.even("zoned", zone, 4)
	c.even("hosted", hostname, 4)
	c.even("mixed", v1.CapacityTypeLabelKey, 2)
	c.even("lonely", hostname, 3)
	c.even("quorum", zone, 3)
	c.even("edge", hostname, 3)
	c.even("beacon", hostname, 2)
	c.even("huddle", zone, 1)
	c.even("tenant-a", zone, 1)
	c.even("tenant-b", zone, 1)
	c.near("near", "huddle", zone, true)
	c.near("front", "cache", hostname, true)
	c.near("reader", "drum", hostname, false)
	c.near("tenant-a", "tenant-b", hostname, false)

	c.among("urgent", v1.NodePoolLabelKey, "favoured")
	c.among("golden", "example.com/tier", "gold")
	c.among("picky", kwokv1alpha1.InstanceFamilyLabelKey, "m6i")
	c.among("picky", zone, "us-west-2b", "us-west-2c", "us-west-2d")
	c.among("picky", kwokv1alpha1.InstanceCPULabelKey, "4", "8")
	c.among("picky", "example.com/tier", "")
	c.among("batch", v1.NodePoolLabelKey, "dedicated")
	c.among("trainer", kwokv1alpha1.InstanceFamilyLabelKey, "g4dn")
	c.among("ledger", zone, "us-west-2b", "us-west-2c")
	c.among("scratch", zone, "us-west-2b", "us-west-2c")
	c.among("archive", zone, "us-west-2c")
	c.among("solo", zone, "us-west-2a")
	c.among("shelf", zone, "us-west-2d")
	w.checkPools(c)
}

// checkPools tests what the pools ask of their nodes.
func (w *world) checkPools(c *podCounts) {
	favoured := int64(0)
	for _, n := range c.nodes {
		cpu := n.Status.Capacity.Cpu()
		if n.Labels[v1.NodePoolLabelKey] == "favoured" {
			favoured += cpu.Value()
		}
	}
	if favoured == 0 || favoured > 8 {
		w.Errorf("the favoured pool has %d CPUs, want some and at most its limit of 8", favoured)
	}
	for _, claim := range w.claims() {
		if claim.Labels[v1.NodePoolLabelKey] != "favoured" {
			continue
		}
		families := map[string]bool{}
		for _, r := range claim.Spec.Requirements {
			if r.Key != corev1.LabelInstanceTypeStable {
				continue
			}
			for _, name := range r.Values {
				family, _, _ := strings.Cut(name, ".")
				families[family] = true
			}
		}
		if len(families) < 2 {
			w.Errorf("claim %s is open to the families %v, fewer than minValues", claim.Name, families)
		}
	}
}
