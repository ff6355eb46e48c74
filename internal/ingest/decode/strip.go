package decode

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// MostKeptBytes is how large a part of an object may be that is kept although somebody who may write in one namespace
// only can make it as large as the API server allows: the template of a DaemonSet, a selector, the defaults of a
// LimitRange. What is larger is not kept at all. The bound is in docs/concepts/bounds.md.
const MostKeptBytes = 64 << 10

// Strip drops from objects what nothing here reads, before they are kept: it is most of their size, and anybody who may
// write in one namespace could fill our memory with it. Objects are only ever patched, never written back from what is
// kept.
func Strip(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	switch w := o.(type) {
	case *corev1.Pod: // it is not kept
		keepNominationAuthor(w)
		stripPod(w)
	case *corev1.Node:
		keepFieldAuthors(w)
		w.Status.Images, w.Status.VolumesInUse, w.Status.VolumesAttached = nil, nil, nil
		delete(w.Annotations, corev1.LastAppliedConfigAnnotation)
	default:
		if !stripWorkload(o) && !stripStorage(o) && !stripDefaults(o) {
			// Kinds of ours, which administrators write and which are read as a whole.
			o.SetManagedFields(nil)
			dropAnnotation(o, corev1.LastAppliedConfigAnnotation)
		}
	}
	return obj, nil
}

func dropAnnotation(o client.Object, key string) {
	if all := o.GetAnnotations(); all[key] != "" {
		delete(all, key)
		o.SetAnnotations(all)
	}
}

// metaOf is what is read of any object's metadata, with the annotations that are named.
func metaOf(m *metav1.ObjectMeta, annotations ...string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID,
		ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}
	if owner := metav1.GetControllerOf(m); owner != nil {
		out.OwnerReferences = []metav1.OwnerReference{boundedOwner(owner)}
	}
	if why := TooLongPart(m); why != "" {
		markTooLong(&out, why)
	}
	for _, key := range annotations {
		if text, set := m.Annotations[key]; set && len(text) <= MostKeptBytes {
			metav1.SetMetaDataAnnotation(&out, key, text)
		}
	}
	return out
}

// mostName is how long the names of an owner may be that are kept. Names of objects have at most 253 characters; those
// in an owner reference have no limit.
const mostName = 253

// boundedOwner is an owner reference with its texts cut, but for the UID, which is replaced by a hash if it does not
// look like one: see cluster.OwnerKey.
func boundedOwner(owner *metav1.OwnerReference) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: CutText(owner.APIVersion), Kind: CutText(owner.Kind), Name: CutText(owner.Name),
		UID: types.UID(cluster.SafeUID(string(owner.UID))), Controller: owner.Controller,
	}
}

// CutText is no longer than a little more than a name. What was cut is the name of no object.
func CutText(text string) string {
	if len(text) <= mostName {
		return text
	}
	return text[:mostName] + "~"
}

// wasTooLong marks an entry of metadata.managedFields, of which nothing else is kept, that says what of the object was
// too large to be kept. No user can write it: the API server knows one type of fields only.
const wasTooLong = "too-long"

func markTooLong(m *metav1.ObjectMeta, why string) {
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: why, FieldsType: wasTooLong}}
}

// TooLongPart says what of the object was too large to be kept; empty if nothing was.
func TooLongPart(m *metav1.ObjectMeta) string {
	for i := range m.ManagedFields {
		if m.ManagedFields[i].FieldsType == wasTooLong {
			return m.ManagedFields[i].Manager
		}
	}
	return ""
}

// stripWorkload reduces what makes pods, and what counts them; it reports whether the object is one of these.
func stripWorkload(o client.Object) bool {
	switch w := o.(type) {
	case *appsv1.ReplicaSet:
		meta, selector := withSelector(&w.ObjectMeta, w.Spec.Selector)
		*w = appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: w.Spec.Replicas,
			Selector: selector}}
	case *appsv1.StatefulSet:
		meta, selector := withSelector(&w.ObjectMeta, w.Spec.Selector)
		*w = appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: w.Spec.Replicas, PodManagementPolicy: w.Spec.PodManagementPolicy, Selector: selector,
		}}
	case *corev1.ReplicationController:
		meta, labels := withLabels(&w.ObjectMeta, w.Spec.Selector)
		spec := corev1.ReplicationControllerSpec{Replicas: w.Spec.Replicas, Selector: labels}
		*w = corev1.ReplicationController{ObjectMeta: meta, Spec: spec}
	case *corev1.Service:
		meta, labels := withLabels(&w.ObjectMeta, w.Spec.Selector)
		*w = corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels}}
	case *batchv1.Job:
		*w = batchv1.Job{
			ObjectMeta: metaOf(&w.ObjectMeta),
			Spec: batchv1.JobSpec{
				Parallelism: w.Spec.Parallelism, Completions: w.Spec.Completions, Suspend: w.Spec.Suspend,
			},
			Status: batchv1.JobStatus{Succeeded: w.Status.Succeeded},
		}
	case *appsv1.DaemonSet:
		stripDaemonSet(w)
	case *policyv1.PodDisruptionBudget:
		stripBudget(w)
	default:
		return false
	}
	return true
}

