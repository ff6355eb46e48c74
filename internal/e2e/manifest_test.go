package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// apply creates what the manifests in testdata say, in the order of the names given. The word NAMESPACE stands for the
// test's own. A field that the API does not know is an error.
func (w *world) apply(names ...string) {
	w.Helper()
	strict := client.WithFieldValidation(w.c, "Strict")
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		w.must(err)
		for _, document := range strings.Split(strings.ReplaceAll(string(text), "NAMESPACE", w.lab.Namespace()), "\n---\n") {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				w.Fatalf("reading %s: %v", name, err)
			}
			if err := strict.Create(w.ctx, &object); err != nil {
				w.Fatalf("creating %s %s of %s: %v", object.GetKind(), object.GetName(), name, err)
			}
		}
	}
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
