package lease

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bodied is a request's text that says whether it was closed.
type bodied struct {
	*strings.Reader
	closed bool
}

func (b *bodied) Close() error { b.closed = true; return nil }

// What changes something reaches the API server only while this replica leads; reads always do.
func TestWritesAreFencedAtTheWire(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
	}))
	defer server.Close()
	leads := true
	config := &rest.Config{Host: server.URL}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return fence{leads: func() bool { return leads }, next: next}
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	api, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	for name, write := range map[string]func() error{
		"delete":           func() error { return api.Delete(t.Context(), node) },
		"create":           func() error { return api.Create(t.Context(), node.DeepCopy()) },
		"take a finalizer": func() error { return api.Patch(t.Context(), node.DeepCopy(), patch) },
		"change a status":  func() error { return api.Status().Patch(t.Context(), node.DeepCopy(), patch) },
		"evict": func() error {
			return api.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{})
		},
	} {
		leads = true
		before := sent.Load()
		if err := write(); err == nil || errors.Is(err, errFenced) || sent.Load() != before+1 {
			t.Errorf("%s while it leads: error %v, %d requests sent", name, err, sent.Load()-before)
		}
		leads = false
		if err := write(); !errors.Is(err, errFenced) || sent.Load() != before+1 {
			t.Errorf("%s when it does not: error %v, %d requests sent", name, err, sent.Load()-before-1)
		}
	}
	before := sent.Load()
	if err := api.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); errors.Is(err, errFenced) ||
		sent.Load() != before+1 {
		t.Errorf("a read: error %v, %d requests sent", err, sent.Load()-before)
	}
}

// A request that is not sent is closed, as the contract of RoundTripper asks for.
func TestFencedRequestsAreClosed(t *testing.T) {
	body := &bodied{Reader: strings.NewReader("x")}
	req := &http.Request{Method: http.MethodPost, Body: body}
	answer, err := fence{leads: func() bool { return false }}.RoundTrip(req)
	if answer != nil || !errors.Is(err, errFenced) || !body.closed {
		t.Errorf("answer %v, error %v, closed: %t", answer, err, body.closed)
	}
}