// stripDaemonSet keeps what placement depends on of the template.
func stripDaemonSet(ds *appsv1.DaemonSet) {
	out := appsv1.DaemonSet{ObjectMeta: metaOf(&ds.ObjectMeta, appsv1.DeprecatedTemplateGeneration)}
	s := &ds.Spec.Template.Spec
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: ds.Spec.Template.Labels},
		Spec: corev1.PodSpec{
			Containers:                keptContainers(s.Containers),
			InitContainers:            keptContainers(s.InitContainers),
			NodeSelector:              s.NodeSelector,
			Affinity:                  s.Affinity,
			Tolerations:               s.Tolerations,
			TopologySpreadConstraints: s.TopologySpreadConstraints,
			HostNetwork:               s.HostNetwork,
			Overhead:                  s.Overhead,
			RuntimeClassName:          s.RuntimeClassName,
			PriorityClassName:         s.PriorityClassName,
			Priority:                  s.Priority,
			Resources:                 s.Resources,
			ResourceClaims:            s.ResourceClaims,
		},
	}
	if size := template.Size(); size > MostKeptBytes {
		markTooLong(&out.ObjectMeta, fmt.Sprintf("what placement depends on in spec.template: %d bytes found, "+
			"at most %d are read; use fewer terms, labels and containers", size, MostKeptBytes))
		template = corev1.PodTemplateSpec{}
	}
	out.Spec.Template = template
	*ds = out
}

func keptContainers(list []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for i := range list {
		c := &list[i]
		kept := corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		for _, p := range c.Ports {
			kept.Ports = append(kept.Ports, corev1.ContainerPort{
				HostPort: p.HostPort, ContainerPort: p.ContainerPort, Protocol: p.Protocol, HostIP: p.HostIP,
			})
		}
		out = append(out, kept)
	}
	return out
}

func stripPod(pod *corev1.Pod) {
	for _, list := range [2][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			c := &list[i]
			*c = corev1.Container{Name: c.Name, Resources: c.Resources, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
		}
	}
	delete(pod.Annotations, corev1.LastAppliedConfigAnnotation)
}

// stripBudget keeps a PodDisruptionBudget's selector and counts.
func stripBudget(pdb *policyv1.PodDisruptionBudget) {
	meta, selector := withSelector(&pdb.ObjectMeta, pdb.Spec.Selector)
	*pdb = policyv1.PodDisruptionBudget{
		ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector:                   selector,
			UnhealthyPodEvictionPolicy: pdb.Spec.UnhealthyPodEvictionPolicy,
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: pdb.Status.ObservedGeneration,
			DisruptionsAllowed: pdb.Status.DisruptionsAllowed,
			CurrentHealthy:     pdb.Status.CurrentHealthy,
			DesiredHealthy:     pdb.Status.DesiredHealthy,
			ExpectedPods:       pdb.Status.ExpectedPods,
		},
	}
}

func sizeOf(s *metav1.LabelSelector) int {
	if s == nil {
		return 0
	}
	return s.Size()
}

// withSelector is what is kept of an object that has a selector. If the selector is too large, none is, and the object
// says so.
func withSelector(
	m *metav1.ObjectMeta,
	s *metav1.LabelSelector,
	annotations ...string,
) (metav1.ObjectMeta, *metav1.LabelSelector) {
	meta := metaOf(m, annotations...)
	if why := TooLongReason(SelectorParts(s), sizeOf(s)); why != "" {
		markTooLong(&meta, why)
		return meta, nil
	}
	return meta, s
}

// withLabels is withSelector for a selector of labels only.
func withLabels(m *metav1.ObjectMeta, labels map[string]string) (metav1.ObjectMeta, map[string]string) {
	meta, size := metaOf(m), 0
	for key, value := range labels {
		size += len(key) + len(value)
	}
	if why := TooLongReason(len(labels), size); why != "" {
		markTooLong(&meta, why)
		return meta, nil
	}
	return meta, labels
}

// TooLongReason says what is too long about a selector; empty if nothing is.
func TooLongReason(parts, size int) string {
	switch {
	case parts > MostSelectorParts:
		return fmt.Sprintf("labels, expressions and values in spec.selector: %d found, at most %d are read",
			parts, MostSelectorParts)
	case size > MostKeptBytes:
		return fmt.Sprintf("spec.selector: %d bytes found, at most %d are read", size, MostKeptBytes)
	}
	return ""
}

// stripDefaults reduces what the API server adds to pods, and namespaces; it reports whether the object is of such a
// kind.
func stripDefaults(o client.Object) bool {
	switch w := o.(type) {
	case *corev1.LimitRange:
		stripLimitRange(w)
	case *nodev1.RuntimeClass:
		*w = nodev1.RuntimeClass{ObjectMeta: metaOf(&w.ObjectMeta), Overhead: w.Overhead, Scheduling: w.Scheduling}
	case *schedulingv1.PriorityClass:
		*w = schedulingv1.PriorityClass{ObjectMeta: metaOf(&w.ObjectMeta), Value: w.Value,
			GlobalDefault: w.GlobalDefault}
	case *corev1.Namespace:
		meta := metaOf(&w.ObjectMeta, cluster.EndOrphansAnnotation)
		meta.Labels = w.Labels
		*w = corev1.Namespace{ObjectMeta: meta}
	default:
		return false
	}
	return true
}

// stripLimitRange keeps the defaults of containers. If they are too large, the LimitRange counts as if it were not
// there.
func stripLimitRange(l *corev1.LimitRange) {
	out := corev1.LimitRange{ObjectMeta: metaOf(&l.ObjectMeta)}
	for _, item := range l.Spec.Limits {
		if item.Type == corev1.LimitTypeContainer && len(item.DefaultRequest) > 0 {
			kept := corev1.LimitRangeItem{Type: item.Type, DefaultRequest: item.DefaultRequest}
			out.Spec.Limits = append(out.Spec.Limits, kept)
		}
	}
	if size := out.Spec.Size(); size > MostKeptBytes {
		markTooLong(&out.ObjectMeta, fmt.Sprintf(
			"requests that spec.limits gives containers by default: %d bytes found, at most %d are read", size,
			MostKeptBytes))
		out.Spec.Limits = nil
	}
	*l = out
}
