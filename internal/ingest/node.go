package ingest

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// nodeEntry keeps the resource lists beside the node, to measure them again when a new resource is asked for.
type nodeEntry struct {
	node                  *cluster.Node
	capacity, allocatable corev1.ResourceList
	// mostAllocatable is the most of each resource that the node has had for pods; it is allocatable unless that has
	// shrunk.
	mostAllocatable corev1.ResourceList
	// fieldAuthors is who wrote which of its fields: see keepFieldAuthors.
	fieldAuthors []metav1.ManagedFieldsEntry
}

// mostOf is what a node has had at most, given what it had before. A node that has shrunk does not show that others of
// its type are too small.
func mostOf(old *nodeEntry, uid string, now corev1.ResourceList) corev1.ResourceList {
	if old == nil || old.node.UID != uid {
		return now
	}
	out := make(corev1.ResourceList, len(now)) // what the cache holds is not ours to change
	maps.Copy(out, now)
	shrunk := false
	for name, had := range old.mostAllocatable {
		if have, there := now[name]; !there || have.Cmp(had) < 0 {
			out[name], shrunk = had, true
		}
	}
	if !shrunk {
		return now
	}
	return out
}

// grew reports whether a node shows more of a resource than it ever did.
func grew(old *nodeEntry, now *nodeEntry) bool {
	if old == nil || old.node.UID != now.node.UID {
		return false
	}
	for name, have := range now.mostAllocatable {
		if had, known := old.mostAllocatable[name]; known && had.Sign() > 0 && have.Cmp(had) > 0 {
			return true
		}
	}
	return false
}

// lists are the resource lists that a node shows; there may be no node.
func (e *nodeEntry) lists() []corev1.ResourceList {
	if e == nil {
		return nil
	}
	return []corev1.ResourceList{e.capacity, e.allocatable}
}

// SetNode takes in a node as the API server shows it.
func (b *Book) SetNode(node *corev1.Node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.readNode(node)
	n.Allocatable = b.allocatableOf(n, node.Status.Allocatable)
	b.readConditions(n, node.Status.Conditions)
	old := b.nodes[n.Name]
	readAuthors(n, old, node)
	if old != nil { // by our own clock: a machine's may be wrong
		n.ReadySince = old.node.ReadySince
		if old.node.Ready != n.Ready {
			n.ReadySince = b.now()
		}
	} else if n.ReadySince.After(b.now()) {
		n.ReadySince = b.now()
	}
	if opensNode(old, n) {
		b.noteActivity(true)
	}
	b.specs.Dims.Offer(old.lists(), []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable})
	b.nodes[n.Name] = &nodeEntry{node: n, capacity: node.Status.Capacity, allocatable: node.Status.Allocatable,
		mostAllocatable: mostOf(old, n.UID, node.Status.Allocatable), fieldAuthors: node.ManagedFields}
	settled := b.settleWrites(command.KindNode, n.Name)
	what, changed := nodeChange(old, n)
	if changed {
		b.indexNode(old, n)
		what |= b.rereadNominees(n.Name) | b.observeCapacity(n)
		if grew(old, b.nodes[n.Name]) {
			what |= b.reobserveCapacity(n)
		}
	}
	if changed || settled {
		b.noteAndWake(what)
	}
	if old != nil && old.node.Ready && !n.Ready && n.Ours {
		b.requestInventory() // its machine may be gone
	}
}

// readNode reads what a node says of itself, but for its conditions and for what compares with before. The lock is
// held.
func (b *Book) readNode(node *corev1.Node) *cluster.Node {
	n := &cluster.Node{
		Name: node.Name, UID: string(node.UID), Version: node.ResourceVersion, ProviderID: node.Spec.ProviderID,
		Created: node.CreationTimestamp.Time, Deleting: decode.TimeOf(node.DeletionTimestamp),
		Finalized: slices.Contains(node.Finalizers, v1.TerminationFinalizer),
		Labels:    cluster.LabelsOf(node.Labels), Cordoned: node.Spec.Unschedulable,
		DoNotDisrupt: decode.KeepsNode(node.Annotations),
		DoNotRepair:  node.Annotations[v1.DoNotRepairAnnotationKey] == "true",
		Capacity:     b.specs.Dims.Measure(node.Status.Capacity),
	}
	for _, t := range node.Spec.Taints {
		n.Taints = append(n.Taints, cluster.Taint{Key: t.Key, Value: t.Value, Effect: cluster.Effect(t.Effect)})
	}
	if n.KeptFor = node.Annotations[cluster.KeptForAnnotation]; n.KeptFor != "" && n.Cordoned {
		n.Cordoned = false // we did it, and so do not count what Kubernetes adds to it
		n.Taints = slices.DeleteFunc(n.Taints, func(t cluster.Taint) bool {
			return t.Key == corev1.TaintNodeUnschedulable
		})
	}
	for kind := range b.nodeClassKinds {
		if _, ok := node.Labels[v1.NodeClassLabelKey(kind.Group, kind.Kind)]; ok {
			n.Ours = true
		}
	}
	return n
}

// readConditions reads whether a node is ready, and how it stands with what repair looks at. The lock is held.
func (b *machineState) readConditions(n *cluster.Node, list []corev1.NodeCondition) {
	for i := range list {
		c := &list[i]
		if c.Type == corev1.NodeReady {
			n.Ready, n.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
		if b.healthConditions[string(c.Type)] {
			n.Conditions = append(n.Conditions, cluster.NodeCondition{
				Type: string(c.Type), Status: string(c.Status), Since: c.LastTransitionTime.Time})
		}
	}
	slices.SortStableFunc(n.Conditions, func(x, y cluster.NodeCondition) int { return cmp.Compare(x.Type, y.Type) })
}

// WatchHealth names the conditions of nodes that somebody will ask for. It comes before anything is taken in.
func (b *Book) WatchHealth(types ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range types {
		b.healthConditions[t] = true
	}
}

// indexNode keeps the index of nodes by the machine that they run on. The lock is held.
func (b *machineState) indexNode(old *nodeEntry, n *cluster.Node) {
	if old != nil && old.node.ProviderID != n.ProviderID && b.nodeBy[old.node.ProviderID] == n.Name {
		delete(b.nodeBy, old.node.ProviderID)
	}
	if n.ProviderID != "" {
		b.nodeBy[n.ProviderID] = n.Name
	}
}

// DeleteNode takes in that a node is gone.
func (b *Book) DeleteNode(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.nodes[name]; e != nil {
		if b.nodeBy[e.node.ProviderID] == name {
			delete(b.nodeBy, e.node.ProviderID)
		}
		if e.node.Ours {
			b.requestInventory() // did its machine go, too?
		}
	}
	b.specs.Dims.Offer(b.nodes[name].lists(), nil)
	delete(b.nodes, name)
	delete(b.podEvents, name)
	b.settleWrites(command.KindNode, name)
	b.noteAndWake(changesRoom | b.rereadNominees(name))
}

// nodeChange says what it means that a node looks like this now; changed is false if nothing but its version differs,
// as after a kubelet's heartbeat.
func nodeChange(old *nodeEntry, now *cluster.Node) (what change, changed bool) {
	if old == nil {
		return changesRoom, true
	}
	x, y := *old.node, *now
	x.Version, y.Version = "", ""
	if reflect.DeepEqual(&x, &y) {
		return noChange, false
	}
	for _, n := range []*cluster.Node{&x, &y} {
		n.Conditions, n.DoNotRepair = nil, false
	}
	if reflect.DeepEqual(&x, &y) {
		return noChange, true
	}
	return changesRoom, true
}
