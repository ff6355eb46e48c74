package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// endsWithin bounds how long conversions that are under way are waited for at the end.
const endsWithin = 5 * time.Second

// serve answers on the listener. Once the context ends it goes on for the grace: the API server may still be led here,
// as long as the pod is an endpoint of the Service. A server that ends by itself is told as a failure.
func (w *Webhook) serve(ctx context.Context, listener net.Listener) {
	stopped := make(chan error, 1)
	go func() { stopped <- w.server.ServeTLS(listener, "", "") }()
	go func() {
		defer close(w.ended)
		select {
		case err := <-stopped:
			if ctx.Err() == nil {
				w.failed(fmt.Errorf("the webhook has stopped serving at %s: %w", listener.Addr(), err))
			}
			return
		case <-ctx.Done():
		}
		if w.grace > 0 {
			select {
			case <-stopped:
				return
			case <-w.after(w.grace):
			}
		}
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endsWithin)
		defer cancel()
		if err := w.server.Shutdown(ending); err != nil && !errors.Is(err, http.ErrServerClosed) {
			w.log.Error(err, "conversions that were under way are cut off")
			_ = w.server.Close() // it ends anyway
		}
	}()
}

// Wait waits until nothing is served any more, after the context that it was started with has ended.
func (w *Webhook) Wait() { <-w.ended }
