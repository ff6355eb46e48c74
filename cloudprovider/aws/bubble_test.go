package aws_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws"
)

// inBubble runs a test in which time passes only when everybody waits, so that waiting costs nothing and a busy machine
// changes nothing. EC2 is called through the SDK, but not over a network, which such a test can't wait for.
func inBubble(t *testing.T, s setup, test func(t *testing.T, w *world, p *aws.Provider)) {
	t.Helper()
	s.direct = true
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(15 * time.Minute) // until the last instance has its name
		w, p := start(t, s)
		test(t, w, p)
	})
}

// direct brings requests to a handler as a network would.
type direct struct{ to http.Handler }

// Do implements the SDK's HTTP client. Whoever gives up gets no answer; the handler does its work all the same.
func (d direct) Do(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.Host, in.RequestURI = r.URL.Host, r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	in.Body = io.NopCloser(bytes.NewReader(body))
	answers := make(chan *http.Response, 1)
	go func() {
		defer close(answers)
		defer func() {
			if lost := recover(); lost != nil && lost != http.ErrAbortHandler {
				panic(lost)
			}
		}()
		recorder := httptest.NewRecorder()
		d.to.ServeHTTP(recorder, in)
		answers <- recorder.Result()
	}()
	select {
	case answer, ok := <-answers:
		if !ok {
			return nil, io.ErrUnexpectedEOF
		}
		return answer, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
