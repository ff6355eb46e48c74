package ingest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A list tells of pods that came and went while the watch was broken; one that was made anew under the same name is
// another.
func TestAListReplacesThePodsThatWereKnown(t *testing.T) {
	b, _ := newBook()
	store := &podStore{book: b}
	pod := func(name, uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid),
			ResourceVersion: "1"}}
	}
	for _, p := range []*corev1.Pod{pod("stays", "1"), pod("goes", "2"), pod("anew", "3")} {
		if err := store.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-b.podsLoaded.done:
		t.Error("the book counts as filled before the first list")
	default:
	}
	if err := store.Replace([]any{pod("stays", "1"), pod("anew", "4"), pod("comes", "5")}, "9"); err != nil {
		t.Fatal(err)
	}
	if err := b.podsLoaded.wait(t.Context()); err != nil {
		t.Error(err)
	}
	var have []string
	for _, p := range b.Snapshot().Pods {
		have = append(have, p.Name+"="+p.UID)
	}
	if want := []string{"stays=1", "anew=4", "comes=5"}; !slices.Equal(have, want) {
		t.Errorf("pods %v, want %v", have, want)
	}
	if err := store.Delete(pod("comes", "5")); err != nil || len(b.Snapshot().Pods) != 2 {
		t.Errorf("after a deletion (%v): %d pods", err, len(b.Snapshot().Pods))
	}
	if err := store.Add(&corev1.Node{}); err == nil {
		t.Error("a node was taken for a pod")
	}
}
