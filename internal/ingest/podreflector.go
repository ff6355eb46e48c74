package ingest

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tenon-sh/tenon/internal/ingest/apiserver"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// FollowPods feeds the book with pods until the context ends. They don't go through the cache that the other kinds
// share: nobody reads a pod again once it is in the book, and a copy of each would be most of the program's memory.
func (b *Book) FollowPods(ctx context.Context, pods toolscache.ListerWatcher) {
	store := &podStore{book: b}
	toolscache.NewReflectorWithOptions(apiserver.NewCurrentLister(pods), &corev1.Pod{}, store,
		toolscache.ReflectorOptions{Name: "pods"}).RunWithContext(ctx)
}

// signal is given once.
type signal struct {
	once sync.Once
	done chan struct{}
}

func (s *signal) give() { s.once.Do(func() { close(s.done) }) }

func (s *signal) wait(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the first list of pods: %w", ctx.Err())
	}
}

// podStore is the book, as client-go's reflector wants to see it.
type podStore struct{ book *Book }

// Transformer drops what nothing reads while a list is on its way. A pod that it fails on stays as it is.
func (s *podStore) Transformer() toolscache.TransformFunc {
	return func(obj any) (out any, err error) {
		out = obj
		_ = s.book.contain("a pod", func() { out, err = decode.Strip(obj) }) // it has been told
		return out, err
	}
}

func (s *podStore) Add(obj any) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("a pod was expected, not %T", obj)
	}
	s.book.setPodSafely(pod)
	return nil
}

func (s *podStore) Update(obj any) error { return s.Add(obj) }

func (s *podStore) Delete(obj any) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("a pod was expected, not %T", obj)
	}
	// it has been told
	_ = s.book.contain("the end of pod "+pod.Namespace+"/"+pod.Name, func() { s.book.DeletePod(pod) })
	return nil
}

// Replace takes in a whole list: who is not in it has gone while nobody was looking.
func (s *podStore) Replace(list []any, _ string) error {
	there := make(map[string]bool, len(list))
	for _, obj := range list {
		if pod, ok := obj.(*corev1.Pod); ok {
			there[string(pod.UID)] = true
		}
	}
	s.book.removePodsExcept(there) // first: one that was made anew must not be there twice
	for i, obj := range list {
		if err := s.Add(obj); err != nil {
			return err
		}
		list[i] = nil // the book has what it needs
	}
	s.book.podsLoaded.give()
	return nil
}

// Resync is for stores that hand out what they have again.
func (s *podStore) Resync() error { return nil }

// removePodsExcept takes in that all other pods are gone. One that can't be removed keeps no other; its failure is
// told.
func (b *Book) removePodsExcept(there map[string]bool) {
	for _, uid := range b.podsExcept(there) {
		_ = b.contain("the end of pod "+uid, func() { b.removePod(uid) })
	}
}

func (b *Book) podsExcept(there map[string]bool) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, p := range b.pods.All() {
		if !there[p.UID] {
			out = append(out, p.UID)
		}
	}
	return out
}
