package measure

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/observe/series"
)

// Calls counts and times requests to the API server: what it returns is put around the transport of a client.
func Calls(registry series.Registerer, now func() time.Time) func(http.RoundTripper) http.RoundTripper {
	c := &apiCalls{
		now: now,
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "client_go_request_duration_seconds", Help: "Time until the API server answered a request; watches " +
				"are not counted.",
			Buckets: prometheus.ExponentialBuckets(0.001, 1.5, 20),
		}, []string{"verb", "group", "version", "kind", "subresource"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "client_go_request_total", Help: "Requests to the API server, by status and method.",
		}, []string{"code", "method"}),
	}
	registry.MustRegister(c.took, c.total)
	return func(next http.RoundTripper) http.RoundTripper { return &countingTransport{apiCalls: c, next: next} }
}

type apiCalls struct {
	now   func() time.Time
	took  *prometheus.HistogramVec
	total *prometheus.CounterVec
}

type countingTransport struct {
	*apiCalls
	next http.RoundTripper
}

// RoundTrip passes the request on and notes what became of it. A request without an answer has the code "<error>".
func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	began := c.now()
	answer, err := c.next.RoundTrip(r)
	code := "<error>"
	if err == nil {
		code = strconv.Itoa(answer.StatusCode)
	}
	c.total.WithLabelValues(code, r.Method).Inc()
	if target, ok := requestTargetOf(r.URL.Path); ok && r.URL.Query().Get("watch") == "" {
		c.took.WithLabelValues(verbOf(r.Method, target.named), target.group, target.version, target.kind,
			target.subresource).Observe(c.now().Sub(began).Seconds())
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find what is below.
func (c *countingTransport) WrappedRoundTripper() http.RoundTripper { return c.next }

// requestTarget is what a request is about. kind is the word of the path, such as "nodeclaims".
type requestTarget struct {
	group, version, kind, subresource string
	named                             bool // it is about one object
}

// requestTargetOf reads /api/v1/… and /apis/GROUP/VERSION/…; ok is false for paths that are about no object.
func requestTargetOf(path string) (t requestTarget, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.group, t.version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	// A namespace's own subresources look like kinds in it.
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	t.kind, t.named = parts[0], len(parts) > 1
	if len(parts) > 2 {
		t.subresource = parts[2]
	}
	return t, true
}

func verbOf(method string, named bool) string {
	switch {
	case method == http.MethodPost, method == http.MethodPut && !named:
		return "CREATE"
	case method == http.MethodPut:
		return "UPDATE"
	case method == http.MethodGet && !named:
		return "LIST"
	}
	return method
}
