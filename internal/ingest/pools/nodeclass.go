package pools

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// Why a NodeClass can't be used.
const (
	ClassNotFound = "NodeClassNotFound"
	ClassUnknown  = "NodeClassReadinessUnknown"
)

// NodeClassState reads the Ready condition of a NodeClass of any kind.
func NodeClassState(u *unstructured.Unstructured) cluster.NodeClassState {
	state := cluster.NodeClassState{Generation: u.GetGeneration()}
	if u.GetDeletionTimestamp() != nil {
		state.Reason, state.Message = "NodeClassTerminating", fmt.Sprintf("%s %q is being deleted", u.GetKind(),
			u.GetName())
		return state
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range conditions {
		c, ok := item.(map[string]any)
		if !ok || c["type"] != v1.ConditionTypeReady {
			continue
		}
		observed, found, _ := unstructured.NestedInt64(c, "observedGeneration")
		message, _, _ := unstructured.NestedString(c, "message")
		switch {
		case found && observed < u.GetGeneration():
			state.Pending, state.Reason, state.Message = true, ClassUnknown, fmt.Sprintf("%s %q has changed and is "+
				"being looked at", u.GetKind(), u.GetName())
		case c["status"] == string(metav1.ConditionTrue):
			state.Ready = true
		case c["status"] == string(metav1.ConditionUnknown):
			// Whoever keeps the class waits for something, and tells of it there if that is trouble.
			state.Pending, state.Reason, state.Message = true, ClassUnknown, fmt.Sprintf("%s %q is not ready yet: %s",
				u.GetKind(), u.GetName(), message)
		default:
			reason, _, _ := unstructured.NestedString(c, "reason")
			state.Reason = cmp.Or(reason, "NodeClassNotReady")
			state.Message = fmt.Sprintf("%s %q is not ready: %s", u.GetKind(), u.GetName(), message)
		}
		return state
	}
	state.Pending, state.Reason, state.Message = true, ClassUnknown, fmt.Sprintf("%s %q has no Ready condition yet",
		u.GetKind(), u.GetName())
	return state
}
