package webhook_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
	"github.com/tenon-sh/tenon/internal/webhook"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	labtest.Main(m)
}

// world is a cluster with our definitions as they are installed.
type world struct {
	*testing.T
	lab *labtest.Lab
	// c refuses fields that the API server does not know, as kubectl does.
	c   client.Client
	ctx context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	l := labtest.New(t)
	l.InstallCRDs(crds.FS())
	return open(t, l)
}

func open(t *testing.T, l *labtest.Lab) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &world{T: t, lab: l, c: client.WithFieldValidation(l.Client(scheme), "Strict"), ctx: t.Context()}
}

// replica is a webhook that runs.
type replica struct {
	*webhook.Webhook
	url  string
	stop func()
}

// noEvents takes events and forgets them.
type noEvents struct{}

func (noEvents) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// start starts a webhook. leads says whether it is the elected replica.
func (w *world) start(leads bool) *replica {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	url := "https://" + listener.Addr().String() + webhook.Path
	hook, err := webhook.New(webhook.Settings{
		Config: w.lab.Config(), Address: webhook.Address{URL: url}, Secret: w.secret(),
		Leads: func() bool { return leads }, Events: noEvents{}, Failed: func(err error) { w.Error(err) },
		Log: logr.Discard(), Now: time.Now,
	})
	w.must(err)
	ctx, cancel := context.WithCancel(w.ctx)
	w.Cleanup(cancel)
	hook.Start(ctx, listener)
	return &replica{Webhook: hook, url: url, stop: func() { cancel(); _ = listener.Close() }}
}

func (w *world) secret() client.ObjectKey {
	return client.ObjectKey{Namespace: w.lab.Namespace(), Name: "karpenter-cert"}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// eventually waits until the check has nothing to say.
func (w *world) eventually(check func() error) {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("in vain: %v", err)
		}
		select {
		case <-w.ctx.Done():
			w.Fatal(w.ctx.Err())
		case <-time.After(50 * time.Millisecond): // the next look
		}
	}
}

// get reads an object in a version.
func (w *world) get(apiVersion, kind, name string) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion(apiVersion)
	out.SetKind(kind)
	return out, w.c.Get(w.ctx, client.ObjectKey{Name: name}, out)
}

// read is get for what must be there.
func (w *world) read(apiVersion, kind, name string) *unstructured.Unstructured {
	w.Helper()
	out, err := w.get(apiVersion, kind, name)
	w.must(err)
	return out
}

// serves waits until v1beta1 is served and converted.
func (w *world) serves() {
	w.Helper()
	for _, kind := range []string{"NodePool", "NodeClaim"} {
		w.eventually(func() error { return w.list("karpenter.sh/v1beta1", kind) })
	}
	w.eventually(func() error { return w.list("karpenter.k8s.aws/v1beta1", "EC2NodeClass") })
}

func (w *world) list(apiVersion, kind string) error {
	out := &unstructured.UnstructuredList{}
	out.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	return w.c.List(w.ctx, out)
}

// definition reads a definition.
func (w *world) definition(name string) *apiextensionsv1.CustomResourceDefinition {
	w.Helper()
	out := &apiextensionsv1.CustomResourceDefinition{}
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: name}, out))
	return out
}

// askedAt is where the API server asks for conversions of NodePools.
func (w *world) askedAt() string {
	w.Helper()
	conversion := w.definition("nodepools.karpenter.sh").Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig.URL == nil {
		return ""
	}
	return *conversion.Webhook.ClientConfig.URL
}

// parse reads the objects of a manifest.
func (w *world) parse(text string) []*unstructured.Unstructured {
	w.Helper()
	var out []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal([]byte(document), &object.Object))
		out = append(out, object)
	}
	return out
}

// founding returns the manifests of the founding documents that are of v1beta1, by name of their file.
func (w *world) founding() map[string][]*unstructured.Unstructured {
	w.Helper()
	files, err := filepath.Glob("testdata/founding/*.yaml")
	w.must(err)
	out := map[string][]*unstructured.Unstructured{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		w.must(err)
		out[filepath.Base(file)] = w.parse(string(text))
	}
	if len(out) != 7 {
		w.Fatalf("there are %d manifests, want 7", len(out))
	}
	return out
}

// certificate is what the Secret holds.
func (w *world) certificate() (map[string][]byte, error) {
	var secret corev1.Secret
	err := w.c.Get(w.ctx, w.secret(), &secret)
	return secret.Data, err
}

// field reads a field by its way.
func field(object *unstructured.Unstructured, way ...string) string {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, way...)
	if err != nil || !found {
		return ""
	}
	return fmt.Sprint(value)
}
