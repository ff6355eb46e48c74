package webhook

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// served is a webhook that serves, and what tells when its grace is over.
type served struct {
	*Webhook
	listener net.Listener
	over     chan time.Time
	failures chan error
}

func serve(t *testing.T, ctx context.Context, grace time.Duration) *served {
	t.Helper()
	material, err := renew(material{}, time.Now(), []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(material.certificate, material.key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{listener: listener, over: make(chan time.Time), failures: make(chan error, 1)}
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }
	handler := newHandler(&converter{}, logr.Discard())
	s.Webhook = &Webhook{log: logr.Discard(), grace: grace, after: func(time.Duration) <-chan time.Time {
		return s.over
	},
		failed: func(err error) { s.failures <- err }, ended: make(chan struct{}),
		server: newServer(handler, certificate, logr.Discard())}
	s.serve(ctx, listener)
	return s
}

// ask sends a request on a new connection, and says how it was answered.
func (s *served) ask(t *testing.T, body io.Reader, size int64) (int, string, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	address := "https://" + s.listener.Addr().String() + Path
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, body)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = size
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

const emptyReview = `{"request":{"uid":"1"}}`

// TestGrace: whoever is still led here after the end has begun gets an answer, until the grace is over.
func TestGrace(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := serve(t, ctx, time.Hour)
	stop()
	status, text, err := s.ask(t, strings.NewReader(emptyReview), int64(len(emptyReview)))
	if err != nil || status != http.StatusOK {
		t.Errorf("during the grace: %d %s %v", status, text, err)
	}
	close(s.over)
	s.Wait()
	if _, _, err := s.ask(t, strings.NewReader(emptyReview), int64(len(emptyReview))); err == nil {
		t.Error("after the grace it still answers")
	}
	select {
	case err := <-s.failures:
		t.Errorf("the end that was asked for is told as a failure: %v", err)
	default:
	}
}

// TestServerStops: a server that ends by itself is told, so that the process ends with an error.
func TestServerStops(t *testing.T) {
	s := serve(t, t.Context(), 0)
	if err := s.listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-s.failures; !strings.Contains(err.Error(), "the webhook has stopped serving at 127.0.0.1:") {
		t.Errorf("told is %v", err)
	}
	s.Wait()
}

// TestSizesRefused: what is larger than the bound is refused before it is sent, with the way out, and so is what does
// not tell its size.
func TestSizesRefused(t *testing.T) {
	s := serve(t, t.Context(), 0)
	unsent, sender := io.Pipe()
	t.Cleanup(func() { _ = sender.Close() })
	for name, tc := range map[string]struct {
		body   io.Reader
		size   int64
		status int
		text   string
	}{
		"too large": {unsent, mostBytes + 1, http.StatusRequestEntityTooLarge, "limit and continue"},
		"not told":  {strings.NewReader(emptyReview), -1, http.StatusLengthRequired, "Content-Length"},
	} {
		status, text, err := s.ask(t, tc.body, tc.size)
		if err != nil || status != tc.status || !strings.Contains(text, tc.text) {
			t.Errorf("%s: %d %s %v", name, status, text, err)
		}
	}
}
