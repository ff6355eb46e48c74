package ingest

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/feed"
	"github.com/tenon-sh/tenon/internal/ingest/pods"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
)

// owners are the kinds that want a number of pods.
func owners() []client.Object {
	return []client.Object{&appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &batchv1.Job{}, &corev1.ReplicationController{}}
}

// watched are the kinds that every book watches, beside pods and NodeClasses. What is kept of each is in strip.go.
func watched() []client.Object {
	return append(owners(),
		&policyv1.PodDisruptionBudget{}, &corev1.Namespace{}, &appsv1.DaemonSet{},
		&storagev1.VolumeAttachment{}, &storagev1.StorageClass{}, &storagev1.CSINode{},
		&corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{},
		&corev1.LimitRange{}, &nodev1.RuntimeClass{}, &schedulingv1.PriorityClass{},
		storedKind("NodePool"), storedKind("NodeClaim"), &corev1.Node{})
}

// Prepare makes the informers that Watch will feed the book from, without waiting for them: a replica that is not
// elected fills its cache too, takes over at once, and is not ready before. also are more kinds, of Book.ExtraKinds.
func Prepare(ctx context.Context, informers cache.Cache, classes []schema.GroupVersionKind,
	also ...client.Object) error {
	return feed.Prepare(ctx, informers, classes, append(watched(), also...))
}

// Watch feeds the book from the informers of the cache and returns once each has delivered what was there. classes are
// the provider's kinds of NodeClass; podSource lists and watches the pods
// of all namespaces.
func (b *Book) Watch(ctx context.Context, informers cache.Cache, classes []schema.GroupVersionKind,
	podSource toolscache.ListerWatcher) error {
	b.startCountingEvictions()
	w := feed.New(ctx, informers, append(watched(), b.ExtraKinds()...), b.contain)
	// Owners come before pods, so that a burst that is there at the start is known to be whole.
	for _, obj := range owners() {
		w.Watch(obj, func(obj any) {
			if o, ok := pods.OwnerOf(obj); ok {
				b.SetOwner(o)
			}
			b.SetController(obj.(client.Object))
		}, func(obj client.Object) {
			b.DeleteOwner(obj.GetNamespace(), obj.GetUID())
			b.DeleteController(obj)
		})
	}
	b.watchDefaults(w)
	b.watchReferenced(w)
	w.Watch(&appsv1.DaemonSet{}, func(obj any) { b.SetDaemon(obj.(*appsv1.DaemonSet)) },
		func(obj client.Object) { b.DeleteDaemon(obj.GetUID()) })
	for _, gvk := range classes {
		b.watchNodeClass(w, gvk)
	}
	w.Watch(storedKind("NodePool"), func(obj any) { b.setStoredPool(obj.(*unstructured.Unstructured)) },
		func(obj client.Object) { b.DeletePool(obj.GetName()) })
	w.Watch(storedKind("NodeClaim"), func(obj any) { b.setStoredClaim(obj.(*unstructured.Unstructured)) },
		func(obj client.Object) { b.DeleteClaim(obj.GetName()) })
	w.Watch(&corev1.Node{}, func(obj any) { b.SetNode(obj.(*corev1.Node)) },
		func(obj client.Object) { b.DeleteNode(obj.GetName()) })
	if err := w.Wait(); err != nil {
		return err
	}
	// Pods come last: by then everything that they refer to is known, and each is read once.
	go b.FollowPods(ctx, podSource)
	return b.podsLoaded.wait(ctx)
}

// watchReferenced watches what pods refer to. It comes before them, so that each is read once.
func (b *Book) watchReferenced(w *feed.Watcher) {
	w.Watch(&policyv1.PodDisruptionBudget{}, func(obj any) { b.SetPDB(obj.(*policyv1.PodDisruptionBudget)) },
		func(obj client.Object) { b.DeletePDB(obj.GetNamespace(), obj.GetName()) })
	w.Watch(&storagev1.VolumeAttachment{}, func(obj any) { b.SetAttachment(obj.(*storagev1.VolumeAttachment)) },
		func(obj client.Object) { b.DeleteAttachment(obj.GetName()) })
	w.Watch(&corev1.Namespace{}, func(obj any) { b.SetNamespace(obj.(*corev1.Namespace)) },
		func(obj client.Object) { b.DeleteNamespace(obj.GetName()) })
	w.Watch(&storagev1.StorageClass{}, func(obj any) { b.SetStorageClass(obj.(*storagev1.StorageClass)) },
		func(obj client.Object) { b.DeleteStorageClass(obj.GetName()) })
	w.Watch(&storagev1.CSINode{}, func(obj any) { b.SetCSINode(obj.(*storagev1.CSINode)) },
		func(obj client.Object) { b.DeleteCSINode(obj.GetName()) })
	w.Watch(&corev1.PersistentVolume{}, func(obj any) { b.SetVolume(obj.(*corev1.PersistentVolume)) },
		func(obj client.Object) { b.DeleteVolume(obj.GetName()) })
	w.Watch(&corev1.PersistentVolumeClaim{}, func(obj any) { b.SetVolumeClaim(obj.(*corev1.PersistentVolumeClaim)) },
		func(obj client.Object) { b.DeleteVolumeClaim(obj.GetNamespace(), obj.GetName()) })
	w.Watch(&corev1.LimitRange{}, func(obj any) { b.SetLimitRange(obj.(*corev1.LimitRange)) },
		func(obj client.Object) { b.DeleteLimitRange(obj.GetNamespace(), obj.GetName()) })
	w.Watch(&nodev1.RuntimeClass{}, func(obj any) { b.SetRuntimeClass(obj.(*nodev1.RuntimeClass)) },
		func(obj client.Object) { b.DeleteRuntimeClass(obj.GetName()) })
	w.Watch(&schedulingv1.PriorityClass{}, func(obj any) { b.SetPriorityClass(obj.(*schedulingv1.PriorityClass)) },
		func(obj client.Object) { b.DeletePriorityClass(obj.GetName()) })
}

// watchNodeClass watches a kind of NodeClass by the very informer that the provider reads it from. With one of its own,
// the provider could be asked about a change before it knows of it, and what it said then would stand for minutes. The
// informer has a Go type, and one object that the type can't read hides all; the CRD lets none such through.
func (b *Book) watchNodeClass(w *feed.Watcher, gvk schema.GroupVersionKind) {
	ref := func(name string) cluster.ClassRef {
		return cluster.ClassRef{Group: gvk.Group, Kind: gvk.Kind, Name: name}
	}
	w.WatchKind(gvk, func(obj any) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			panic(fmt.Sprintf("a %s of the API server can't be read: %v", gvk.Kind, err)) // it was decoded a moment ago
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(gvk)
		b.SetNodeClass(ref(u.GetName()), pools.NodeClassState(u))
		b.NoteNodeClassVersion(ref(u.GetName()), u.GetResourceVersion())
	}, func(obj client.Object) { b.DeleteNodeClass(ref(obj.GetName())) })
}
