package e2e

import (
	"bytes"
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
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1alpha1 "github.com/tenon-sh/tenon/api/aws/v1alpha1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

// labs are as many as tests run at the same time, which -parallel says, and at most four. The tests wait for most of
// their time: a lab with its controller takes about half a core.
var labs = labtest.NewLabs(4)

// programs is the folder for what the tests build.
var programs string

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tenon-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for what the tests build:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	programs = dir
	return labs.Run(m)
}

// patience bounds every wait; none of the tests is about how long something takes, and machines are busy now and then.
const patience = 2 * time.Minute

var buildOnce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "controller")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/controller").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the controller: %w: %s", err, out)
	}
	return path, nil
})

// world is a lab with the API installed, and what a test does to it.
type world struct {
	*testing.T
	lab *labtest.Lab
	c   client.Client
	ctx context.Context
	// env are variables that controllers get besides this process's.
	env []string
}

// newWorld gives the test a lab of its own. Tests run in parallel; the parts of one test run one after the other.
func newWorld(t *testing.T) *world {
	t.Helper()
	if !strings.Contains(t.Name(), "/") {
		t.Parallel()
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme,
		kwokv1alpha1.AddToScheme, awsv1.AddToScheme, v1alpha5.AddToScheme, awsv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	l := labs.New(t)
	l.InstallCRDs(crds.FS())
	w := &world{T: t, lab: l, c: l.Client(scheme), ctx: t.Context()}
	// The cloud outlives the cluster's objects: what an earlier test left there is ended too.
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("kube-system"),
		client.HasLabels{instanceLabel}))
	return w
}

// instanceLabel marks the records of the simulated cloud's instances.
const instanceLabel = "tenon.sh/kwok-instance"

