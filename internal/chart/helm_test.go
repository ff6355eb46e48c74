package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/internal/chart/helm"
)

// root is the repository's, seen from here.
const root = "../.."

// runHelm runs Helm without a cluster.
func runHelm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	h := &helm.Helm{Root: root, Home: t.TempDir()}
	return h.Run(t.Context(), args...)
}

// operatorThere has Helm suppose that the cluster knows the Prometheus operator's kinds.
var operatorThere = []string{"--api-versions", "monitoring.coreos.com/v1"}

func chartPath(name string) string { return filepath.Join(root, "charts", name) }

// render is what Helm makes of the chart in the namespace karpenter, and what it complains about.
func render(t *testing.T, chart string, flags ...string) (map[string]*unstructured.Unstructured, string) {
	t.Helper()
	return renderAs(t, "karpenter", chart, flags...)
}

// renderAs is render for a release of another name.
func renderAs(t *testing.T, release, chart string, flags ...string) (map[string]*unstructured.Unstructured, string) {
	t.Helper()
	args := append([]string{"template", release, chartPath(chart), "--namespace", "karpenter"}, flags...)
	out, problems, err := runHelm(t, args...)
	if err != nil {
		return nil, problems
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, document := range strings.Split("\n"+out, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("reading what Helm wrote: %v\n%s", err, document)
		}
		if len(object.Object) > 0 {
			objects[object.GetKind()+" "+object.GetName()] = object
		}
	}
	return objects, ""
}

// at is the field of an object at a path such as spec/containers/0/name; nil if it is not there. A list of things with
// a name, such as containers and env, can be asked by name. A slash within a name is written as ~.
func at(content any, path string) any {
	for _, step := range strings.Split(path, "/") {
		step = strings.ReplaceAll(step, "~", "/")
		switch now := content.(type) {
		case map[string]any:
			content = now[step]
		case []any:
			content = item(now, step)
		default:
			return nil
		}
	}
	return content
}

func item(list []any, step string) any {
	if i, err := strconv.Atoi(step); err == nil && i < len(list) {
		return list[i]
	}
	for _, candidate := range list {
		if m, ok := candidate.(map[string]any); ok && m["name"] == step {
			return candidate
		}
	}
	return nil
}
