package pods

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// OwnerOf reads how many pods a workload wants at the same time; ok is false for kinds that say nothing about it.
func OwnerOf(obj any) (o cluster.Owner, ok bool) {
	switch w := obj.(type) {
	case *appsv1.ReplicaSet:
		return ownerWanting(w, "ReplicaSet", w.Spec.Replicas), true
	case *corev1.ReplicationController:
		return ownerWanting(w, "ReplicationController", w.Spec.Replicas), true
	case *appsv1.StatefulSet:
		o := ownerWanting(w, "StatefulSet", w.Spec.Replicas)
		if w.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
			o.Desired = 0 // the next pod comes when this one is ready
		}
		return o, true
	case *batchv1.Job:
		o := ownerWanting(w, "Job", w.Spec.Parallelism)
		if w.Spec.Completions != nil {
			o.Desired = min(o.Desired, int(*w.Spec.Completions-w.Status.Succeeded))
		}
		if w.Spec.Suspend != nil && *w.Spec.Suspend {
			o.Desired = 0
		}
		return o, true
	}
	return cluster.Owner{}, false
}

func ownerWanting(w metav1.Object, kind string, replicas *int32) cluster.Owner {
	n := 1
	if replicas != nil {
		n = int(*replicas)
	}
	o := cluster.Owner{UID: string(w.GetUID()), Kind: kind, Name: w.GetName(), Namespace: w.GetNamespace(), Known: true,
		Desired: n, Created: w.GetCreationTimestamp().Time}
	if root := metav1.GetControllerOfNoCopy(w); root != nil {
		o.Workload, o.WorkloadKind, o.WorkloadName = string(root.UID), decode.CutText(root.Kind),
			decode.CutText(root.Name)
	}
	return o
}
