package oracle

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// mostTries bounds how long a failing cluster is made smaller.
const mostTries = 3000

// shrink takes away from a cluster what it can do without while it still fails.
func shrink(w *world, fails func(*world) bool) *world {
	tries := 0
	for again := true; again; {
		again = false
		for step := range steps() {
			for i := 0; tries < mostTries; {
				smaller, more := steps()[step](w, i)
				if !more {
					break
				}
				tries++
				if smaller == nil || !fails(prune(smaller)) {
					i++
					continue
				}
				w, again = prune(smaller), true
			}
		}
	}
	return w
}

// step makes the i-th smaller version of a world: nil if that is no smaller; more is false if there is no i-th.
type step func(w *world, i int) (smaller *world, more bool)

func steps() []step {
	out := []step{
		func(w *world, i int) (*world, bool) {
			return less(w, i, w.Pools, func(c *world, rest []*nodePool) { c.Pools = rest })
		},
		withoutNode, withoutComing,
		withoutPod, withoutDaemonSet,
		func(w *world, i int) (*world, bool) {
			return less(w, i, w.Types, func(c *world, rest []*instanceType) { c.Types = rest })
		},
		func(w *world, i int) (*world, bool) {
			return less(w, i, w.Volumes, func(c *world, rest []*corev1.PersistentVolume) { c.Volumes = rest })
		},
		func(w *world, i int) (*world, bool) {
			return less(w, i, w.CSINodes, func(c *world, rest []*storagev1.CSINode) { c.CSINodes = rest })
		},
	}
	for _, cut := range podCuts() {
		out = append(out, func(w *world, i int) (*world, bool) { return cutKind(w, i, cut) })
	}
	for _, cut := range podCuts() {
		out = append(out, func(w *world, i int) (*world, bool) { return cutPod(w, i, cut) })
	}
	for _, cut := range nodeCuts() {
		out = append(out, func(w *world, i int) (*world, bool) {
			if i >= len(w.Nodes) {
				return nil, false
			}
			n, c := w.Nodes[i].DeepCopy(), w.clone()
			if !cut(n) {
				return nil, true
			}
			c.Nodes[i] = n
			return c, true
		})
	}
	return append(out, poolSteps()...)
}

// less leaves the i-th of a list out.
func less[T any](w *world, i int, list []T, set func(*world, []T)) (*world, bool) {
	if i >= len(list) {
		return nil, false
	}
	c := w.clone()
	set(c, slices.Delete(slices.Clone(list), i, i+1))
	return c, true
}

func withoutNode(w *world, i int) (*world, bool) {
	c, more := less(w, i, w.Nodes, func(c *world, rest []*corev1.Node) { c.Nodes = rest })
	if !more {
		return nil, false
	}
	name := w.Nodes[i].Name
	c.Pods = slices.DeleteFunc(c.Pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == name })
	c.CSINodes = slices.DeleteFunc(c.CSINodes, func(n *storagev1.CSINode) bool { return n.Name == name })
	c.NodeClaims = slices.DeleteFunc(c.NodeClaims, func(n *nodeClaim) bool { return n.Name == name })
	return c, true
}

// withoutPod leaves daemons where they are: a node that lacks one has room for nobody else in its place.
func withoutPod(w *world, i int) (*world, bool) {
	if i < len(w.Pods) && isDaemon(w.Pods[i]) {
		return nil, true
	}
	return less(w, i, w.Pods, func(c *world, rest []*corev1.Pod) { c.Pods = rest })
}

func withoutDaemonSet(w *world, i int) (*world, bool) {
	c, more := less(w, i, w.DaemonSets, func(c *world, rest []*appsv1.DaemonSet) { c.DaemonSets = rest })
	if more {
		c.Pods = slices.DeleteFunc(c.Pods, func(p *corev1.Pod) bool { return owner(p) == string(w.DaemonSets[i].UID) })
	}
	return c, more
}

// withoutComing takes away a node that is on its way.
func withoutComing(w *world, i int) (*world, bool) {
	c, more := less(w, i, w.Coming, func(c *world, rest []*corev1.Node) { c.Coming = rest })
	if !more {
		return nil, false
	}
	c.NodeClaims = slices.DeleteFunc(c.NodeClaims, func(n *nodeClaim) bool { return n.Name == w.Coming[i].Name })
	return c, true
}

func owner(pod *corev1.Pod) string {
	if len(pod.OwnerReferences) == 0 {
		return string(pod.UID)
	}
	return string(pod.OwnerReferences[0].UID)
}

// cutKind takes something from the i-th pod and all that have the same owner.
func cutKind(w *world, i int, cut func(*corev1.Pod) bool) (*world, bool) {
	if i >= len(w.Pods) {
		return nil, false
	}
	if isDaemon(w.Pods[i]) {
		return nil, true
	}
	c, changed := w.clone(), false
	for j, p := range w.Pods {
		if owner(p) == owner(w.Pods[i]) {
			p = p.DeepCopy()
			changed = cut(p) || changed
			c.Pods[j] = p
		}
	}
	if !changed {
		return nil, true
	}
	return c, true
}

func cutPod(w *world, i int, cut func(*corev1.Pod) bool) (*world, bool) {
	if i >= len(w.Pods) {
		return nil, false
	}
	p, c := w.Pods[i].DeepCopy(), w.clone()
	if isDaemon(p) || !cut(p) {
		return nil, true
	}
	c.Pods[i] = p
	return c, true
}

// prune drops namespaces, claims, volumes and classes that nobody refers to.
func prune(w *world) *world {
	c := w.clone()
	used := make(map[string]bool)
	for _, p := range c.Pods {
		used["namespace "+p.Namespace] = true
		for i := range p.Spec.Volumes {
			used[p.Namespace+"/"+claimName(p, &p.Spec.Volumes[i])] = true
		}
	}
	c.Namespaces = slices.DeleteFunc(c.Namespaces, func(n *corev1.Namespace) bool { return !used["namespace "+n.Name] })
	c.VolumeClaims = slices.DeleteFunc(c.VolumeClaims, func(v *corev1.PersistentVolumeClaim) bool {
		return !used[v.Namespace+"/"+v.Name]
	})
	for _, v := range c.VolumeClaims {
		used["volume "+v.Spec.VolumeName] = true
		used["class "+*v.Spec.StorageClassName] = true
	}
	c.Volumes = slices.DeleteFunc(c.Volumes, func(v *corev1.PersistentVolume) bool {
		return !used["volume "+v.Name] && (v.Spec.ClaimRef != nil || !used["class "+v.Spec.StorageClassName])
	})
	c.StorageClasses = slices.DeleteFunc(c.StorageClasses, func(v *storagev1.StorageClass) bool {
		return !used["class "+v.Name]
	})
	return c
}
