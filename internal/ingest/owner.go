package ingest

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// SetDaemon takes in a DaemonSet: what it will put on every node that it matches.
func (b *Book) SetDaemon(ds *appsv1.DaemonSet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.daemons[string(ds.UID)] = &cluster.Daemon{
		UID: string(ds.UID), Namespace: ds.Namespace, Name: ds.Name,
		Class: b.classOf(&ds.Spec.Template.Spec, &corev1.PodStatus{}),
	}
	b.touch()
}

// DeleteDaemon takes in that a DaemonSet is gone.
func (b *Book) DeleteDaemon(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.daemons, string(uid))
	b.touch()
}

// SetOwner takes in how many pods an owner wants.
func (b *Book) SetOwner(o cluster.Owner) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owners[o.UID] == o {
		return
	}
	b.owners[o.UID] = o
	b.touch()
}

// DeleteOwner takes in that an owner is gone.
func (b *Book) DeleteOwner(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.owners, string(uid))
	b.touch()
}

// ownerOf reads how many pods a workload wants at the same time; ok is false for kinds that say nothing about it.
func ownerOf(obj any) (o cluster.Owner, ok bool) {
	switch w := obj.(type) {
	case *appsv1.ReplicaSet:
		return wants(w.UID, "ReplicaSet", w.Spec.Replicas), true
	case *corev1.ReplicationController:
		return wants(w.UID, "ReplicationController", w.Spec.Replicas), true
	case *appsv1.StatefulSet:
		o := wants(w.UID, "StatefulSet", w.Spec.Replicas)
		if w.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
			o.Desired = 0 // the next pod comes when this one is ready
		}
		return o, true
	case *batchv1.Job:
		o := wants(w.UID, "Job", w.Spec.Parallelism)
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

func wants(uid types.UID, kind string, replicas *int32) cluster.Owner {
	n := 1
	if replicas != nil {
		n = int(*replicas)
	}
	return cluster.Owner{UID: string(uid), Kind: kind, Known: true, Desired: n}
}
