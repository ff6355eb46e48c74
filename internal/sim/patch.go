package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// patch changes an object, or its status, as the API server does: a lock on the version and the tests of a JSON patch
// are honoured, what belongs to the other half is ignored, and a patch that changes nothing writes nothing. What is
// stored then is copied into obj.
func (s *store) patch(obj client.Object, p client.Patch, status, slow bool) error {
	k, key := kindOf(obj), keyOf(obj)
	old := s.get(k, key)
	if old == nil {
		return apierrors.NewNotFound(resourceOf(k), obj.GetName())
	}
	var next client.Object
	if !slow && obj.GetResourceVersion() == old.GetResourceVersion() {
		// The patch is the difference between what is stored and obj, so obj is what it would come to, and no test can
		// fail.
		next = obj.DeepCopyObject().(client.Object)
	} else {
		data, err := p.Data(obj)
		if err != nil {
			return fmt.Errorf("making a patch: %w", err)
		}
		if next, err = applied(old, p.Type(), data, status); err != nil {
			return err
		}
	}
	keepOther(old, next, status)
	keepIdentity(old, next)
	s.setTimes(old, next)
	sign(next)
	if !sameHalf(old, next, status) {
		if !status && k != nodes && !sameSpec(old, next) {
			next.SetGeneration(old.GetGeneration() + 1)
		}
		s.write(next)
		old = next
	}
	copyInto(old, obj)
	return nil
}

func resourceOf(k kind) schema.GroupResource { return schema.GroupResource{Resource: k.String()} }

// applied is the object with the patch applied to it, by way of its text.
func applied(old client.Object, how types.PatchType, data []byte, status bool) (client.Object, error) {
	k, name := kindOf(old), old.GetName()
	if how == types.JSONPatchType {
		return steps(old, data)
	}
	if how != types.MergePatchType {
		return nil, invalid(k, name, fmt.Errorf("no patch of type %s", how))
	}
	if err := unlock(old, data); err != nil {
		return nil, err
	}
	from := old
	if !status {
		from = old.DeepCopyObject().(client.Object)
		dropStatus(from)
	}
	text, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("writing %s %s: %w", k, name, err)
	}
	if text, err = jsonpatch.MergePatch(text, data); err != nil {
		return nil, invalid(k, name, err)
	}
	next := reflect.New(reflect.TypeOf(old).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(text, next); err != nil {
		return nil, invalid(k, name, err)
	}
	return next, nil
}

