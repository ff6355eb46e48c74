package feed

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A handler that fails leaves what was known, and the next object is taken in.
func TestHandlerFails(t *testing.T) {
	told := ""
	w := New(t.Context(), nil, nil, func(what string, f func()) (err error) {
		defer func() {
			if r := recover(); r != nil {
				told += what
				err = fmt.Errorf("%v", r)
			}
		}()
		f()
		return nil
	})
	taken := ""
	set := w.guarded("Node", func(obj any) {
		if name := obj.(*corev1.Node).Name; name == "bad" {
			panic("boom")
		}
		taken += obj.(*corev1.Node).Name
	})
	for _, name := range []string{"a", "bad", "b"} {
		set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if taken != "ab" || told != "Node /bad" {
		t.Errorf("taken in %s, told of %s", taken, told)
	}
}

// A kind that is not prepared is not watched: it would be missed while another replica leads.
func TestOnlyKindsOfTheListAreWatched(t *testing.T) {
	w := New(t.Context(), nil, nil, nil)
	w.Watch(&corev1.Node{}, func(any) {}, nil)
	if err := w.Wait(); err == nil {
		t.Error("a kind is watched that is not in the list")
	}
}
