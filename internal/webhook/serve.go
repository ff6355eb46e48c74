package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
)

// endsWithin bounds how long conversions that are under way are waited for at the end.
const endsWithin = 5 * time.Second

const (
	// connections are served at the same time at most; others wait until one ends. API servers send one request at a
	// time on each, and keep 25 a definition for later.
	connections = 512
	// answersWithin is how long a request may take: the API server gives up after 30 s.
	answersWithin = 25 * time.Second
	// writesWithin is how long an answer may take to be sent.
	writesWithin = 10 * time.Second
	// idlesFor is how long a connection may wait for its next request: it holds the place of another one.
	idlesFor = 10 * time.Second
)

// newServer makes a server that nobody can hold on to by doing nothing. It speaks HTTP/1.1, as API servers do with
// webhooks: with HTTP/2 a connection would carry any number of requests.
func newServer(handler http.Handler, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error),
	l logr.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: handler, Protocols: protocols, ErrorLog: log.New(debugLog{l}, "", 0),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: answersWithin, WriteTimeout: answersWithin + writesWithin,
		IdleTimeout: idlesFor,
		TLSConfig:   &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate},
	}
}

// debugLog takes what the server says about single connections, such as one that was closed too early.
type debugLog struct{ log logr.Logger }

func (d debugLog) Write(text []byte) (int, error) {
	d.log.V(1).Info("a connection to the webhook failed", "problem", strings.TrimSpace(string(text)))
	return len(text), nil
}

// serve answers on the listener. Once the context ends it goes on for the grace: the API server may still be led here,
// as long as the pod is an endpoint of the Service. A server that ends by itself is told as a failure.
func (w *Webhook) serve(ctx context.Context, listener net.Listener) {
	stopped := make(chan error, 1)
	go func() { stopped <- w.server.ServeTLS(netutil.LimitListener(listener, connections), "", "") }()
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
