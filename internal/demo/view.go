package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// view is what the show shows: the nodes, and how many pods there are and run.
type view struct {
	Rows          []row
	Pods, Running int
}

// row is one node, from the wish for it (a NodeClaim) to its end.
type row struct {
	Name, Type, Zone, Terms string
	Instance                string  // its id in the cloud; empty until it is known
	Price                   float64 // dollars per hour; 0 until it is known
	Pods                    int
	Status                  status
}

// status is how far a node has come.
type status string

const (
	launching status = "launching" // the cloud has been or will be asked for it
	joining   status = "joining"   // the instance runs, its node has not registered
	starting  status = "starting"  // the node has registered and is not ready for pods
	ready     status = "ready"
	leaving   status = "leaving" // tainted, drained, terminated
	gone      status = "gone"
)

// Nodes counts the nodes that are there or on their way.
func (v view) Nodes() int { return len(v.Rows) }

// Price is what they cost in dollars per hour.
func (v view) Price() float64 {
	sum := 0.0
	for _, r := range v.Rows {
		sum += r.Price
	}
	return sum
}

// look reads what the watch knows.
func (w *world) look(ctx context.Context) (view, error) {
	claims, nodes, pods := &v1.NodeClaimList{}, &corev1.NodeList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{claims, nodes, pods} {
		if err := w.watched.List(ctx, list); err != nil {
			return view{}, fmt.Errorf("looking at the lab: %w", err)
		}
	}
	price, err := w.sky.prices(ctx)
	if err != nil {
		return view{}, fmt.Errorf("asking for prices: %w", err)
	}
	return makeView(claims.Items, nodes.Items, pods.Items, price), nil
}

// makeView joins claims, their nodes and the nodes' pods to rows, ordered by name. A node is shown under the name of
// its claim, which it has from the wish for it to its end.
func makeView(claims []v1.NodeClaim, nodes []corev1.Node, pods []corev1.Pod, price func(*v1.NodeClaim,
	*corev1.Node) float64) view {
	v := view{Pods: len(pods)}
	podsOn := make(map[string]int)
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			v.Running++
		}
		podsOn[p.Spec.NodeName]++
	}
	ours := make(map[string]*corev1.Node, len(nodes))
	for i := range nodes {
		if nodes[i].Labels[v1.NodePoolLabelKey] != "" {
			ours[nodes[i].Name] = &nodes[i]
		}
	}
	for i := range claims {
		c := &claims[i]
		r := labelled(c.Name, c.Labels)
		r.Status = statusOf(c)
		node := nodeOf(c, ours)
		if node != nil {
			delete(ours, node.Name)
			r = labelled(c.Name, node.Labels)
			r.Status, r.Pods = statusOf(c), podsOn[node.Name]
			if isLeaving(node) {
				r.Status = leaving
			}
		}
		r.Price, r.Instance = price(c, node), instanceID(c.Status.ProviderID)
		v.Rows = append(v.Rows, r)
	}
	for _, node := range ours { // nodes that have lost their claim
		r := labelled(node.Name, node.Labels)
		r.Status, r.Pods, r.Price, r.Instance = leaving, podsOn[node.Name], price(nil, node),
			instanceID(node.Spec.ProviderID)
		v.Rows = append(v.Rows, r)
	}
	slices.SortFunc(v.Rows, func(a, b row) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

// nodeOf is the node of a claim, which may be seen before the claim's status tells its name: a simulated cloud gives a
// node its claim's name, others its provider's ID.
func nodeOf(c *v1.NodeClaim, ours map[string]*corev1.Node) *corev1.Node {
	if node := ours[cmp.Or(c.Status.NodeName, c.Name)]; node != nil {
		return node
	}
	for _, node := range ours {
		if c.Status.ProviderID != "" && node.Spec.ProviderID == c.Status.ProviderID {
			return node
		}
	}
	return nil
}

func labelled(name string, labels map[string]string) row {
	return row{
		Name: name, Type: labels[corev1.LabelInstanceTypeStable], Zone: labels[corev1.LabelTopologyZone],
		Terms: labels[v1.CapacityTypeLabelKey],
	}
}

func statusOf(c *v1.NodeClaim) status {
	is := func(kind string) bool { return meta.IsStatusConditionTrue(c.Status.Conditions, kind) }
	switch {
	case c.DeletionTimestamp != nil:
		return leaving
	case is(v1.ConditionTypeInitialized):
		return ready
	case is(v1.ConditionTypeRegistered):
		return starting
	case is(v1.ConditionTypeLaunched):
		return joining
	default:
		return launching
	}
}

func isLeaving(n *corev1.Node) bool {
	return n.DeletionTimestamp != nil ||
		slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1.DisruptedTaintKey })
}
