package sim

import (
	"bytes"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// excerpt is what JSON patches are about, of nodes and pods: to write and read the whole object would take most of the
// time of a run.
type excerpt struct {
	Metadata struct {
		UID             types.UID               `json:"uid,omitempty"`
		Labels          map[string]string       `json:"labels,omitempty"`
		Annotations     map[string]string       `json:"annotations,omitempty"`
		Finalizers      []string                `json:"finalizers,omitempty"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
	} `json:"metadata"`
	Spec struct {
		NodeName      string         `json:"nodeName,omitempty"`
		Taints        []corev1.Taint `json:"taints,omitempty"`
		Unschedulable bool           `json:"unschedulable,omitempty"`
	} `json:"spec"`
	Status struct {
		NominatedNodeName string `json:"nominatedNodeName,omitempty"`
	} `json:"status"`
}

// steps is the object with a JSON patch applied to it.
func steps(old client.Object, data []byte) (client.Object, error) {
	k, name := kindOf(old), old.GetName()
	next := old.DeepCopyObject().(client.Object)
	var e excerpt
	e.Metadata.UID, e.Metadata.Labels, e.Metadata.Annotations = old.GetUID(), old.GetLabels(), old.GetAnnotations()
	e.Metadata.Finalizers, e.Metadata.OwnerReferences = old.GetFinalizers(), old.GetOwnerReferences()
	switch o := old.(type) {
	case *corev1.Node:
		e.Spec.Taints, e.Spec.Unschedulable = o.Spec.Taints, o.Spec.Unschedulable
	case *corev1.Pod:
		e.Spec.NodeName, e.Status.NominatedNodeName = o.Spec.NodeName, o.Status.NominatedNodeName
	default:
		return nil, fmt.Errorf("a JSON patch of %s: %w", k, errUnused)
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("writing %s %s: %w", k, name, err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err == nil {
		text, err = patch.Apply(text)
	}
	if err != nil {
		return nil, invalid(k, name, err)
	}
	e = excerpt{}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&e); err != nil {
		return nil, fmt.Errorf("a JSON patch of %s: %w: %w", k, errUnused, err)
	}
	next.SetLabels(e.Metadata.Labels)
	next.SetAnnotations(e.Metadata.Annotations)
	next.SetFinalizers(e.Metadata.Finalizers)
	next.SetOwnerReferences(e.Metadata.OwnerReferences)
	switch n := next.(type) {
	case *corev1.Node:
		n.Spec.Taints, n.Spec.Unschedulable = e.Spec.Taints, e.Spec.Unschedulable
	case *corev1.Pod:
		n.Status.NominatedNodeName = e.Status.NominatedNodeName
	}
	return next, nil
}
