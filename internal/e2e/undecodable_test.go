package e2e

import (
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
)

// TestUnreadablePoolStopsNobodyElse has a time stored that Go clients can't read, as older definitions let pass. Only
// that pool is out of use, and its status says why; after it is corrected, it works.
func TestUnreadablePoolStopsNobodyElse(t *testing.T) {
	w := newWorld(t)
	w.lab.InstallCRDs(olderDefinitions(t))
	w.eventually(func() string {
		if err := w.c.Create(w.ctx, w.unreadable("bad")); err != nil {
			return err.Error()
		}
		return ""
	})
	w.lab.InstallCRDs(crds.FS())
	w.create(nodeClass("default"), nodePool("good"))
	port := freePort(t)
	w.run("--health-probe-port", port)
	w.create(w.deployment("fine", 3, "1"))
	w.eventually(w.allRunning(3))
	w.eventually(func() string {
		return w.storedCondition("bad", v1.ConditionTypeValidationSucceeded, "spec.template.spec.taints[0].timeAdded")
	})
	w.eventually(func() string {
		response, err := http.Get("http://127.0.0.1:" + port + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return "/readyz says " + response.Status
		}
		return ""
	})
	fix := client.RawPatch("application/json-patch+json",
		[]byte(`[{"op":"remove","path":"/spec/template/spec/taints/0/timeAdded"}]`))
	bad := &unstructured.Unstructured{}
	bad.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePool"))
	bad.SetName("bad")
	w.must(w.c.Patch(w.ctx, bad, fix))
	w.eventually(func() string {
		var p v1.NodePool
		if err := w.c.Get(w.ctx, client.ObjectKey{Name: "bad"}, &p); err != nil {
			return err.Error()
		}
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1.ConditionTypeValidationSucceeded) {
			return "the corrected pool is still not valid"
		}
		return ""
	})
}

// olderDefinitions are ours without the pattern of times.
func olderDefinitions(t *testing.T) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	pattern := regexp.MustCompile(`(?m)^ *pattern: \^\[0-9\]\{4\}-.*\n`)
	files, err := fs.Glob(crds.FS(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(crds.FS(), file)
		if err != nil {
			t.Fatal(err)
		}
		if !pattern.Match(text) {
			t.Fatalf("%s has no pattern of times", file)
		}
		out[file] = &fstest.MapFile{Data: pattern.ReplaceAll(text, nil)}
	}
	return out
}

// unreadable is a pool with a taint whose time is written in small letters.
func (w *world) unreadable(name string) *unstructured.Unstructured {
	w.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(nodePool(name))
	w.must(err)
	taints := []any{map[string]any{"key": "k", "effect": "NoSchedule", "timeAdded": "2024-01-01t00:00:00z"}}
	w.must(unstructured.SetNestedSlice(object, taints, "spec", "template", "spec", "taints"))
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePool"))
	return u
}

// storedCondition is condition for a pool that can't be read into its Go type.
func (w *world) storedCondition(pool, kind, cause string) string {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePool"))
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: pool}, u))
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		var c metav1.Condition
		w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(item.(map[string]any), &c))
		if c.Type == kind && c.Status == "False" && strings.Contains(c.Message, cause) {
			return ""
		}
	}
	return fmt.Sprintf("conditions %v of %s do not say %s", list, pool, cause)
}

// nextPort is where freePort looks next; another process of these tests begins elsewhere.
var nextPort atomic.Int64

// freePort is a port that nobody listens on, and that nobody is given before a controller does: it is below those from
// which Linux takes the ports of connections and of listeners that ask for any, of which the labs open many, and no
// other test gets it.
func freePort(t *testing.T) string {
	t.Helper()
	const first, count = 20000, 12000
	nextPort.CompareAndSwap(0, int64(os.Getpid()))
	for range count {
		port := strconv.FormatInt(first+nextPort.Add(1)%count, 10)
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("no port from %d on is free", first)
	return ""
}
