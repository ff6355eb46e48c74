package apitest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Every example must be accepted as it is, by a server that refuses what it does not know.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d examples (%v)", len(files), err)
	}
	l := newLab(t)
	l.InstallCRDs(os.DirFS("../../examples/provider/crds"))
	c := client.WithFieldValidation(l.Client(scheme(t)), "Strict")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, object := range readAll(t, file) {
				if err := c.Create(t.Context(), object); err != nil {
					t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
				}
				t.Cleanup(func() { remove(t, c, object) })
			}
		})
	}
}

func readAll(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	documents := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		objects = append(objects, object)
	}
}
