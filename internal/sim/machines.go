package sim

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// boot lets a machine come up and join the cluster, unless its kubelet never comes.
func (s *Sim) boot(m *machine) {
	if m.never {
		return
	}
	s.clock.after(s.clock.between(2*time.Second, 45*time.Second), func() {
		if m.gone || m.instance.Terminating {
			return
		}
		m.joined = true
		s.join(m)
		s.clock.after(s.clock.between(time.Second, 15*time.Second), func() { s.wake(m) })
	})
}

func (s *Sim) join(m *machine) {
	labels := maps.Clone(m.instance.Labels)
	labels[corev1.LabelHostname] = m.node
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.node, Labels: labels},
		Spec: corev1.NodeSpec{ProviderID: m.instance.ProviderID, Taints: []corev1.Taint{
			{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}, v1.UnregisteredNoExecuteTaint(),
		}},
		Status: corev1.NodeStatus{
			Capacity: m.instance.Capacity, Allocatable: m.instance.Allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
				LastTransitionTime: metav1.NewTime(s.clock.seconds())}},
		},
	}
	if s.strikes("bare", s.rates.bare) {
		node.Spec.Taints = node.Spec.Taints[:1] // its image knows nothing of the contract
	}
	s.trace.note("kubelet: %s joins as %s", m.instance.ProviderID, m.node)
	s.store.create(node)
	s.seeJoining(m.node)
}

// wake is when the kubelet is ready for pods.
func (s *Sim) wake(m *machine) {
	if m.gone || m.instance.Terminating {
		return
	}
	m.awake = true
	s.setReady(m.node, corev1.ConditionTrue)
	for _, pod := range s.podsOn(m.node) {
		s.tend(pod)
	}
	s.clock.after(s.clock.between(time.Second, 20*time.Second), func() { s.dropStartupTaints(m) })
}

// dropStartupTaints is the daemon that makes a node fit for its pods; it works whenever the node has been registered.
func (s *Sim) dropStartupTaints(m *machine) {
	node, ok := find[*corev1.Node](s.store, nodes, m.node)
	if !ok || m.gone {
		return
	}
	starting := func(t corev1.Taint) bool { return t.Key == startupTaint }
	if slices.ContainsFunc(node.Spec.Taints, starting) {
		edit(s.store, nodes, m.node, "", func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, starting)
		})
		return
	}
	if node.Labels[v1.NodeRegisteredLabelKey] == "" {
		s.clock.after(3*time.Second, func() { s.dropStartupTaints(m) })
	}
}

// setReady is what the kubelet and the node lifecycle controller say of a node's health.
func (s *Sim) setReady(name string, status corev1.ConditionStatus) {
	edit(s.store, nodes, name, "", func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.NewTime(s.clock.seconds())
			}
		}
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
		})
		if status == corev1.ConditionUnknown {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable,
				Effect: corev1.TaintEffectNoSchedule},
				corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
		}
	})
}

// machineGone is what Kubernetes does about a node whose machine is no more: it is marked, its pods are told to go, and
// on some clouds the Node is deleted.
func (s *Sim) machineGone(m *machine) {
	s.clock.after(s.clock.between(10*time.Second, 50*time.Second), func() {
		if s.store.get(nodes, m.node) == nil {
			return
		}
		s.setReady(m.node, corev1.ConditionUnknown)
		s.clock.after(s.clock.between(30*time.Second, 5*time.Minute), func() {
			if s.store.get(nodes, m.node) == nil {
				return
			}
			for _, pod := range s.podsOn(m.node) {
				s.store.endPod(pod, nil)
			}
		})
		// A node that was never registered is nobody's but the cloud's.
		node, ok := find[*corev1.Node](s.store, nodes, m.node)
		if ok && (s.deletesNodes || node.Labels[v1.NodeRegisteredLabelKey] == "") {
			s.trace.note("cloud controller: deletes node %s", m.node)
			s.store.erase(node)
		}
	})
}

func (s *Sim) podsOn(node string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range list[*corev1.Pod](s.store, pods) {
		if pod.Spec.NodeName == node {
			out = append(out, pod)
		}
	}
	return out
}

// machineOf is the machine behind a node, or nil.
func (s *Sim) machineOf(node string) *machine {
	for _, m := range s.cloud.machines {
		if m.joined && m.node == node {
			return m
		}
	}
	return nil
}

// tend is what a kubelet does about a pod of its node: it runs it, and ends it when it is told to.
func (s *Sim) tend(pod *corev1.Pod) {
	m := s.machineOf(pod.Spec.NodeName)
	if m == nil || !m.awake {
		return
	}
	switch key, uid := keyOf(pod), pod.UID; {
	case pod.DeletionTimestamp != nil:
		if s.strikes("stuckPod", s.rates.stuckPod) {
			return
		}
		grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		s.clock.after(s.clock.between(0, grace), func() {
			if now, ok := find[*corev1.Pod](s.store, pods, key); ok && now.UID == uid && m.awake {
				s.finish(now)
			}
		})
	case pod.Status.Phase == corev1.PodPending && s.tooMuch(pod):
		edit(s.store, pods, key, uid, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "OutOfcpu"
		})
	case pod.Status.Phase == corev1.PodPending:
		s.clock.after(s.clock.between(300*time.Millisecond, 4*time.Second), func() {
			if now, ok := find[*corev1.Pod](s.store, pods, key); ok && now.UID == uid && m.awake &&
				now.Status.Phase == corev1.PodPending {
				s.run(key)
			}
		})
	}
}

// tooMuch reports whether a pod does not fit on its node beside those that run there.
func (s *Sim) tooMuch(pod *corev1.Pod) bool {
	node, ok := find[*corev1.Node](s.store, nodes, pod.Spec.NodeName)
	used := sizeOf(pod)
	for _, p := range s.podsOn(pod.Spec.NodeName) {
		if p.UID != pod.UID && p.Status.Phase == corev1.PodRunning {
			used = used.add(sizeOf(p))
		}
	}
	return ok && !used.within(roomOf(node.Status.Allocatable))
}

func (s *Sim) run(key string) {
	edit(s.store, pods, key, "", func(p *corev1.Pod) {
		at := metav1.NewTime(s.clock.seconds())
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &at
		setPodCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: at})
	})
}
