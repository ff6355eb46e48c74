package oracle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// isDaemon tells whether a daemonset made the pod.
func isDaemon(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" })
}

// settled is the world as Tenon plans for it: nodes that leave are gone and their pods wait for a place.
func (w *world) settled() *world {
	out := w.closed()
	gone := make(map[string]bool)
	for _, n := range w.Nodes {
		gone[n.Name] = n.DeletionTimestamp != nil
	}
	out.Nodes = slices.DeleteFunc(out.Nodes, func(n *corev1.Node) bool { return gone[n.Name] })
	out.CSINodes = slices.DeleteFunc(out.CSINodes, func(n *storagev1.CSINode) bool { return gone[n.Name] })
	return out
}

// closed is the world a little earlier: nodes that leave still stand and are a domain where pods are spread, but have
// been drained and take nobody. What holds in one of the two worlds is right: which of them kube-scheduler meets is a
// matter of time.
func (w *world) closed() *world {
	out := w.clone()
	leaving := make(map[string]bool)
	for _, n := range w.Nodes {
		leaving[n.Name] = n.DeletionTimestamp != nil
	}
	out.Pods = nil
	for _, p := range w.Pods {
		if leaving[p.Spec.NodeName] {
			if isDaemon(p) {
				continue
			}
			p = p.DeepCopy()
			p.Spec.NodeName = ""
		}
		out.Pods = append(out.Pods, p)
	}
	return out
}
