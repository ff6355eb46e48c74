package apiserver

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// The first list must be current: by default it may come from a cache of the API server that is behind.
func TestFirstListIsCurrent(t *testing.T) {
	var asked []string
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			asked = append(asked, "list "+o.ResourceVersion)
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			asked = append(asked, "watch "+o.ResourceVersion)
			return watch.NewFake(), nil
		},
	}
	of := NewCurrentLister(toolscache.ToListWatcherWithWatchListSemantics(lw, noStreams{})).(currentLister)
	for _, version := range []string{"0", "", "5"} {
		if _, err := of.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: version}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := of.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "7"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"list ", "list ", "list 5", "watch 7"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if !of.IsWatchListSemanticsUnSupported() {
		t.Error("it is forgotten that the client can't stream lists")
	}
	if NewCurrentLister(lw).(currentLister).IsWatchListSemanticsUnSupported() {
		t.Error("a client that can stream lists does not")
	}
}

// noStreams is a client that can't stream lists.
type noStreams struct{}

func (noStreams) IsWatchListSemanticsUnSupported() bool { return true }
