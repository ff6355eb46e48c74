// Package outcome is what a solver has come to, in words that fit every solver: which pods go where, and what each new
// node may become. It makes out the bill and checks that the answer is one: a fast solver whose pods don't fit, or
// whose rules don't hold, has won nothing.
//
// It is pure, and knows neither Tenon nor its peer.
package outcome

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/internal/workload"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// Outcome says where each pending pod goes. Pods go by their UIDs.
type Outcome struct {
	// New nodes to be launched.
	New []Node
	// Hosts are the nodes that were there, by name, with the pods that they get in addition.
	Hosts map[string][]string
	// Unplaced pods found no place.
	Unplaced []string
}

// Node is a new node: one of Types, in one of Zones, on one of Terms (capacity types).
type Node struct {
	Pool                string
	Types, Zones, Terms []string
	Pods                []string
}

// Account is what an outcome amounts to.
type Account struct {
	Nodes int
	// Cost per hour of the new nodes, each at its cheapest available offering.
	Cost float64
	// Placed pods and the thousandths of cores that they ask for; Unplaced pods.
	Placed, Unplaced int
	PlacedMilli      int64
	// Problems say why the outcome is not a valid answer; none if it is.
	Problems []string
}

// Valid reports whether the answer holds.
func (a *Account) Valid() bool { return len(a.Problems) == 0 }

// maxProblems is how many are told: the first few say it all.
const maxProblems = 10

// Audit makes out the bill and checks the answer. A solver that was cut off is not blamed for pods that it had no time
// to look at.
func Audit(w *workload.Workload, o *Outcome, cut bool) Account {
	c := &audit{
		w: w, pods: make(map[string]*corev1.Pod, len(w.Pods)), seen: make(map[string]int, len(w.Pods)),
		types: make(map[string]*cloudprovider.InstanceType, len(w.Types)), room: make(map[string]amounts, len(w.Types)),
		pools: make(map[string]*v1.NodePool, len(w.Pools)), bought: make(map[string]amounts),
		by: make(map[string][]guest),
	}
	for _, p := range w.Pods {
		c.pods[string(p.UID)] = p
	}
	for _, t := range w.Types {
		c.types[t.Name], c.room[t.Name] = t, amountsOf(t.Allocatable())
	}
	for _, p := range w.Pools {
		c.pools[p.Name] = p
	}
	c.hosts(o)
	for i := range o.New {
		c.node(&o.New[i])
	}
	c.account.Nodes = len(o.New)
	c.limits()
	c.everyPodOnce(o, cut)
	c.rules()
	return c.account
}

// audit is an audit under way.
type audit struct {
	w       *workload.Workload
	account Account
	pods    map[string]*corev1.Pod // pending ones
	types   map[string]*cloudprovider.InstanceType
	room    map[string]amounts
	pools   map[string]*v1.NodePool
	seen    map[string]int     // how often a pod was given a place
	bought  map[string]amounts // by pool
	places  []place
	by      map[string][]guest // pods that have a place, by label
}

// place is a node, there or new, with what it is for the rules between pods.
type place struct {
	host   string
	labels map[string]string
	// zoneOpen says that the node may come up in one of several zones.
	zoneOpen bool
}

// guest is a pod that has a place.
type guest struct {
	pod   *corev1.Pod
	place int
}

func (c *audit) problem(format string, args ...any) {
	if len(c.account.Problems) < maxProblems {
		c.account.Problems = append(c.account.Problems, fmt.Sprintf(format, args...))
	}
}

// hosts fills the nodes that are there.
func (c *audit) hosts(o *Outcome) {
	used := make(map[string]amounts, len(c.w.Nodes))
	index := make(map[string]int, len(c.w.Nodes))
	for _, n := range c.w.Nodes {
		index[n.Name], used[n.Name] = len(c.places), amounts{}
		c.places = append(c.places, place{host: n.Name, labels: n.Labels})
	}
	for _, p := range c.w.Running {
		used[p.Spec.NodeName].add(requestsOf(p))
		c.sit(p, index[p.Spec.NodeName])
	}
	for name, uids := range o.Hosts {
		i, known := index[name]
		if !known {
			c.problem("%d pods go to %s, which is no node", len(uids), name)
			continue
		}
		for _, p := range c.take(uids) {
			used[name].add(requestsOf(p))
			c.admit(p, i, nil)
		}
	}
	for _, n := range c.w.Nodes {
		if short := used[n.Name].beyond(amountsOf(n.Status.Allocatable)); short != "" {
			c.problem("%s has not enough %s for its pods", n.Name, short)
		}
	}
}

