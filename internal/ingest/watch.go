package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/pods"
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
	for _, gvk := range classes {
		if _, err := informers.GetInformerForKind(ctx, gvk, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %s: %w", gvk.Kind, explainMissing(err))
		}
	}
	for _, obj := range append(watched(), also...) {
		if _, err := informers.GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %s: %w", kindOf(obj), explainMissing(err))
		}
	}
	return nil
}

// Watch feeds the book from the informers of the cache and returns once each has delivered what was there. classes are
// the provider's kinds of NodeClass; podSource lists and watches the
// pods of all namespaces.
func (b *Book) Watch(ctx context.Context, informers cache.Cache, classes []schema.GroupVersionKind,
	podSource toolscache.ListerWatcher) error {
	b.startCountingEvictions()
	w := watcher{ctx: ctx, informers: informers, kinds: append(watched(), b.ExtraKinds()...), contain: b.contain}
	// Owners come before pods, so that a burst that is there at the start is known to be whole.
	for _, obj := range owners() {
		w.watch(obj, func(obj any) {
			if o, ok := pods.OwnerOf(obj); ok {
				b.SetOwner(o)
			}
			b.SetController(obj.(client.Object))
		}, func(obj client.Object) {
			b.DeleteOwner(obj.GetNamespace(), obj.GetUID())
			b.DeleteController(obj)
		})
	}
	b.watchDefaults(&w)
	b.watchReferenced(&w)
	w.watch(&appsv1.DaemonSet{}, func(obj any) { b.SetDaemon(obj.(*appsv1.DaemonSet)) },
		func(obj client.Object) { b.DeleteDaemon(obj.GetUID()) })
	for _, gvk := range classes {
		b.watchNodeClass(&w, gvk)
	}
	w.watch(storedKind("NodePool"), func(obj any) { b.setStoredPool(obj.(*unstructured.Unstructured)) },
		func(obj client.Object) { b.DeletePool(obj.GetName()) })
	w.watch(storedKind("NodeClaim"), func(obj any) { b.setStoredClaim(obj.(*unstructured.Unstructured)) },
		func(obj client.Object) { b.DeleteClaim(obj.GetName()) })
	w.watch(&corev1.Node{}, func(obj any) { b.SetNode(obj.(*corev1.Node)) },
		func(obj client.Object) { b.DeleteNode(obj.GetName()) })
	if err := w.wait(); err != nil {
		return err
	}
	// Pods come last: by then everything that they refer to is known, and each is read once.
	go b.FollowPods(ctx, podSource)
	return b.podsLoaded.wait(ctx)
}

// watchReferenced watches what pods refer to. It comes before them, so that each is read once.
func (b *Book) watchReferenced(w *watcher) {
	w.watch(&policyv1.PodDisruptionBudget{}, func(obj any) { b.SetPDB(obj.(*policyv1.PodDisruptionBudget)) },
		func(obj client.Object) { b.DeletePDB(obj.GetNamespace(), obj.GetName()) })
	w.watch(&storagev1.VolumeAttachment{}, func(obj any) { b.SetAttachment(obj.(*storagev1.VolumeAttachment)) },
		func(obj client.Object) { b.DeleteAttachment(obj.GetName()) })
	w.watch(&corev1.Namespace{}, func(obj any) { b.SetNamespace(obj.(*corev1.Namespace)) },
		func(obj client.Object) { b.DeleteNamespace(obj.GetName()) })
	w.watch(&storagev1.StorageClass{}, func(obj any) { b.SetStorageClass(obj.(*storagev1.StorageClass)) },
		func(obj client.Object) { b.DeleteStorageClass(obj.GetName()) })
	w.watch(&storagev1.CSINode{}, func(obj any) { b.SetCSINode(obj.(*storagev1.CSINode)) },
		func(obj client.Object) { b.DeleteCSINode(obj.GetName()) })
	w.watch(&corev1.PersistentVolume{}, func(obj any) { b.SetVolume(obj.(*corev1.PersistentVolume)) },
		func(obj client.Object) { b.DeleteVolume(obj.GetName()) })
	w.watch(&corev1.PersistentVolumeClaim{}, func(obj any) { b.SetVolumeClaim(obj.(*corev1.PersistentVolumeClaim)) },
		func(obj client.Object) { b.DeleteVolumeClaim(obj.GetNamespace(), obj.GetName()) })
	w.watch(&corev1.LimitRange{}, func(obj any) { b.SetLimitRange(obj.(*corev1.LimitRange)) },
		func(obj client.Object) { b.DeleteLimitRange(obj.GetNamespace(), obj.GetName()) })
	w.watch(&nodev1.RuntimeClass{}, func(obj any) { b.SetRuntimeClass(obj.(*nodev1.RuntimeClass)) },
		func(obj client.Object) { b.DeleteRuntimeClass(obj.GetName()) })
	w.watch(&schedulingv1.PriorityClass{}, func(obj any) { b.SetPriorityClass(obj.(*schedulingv1.PriorityClass)) },
		func(obj client.Object) { b.DeletePriorityClass(obj.GetName()) })
}

