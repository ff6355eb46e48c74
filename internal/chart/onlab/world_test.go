package onlab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/internal/chart/helm"
	"github.com/tenon-sh/tenon/internal/lab/labpods"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

const (
	root = "../../.."
	// release is where the chart is installed.
	release = "karpenter"
	// patience bounds every wait; machines are busy now and then.
	patience = 2 * time.Minute
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	labtest.Main(m)
}

// tenon is what people use, controller is what is in the image.
var (
	tenon      = sync.OnceValues(func() (string, error) { return build("tenon") })
	controller = sync.OnceValues(func() (string, error) { return build("controller") })
)

// build builds one of the programs.
func build(program string) (string, error) {
	dir, err := os.MkdirTemp("", "tenon-chart-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, program)
	if out, err := exec.Command("go", "build", "-o", path, root+"/cmd/"+program).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", program, err, out)
	}
	return path, nil
}

// world is a lab with two system nodes and a namespace that lets only restricted pods in.
type world struct {
	*testing.T
	lab  *labtest.Lab
	c    client.Client
	core kubernetes.Interface
	helm *helm.Helm
}

func newWorld(t *testing.T, change ...func(*world, *labpods.Options)) *world {
	t.Helper()
	path, err := controller()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		v1.AddToScheme, v1alpha5.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	l := labtest.New(t)
	core, err := kubernetes.NewForConfig(l.Config())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, lab: l, c: l.Client(scheme), core: core, helm: &helm.Helm{Root: root, Home: t.TempDir(),
		Kubeconfig: l.Kubeconfig()}}
	o := labpods.Options{Config: l.Config(), Dir: t.TempDir(), Executable: path, Zones: []string{"us-west-2a",
		"us-west-2b"}, Log: t.Logf}
	for _, c := range change {
		c(w, &o)
	}
	runner, err := labpods.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			w.showLogs()
		}
		if err := runner.Close(); err != nil {
			t.Error(err)
		}
		_ = w.c.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: release}})
	})
	w.freshNamespace()
	return w
}

// freshNamespace makes the release's namespace, where admission refuses pods that are not restricted.
func (w *world) freshNamespace() {
	w.Helper()
	w.eventually("the namespace is free", func() string {
		err := w.c.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: release,
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// eventually waits until what says nothing more.
func (w *world) eventually(what string, missing func() string) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for {
		lacks := missing()
		if lacks == "" {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s: %s", what, lacks)
		}
		select {
		case <-w.Context().Done():
			w.Fatalf("%s: %s", what, lacks)
		case <-time.After(100 * time.Millisecond): // the next look at the API server
		}
	}
}

// runHelm runs Helm, which must succeed.
func (w *world) runHelm(args ...string) string {
	w.Helper()
	out, complaints, err := w.helm.Run(w.Context(), args...)
	if err != nil {
		w.Fatalf("helm %s: %v\n%s%s", strings.Join(args, " "), err, out, complaints)
	}
	return out
}

// controllers are the pods that the documents look for.
func (w *world) controllers() []corev1.Pod {
	w.Helper()
	list, err := w.core.CoreV1().Pods(release).List(w.Context(),
		metav1.ListOptions{LabelSelector: "karpenter=controller"})
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// logOf is what kubectl logs shows of a pod.
func (w *world) logOf(pod string) string {
	raw, err := w.core.CoreV1().Pods(release).GetLogs(pod,
		&corev1.PodLogOptions{}).DoRaw(context.WithoutCancel(w.Context()))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func (w *world) showLogs() {
	list, err := w.core.CoreV1().Pods(release).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.Log(err)
		return
	}
	for i := range list.Items {
		lines := strings.Split(w.logOf(list.Items[i].Name), "\n")
		w.Logf("%s %+v\n%s", list.Items[i].Name, list.Items[i].Status.ContainerStatuses,
			strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}
}

// leader is the pod that holds the lease; empty if none does.
func (w *world) leader() string {
	w.Helper()
	lease := &coordinationv1.Lease{}
	err := w.c.Get(w.Context(), client.ObjectKey{Namespace: release, Name: "karpenter-leader-election"}, lease)
	if apierrors.IsNotFound(err) || err == nil && lease.Spec.HolderIdentity == nil {
		return ""
	}
	if err != nil {
		w.Fatal(err)
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name
}

// apply creates what a file of examples says.
func (w *world) apply(file string) {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		w.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			w.Fatal(err)
		}
		if err := w.c.Create(w.Context(), object); err != nil {
			w.Fatal(err)
		}
	}
}

// scale has so many pods of the example run, and waits for them.
func (w *world) scale(replicas int32) {
	w.Helper()
	scaled := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "inflate"}}
	if err := w.c.Patch(w.Context(), scaled, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))); err != nil {
		w.Fatal(err)
	}
	w.eventually(fmt.Sprintf("%d pods run", replicas), func() string {
		if err := w.c.Get(w.Context(), client.ObjectKeyFromObject(scaled), scaled); err != nil {
			return err.Error()
		}
		if got := scaled.Status.ReadyReplicas; got != replicas || scaled.Status.Replicas != replicas {
			return fmt.Sprintf("%d of %d are ready", got, scaled.Status.Replicas)
		}
		return ""
	})
}

// claims are the names of the NodeClaims.
func (w *world) claims() []string {
	w.Helper()
	list := &v1.NodeClaimList{}
	if err := w.c.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}
