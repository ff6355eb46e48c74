package workload

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	namespace = "default"
	appLabel  = "app"
	mib       = int64(1) << 20
)

// epoch is when everything was created: a fixed time keeps workloads equal.
func epoch() metav1.Time { return metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) }

func uid(kind, name string) types.UID { return types.UID(kind + "-" + name) }

// template is what the pods of a deployment have in common.
type template struct {
	app    string
	labels map[string]string
	milli  int64 // CPU
	memory int64 // MiB
	more   corev1.ResourceList
	spec   func(*corev1.PodSpec)
}

// pending makes a pod that kube-scheduler has found no place for.
func (t *template) pending(number int) *corev1.Pod {
	p := t.pod(number)
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		LastTransitionTime: epoch(),
	}}}
	return p
}

// running makes a pod that is on a node.
func (t *template) running(number int, node string) *corev1.Pod {
	p := t.pod(number)
	p.Spec.NodeName = node
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: epoch(),
	}}}
	return p
}

func (t *template) pod(number int) *corev1.Pod {
	yes := true
	name := fmt.Sprintf("%s-%05d", t.app, number)
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(t.milli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(t.memory*mib, resource.BinarySI),
	}
	limits := t.more.DeepCopy()
	maps.Copy(requests, t.more)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: uid("pod", name), CreationTimestamp: epoch(),
			Labels: map[string]string{appLabel: t.app},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: t.app, UID: uid("replicaset", t.app), Controller: &yes,
			}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/" + t.app, Resources: corev1.ResourceRequirements{Requests: requests,
				Limits: limits},
		}}},
	}
	maps.Copy(p.Labels, t.labels)
	if t.spec != nil {
		t.spec(&p.Spec)
	}
	return p
}

// selecting selects pods by one label.
func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// spread keeps the selected pods even over the domains of a key.
func spread(topology string, selector *metav1.LabelSelector, otherwise corev1.UnsatisfiableConstraintAction) func(
	*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: topology, WhenUnsatisfiable: otherwise, LabelSelector: selector,
		})
	}
}

// together keeps the selected pods in one domain.
func together(topology string, selector *metav1.LabelSelector) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		affinity(s).PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: topology, LabelSelector: selector}},
		}
	}
}

// apart keeps the selected pods out of each other's domain.
func apart(topology string, selector *metav1.LabelSelector) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		affinity(s).PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: topology, LabelSelector: selector}},
		}
	}
}

func affinity(s *corev1.PodSpec) *corev1.Affinity {
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	return s.Affinity
}

// selectNodes asks for nodes with the label.
func selectNodes(key, value string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		if s.NodeSelector == nil {
			s.NodeSelector = make(map[string]string)
		}
		s.NodeSelector[key] = value
	}
}
