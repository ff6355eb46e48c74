package apiserver

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// NewInformer makes an informer whose first list is current.
func NewInformer(lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(NewCurrentLister(lw), obj, resync, indexers)
}

// currentLister asks for a current list where client-go asks for any: the first list of an informer may otherwise come
// from an API server that is behind the others, and lack what was made a moment ago. Later lists and watches never go
// back.
type currentLister struct {
	toolscache.ListerWatcherWithContext
	of toolscache.ListerWatcher
}

// NewCurrentLister makes a lister whose first list is current.
func NewCurrentLister(lw toolscache.ListerWatcher) toolscache.ListerWatcher {
	return currentLister{toolscache.ToListerWatcherWithContext(lw), lw}
}

func (l currentLister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

func (l currentLister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

func (l currentLister) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.ResourceVersion == "0" { // "any will do"
		o.ResourceVersion = ""
	}
	return l.ListerWatcherWithContext.ListWithContext(ctx, o)
}

// IsWatchListSemanticsUnSupported is how client-go asks whether a list can be had as a stream, which is always current.
func (l currentLister) IsWatchListSemanticsUnSupported() bool {
	of, ok := l.of.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && of.IsWatchListSemanticsUnSupported()
}
