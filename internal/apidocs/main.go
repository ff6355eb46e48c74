// Command apidocs writes a reference page for each kind of the API from its CustomResourceDefinition: every field of
// every version with its type, default, rules and meaning. The definitions are generated from the Go types, so the
// pages are, too.
//
//	make generate
//
// It stands beside the building: nothing imports it.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
)

func main() {
	out := flag.String("out", "docs/reference/api", "folder for the pages; other pages in it are removed")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintf(os.Stderr, "apidocs: %v\n", err)
		os.Exit(1)
	}
}

func run(out string) error {
	definitions, err := read(crds.FS())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", out, err)
	}
	old, err := filepath.Glob(filepath.Join(out, "*.md"))
	if err != nil {
		return fmt.Errorf("listing %s: %w", out, err)
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("removing an old page: %w", err)
		}
	}
	pages := map[string]string{"README.md": index(definitions)}
	for _, d := range definitions {
		pages[file(d)] = page(d)
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	return nil
}

// read reads the definitions, in the order of their names.
func read(from fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(from, "*.yaml")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no definitions were found: %w", fs.ErrNotExist)
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, name := range files {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, d); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return strings.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind)
	})
	return out, nil
}

// file is the name of a kind's page.
func file(d *apiextensionsv1.CustomResourceDefinition) string {
	return strings.ToLower(d.Spec.Names.Kind) + ".md"
}
