package sim

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// someWait reports whether, as far as the replica knows, pods wait for a place: what was made for a move may be theirs
// now, so that the move does not have to pay for it.
func (r *replica) someWait() bool {
	for _, obj := range r.cache[pods] {
		if p := obj.(*corev1.Pod); p.Spec.NodeName == "" && !isDone(p) && p.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

// podsOf are the pods of a node that have not ended, as the replica knows them.
func (r *replica) podsOf(node string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, key := range slices.Sorted(maps.Keys(r.cache[pods])) {
		if p := r.cache[pods][key].(*corev1.Pod); node != "" && p.Spec.NodeName == node && !isDone(p) {
			out = append(out, p)
		}
	}
	return out
}

// leavers are the pods that have to find another place when a node goes. Nobody makes another of a pod without an
// owner.
func (r *replica) leavers(node string) []*corev1.Pod {
	return slices.DeleteFunc(r.podsOf(node), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil || r.stays(p) || ofDaemonSet(p) || metav1.GetControllerOfNoCopy(p) == nil
	})
}

// roomElsewhere reports whether the pods of a node have places on others, as far as the replica knows: kube-scheduler
// would put them there as they are now, all of them together, and without the room of pods that are nominated to these
// nodes. Nodes that are kept for the node's own move, for one that the same plan lets go, or for one that is over, are
// opened when it goes; so are nodes that the same plan opens.
func (r *replica) roomElsewhere(node, move string) bool {
	disrupted := v1.DisruptedNoScheduleTaint()
	var others []*seen
	at := make(map[string]*seen)
	for _, name := range slices.Sorted(maps.Keys(r.cache[nodes])) {
		n := r.cache[nodes][name].(*corev1.Node)
		closed := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&disrupted) })
		if n.Name == node || closed || n.DeletionTimestamp != nil || !r.isUp(n) {
			continue
		}
		kept := n.Annotations[cluster.KeptForAnnotation]
		if kept != "" && (kept == move || r.opens[name] || r.departs[kept] || !r.underWay(kept)) {
			n = n.DeepCopy()
			n.Spec.Unschedulable = false
		}
		v := &seen{node: n, room: roomOf(n.Status.Allocatable), kept: map[types.UID]keptRoom{}}
		for _, p := range r.podsOf(n.Name) {
			v.used = v.used.add(sizeOf(p))
		}
		others, at[n.Name] = append(others, v), v
	}
	for _, obj := range r.cache[pods] {
		p := obj.(*corev1.Pod)
		waits := p.Spec.NodeName == "" && !isDone(p) && p.DeletionTimestamp == nil
		if v := at[p.Status.NominatedNodeName]; v != nil && waits {
			v.kept[p.UID] = keptRoom{sizeOf(p), priorityOf(p)}
		}
	}
	leave := r.leavers(node)
	// Large ones fit in fewer places.
	slices.SortStableFunc(leave, func(a, b *corev1.Pod) int { return cmp.Compare(sizeOf(b).cpu, sizeOf(a).cpu) })
	steps := 20000
	return fit(leave, others, &steps) || steps < 0
}

// underWay reports whether, as far as the replica knows, a node goes in the move.
func (r *replica) underWay(move string) bool {
	for _, obj := range r.cache[claims] {
		if obj.(*v1.NodeClaim).Annotations[cluster.MoveAnnotation] == move {
			return true
		}
	}
	return false
}

// fit reports whether all pods find places on the nodes. It gives up after so many steps: then there may be places that
// it has not seen.
func fit(leave []*corev1.Pod, others []*seen, steps *int) bool {
	if *steps--; *steps < 0 || len(leave) == 0 {
		return *steps >= 0
	}
	for _, v := range others {
		if !v.takes(leave[0]) {
			continue
		}
		before := v.used
		v.used = before.add(sizeOf(leave[0]))
		if fit(leave[1:], others, steps) {
			return true
		}
		v.used = before
	}
	return false
}

// isUp reports whether a node is initialized. That it has written so itself a replica knows before it sees it. A node
// that nobody marks, and that nobody knows to be a claim's yet, takes pods as soon as its kubelet says so. So does a
// machine that joins once more under another name, after its claim was initialized.
func (r *replica) isUp(n *corev1.Node) bool {
	isReady := func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	unmarked := n.Labels[v1.NodeRegisteredLabelKey] == "" || r.joinedAgain(n)
	if unmarked && len(n.Spec.Taints) == 0 && slices.ContainsFunc(n.Status.Conditions, isReady) {
		return true
	}
	initialized := func(n *corev1.Node) bool { return n.Labels[v1.NodeInitializedLabelKey] == "true" }
	now, there := find[*corev1.Node](r.sim.store, nodes, n.Name)
	return initialized(n) || there && now.UID == n.UID && initialized(now)
}

// joinedAgain reports whether, as far as the replica knows, the node is of a claim that was initialized before.
func (r *replica) joinedAgain(n *corev1.Node) bool {
	for _, obj := range r.cache[claims] {
		c := obj.(*v1.NodeClaim)
		if c.Status.NodeName == n.Name && meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionTypeInitialized) {
			return true
		}
	}
	return false
}
