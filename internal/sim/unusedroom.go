package sim

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// losesRoom reports whether the machine's node had room for a pod of the owner as far as its maker could know, and has
// none any more: an agent has shrunk it, or DaemonSets have put pods on it that nobody could reckon with.
func (v *unusedJudge) losesRoom(owner types.UID, m *machine) bool {
	node, ok := find[*corev1.Node](v.sim.store, nodes, m.node)
	spec, claim := v.about(owner).pod, types.UID(m.instance.ClaimUID)
	switch {
	case spec == nil:
		return false
	case !m.joined:
		return v.isToLoseRoom(&corev1.Pod{Spec: *spec}, m)
	case !ok:
		return false
	}
	was := sizeOf(&corev1.Pod{Spec: *spec})
	is, squeezed := was, v.daemonsFill(claim, was)
	for _, p := range v.sim.podsOn(m.node) {
		if isDone(p) || !ofDaemonSet(p) {
			continue
		}
		if is = is.add(sizeOf(p)); !squeezed && v.knewDaemon(claim, p) {
			was = was.add(sizeOf(p))
		}
	}
	return was.within(roomOf(m.instance.Allocatable)) && !is.within(roomOf(node.Status.Allocatable))
}

// isToLoseRoom is losesRoom for a machine that has not joined yet: there is room for the pod beside the DaemonSets that
// its maker knew of, but not beside those that have come since and are let in before the pod, because they are of
// higher priority.
func (v *unusedJudge) isToLoseRoom(pod *corev1.Pod, m *machine) bool {
	claim := v.sim.ownerOf(m)
	if claim == nil {
		return false
	}
	taints := make([]corev1.Taint, len(claim.Spec.Taints))
	for i, t := range claim.Spec.Taints {
		taints[i] = corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
	}
	room, known := roomOf(m.instance.Allocatable), amount{}
	var later []*corev1.Pod
	for _, ds := range v.sim.daemons {
		switch p := daemonPod(ds, m.node); {
		case !tolerates(p, taints):
		case v.knewDaemon(claim.UID, p):
			known = known.add(sizeOf(p))
		case priorityOf(p) > priorityOf(pod):
			later = append(later, p)
		}
	}
	slices.SortStableFunc(later, func(a, b *corev1.Pod) int { return int(priorityOf(b) - priorityOf(a)) })
	taken := known
	for _, p := range later {
		if more := taken.add(sizeOf(p)); more.within(room) {
			taken = more
		}
	}
	size := sizeOf(pod)
	return known.add(size).within(room) && !taken.add(size).within(room)
}

// knewDaemon reports whether whoever made the claim knew of the pod's DaemonSet.
func (v *unusedJudge) knewDaemon(claim types.UID, p *corev1.Pod) bool {
	return slices.ContainsFunc(v.daemons[claim], func(ds *appsv1.DaemonSet) bool {
		return metav1.IsControlledBy(p, ds) && !ds.CreationTimestamp.Add(planFor).After(v.madeAt[claim])
	})
}

// daemonsFill reports whether the DaemonSets that there were when the claim was made leave a pod of the size no room on
// any machine: then it gets a node without them, and they may fill it.
func (v *unusedJudge) daemonsFill(claim types.UID, size amount) bool {
	for _, ds := range v.daemons[claim] {
		size = size.add(sizeOf(&corev1.Pod{Spec: ds.Spec.Template.Spec}))
	}
	return !slices.ContainsFunc(v.sim.cloud.types, func(t *cloudprovider.InstanceType) bool {
		return size.within(roomOf(t.Allocatable()))
	})
}
