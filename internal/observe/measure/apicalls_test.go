package measure

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

type transport func(*http.Request) (*http.Response, error)

func (a transport) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func TestCallsAreCountedByWhatTheyAreAbout(t *testing.T) {
	for _, c := range []struct {
		method, path                            string
		verb, group, version, kind, subresource string
	}{
		{"GET", "/api/v1/pods", "LIST", "", "v1", "pods", ""},
		{"POST", "/api/v1/namespaces/a/pods/b/eviction", "CREATE", "", "v1", "pods", "eviction"},
		{"GET", "/api/v1/namespaces/a", "GET", "", "v1", "namespaces", ""},
		{"PUT", "/api/v1/namespaces/a/finalize", "UPDATE", "", "v1", "namespaces", "finalize"},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x", "UPDATE", "coordination.k8s.io", "v1",
			"leases", ""},
		{"PATCH", "/apis/karpenter.sh/v1/nodeclaims/x/status", "PATCH", "karpenter.sh", "v1", "nodeclaims", "status"},
		{"DELETE", "/api/v1/nodes/n", "DELETE", "", "v1", "nodes", ""},
	} {
		registry := prometheus.NewRegistry()
		at := time.Unix(0, 0)
		wrap := Calls(registry, func() time.Time { at = at.Add(time.Second); return at })
		client := wrap(transport(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 409}, nil
		}))
		if _, err := client.RoundTrip(httptest.NewRequest(c.method, "http://x"+c.path, nil)); err != nil {
			t.Fatal(err)
		}
		took := client.(*countingTransport).took.WithLabelValues(c.verb, c.group, c.version, c.kind, c.subresource)
		if n := testutil.CollectAndCount(client.(*countingTransport).took); n != 1 {
			t.Errorf("%s %s: %d series, want one", c.method, c.path, n)
		}
		if sum := sumOf(t, took); sum != 1 {
			t.Errorf("%s %s: took %v s, want 1 under %+v", c.method, c.path, sum, c)
		}
		if n := testutil.ToFloat64(client.(*countingTransport).total.WithLabelValues("409", c.method)); n != 1 {
			t.Errorf("%s %s: counted %v times", c.method, c.path, n)
		}
	}
}

func sumOf(t *testing.T, o prometheus.Observer) float64 {
	t.Helper()
	var out dto.Metric
	if err := o.(prometheus.Metric).Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetHistogram().GetSampleSum()
}

// A watch lasts as long as it likes, a request that fails has no status, and neither has a path about no object a kind.
func TestCallsThatAreNotTimed(t *testing.T) {
	wrap := Calls(prometheus.NewRegistry(), time.Now)
	client := wrap(transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }))
	for _, path := range []string{"/api/v1/pods?watch=true", "/healthz", "/api/v1", "/apis/karpenter.sh/v1"} {
		if _, err := client.RoundTrip(httptest.NewRequest("GET", "http://x"+path, nil)); err == nil {
			t.Error("the error was swallowed")
		}
	}
	if n := testutil.CollectAndCount(client.(*countingTransport).took); n != 0 {
		t.Errorf("%d series, want none", n)
	}
	if n := testutil.ToFloat64(client.(*countingTransport).total.WithLabelValues("<error>", "GET")); n != 4 {
		t.Errorf("counted %v times, want 4", n)
	}
}