// watchNodeClass watches a kind of NodeClass by the very informer that the provider reads it from. With one of its own,
// the provider could be asked about a change before it knows of it, and what it said then would stand for minutes. The
// informer has a Go type, and one object that the type can't read hides all; the CRD lets none such through.
func (b *Book) watchNodeClass(w *watcher, gvk schema.GroupVersionKind) {
	ref := func(name string) cluster.ClassRef {
		return cluster.ClassRef{Group: gvk.Group, Kind: gvk.Kind, Name: name}
	}
	if w.err != nil {
		return
	}
	informer, err := w.informers.GetInformerForKind(w.ctx, gvk)
	w.handle(gvk.Kind, informer, err, func(obj any) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			panic(fmt.Sprintf("a %s of the API server can't be read: %v", gvk.Kind, err)) // it was decoded a moment ago
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(gvk)
		b.SetNodeClass(ref(u.GetName()), nodeClassState(u))
		b.NoteNodeClassVersion(ref(u.GetName()), u.GetResourceVersion())
	}, func(obj client.Object) { b.DeleteNodeClass(ref(obj.GetName())) })
}

// nodeClassState reads the Ready condition of a NodeClass of any kind.
func nodeClassState(u *unstructured.Unstructured) cluster.NodeClassState {
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
			state.Pending, state.Reason, state.Message = true, classUnknown, fmt.Sprintf("%s %q has changed and is "+
				"being looked at", u.GetKind(), u.GetName())
		case c["status"] == string(metav1.ConditionTrue):
			state.Ready = true
		case c["status"] == string(metav1.ConditionUnknown):
			// Whoever keeps the class waits for something, and tells of it there if that is trouble.
			state.Pending, state.Reason, state.Message = true, classUnknown, fmt.Sprintf("%s %q is not ready yet: %s",
				u.GetKind(), u.GetName(), message)
		default:
			reason, _, _ := unstructured.NestedString(c, "reason")
			state.Reason = cmp.Or(reason, "NodeClassNotReady")
			state.Message = fmt.Sprintf("%s %q is not ready: %s", u.GetKind(), u.GetName(), message)
		}
		return state
	}
	state.Pending, state.Reason, state.Message = true, classUnknown, fmt.Sprintf("%s %q has no Ready condition yet",
		u.GetKind(), u.GetName())
	return state
}

// watcher registers handlers and keeps the first error.
type watcher struct {
	ctx       context.Context
	informers cache.Cache
	kinds     []client.Object // that may be watched
	synced    []toolscache.InformerSynced
	err       error
	// contain runs a handler and survives it.
	contain func(what string, f func()) error
}

// guarded is a handler of a kind that can't end the process. What it fails on is left as it was known before.
func (w *watcher) guarded(kind string, handle func(any)) func(any) {
	return func(obj any) {
		name := kind
		if o, ok := obj.(client.Object); ok {
			name += " " + o.GetNamespace() + "/" + o.GetName()
		}
		_ = w.contain(name, func() { handle(obj) }) // it has been told
	}
}

func (w *watcher) watch(obj client.Object, set func(any), remove func(client.Object)) {
	if w.err != nil {
		return
	}
	if !slices.ContainsFunc(w.kinds, func(k client.Object) bool { return kindOf(k) == kindOf(obj) }) {
		w.err = fmt.Errorf("watching %s: it is not in the list of kinds that are watched", kindOf(obj))
		return
	}
	informer, err := w.informers.GetInformer(w.ctx, obj)
	w.handle(kindOf(obj), informer, err, set, remove)
}

// handle hands on what an informer of a kind sees.
func (w *watcher) handle(kind string, informer cache.Informer, err error, set func(any), remove func(client.Object)) {
	if err != nil {
		w.err = fmt.Errorf("watching %s: %w", kind, explainMissing(err))
		return
	}
	set = w.guarded(kind, set)
	gone := w.guarded("the end of "+kind, func(obj any) { remove(obj.(client.Object)) })
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, obj any) { set(obj) },
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj
			}
			if _, ok := obj.(client.Object); ok {
				gone(obj)
			}
		},
	})
	if err != nil {
		w.err = fmt.Errorf("watching %s: %w", kind, err)
		return
	}
	w.synced = append(w.synced, handle.HasSynced)
}

// kindOf names a kind for people.
func kindOf(obj client.Object) string {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.GetKind()
	}
	return fmt.Sprintf("%T", obj)
}

func explainMissing(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%w (are the CustomResourceDefinitions of charts/karpenter-crd installed?)", err)
	}
	return err
}

func (w *watcher) wait() error {
	if w.err != nil {
		return w.err
	}
	if !toolscache.WaitForCacheSync(w.ctx.Done(), w.synced...) {
		return fmt.Errorf("waiting for the first list of each kind: %w", w.ctx.Err())
	}
	return nil
}
