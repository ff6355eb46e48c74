package stages

import (
	"net/netip"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

type stage struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		ResourceRef struct{ APIGroup, Kind string }
		Selector    *struct{ MatchExpressions []any }
		Steps       []struct {
			Delete bool
			Patch  *struct{ Subresource, Root, Type, Template string }
		}
	}
}

func parse(t *testing.T) []stage {
	t.Helper()
	var out []stage
	for _, text := range strings.Split(YAML(), "\n---\n") {
		var s stage
		if err := yaml.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("parse a stage: %v\n%s", err, text)
		}
		if s.Kind != "" {
			out = append(out, s)
		}
	}
	return out
}

func TestStagesCoverNodesAndPods(t *testing.T) {
	var names []string
	for _, s := range parse(t) {
		names = append(names, s.Spec.ResourceRef.Kind+" "+s.Metadata.Name)
		// kwok drops a stage without a selector and runs one without steps to
		// no effect, both in silence.
		if s.Spec.Selector == nil || len(s.Spec.Selector.MatchExpressions) == 0 || len(s.Spec.Steps) == 0 {
			t.Errorf("%s has no selector or no steps", s.Metadata.Name)
		}
	}
	want := "Node node-joins, Node node-beats, Pod pod-runs, Pod pod-sickens, Pod pod-completes, Pod pod-ends, Pod " +
		"pod-ends-late"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// render runs a stage's template as kwok does, with stand-ins for kwok's own
// functions, and returns the patch.
func render(t *testing.T, name string, object map[string]any) map[string]any {
	t.Helper()
	functions := template.FuncMap{
		"Now":   func() string { return "2030-01-01T00:00:00Z" },
		"Quote": func(v any) string { return `"` + v.(string) + `"` },
		"YAML": func(v any, _ int) (string, error) {
			text, err := yaml.Marshal(v)
			return "  " + strings.ReplaceAll(string(text), "\n", "\n  "), err
		},
		"NodeConditions": func() []map[string]any {
			return []map[string]any{{"type": "Ready", "status": "True", "reason": "r", "message": "m"}}
		},
		"NodeIPWith": func(string) string { return "10.0.0.1" },
		"PodIPWith":  func(string, bool, string, string, string) string { return "10.128.0.1" },
		"dict":       func() map[string]any { return nil },
	}
	for _, s := range parse(t) {
		if s.Metadata.Name != name {
			continue
		}
		parsed, err := template.New(name).Funcs(functions).Funcs(Functions("v1.2.3")).
			Parse(s.Spec.Steps[0].Patch.Template)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := parsed.Execute(&text, object); err != nil {
			t.Fatal(err)
		}
		var patch map[string]any
		if err := yaml.Unmarshal([]byte(text.String()), &patch); err != nil {
			t.Fatalf("the template of %s gives no YAML: %v\n%s", name, err, text.String())
		}
		return patch
	}
	t.Fatalf("no stage %s", name)
	return nil
}

func node(status map[string]any) map[string]any {
	status["nodeInfo"] = map[string]any{}
	return map[string]any{
		"metadata": map[string]any{"name": "n", "uid": "u", "labels": map[string]any{"kubernetes.io/arch": "arm64"}},
		"status":   status,
	}
}

func TestAJoiningNodeKeepsItsCapacity(t *testing.T) {
	given := map[string]any{"cpu": "4", "pods": "110"}
	patch := statusOf(t, node(map[string]any{"capacity": given, "allocatable": given, "addresses": []any{1}}))
	for _, field := range []string{"capacity", "allocatable", "addresses"} {
		if patch[field] != nil {
			t.Errorf("%s is patched to %v although the node has it", field, patch[field])
		}
	}
	info := patch["nodeInfo"].(map[string]any)
	if info["architecture"] != "arm64" || info["operatingSystem"] != "linux" || info["kubeletVersion"] != "v1.2.3" {
		t.Errorf("node info is %v", info)
	}
}

func TestABareNodeGetsCapacity(t *testing.T) {
	patch := statusOf(t, node(map[string]any{}))
	for _, field := range []string{"capacity", "allocatable"} {
		if resources, ok := patch[field].(map[string]any); !ok || resources["cpu"] != "32" {
			t.Errorf("%s is %v", field, patch[field])
		}
	}
	half := statusOf(t, node(map[string]any{"capacity": map[string]any{"cpu": "4"}}))
	if resources, ok := half["allocatable"].(map[string]any); !ok || resources["cpu"] != "4" {
		t.Errorf("allocatable is %v, want the given capacity", half["allocatable"])
	}
}

// statusOf is the status that a node joins with.
func statusOf(t *testing.T, node map[string]any) map[string]any {
	t.Helper()
	return render(t, "node-joins", node)["status"].(map[string]any)
}

func TestAJoiningNodeTakesVolumes(t *testing.T) {
	n := node(map[string]any{})
	n["metadata"].(map[string]any)["labels"].(map[string]any)["topology.kubernetes.io/zone"] = "us-west-2b"
	said := render(t, "node-joins", n)["metadata"].(map[string]any)
	annotations := said["annotations"].(map[string]any)
	if got := annotations["volumes.kubernetes.io/controller-managed-attach-detach"]; got != "true" {
		t.Errorf("Kubernetes may attach its volumes: %v, want true", got)
	}
	if got := said["labels"].(map[string]any)["topology.ebs.csi.aws.com/zone"]; got != "us-west-2b" {
		t.Errorf("EBS's driver sees it in the zone %v, want us-west-2b", got)
	}
	if bare := render(t, "node-joins", node(map[string]any{}))["metadata"].(map[string]any); bare["labels"] != nil {
		t.Errorf("a node without a zone gets the labels %v", bare["labels"])
	}
}

func TestABoundPodRuns(t *testing.T) {
	patch := render(t, "pod-runs", map[string]any{
		"metadata": map[string]any{"name": "p", "namespace": "d", "uid": "u"},
		"spec": map[string]any{
			"nodeName": "n",
			"containers": []any{map[string]any{"name": "a", "image": "i"}, map[string]any{"name": "b",
				"image": "i"}},
			"initContainers": []any{map[string]any{"name": "c", "image": "i"}, map[string]any{"name": "d", "image": "i",
				"restartPolicy": "Always"}},
		},
	})
	if patch["phase"] != "Running" || patch["podIP"] != "10.128.0.1" {
		t.Errorf("phase %v, podIP %v", patch["phase"], patch["podIP"])
	}
	if n := len(patch["containerStatuses"].([]any)); n != 2 {
		t.Errorf("%d container statuses, want 2", n)
	}
	var states []string
	for _, status := range patch["initContainerStatuses"].([]any) {
		for state := range status.(map[string]any)["state"].(map[string]any) {
			states = append(states, state)
		}
	}
	if strings.Join(states, " ") != "terminated running" {
		t.Errorf("init containers are %v, want one done and one sidecar running", states)
	}
}

func TestNodeAddressIsStableAndInRange(t *testing.T) {
	nodes := netip.MustParsePrefix("10.0.0.0/10")
	seen := map[string]bool{}
	for _, uid := range []string{"", "a", "b", "0b2e7f1c-2f7b-4d3f-9d53-1f2f3c4d5e6f"} {
		address := nodeAddress(uid)
		if address != nodeAddress(uid) {
			t.Errorf("%q has two addresses", uid)
		}
		if parsed, err := netip.ParseAddr(address); err != nil || !nodes.Contains(parsed) {
			t.Errorf("%q: %s is not in %s", uid, address, nodes)
		}
		seen[address] = true
	}
	if len(seen) != 4 {
		t.Errorf("4 nodes share %d addresses", len(seen))
	}
}