// node buys one new node and fills it.
func (c *audit) node(n *Node) {
	pool := c.pools[n.Pool]
	if pool == nil {
		c.problem("a node is made for the pool %q, which is none", n.Pool)
		return
	}
	kind, offering := c.cheapest(n)
	if kind == nil {
		c.problem("a node of %v in %v on %v can't be bought", n.Types, n.Zones, n.Terms)
		return
	}
	c.account.Cost += offering.Price
	if c.bought[n.Pool] == nil {
		c.bought[n.Pool] = amounts{}
	}
	c.bought[n.Pool].add(amountsOf(kind.Capacity))
	c.bought[n.Pool]["nodes"] += 1000

	p := place{host: fmt.Sprintf("new-%d", len(c.places)), labels: nodeLabels(pool, kind, offering),
		zoneOpen: len(n.Zones) != 1}
	p.labels[corev1.LabelHostname] = p.host
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn && !slices.Contains(r.Values, p.labels[r.Key]) {
			c.problem("a node of %s is %q in %s, which its pool rules out", n.Pool, p.labels[r.Key], r.Key)
		}
	}
	c.places = append(c.places, p)
	used := amounts{}
	for _, pod := range c.take(n.Pods) {
		used.add(requestsOf(pod))
		c.admit(pod, len(c.places)-1, pool.Spec.Template.Spec.Taints)
	}
	for _, name := range n.Types {
		if short := used.beyond(c.room[name]); short != "" {
			c.problem("%d pods are too much for a %s: %s", len(n.Pods), name, short)
			break
		}
	}
}

// cheapest is what the node costs least as.
func (c *audit) cheapest(n *Node) (kind *cloudprovider.InstanceType, offering *cloudprovider.Offering) {
	least := math.Inf(1)
	for _, name := range n.Types {
		t := c.types[name]
		if t == nil {
			c.problem("there is no type %q", name)
			continue
		}
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if o.Available && o.Price < least && slices.Contains(n.Zones, o.Labels[corev1.LabelTopologyZone]) &&
				slices.Contains(n.Terms, o.Labels[v1.CapacityTypeLabelKey]) {
				least, kind, offering = o.Price, t, o
			}
		}
	}
	return kind, offering
}

func nodeLabels(pool *v1.NodePool, kind *cloudprovider.InstanceType,
	offering *cloudprovider.Offering) map[string]string {
	out := map[string]string{v1.NodePoolLabelKey: pool.Name}
	for key, values := range kind.Labels {
		out[key] = values[0]
	}
	for key, value := range offering.Labels {
		out[key] = value
	}
	for key, value := range pool.Spec.Template.Labels {
		out[key] = value
	}
	return out
}

// limits checks that no pool has outgrown its own.
func (c *audit) limits() {
	for _, p := range c.w.Pools {
		for name, limit := range p.Spec.Limits {
			if have := c.bought[p.Name][name]; have > limit.MilliValue() {
				c.problem("%s has %.1f of %s; its limit is %s", p.Name, float64(have)/1000, name, limit.String())
			}
		}
	}
}

func (c *audit) everyPodOnce(o *Outcome, cut bool) {
	for _, uid := range o.Unplaced {
		c.seen[uid]++
	}
	missing := 0
	for _, p := range c.w.Pods {
		switch n := c.seen[string(p.UID)]; {
		case n > 1:
			c.problem("%s is answered for %d times", p.Name, n)
		case n == 0:
			missing++
		}
	}
	if missing > 0 && !cut {
		c.problem("%d pods are forgotten", missing)
	}
	c.account.Unplaced = len(c.w.Pods) - c.account.Placed
}
