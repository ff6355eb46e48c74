package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// makeClaim is somebody who wants a node of their own, without a pool.
func (s *Sim) makeClaim() {
	s.byHand++
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("by-hand-%d", s.byHand)}}
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: classGroup, Kind: classKind, Name: className}
	claim.Spec.ExpireAfter = v1.NeverDuration()
	claim.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"small", "medium"}}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("1")}
	s.trace.note("someone: makes NodeClaim %s", claim.Name)
	s.store.create(claim)
}

// fenceNode is somebody who puts the program's own taint on a node; they take it off again when the faults are over.
func (s *Sim) fenceNode() {
	node, ok := s.any(nodes).(*corev1.Node)
	disrupted := v1.DisruptedNoScheduleTaint()
	if !ok || node.DeletionTimestamp != nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&disrupted)
	}) {
		return
	}
	s.trace.note("someone: fences %s", node.Name)
	s.fenced = append(s.fenced, node.Name)
	edit(s.store, nodes, node.Name, node.UID, func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, disrupted) })
}

func (s *Sim) unfenceByHand() {
	disrupted := v1.DisruptedNoScheduleTaint()
	for _, name := range s.fenced {
		if claim := s.claimOf(name); claim != nil && claim.DeletionTimestamp != nil {
			continue
		}
		edit(s.store, nodes, name, "", func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
				return t.MatchTaint(&disrupted)
			})
		})
	}
}

// sleepKubelet is a kubelet that falls silent for a while, on a machine that runs on.
func (s *Sim) sleepKubelet() {
	if len(s.cloud.machines) == 0 {
		return
	}
	m := pick(s.clock, s.cloud.machines)
	if !m.awake || m.instance.Terminating {
		return
	}
	s.trace.note("fate: the kubelet of %s falls silent", m.node)
	m.awake, m.asleep = false, true
	s.clock.after(40*time.Second, func() {
		if m.asleep && !m.gone {
			s.setReady(m.node, corev1.ConditionUnknown)
		}
	})
	s.clock.after(s.clock.between(10*time.Second, 5*time.Minute), func() { s.wakeKubelet(m) })
}

// wakeKubelet wakes a silent kubelet.
func (s *Sim) wakeKubelet(m *machine) {
	if !m.asleep || m.gone || m.instance.Terminating {
		return
	}
	s.trace.note("fate: the kubelet of %s is back", m.node)
	m.awake, m.asleep = true, false
	s.setReady(m.node, corev1.ConditionTrue)
	for _, pod := range s.podsOn(m.node) {
		s.tend(pod)
	}
}
