package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// exampleProvider is a module that knows only what is public.
const exampleProvider = "../../examples/provider"

// TestAProviderOfOnesOwn runs the controller of examples/provider with its own files: pods get nodes of its types,
// another controller goes on with them, and they go when nobody needs them.
func TestAProviderOfOnesOwn(t *testing.T) {
	w := newWorld(t)
	w.lab.InstallCRDs(os.DirFS(filepath.Join(exampleProvider, "crds")))
	program := filepath.Join(t.TempDir(), "provider")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = exampleProvider
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v: %s", exampleProvider, err, out)
	}
	w.applyExample()
	machines := t.TempDir()
	run := func() *controller {
		return w.started(exec.Command(program, "--kubeconfig", w.lab.Kubeconfig(), "--bind-address", "127.0.0.1",
			"--metrics-port", "0",
			"--health-probe-port", "0", "--webhook-port", "0", "--disable-leader-election", "--fleet-dir", machines))
	}
	first := run()
	w.scaleExample(5)
	w.eventually(w.allRunning(5))
	before := w.nodes()
	for i := range before {
		n := &before[i]
		if !strings.HasPrefix(n.Spec.ProviderID, "fleet://") || n.Labels["fleet.example.com/size"] == "" ||
			n.Labels[corev1.LabelTopologyZone] != "north" {
			t.Errorf("node %s is %s with the labels %v", n.Name, n.Spec.ProviderID, n.Labels)
		}
	}
	// The provider remembers nothing: the next controller finds the machines again, and starts no others.
	first.kill()
	run()
	w.scaleExample(6)
	w.eventually(w.allRunning(6))
	after := map[string]bool{}
	for _, n := range w.nodes() {
		after[n.Spec.ProviderID] = true
	}
	for i := range before {
		if !after[before[i].Spec.ProviderID] {
			t.Errorf("node %s is gone after the controller was started anew", before[i].Name)
		}
	}
	w.scaleExample(0)
	w.slowly(w.nothingLeft)
	if left, err := filepath.Glob(filepath.Join(machines, "*")); err != nil || len(left) > 0 {
		t.Errorf("machines are left: %v, %v", left, err)
	}
}

// applyExample applies the example's NodeClass, NodePool and Deployment.
func (w *world) applyExample() {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(exampleProvider, "nodepool.yaml"))
	w.must(err)
	for _, document := range strings.Split(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal([]byte(document), &object.Object))
		if object.GetNamespace() != "" {
			object.SetNamespace(w.lab.Namespace())
		}
		w.create(object)
	}
}

// scaleExample sets how many pods the example's Deployment has.
func (w *world) scaleExample(pods int) {
	w.Helper()
	replicas := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, pods))
	w.must(w.c.Patch(w.ctx, w.deployment("inflate", 0, "1"), replicas))
}
