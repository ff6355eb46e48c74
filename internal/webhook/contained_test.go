package webhook

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestPanicsInTheBackground: an object on which the background work fails is told, and ends nothing; it is tried again.
func TestPanicsInTheBackground(t *testing.T) {
	broken := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			panic("an object that nobody can read")
		},
	}).Build()
	w := &Webhook{log: logr.Discard(), store: &store{client: broken, now: time.Now}}
	if _, err := w.try(t.Context()); err == nil || !strings.Contains(err.Error(), "an object that nobody can read") {
		t.Errorf("a look: %v", err)
	}
	if again := w.look(t.Context()); again != retries {
		t.Errorf("the next look is in %s, want %s", again, retries)
	}
	o := newOlder(t, "a")
	fails := interceptor.NewClient(o.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			panic("an object that nobody can write")
		},
	})
	m := &migration{client: fails, log: logr.Discard(), done: map[string]progress{}}
	if err := m.all(t.Context()); err == nil || !strings.Contains(err.Error(), "an object that nobody can write") {
		t.Errorf("a migration: %v", err)
	}
}
