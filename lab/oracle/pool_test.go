package oracle

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodePool is the part of a NodePool that matters here, in its own JSON.
type nodePool struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              poolSpec `json:"spec"`
}

type poolSpec struct {
	Template poolTemplate        `json:"template"`
	Limits   corev1.ResourceList `json:"limits,omitempty"`
	Weight   *int32              `json:"weight,omitempty"`
}

type poolTemplate struct {
	Metadata struct {
		Labels map[string]string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		NodeClassRef  classRef       `json:"nodeClassRef"`
		Requirements  []requirement  `json:"requirements"`
		Taints        []corev1.Taint `json:"taints,omitempty"`
		StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	} `json:"spec"`
}

type classRef struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

type requirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
	MinValues *int     `json:"minValues,omitempty"`
}

// nodeClaim is the part of a NodeClaim that matters here, in its own JSON.
type nodeClaim struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		NodeClassRef classRef       `json:"nodeClassRef"`
		Requirements []requirement  `json:"requirements"`
		Taints       []corev1.Taint `json:"taints,omitempty"`
		Resources    struct{}       `json:"resources"`
	} `json:"spec"`
	Status struct {
		ProviderID  string              `json:"providerID"`
		NodeName    string              `json:"nodeName,omitempty"`
		Capacity    corev1.ResourceList `json:"capacity"`
		Allocatable corev1.ResourceList `json:"allocatable"`
		Conditions  []metav1.Condition  `json:"conditions"`
	} `json:"status"`
}

// claimOf is the claim that a node of a pool was launched for, and how far it has come.
func claimOf(node *corev1.Node, p *nodePool, conditions ...string) *nodeClaim {
	c := &nodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, UID: node.UID + "-claim", Labels: maps.Clone(node.Labels),
		Finalizers: []string{"karpenter.sh/termination"}}}
	c.Spec.NodeClassRef, c.Spec.Taints = p.Spec.Template.Spec.NodeClassRef, node.Spec.Taints
	c.Spec.Requirements = []requirement{}
	c.Status.ProviderID, c.Status.Capacity, c.Status.Allocatable = node.Spec.ProviderID, node.Status.Capacity,
		node.Status.Allocatable
	for _, kind := range conditions {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
			Reason: kind})
	}
	return c
}
