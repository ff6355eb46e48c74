package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
)

// pipes listens to connections within a bubble, whose clock costs no time.
type pipes struct {
	coming chan net.Conn
	ended  chan struct{}
	end    func()
	// accepted are the connections that the server has taken.
	accepted []net.Conn
}

func newPipes() *pipes {
	p := &pipes{coming: make(chan net.Conn), ended: make(chan struct{})}
	p.end = sync.OnceFunc(func() { close(p.ended) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.coming:
		p.accepted = append(p.accepted, c)
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.end(); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// TestConnections: there are so many and no more, and as soon as one ends the next is served. What asks the API server
// leaves some to be asked on.
func TestConnections(t *testing.T) {
	if claimPlaces+mostLarge >= connections {
		t.Errorf("%d requests may ask the API server, and there are %d connections", claimPlaces+mostLarge, connections)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p := newPipes()
		none := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }
		w := &Webhook{log: logr.Discard(), ended: make(chan struct{}),
			server: newServer(http.NotFoundHandler(), none, logr.Discard())}
		w.serve(ctx, p)
		for range connections + 2 {
			near, far := net.Pipe()
			defer func() { _ = near.Close() }()
			go func() {
				select {
				case p.coming <- far:
				case <-p.ended:
				}
			}()
		}
		for _, want := range []int{connections, connections + 1} {
			synctest.Wait()
			if len(p.accepted) != want {
				t.Errorf("%d connections are served, want %d", len(p.accepted), want)
			}
			_ = p.accepted[0].Close()
		}
		stop()
		w.Wait()
	})
}