// unlock is an error if a merge patch names another version or another object than the one that is stored.
func unlock(old client.Object, data []byte) error {
	k, name := kindOf(old), old.GetName()
	var lock struct {
		Metadata struct {
			ResourceVersion string
			UID             types.UID
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if v := lock.Metadata.ResourceVersion; v != "" && v != old.GetResourceVersion() {
		return apierrors.NewConflict(resourceOf(k), name, errors.New("the object has been modified"))
	}
	if uid := lock.Metadata.UID; uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(resourceOf(k), name, errors.New("it is another object of the same name"))
	}
	return nil
}

func invalid(k kind, name string, err error) error {
	out := apierrors.NewInvalid(schema.GroupKind{Kind: k.String()}, name, nil)
	out.ErrStatus.Message = err.Error()
	return out
}

func dropStatus(obj client.Object) {
	switch o := obj.(type) {
	case *corev1.Node:
		o.Status = corev1.NodeStatus{}
	case *corev1.Pod:
		o.Status = corev1.PodStatus{}
	case *v1.NodeClaim:
		o.Status = v1.NodeClaimStatus{}
	case *v1.NodePool:
		o.Status = v1.NodePoolStatus{}
	}
}

// keepOther puts back what a write to the object, or to its status, can't change. The status of a node's and a pod's
// metadata is part of it.
func keepOther(old, next client.Object, status bool) {
	switch n := next.(type) {
	case *corev1.Node:
		o := old.(*corev1.Node)
		if status {
			n.Spec = o.Spec
		} else {
			n.Status = o.Status
		}
	case *corev1.Pod:
		o := old.(*corev1.Pod)
		if status {
			n.Spec, n.ObjectMeta = o.Spec, *o.ObjectMeta.DeepCopy()
		} else {
			n.Status = o.Status
		}
	case *v1.NodeClaim:
		o := old.(*v1.NodeClaim)
		if status {
			n.Spec, n.ObjectMeta = o.Spec, *o.ObjectMeta.DeepCopy()
		} else {
			n.Status = o.Status
		}
	case *v1.NodePool:
		o := old.(*v1.NodePool)
		if status {
			n.Spec, n.ObjectMeta = o.Spec, *o.ObjectMeta.DeepCopy()
		} else {
			n.Status = o.Status
		}
	}
}

func keepIdentity(old, next client.Object) {
	next.SetUID(old.GetUID())
	next.SetResourceVersion(old.GetResourceVersion())
	next.SetGeneration(old.GetGeneration())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetDeletionTimestamp(old.GetDeletionTimestamp())
}

func sameSpec(old, next client.Object) bool {
	switch n := next.(type) {
	case *corev1.Node:
		return equality.Semantic.DeepEqual(old.(*corev1.Node).Spec, n.Spec)
	case *v1.NodeClaim:
		return equality.Semantic.DeepEqual(old.(*v1.NodeClaim).Spec, n.Spec)
	case *v1.NodePool:
		return equality.Semantic.DeepEqual(old.(*v1.NodePool).Spec, n.Spec)
	}
	return true
}

// sameHalf reports whether a write to the object, or to its status, changes nothing.
func sameHalf(old, next client.Object, status bool) bool {
	if !status {
		return sameSpec(old, next) && maps.Equal(old.GetLabels(), next.GetLabels()) && maps.Equal(old.GetAnnotations(),
			next.GetAnnotations()) &&
			slices.Equal(old.GetFinalizers(), next.GetFinalizers()) &&
			equality.Semantic.DeepEqual(old.GetOwnerReferences(), next.GetOwnerReferences())
	}
	switch n := next.(type) {
	case *corev1.Pod:
		return equality.Semantic.DeepEqual(old.(*corev1.Pod).Status, n.Status)
	case *v1.NodeClaim:
		return equality.Semantic.DeepEqual(old.(*v1.NodeClaim).Status, n.Status)
	case *v1.NodePool:
		return equality.Semantic.DeepEqual(old.(*v1.NodePool).Status, n.Status)
	}
	return equality.Semantic.DeepEqual(old, next)
}

// setTimes sets the times that writers take from the machine's clock to the virtual one's, and cuts them to the second
// as Kubernetes' text does.
func (s *store) setTimes(old, next client.Object) {
	switch n := next.(type) {
	case *v1.NodeClaim:
		s.setConditionTimes(old.(*v1.NodeClaim).Status.Conditions, n.Status.Conditions)
		n.Status.LastPodEventTime = metav1.NewTime(n.Status.LastPodEventTime.Truncate(1e9))
		if n.Status.LastPodEventTime.Year() < 1970 {
			n.Status.LastPodEventTime = metav1.Time{}
		}
	case *v1.NodePool:
		s.setConditionTimes(old.(*v1.NodePool).Status.Conditions, n.Status.Conditions)
	}
}

func (s *store) setConditionTimes(old, next []metav1.Condition) {
	for i := range next {
		c := &next[i]
		at := metav1.NewTime(s.clock.seconds())
		for j := range old {
			if old[j].Type == c.Type && old[j].Status == c.Status {
				at = old[j].LastTransitionTime
			}
		}
		c.LastTransitionTime = at
	}
}

// sign notes who has named a node for a pod, in the form in which the program keeps it.
func sign(obj client.Object) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		if pod.Status.NominatedNodeName != "" {
			pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "tenon"}}
		}
	}
}

// copyInto gives a reader an object of its own.
func copyInto(from, to client.Object) {
	switch t := to.(type) {
	case *corev1.Node:
		from.(*corev1.Node).DeepCopyInto(t)
	case *corev1.Pod:
		from.(*corev1.Pod).DeepCopyInto(t)
	case *v1.NodeClaim:
		from.(*v1.NodeClaim).DeepCopyInto(t)
	case *v1.NodePool:
		from.(*v1.NodePool).DeepCopyInto(t)
	default:
		panic(fmt.Sprintf("nobody reads %T", to))
	}
}