// controller is a running controller.
type controller struct {
	w    *world
	cmd  *exec.Cmd
	done chan struct{}
	log  *safeBuffer
	// quiet leaves this controller's log out of a failed test's, which would be one of dozens.
	quiet bool
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}
func (s *safeBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// run starts the controller; it is ended with the test. Without a flag of its own it runs without a lease, so that a
// second start does not wait for the first one's to expire, and without the webhook: pointing the definitions to
// another port, as each start would, makes the API server end all watches of our kinds.
func (w *world) run(flags ...string) *controller {
	w.Helper()
	path, err := buildOnce()
	if err != nil {
		w.Fatal(err)
	}
	args := append([]string{"controller", "--kubeconfig", w.lab.Kubeconfig(), "--bind-address", "127.0.0.1",
		"--metrics-port", "0", "--health-probe-port", "0", "--webhook-port", "0", "--disable-leader-election"},
		flags...)
	return w.started(exec.Command(path, args...))
}

// started starts a controller; it is ended with the test.
func (w *world) started(cmd *exec.Cmd) *controller {
	w.Helper()
	c := &controller{w: w, cmd: cmd, done: make(chan struct{}), log: &safeBuffer{}}
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.Env = c.log, c.log, append(append(os.Environ(), w.env...), cmd.Env...)
	if err := c.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	go func() { _ = c.cmd.Wait(); close(c.done) }()
	w.Cleanup(func() {
		c.kill()
		c.checkLog()
		if w.Failed() && !c.quiet {
			w.Logf("the end of the controller's log:\n%s", tail(c.log.String(), 40))
		}
	})
	return c
}

// logged asks whether the controller's log holds the words. What it writes of a step comes after the step, so a test
// that saw the step waits for the words.
func (c *controller) logged(words string) func() string {
	return func() string {
		if !strings.Contains(c.log.String(), words) {
			return fmt.Sprintf("the controller's log does not say %q", words)
		}
		return ""
	}
}

// checkLog looks whether each line that the controller wrote has its keys once. The last may have been cut by the kill.
func (c *controller) checkLog() {
	lines := strings.Split(c.log.String(), "\n")
	for _, line := range lines[:len(lines)-1] {
		if !strings.HasPrefix(line, "{") {
			continue // a stack, or what the program says as it ends
		}
		if key, err := labtest.KeyTwice(line); key != "" || err != nil {
			c.w.Errorf("a line of the log has %q twice (%v): %s", key, err, line)
		}
	}
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// kill ends the controller at once, as a crash would.
func (c *controller) kill() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// eventually waits until the check has nothing to say.
func (w *world) eventually(check func() string) {
	w.Helper()
	w.within(patience, check)
}

// within is eventually with another patience.
func (w *world) within(patience time.Duration, check func() string) {
	w.Helper()
	deadline := time.Now().Add(patience)
	for {
		trouble := check()
		if trouble == "" {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("after %s still: %s", patience, trouble)
		}
		time.Sleep(50 * time.Millisecond) // asking the API server again, not waiting for time to pass
	}
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, obj := range objects {
		if err := w.c.Create(w.ctx, obj); err != nil {
			w.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

func (w *world) nodes() []corev1.Node {
	var list corev1.NodeList
	w.must(w.c.List(w.ctx, &list))
	return list.Items
}

func (w *world) claims() []v1.NodeClaim {
	var list v1.NodeClaimList
	w.must(w.c.List(w.ctx, &list))
	return list.Items
}

// instances counts what the simulated cloud runs.
func (w *world) instances() int {
	var list corev1.ConfigMapList
	w.must(w.c.List(w.ctx, &list, client.HasLabels{instanceLabel}))
	return len(list.Items)
}

func (w *world) pods() []corev1.Pod {
	var list corev1.PodList
	w.must(w.c.List(w.ctx, &list, client.InNamespace(w.lab.Namespace())))
	return list.Items
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// allRunning says what keeps n pods from running.
func (w *world) allRunning(n int) func() string {
	return func() string {
		running := 0
		for _, p := range w.pods() {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != n {
			return fmt.Sprintf("%d of %d pods run", running, n)
		}
		return ""
	}
}

// nothingLeft says what is left of nodes, claims and instances.
func (w *world) nothingLeft() string {
	nodes, claims, instances := len(w.nodes()), len(w.claims()), w.instances()
	if nodes+claims+instances > 0 {
		return fmt.Sprintf("%d nodes, %d claims and %d instances are left", nodes, claims, instances)
	}
	return ""
}

// tally says what is wrong with the books: every instance has one claim and one node.
func (w *world) tally() string {
	nodes, claims, instances := len(w.nodes()), len(w.claims()), w.instances()
	if nodes != claims || claims != instances {
		return fmt.Sprintf("%d nodes, %d claims and %d instances: they should be equal", nodes, claims, instances)
	}
	return ""
}

// messages are the texts of our events about an object.
func (w *world) messages(reason, name string) []string {
	var list corev1.EventList
	w.must(w.c.List(w.ctx, &list))
	var out []string
	for _, e := range list.Items {
		if e.Reason == reason && e.InvolvedObject.Name == name && e.ReportingController == "karpenter" {
			out = append(out, e.Message)
		}
	}
	return out
}

func nodeClass(name string) *kwokv1alpha1.KWOKNodeClass {
	return &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// nodePool is a pool of middling machines that lets empty nodes go at once.
func nodePool(name string, change ...func(*v1.NodePool)) *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind,
		Name: "default"}
	p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
		{Key: kwokv1alpha1.InstanceFamilyLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"c6i", "m6i"}},
		{Key: kwokv1alpha1.InstanceCPULabelKey, Operator: v1.NodeSelectorOpLte, Values: []string{"16"}},
	}
	p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}}
	for _, f := range change {
		f(p)
	}
	return p
}

// deployment makes n pods that ask for CPU and do nothing.
func (w *world) deployment(name string, n int32, cpu string) *appsv1.Deployment {
	grace := int64(0)
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(), Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace,
					Containers: []corev1.Container{container(cpu)}},
			},
		},
	}
}

func container(cpu string) corev1.Container {
	return corev1.Container{
		Name: "pause", Image: "registry.k8s.io/pause:3.10",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse(
			cpu)}},
	}
}

func (w *world) pod(name, cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(), Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{container(cpu)}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}
