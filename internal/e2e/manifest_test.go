package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// apply creates what the manifests in testdata say, in the order of the names given. The word NAMESPACE stands for the
// test's own, which is also that of objects that say none. A field that the API does not know is an error.
func (w *world) apply(names ...string) {
	w.Helper()
	strict := client.WithFieldValidation(w.c, "Strict")
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		w.must(err)
		for _, document := range strings.Split(strings.ReplaceAll(string(text), "NAMESPACE", w.lab.Namespace()),
			"\n---\n") {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				w.Fatalf("reading %s: %v", name, err)
			}
			if here, err := w.c.IsObjectNamespaced(&object); err == nil && here && object.GetNamespace() == "" {
				object.SetNamespace(w.lab.Namespace())
			}
			if err := strict.Create(w.ctx, &object); err != nil {
				w.Fatalf("creating %s %s of %s: %v", object.GetKind(), object.GetName(), name, err)
			}
		}
	}
}

// roleFiles are the files in charts/karpenter/rbac with the roles of the controller, and optional ones of these names.
// The one that has the account comes first.
func roleFiles(optional ...string) []string {
	var out []string
	for _, name := range append([]string{"core.yaml", "aws.yaml"}, optional...) {
		out = append(out, filepath.Join("..", "..", "charts", "karpenter", "rbac", name))
	}
	return out
}

// asServiceAccount is a kubeconfig with which a controller may do what charts/karpenter/rbac allows, and nothing else,
// at an address of the API server.
func (w *world) asServiceAccount(server *rest.Config, optional ...string) string {
	w.Helper()
	for _, file := range roleFiles(optional...) {
		text, err := os.ReadFile(file)
		w.must(err)
		for _, document := range strings.Split(string(text), "\n---\n") {
			var object unstructured.Unstructured
			w.must(yaml.Unmarshal([]byte(document), &object.Object))
			w.must(client.IgnoreAlreadyExists(w.c.Create(w.ctx, &object)))
			// The next test in this lab must not find more allowed than its own files say.
			w.Cleanup(func() { _ = w.c.Delete(context.Background(), &object) })
		}
	}
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter"}}
	w.must(w.c.SubResource("token").Create(w.ctx, account, request))
	own := clientcmdapi.NewConfig()
	own.Clusters["lab"] = &clientcmdapi.Cluster{Server: server.Host, CertificateAuthorityData: server.CAData,
		CertificateAuthority: server.CAFile}
	own.AuthInfos["karpenter"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	own.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "karpenter"}
	own.CurrentContext = "lab"
	path := filepath.Join(w.TempDir(), "kubeconfig")
	w.must(clientcmd.WriteToFile(*own, path))
	return path
}

// play lets a part of the cluster that the lab lacks act its role until the test ends. It is called again and again.
func (w *world) play(role func(context.Context) error) {
	ended := make(chan struct{})
	w.Cleanup(func() { <-ended }) // the test's context has ended by then
	go func() {
		defer close(ended)
		for {
			if err := role(w.ctx); err != nil && w.ctx.Err() == nil {
				w.Errorf("playing a part: %v", err)
			}
			select {
			case <-w.ctx.Done():
				return
			case <-time.After(100 * time.Millisecond): // the next look at the API server
			}
		}
	}()
}
