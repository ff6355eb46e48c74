package ingest

import (
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// nodeEntry keeps the resource lists beside the node, to measure them again when a new resource is asked for.
type nodeEntry struct {
	node                  *cluster.Node
	capacity, allocatable corev1.ResourceList
}

// SetNode takes in a node as the API server shows it.
func (b *Book) SetNode(node *corev1.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := &cluster.Node{
		Name: node.Name, UID: string(node.UID), Version: node.ResourceVersion, ProviderID: node.Spec.ProviderID,
		Created: node.CreationTimestamp.Time, Deleting: when(node.DeletionTimestamp),
		Finalized: slices.Contains(node.Finalizers, v1.TerminationFinalizer),
		Labels:    cluster.LabelsOf(node.Labels), Cordoned: node.Spec.Unschedulable,
		DoNotDisrupt: node.Annotations[v1.DoNotDisruptAnnotationKey] == "true",
		Capacity:     b.measure(node.Status.Capacity),
	}
	for _, t := range node.Spec.Taints {
		n.Taints = append(n.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: cluster.Effect(t.Effect)})
	}
	for kind := range b.kinds {
		if _, ok := node.Labels[v1.NodeClassLabelKey(kind.Group, kind.Kind)]; ok {
			n.Ours = true
		}
	}
	n.Allocatable = b.allocatableOf(n, node.Status.Allocatable)
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Ready = c.Status == corev1.ConditionTrue
		}
	}
	old := b.nodes[n.Name]
	b.nodes[n.Name] = &nodeEntry{node: n, capacity: node.Status.Capacity, allocatable: node.Status.Allocatable}
	switch settled := b.settle(command.KindNode, n.Name); {
	case old == nil || !sameNode(old.node, n):
		b.touch(room)
	case settled:
		b.touch(nothing)
	}
}

// DeleteNode takes in that a node is gone.
func (b *Book) DeleteNode(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.nodes, name)
	delete(b.podEvents, name)
	b.settle(command.KindNode, name)
	b.touch(room)
}

// sameNode reports whether nothing but the version differs, as after a kubelet's heartbeat.
func sameNode(a, b *cluster.Node) bool {
	x, y := *a, *b
	x.Version, y.Version = "", ""
	return reflect.DeepEqual(x, y)
}

func when(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
