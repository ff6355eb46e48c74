package feed

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watcher registers handlers and keeps the first error.
type Watcher struct {
	ctx       context.Context
	informers cache.Cache
	kinds     []client.Object // that may be watched
	synced    []toolscache.InformerSynced
	err       error
	// contain runs a handler and survives it.
	contain func(what string, f func()) error
}

// New is a watcher that may watch some kinds. contain runs a handler and survives it.
func New(ctx context.Context, informers cache.Cache, kinds []client.Object,
	contain func(what string, f func()) error) *Watcher {
	return &Watcher{ctx: ctx, informers: informers, kinds: kinds, contain: contain}
}

// Prepare makes informers without waiting for them.
func Prepare(ctx context.Context, informers cache.Cache, classes []schema.GroupVersionKind,
	kinds []client.Object) error {
	for _, gvk := range classes {
		if _, err := informers.GetInformerForKind(ctx, gvk, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %s: %w", gvk.Kind, explainMissing(err))
		}
	}
	for _, obj := range kinds {
		if _, err := informers.GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %s: %w", KindOf(obj), explainMissing(err))
		}
	}
	return nil
}

// guarded is a handler of a kind that can't end the process. What it fails on is left as it was known before.
func (w *Watcher) guarded(kind string, handle func(any)) func(any) {
	return func(obj any) {
		name := kind
		if o, ok := obj.(client.Object); ok {
			name += " " + o.GetNamespace() + "/" + o.GetName()
		}
		_ = w.contain(name, func() { handle(obj) }) // it has been told
	}
}

// Watch watches a kind, which must be one of those that may be watched.
func (w *Watcher) Watch(obj client.Object, set func(any), remove func(client.Object)) {
	if w.err != nil {
		return
	}
	if !slices.ContainsFunc(w.kinds, func(k client.Object) bool { return KindOf(k) == KindOf(obj) }) {
		w.err = fmt.Errorf("watching %s: it is not in the list of kinds that are watched", KindOf(obj))
		return
	}
	informer, err := w.informers.GetInformer(w.ctx, obj)
	w.handle(KindOf(obj), informer, err, set, remove)
}

// WatchKind watches a kind by the informer that others read it from.
func (w *Watcher) WatchKind(gvk schema.GroupVersionKind, set func(any), remove func(client.Object)) {
	if w.err == nil {
		informer, err := w.informers.GetInformerForKind(w.ctx, gvk)
		w.handle(gvk.Kind, informer, err, set, remove)
	}
}

// handle hands on what an informer of a kind sees.
func (w *Watcher) handle(kind string, informer cache.Informer, err error, set func(any), remove func(client.Object)) {
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

// KindOf names a kind for people.
func KindOf(obj client.Object) string {
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

// Wait waits until each kind has delivered what was there.
func (w *Watcher) Wait() error {
	if w.err != nil {
		return w.err
	}
	if !toolscache.WaitForCacheSync(w.ctx.Done(), w.synced...) {
		return fmt.Errorf("waiting for the first list of each kind: %w", w.ctx.Err())
	}
	return nil
}
