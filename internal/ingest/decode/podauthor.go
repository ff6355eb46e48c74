package decode

import (
	"bytes"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldManager is the name under which we write.
const fieldManager = "tenon"

// endField is how the fields of a pod name the condition that it has to end.
const endField = `"k:{\"type\":\"DisruptionTarget\"}"`

// IsOurNomination reports whether our name stands under the pod's nomination: see keepNominationAuthor.
func IsOurNomination(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == fieldManager && f.FieldsV1 == nil && f.FieldsType != WroteEnd
	})
}

// keepNominationAuthor drops who wrote which field of a pod, but for one word if it was we who named a node for it, and
// for the name of who wrote that it has to end.
func keepNominationAuthor(pod *corev1.Pod) {
	if slices.ContainsFunc(pod.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.FieldsType == WroteEnd
	}) {
		return // it has been here before
	}
	ender := podEndAuthor(pod)
	ours := pod.Status.NominatedNodeName != "" && slices.ContainsFunc(pod.ManagedFields,
		func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager == fieldManager && f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(),
				[]byte(`"f:nominatedNodeName"`))
		})
	if IsOurNomination(pod) {
		return // it has been here before
	}
	pod.ManagedFields = nil
	if ours {
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fieldManager}}
	}
	if ender != "" {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: ender, FieldsType: WroteEnd})
	}
}

// podEndAuthor is who wrote that the pod has to end, if somebody did and it is recorded. An eviction through the API
// leaves no name.
func podEndAuthor(pod *corev1.Pod) string {
	if PodEndCondition(pod) == nil {
		return ""
	}
	for _, f := range pod.ManagedFields {
		if f.FieldsV1 != nil && bytes.Contains(f.FieldsV1.GetRawBytes(), []byte(endField)) {
			return f.Manager
		}
	}
	return ""
}

// PodEndCondition is the condition that says why a pod has to end, if it does.
func PodEndCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
