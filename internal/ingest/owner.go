package ingest

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// SetOwner takes in how many pods an owner wants. It comes with UIDs as the API server shows them, and is kept under
// its key.
func (b *Book) SetOwner(o cluster.Owner) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o.Since = b.now()
	o.UID = cluster.OwnerKey(o.Namespace, o.UID)
	if o.Workload != "" {
		o.Workload = cluster.OwnerKey(o.Namespace, o.Workload)
	}
	if have, known := b.owners.current[o.UID]; known && have.Kind == o.Kind && have.Known == o.Known &&
		have.Desired == o.Desired && have.Workload == o.Workload {
		return
	}
	b.owners.set(o.UID, o)
	b.noteAndWake(change.None)
}

// DeleteOwner takes in that an owner is gone.
func (b *Book) DeleteOwner(namespace string, uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owners.remove(cluster.OwnerKey(namespace, string(uid)))
	b.noteAndWake(change.None)
}

// ownerOf reads how many pods a workload wants at the same time; ok is false for kinds that say nothing about it.
func ownerOf(obj any) (o cluster.Owner, ok bool) {
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
