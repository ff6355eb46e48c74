package operator

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tenon-sh/tenon/internal/webhook"
)

// quietManager is a manager with nothing to do: it runs until the context ends.
type quietManager struct {
	manager.Manager
}

func (quietManager) GetLogger() logr.Logger          { return logr.Discard() }
func (quietManager) Add(manager.Runnable) error      { return nil }
func (quietManager) Start(ctx context.Context) error { <-ctx.Done(); return nil }

// TestWebhookThatFailsEndsTheProcess: a webhook that stops serving ends the controller with an error, so that the pod
// is started anew. Without that the API server would find nobody at an address that the definitions name.
func TestWebhookThatFailsEndsTheProcess(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(api.Close)
	ctx, lost := context.WithCancelCause(t.Context())
	defer lost(nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	on := &deps{config: &rest.Config{Host: api.URL}, mgr: quietManager{}, o: &options{}, lost: lost,
		leads: func() bool { return false }}
	hook, err := startWebhook(ctx, on, listener, webhook.Address{URL: "https://" + listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- runManager(ctx, on.mgr, on.o) }()
	if err := listener.Close(); err != nil { // as if the port were taken from it
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		said := "the webhook has stopped serving at " + listener.Addr().String()
		if err == nil || !strings.Contains(err.Error(), said) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the controller goes on without its webhook")
	}
	hook.Wait()
}
