package ingest

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// late is an API server with two claims and a node; before each list something happens.
type late struct {
	client.Reader
	before func(list int)
	lists  int
	err    error
}

func (l *late) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.lists++
	l.before(l.lists)
	out := list.(*metav1.PartialObjectMetadataList)
	item := func(name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	}
	if out.Items = []metav1.PartialObjectMetadata{item("a"), item("b")}; out.Kind == "NodeList" {
		out.Items = []metav1.PartialObjectMetadata{item("n")}
	}
	return l.err
}

func TestCatchUpWaitsForWhatTheAPIServerHas(t *testing.T) {
	b, _ := newBook()
	claim := func(name, uid string) *v1.NodeClaim {
		return &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	}
	b.SetClaim(claim("a", "uid-a"))
	waits := 0
	wait := func(context.Context, time.Duration) error { waits++; return nil }
	api := &late{before: func(list int) {
		switch list {
		case 2:
			b.SetClaim(claim("b", "another")) // a namesake of before
		case 3:
			b.SetClaim(claim("b", "uid-b"))
		case 5: // claims, nodes, claims again
			b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}})
		}
	}}
	if err := b.CatchUp(t.Context(), api, wait); err != nil || waits != 3 || api.lists != 6 {
		t.Errorf("error %v after %d waits and %d lists", err, waits, api.lists)
	}
}

func TestCatchUpGivesUp(t *testing.T) {
	b, _ := newBook()
	slept := time.Duration(0)
	wait := func(_ context.Context, d time.Duration) error { slept += d; return nil }
	const want = "the API server has NodeClaim a, and the watch has not shown it yet"
	if err := b.CatchUp(t.Context(), &late{before: func(int) {}}, wait); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if slept < 20*time.Second || slept > 40*time.Second {
		t.Errorf("it waits for %s", slept)
	}
	away := errors.New("away")
	if err := b.CatchUp(t.Context(), &late{before: func(int) {}, err: away}, wait); !errors.Is(err, away) {
		t.Errorf("error %v", err)
	}
	stop := func(context.Context, time.Duration) error { return context.Canceled }
	if err := b.CatchUp(t.Context(), &late{before: func(int) {}}, stop); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
