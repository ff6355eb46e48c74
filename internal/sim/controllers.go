package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func sortByName(objects []client.Object) {
	slices.SortFunc(objects, func(a, b client.Object) int { return strings.Compare(keyOf(a), keyOf(b)) })
}

// soon has a controller do its round after a moment; rounds that are asked for meanwhile are the same.
func (s *Sim) soon(asked *bool, least, most time.Duration, do func()) {
	if *asked {
		return
	}
	*asked = true
	s.clock.after(s.clock.between(least, most), func() {
		*asked = false
		do()
	})
}

// notice is how the rest of the cluster learns of a write.
func (s *Sim) notice(k kind, obj client.Object, gone bool) {
	switch k {
	case pods:
		s.noticePod(obj.(*corev1.Pod), gone)
	case nodes:
		s.scheduleSoon()
		s.tendDaemonsSoon()
		if gone {
			s.clock.after(s.clock.between(2*time.Second, 40*time.Second), func() { s.collectPods(obj.GetName()) })
		}
	case sets:
		if !gone {
			s.judge.unused.wants(obj.(*appsv1.ReplicaSet))
		}
		s.soon(&s.asked.sets, 10*time.Millisecond, 300*time.Millisecond, s.tendSets)
	case guards:
		s.soon(&s.asked.guards, 10*time.Millisecond, time.Second, s.tendGuards)
	case claims, pools:
		if gone {
			s.soon(&s.asked.collect, 200*time.Millisecond, 5*time.Second, s.collect)
		}
	}
}

func (s *Sim) noticePod(pod *corev1.Pod, gone bool) {
	// What is written on a pod that waits, a nomination above all, is no reason for kube-scheduler to try it again.
	if gone || pod.Spec.NodeName != "" || !wasTried(pod) {
		s.scheduleSoon()
	}
	s.soon(&s.asked.guards, 10*time.Millisecond, time.Second, s.tendGuards)
	if ofDaemonSet(pod) && (gone || isDone(pod)) {
		s.tendDaemonsSoon()
	}
	if gone || pod.DeletionTimestamp != nil || isDone(pod) {
		s.soon(&s.asked.sets, 10*time.Millisecond, 300*time.Millisecond, s.tendSets)
	}
	if gone || pod.Spec.NodeName == "" {
		return
	}
	node, ok := find[*corev1.Node](s.store, nodes, pod.Spec.NodeName)
	if !ok {
		name := pod.Spec.NodeName
		s.clock.after(s.clock.between(2*time.Second, 40*time.Second), func() { s.collectPods(name) })
		return
	}
	unregistered := v1.UnregisteredNoExecuteTaint()
	if pod.DeletionTimestamp == nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&unregistered)
	}) &&
		!tolerates(pod, []corev1.Taint{unregistered}) {
		s.trace.note("taint manager: ends %s on %s", pod.Name, node.Name)
		s.store.endPod(pod, nil)
		return
	}
	s.tend(pod)
}

// collectPods removes the pods of a node that is no more.
func (s *Sim) collectPods(node string) {
	if s.store.get(nodes, node) != nil {
		return
	}
	for _, pod := range s.podsOn(node) {
		s.store.remove(pod)
	}
}

// tendSets gives every ReplicaSet the pods that it wants.
func (s *Sim) tendSets() {
	mine := map[types.UID][]*corev1.Pod{}
	for _, pod := range list[*corev1.Pod](s.store, pods) {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && pod.DeletionTimestamp == nil && !isDone(pod) {
			mine[owner.UID] = append(mine[owner.UID], pod)
		}
	}
	for _, set := range list[*appsv1.ReplicaSet](s.store, sets) {
		have, want := mine[set.UID], int(*set.Spec.Replicas)
		for range want - len(have) {
			s.makePod(set)
		}
		// Pods that have no node yet go first.
		slices.SortStableFunc(have, func(a, b *corev1.Pod) int {
			return min(len(a.Spec.NodeName), 1) - min(len(b.Spec.NodeName), 1)
		})
		for _, pod := range have[:max(0, len(have)-want)] {
			s.store.endPod(pod, nil)
		}
	}
}

func (s *Sim) makePod(set *appsv1.ReplicaSet) {
	s.made++
	t := set.Spec.Template.DeepCopy()
	controls := true
	s.store.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, s.made), Labels: t.Labels,
			Annotations: t.Annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name,
				UID: set.UID, Controller: &controls}},
		},
		Spec: t.Spec, Status: corev1.PodStatus{Phase: corev1.PodPending},
	})
}

// tendGuards brings the counts of disruption budgets up to date.
func (s *Sim) tendGuards() {
	all := list[*corev1.Pod](s.store, pods)
	for _, g := range list[*policyv1.PodDisruptionBudget](s.store, guards) {
		var healthy, expected, there int32
		disrupted := map[string]metav1.Time{}
		for _, pod := range all {
			if pod.Namespace != g.Namespace || !selects(g, pod) {
				continue
			}
			there++
			if at, ok := g.Status.DisruptedPods[pod.Name]; ok && pod.DeletionTimestamp == nil &&
				s.clock.now.Sub(at.Time) < 2*time.Minute {
				disrupted[pod.Name] = at
			} else if pod.DeletionTimestamp == nil && isReady(pod) {
				healthy++
			}
		}
		if set, ok := find[*appsv1.ReplicaSet](s.store, sets, g.Namespace+"/"+g.Spec.Selector.MatchLabels["app"]); ok {
			expected = *set.Spec.Replicas
		}
		desired := int32(0)
		switch {
		case g.Spec.MinAvailable != nil:
			// as a number it is about the pods that there are, whatever their owner asks for
			desired, expected = g.Spec.MinAvailable.IntVal, there
		case g.Spec.MaxUnavailable != nil:
			desired = max(0, expected-g.Spec.MaxUnavailable.IntVal)
		}
		allowed := max(0, healthy-desired)
		st := &g.Status
		if expected == 0 {
			allowed = 0
		}
		if st.ObservedGeneration == g.Generation && st.CurrentHealthy == healthy && st.DesiredHealthy == desired &&
			st.ExpectedPods == expected &&
			st.DisruptionsAllowed == allowed && len(st.DisruptedPods) == len(disrupted) {
			continue
		}
		edit(s.store, guards, keyOf(g), g.UID, func(g *policyv1.PodDisruptionBudget) {
			g.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: g.Generation, CurrentHealthy: healthy,
				DesiredHealthy: desired,
				ExpectedPods:   expected, DisruptionsAllowed: allowed, DisruptedPods: disrupted}
		})
	}
}

// collect deletes what has lost its owner.
func (s *Sim) collect() {
	there := map[types.UID]bool{}
	for _, k := range []kind{pools, claims} {
		for _, obj := range list[client.Object](s.store, k) {
			there[obj.GetUID()] = true
		}
	}
	for _, k := range []kind{claims, nodes} {
		for _, obj := range list[client.Object](s.store, k) {
			owners := obj.GetOwnerReferences()
			if len(owners) > 0 && obj.GetDeletionTimestamp() == nil && !slices.ContainsFunc(owners,
				func(o metav1.OwnerReference) bool {
					return there[o.UID]
				}) {
				s.trace.note("garbage collector: deletes %s %s", k, obj.GetName())
				s.store.erase(obj)
			}
		}
	}
}
