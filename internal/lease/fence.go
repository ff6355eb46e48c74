package lease

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// errFenced says that a request was not sent to the API server, because this replica may no longer lead. Whoever leads
// decides anew.
var errFenced = errors.New("nothing was sent: this replica can't be sure that it still leads")

// Writer is the client that commands are carried out with. leads says whether this replica leads; nil if it always
// does. Whatever changes something is held to it right before it is sent: it may have waited for its turn or for its
// next attempt, and the process may have been frozen meanwhile.
func Writer(mgr manager.Manager, leads func() bool) (client.Client, error) {
	if leads == nil {
		return mgr.GetClient(), nil
	}
	config := rest.CopyConfig(mgr.GetConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fence{leads: leads, next: next} })
	out, err := client.New(config, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: mgr.GetCache(), Unstructured: true}}) // see package tolerant
	if err != nil {
		return nil, fmt.Errorf("preparing the connection that commands are carried out with: %w", err)
	}
	return out, nil
}

// fence lets requests that change something through only while this replica leads.
type fence struct {
	leads func() bool
	next  http.RoundTripper
}

// RoundTrip sends the request if it may be sent.
func (f fence) RoundTrip(req *http.Request) (*http.Response, error) {
	reads := req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == http.MethodOptions
	if reads || f.leads() {
		return f.next.RoundTrip(req)
	}
	if req.Body != nil {
		if err := req.Body.Close(); err != nil {
			return nil, errors.Join(errFenced, err)
		}
	}
	return nil, errFenced
}
