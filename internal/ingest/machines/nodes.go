package machines

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// NodeEntry keeps the resource lists beside the node, to measure them again when a new resource is asked for.
type NodeEntry struct {
	Node                  *cluster.Node
	Capacity, Allocatable corev1.ResourceList
	// MostAllocatable is the most of each resource that the node has had for pods; it is allocatable unless that has
	// shrunk.
	MostAllocatable corev1.ResourceList
	// FieldAuthors is who wrote which of its fields: see keepFieldAuthors.
	FieldAuthors []metav1.ManagedFieldsEntry
}

// MostOf is what a node has had at most, given what it had before. A node that has shrunk does not show that others of
// its type are too small.
func MostOf(old *NodeEntry, uid string, now corev1.ResourceList) corev1.ResourceList {
	if old == nil || old.Node.UID != uid {
		return now
	}
	out := make(corev1.ResourceList, len(now)) // what the cache holds is not ours to change
	maps.Copy(out, now)
	shrunk := false
	for name, had := range old.MostAllocatable {
		if have, there := now[name]; !there || have.Cmp(had) < 0 {
			out[name], shrunk = had, true
		}
	}
	if !shrunk {
		return now
	}
	return out
}

// Grew reports whether a node shows more of a resource than it ever did.
func Grew(old *NodeEntry, now *NodeEntry) bool {
	if old == nil || old.Node.UID != now.Node.UID {
		return false
	}
	for name, have := range now.MostAllocatable {
		if had, known := old.MostAllocatable[name]; known && had.Sign() > 0 && have.Cmp(had) > 0 {
			return true
		}
	}
	return false
}

// Lists are the resource lists that a node shows; there may be no node.
func (e *NodeEntry) Lists() []corev1.ResourceList {
	if e == nil {
		return nil
	}
	return []corev1.ResourceList{e.Capacity, e.Allocatable}
}

// ReadNode reads what a node says of itself, but for how much it has and for what compares with before. conditions are
// those that matter.
func ReadNode(node *corev1.Node, ours bool, conditions map[string]bool) *cluster.Node {
	n := &cluster.Node{
		Name: node.Name, UID: string(node.UID), Version: node.ResourceVersion, ProviderID: node.Spec.ProviderID,
		Created: node.CreationTimestamp.Time, Deleting: decode.TimeOf(node.DeletionTimestamp),
		Finalized: slices.Contains(node.Finalizers, v1.TerminationFinalizer),
		Labels:    cluster.LabelsOf(node.Labels), Cordoned: node.Spec.Unschedulable, Ours: ours,
		DoNotDisrupt: decode.KeepsNode(node.Annotations),
		DoNotRepair:  node.Annotations[v1.DoNotRepairAnnotationKey] == "true",
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
	readConditions(n, node.Status.Conditions, conditions)
	return n
}

// NodeChange says what it means that a node looks like this now; changed is false if nothing but its version differs,
// as after a kubelet's heartbeat.
func NodeChange(old *NodeEntry, now *cluster.Node) (what change.Kind, changed bool) {
	if old == nil {
		return change.Room, true
	}
	x, y := *old.Node, *now
	x.Version, y.Version = "", ""
	if reflect.DeepEqual(&x, &y) {
		return change.None, false
	}
	for _, n := range []*cluster.Node{&x, &y} {
		n.Conditions, n.DoNotRepair = nil, false
	}
	if reflect.DeepEqual(&x, &y) {
		return change.None, true
	}
	return change.Room, true
}

// readConditions reads whether a node is ready, and how it stands with what repair looks at.
func readConditions(n *cluster.Node, list []corev1.NodeCondition, matter map[string]bool) {
	for i := range list {
		c := &list[i]
		if c.Type == corev1.NodeReady {
			n.Ready, n.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
		if matter[string(c.Type)] {
			n.Conditions = append(n.Conditions, cluster.NodeCondition{
				Type: string(c.Type), Status: string(c.Status), Since: c.LastTransitionTime.Time})
		}
	}
	slices.SortStableFunc(n.Conditions, func(x, y cluster.NodeCondition) int { return cmp.Compare(x.Type, y.Type) })
}

// ReadAuthors notes who put the taints on a node, and who cordoned it. The list of taints has one author, who wrote it
// last; so it is read when a taint is new, and remembered.
func ReadAuthors(n *cluster.Node, old *NodeEntry, node *corev1.Node) {
	var before *cluster.Node
	if old != nil && old.Node.UID == n.UID {
		before = old.Node
	}
	switch {
	case !n.Cordoned:
	case before != nil && before.Cordoned:
		n.CordonedBy = before.CordonedBy
	default:
		n.CordonedBy = decode.AuthorOf(node.ManagedFields, decode.WroteCordon)
	}
	for _, t := range n.Taints {
		who := ""
		if before != nil && slices.Contains(before.Taints, t) {
			who = before.TaintedBy[t.String()]
		} else {
			who = decode.AuthorOf(node.ManagedFields, decode.WroteTaints)
		}
		if who == "" {
			continue
		}
		if n.TaintedBy == nil {
			n.TaintedBy = make(map[string]string)
		}
		n.TaintedBy[t.String()] = who
	}
}

// Opens reports whether a node lets in pods that it kept out before: kube-scheduler then tries all that wait.
func Opens(old *NodeEntry, now *cluster.Node) bool {
	if old == nil || old.Node.Cordoned && !now.Cordoned || old.Node.KeptFor != "" && now.KeptFor == "" {
		return true
	}
	for _, t := range old.Node.Taints {
		if t.Effect != cluster.PreferNoSchedule && !now.HasTaint(t.Key, t.Effect) {
			return true
		}
	}
	return false
}
