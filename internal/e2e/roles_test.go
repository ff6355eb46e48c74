package e2e

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// requests notes what is asked of the API server on its way there: "patch nodeclaims/status.karpenter.sh".
type requests struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]bool
}

// noteRequests puts itself in front of the lab's API server.
func (w *world) noteRequests() *requests {
	w.Helper()
	lab := w.lab.Config()
	target, err := url.Parse(lab.Host)
	w.must(err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(lab)) // the caller's token goes through
	w.must(err)
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
	}}
	n := &requests{seen: map[string]bool{}}
	n.Server = httptest.NewTLSServer( // without TLS no client sends its token
		http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if what := asked(r); what != "" {
				n.mu.Lock()
				n.seen[what] = true
				n.mu.Unlock()
			}
			proxy.ServeHTTP(out, r)
		}))
	w.Cleanup(n.CloseClientConnections)
	return n
}

// config is how to reach the API server through it, without saying who asks.
func (n *requests) config() *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.Certificate().Raw})
	return &rest.Config{Host: n.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// asked is the permission that a request needs; empty for what everybody may, such as to ask which kinds there are.
func asked(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	verb := map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete",
		"GET": "get"}[r.Method]
	if verb == "get" && len(parts) == 1 {
		verb = "list"
		if r.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
	}
	return permission(verb, resource, group)
}

func permission(verb, resource, group string) string {
	if group != "" {
		resource += "." + group
	}
	return verb + " " + resource
}

// granted are the permissions that the files give to the controller's account.
func (w *world) granted(files ...string) map[string]bool {
	w.Helper()
	out := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		w.must(err)
		for _, document := range strings.Split(string(text), "\n---\n") {
			var role rbacv1.ClusterRole
			w.must(yaml.Unmarshal([]byte(document), &role))
			for _, rule := range role.Rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							out[permission(verb, resource, group)] = true
						}
					}
				}
			}
		}
	}
	return out
}

// seldom are permissions that are needed for what does not happen in every walk.
func seldom() map[string]string {
	return map[string]string{
		"get nodeclaims.karpenter.sh": "after a conflict, and when a create finds the claim there already, the claim " +
			"is read past the cache",
		"get nodepools.karpenter.sh": "after a conflict the pool is read past the cache",
		"get nodes":                  "after a conflict the node is read past the cache",
		"delete pods":                "when the time of a node is up",
		"create pods/eviction":       "when a node with pods goes",
		"patch pods/status":          "when a node comes whose pods kube-scheduler has not bound by itself",
		"patch customresourcedefinitions/status.apiextensions.k8s.io": "in a cluster with objects that an older " +
			"version has stored",
		"create leases.coordination.k8s.io": "the first replica ever; the tests of the " +
			"election run without this account",
		"get leases.coordination.k8s.io": "the tests of the election run without this " +
			"account",
		"update leases.coordination.k8s.io": "the tests of the election run without this " +
			"account",
		"update nodepools/finalizers.karpenter.sh":  "by OwnerReferencesPermissionEnforcement only",
		"update nodeclaims/finalizers.karpenter.sh": "by OwnerReferencesPermissionEnforcement only",
		"create nodepools.karpenter.sh": "when there are Provisioners, which " +
			"TestProvisionersOfTheDocuments has",
		"patch provisioners/status.karpenter.sh":          "when there are Provisioners",
		"patch awsnodetemplates/status.karpenter.k8s.aws": "when there are AWSNodeTemplates",
		"create ec2nodeclasses.karpenter.k8s.aws":         "when there are Provisioners or AWSNodeTemplates",
		"delete ec2nodeclasses.karpenter.k8s.aws": "when a Provisioner no longer has settings of " +
			"its own",
	}
}

// compareRoles says which permissions of the controller nothing asked for.
func (w *world) compareRoles(n *requests, files ...string) {
	w.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	granted := w.granted(files...)
	for _, what := range slices.Sorted(maps.Keys(granted)) {
		if rest, lists := strings.CutPrefix(what, "list "); lists && n.seen[permission("watch", rest, "")] {
			continue // a watch can begin with the list; an API server that does not offer that is asked for both
		}
		if _, ok := seldom()[what]; !n.seen[what] && !ok {
			w.Errorf("charts/karpenter/rbac allows to %s, which the controller never asked for", what)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(n.seen)) {
		if !granted[what] {
			w.Errorf("the controller wants to %s, which charts/karpenter/rbac does not allow", what)
		}
	}
	for what := range seldom() {
		if !granted[what] {
			w.Errorf("%s is said to be needed seldom and is not granted at all", what)
		}
	}
}

// tokenOf is a token of a service account in the test's namespace, which is made.
func (w *world) tokenOf(name string) string {
	w.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(), Name: name}}
	w.create(account)
	request := &authenticationv1.TokenRequest{}
	w.must(w.c.SubResource("token").Create(w.ctx, account, request))
	return request.Status.Token
}

// TestSecureMetrics: with --secure-metrics only those read the metrics port whom the cluster's RBAC lets.
func TestSecureMetrics(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	account := w.asServiceAccount(w.lab.Config(), filepath.Join("optional", "secure-metrics.yaml"))
	stranger, reader := w.tokenOf("stranger"), w.tokenOf("reader")
	w.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.lab.Namespace() + "-reads-metrics"},
		RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole",
			Name: "karpenter-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.lab.Namespace(), Name: "reader"}}})
	// The simulated cloud keeps its instances in the cluster, which the roles for AWS do not allow: it does not come to
	// that here.
	c := w.run("--kubeconfig", account, "--metrics-port", port, "--secure-metrics", "--enable-profiling")
	// the certificate is signed by itself
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	get := func(path, token string) string {
		r, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "https://127.0.0.1:"+port+path, nil)
		w.must(err)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(answer.StatusCode, strings.Contains(string(text), "\ngo_goroutines "))
	}
	for _, try := range []struct{ path, token, want string }{
		{"/metrics", reader, "200true"}, {"/metrics", "", "401false"}, {"/metrics", "nonsense", "401false"},
		{"/metrics", stranger, "403false"},
		{"/debug/pprof/", reader, "403false"}, {"/debug/pprof/", "", "401false"}, {"/debug/tenon/disruption", reader,
			"403false"},
	} {
		w.eventually(func() string {
			if got := strings.ReplaceAll(get(try.path, try.token), " ", ""); got != try.want {
				return fmt.Sprintf("%s with the token %.10s: %s, want %s", try.path, try.token, got, try.want)
			}
			return ""
		})
	}
	if strings.Contains(c.log.String(), "could not be reviewed") {
		t.Errorf("the roles are not enough:\n%s", tail(c.log.String(), 40))
	}
}
