package move

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/bench/internal/contestant"
	"github.com/tenon-sh/tenon/bench/internal/process"
	"github.com/tenon-sh/tenon/bench/internal/report"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
)

// patience bounds every wait; the test is not about how long something takes, and machines are busy now and then.
const patience = 5 * time.Minute

// leases is where the two meet.
const leases = "kube-system"

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	labtest.Main(m)
}

// world is a lab and the two programs that may run it.
type world struct {
	*testing.T
	lab    *labtest.Lab
	c      client.Client
	folder string
	// who are the programs by name.
	who    map[string]contestant.Contestant
	starts int
}

// newWorld builds both programs and starts with Karpenter's definitions.
func newWorld(t *testing.T) *world {
	t.Helper()
	folder := t.TempDir()
	module, err := contestant.FindPeer(t.Context(), filepath.Join("..", "peer"))
	if err != nil {
		t.Fatal(err)
	}
	peer, own := filepath.Join(folder, "karpenter"), filepath.Join(folder, "tenon")
	if err := module.Build(t.Context(), peer, os.Stderr); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", own, "./cmd/tenon")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building Tenon: %v: %s", err, out)
	}
	tenon, err := contestant.Tenon(own, filepath.Join("..", "..", "charts", "karpenter-crd", "templates"),
		module.InstanceTypes())
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		v1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	l := labtest.New(t)
	w := &world{T: t, lab: l, c: l.Client(scheme), folder: folder, who: map[string]contestant.Contestant{
		report.Peer: contestant.Peer(peer, module).Elected(leases), report.Tenon: tenon.Elected(leases)}}
	for _, crds := range w.who[report.Peer].CRDs {
		l.InstallCRDs(os.DirFS(crds))
	}
	return w
}

// controller is one of the two programs while it runs.
type controller struct {
	w    *world
	name string
	// manager is the name under which it writes to the API server.
	manager string
	process *process.Process
	log     string
}

// start starts a program; it is ended with the test.
func (w *world) start(name string) *controller {
	w.Helper()
	w.starts++
	c := &controller{w: w, name: name, manager: map[string]string{report.Peer: "karpenter",
		report.Tenon: "tenon"}[name],
		log: filepath.Join(w.folder, fmt.Sprintf("%d-%s.log", w.starts, name))}
	var err error
	if c.process, err = w.who[name].Start(w.lab.Kubeconfig(), "info", c.log); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		c.stop()
		if text, err := os.ReadFile(c.log); err == nil && w.Failed() {
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			w.Logf("the end of %s:\n%s", c.log, strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	})
	return c
}

// stop ends it, as a Deployment that is scaled to 0 does.
func (c *controller) stop() {
	c.w.Helper()
	if err := c.process.Stop(); err != nil {
		c.w.Error(err)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// eventually waits until the check has nothing to say.
func (w *world) eventually(check func() string) {
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
		time.Sleep(100 * time.Millisecond) // asking the API server again, not waiting for time to pass
	}
}

// holder is who holds the lease.
func (w *world) holder() string {
	var lease coordinationv1.Lease
	err := w.c.Get(w.Context(), client.ObjectKey{Namespace: leases, Name: "karpenter-leader-election"}, &lease)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// leads waits until the program says in its log that it has the lease, and the lease says that somebody has.
func (w *world) leads(c *controller) {
	w.Helper()
	w.eventually(func() string {
		if w.holder() == "" || !c.isElected() {
			return fmt.Sprintf("%s does not lead; the lease is held by %q", c.name, w.holder())
		}
		return ""
	})
}

func (c *controller) isElected() bool {
	text, err := os.ReadFile(c.log)
	c.w.must(err)
	return strings.Contains(string(text), "uccessfully acquired lease")
}

// waits tells if a program has the lease that another has.
func (w *world) waits(c *controller) {
	w.Helper()
	if c.isElected() {
		w.Errorf("%s says that it leads, too", c.name)
	}
}

// elected waits until one of two programs leads, and says which.
func (w *world) elected(a, b *controller) (leader, other *controller) {
	w.Helper()
	w.eventually(func() string {
		switch {
		case a.isElected():
			leader, other = a, b
		case b.isElected():
			leader, other = b, a
		default:
			return "neither leads"
		}
		return ""
	})
	return leader, other
}

// createPool makes a pool of machines that one pod fills and whose empty nodes go at once. No others go to save money:
// Karpenter would also take a node away whose pod fits on an empty one.
func (w *world) createPool() {
	w.Helper()
	in := func(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	p.Spec.Template.Labels = map[string]string{"team": "shop"}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind,
		Name: "default"}
	p.Spec.Template.Spec.Taints = []v1.Taint{{Key: "team", Value: "shop", Effect: corev1.TaintEffectNoSchedule}}
	p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
		in(corev1.LabelInstanceTypeStable, "s-2x-amd64-linux"), in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand),
		in(corev1.LabelTopologyZone, "test-zone-a")}
	p.Spec.Disruption.ConsolidateAfter = v1.NillableDuration{Duration: new(time.Duration(0))}
	p.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmpty
	p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}}
	w.must(w.c.Create(w.Context(), &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}))
	w.must(w.c.Create(w.Context(), p))
}

// scale makes a Deployment of so many pods, or changes how many it has. A pod fills a node.
func (w *world) scale(name string, pods int32) {
	w.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.lab.Namespace(), Name: name}}
	d.Spec.Replicas, d.Spec.Selector = &pods, &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec = corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(0)),
		Tolerations: []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(
				"1500m")}}}}}
	err := w.c.Create(w.Context(), d)
	if client.IgnoreAlreadyExists(err) != nil {
		w.Fatal(err)
	}
	if err != nil {
		w.must(w.c.Patch(w.Context(), d, client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, pods))))
	}
}

// list lists objects of a kind.
func list[T client.ObjectList](w *world, into T, options ...client.ListOption) T {
	w.Helper()
	w.must(w.c.List(w.Context(), into, options...))
	return into
}

func (w *world) pods() []corev1.Pod {
	w.Helper()
	return list(w, &corev1.PodList{}, client.InNamespace(w.lab.Namespace())).Items
}

// running says what keeps so many pods from running, each on a node of its own that is initialized, with nothing left
// over.
func (w *world) running(n int) func() string {
	return func() string {
		up := 0
		for _, p := range w.pods() {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp.IsZero() {
				up++
			}
		}
		nodes, initialized := list(w, &corev1.NodeList{}).Items, 0
		for i := range nodes {
			if nodes[i].Labels[v1.NodeInitializedLabelKey] == "true" && nodes[i].DeletionTimestamp.IsZero() {
				initialized++
			}
		}
		claims := list(w, &v1.NodeClaimList{}).Items
		if up != n || len(nodes) != n || initialized != n || len(claims) != n {
			return fmt.Sprintf("%d pods run, and there are %d nodes, of which %d are initialized, and %d NodeClaims; "+
				"want %d of each", up, len(nodes), initialized, len(claims), n)
		}
		return ""
	}
}

// everything is what must outlive a handover: NodeClaims, nodes and pods, with their UIDs, where each is, and how often
// it was restarted.
func (w *world) everything() map[string]string {
	w.Helper()
	out := make(map[string]string)
	for _, c := range list(w, &v1.NodeClaimList{}).Items {
		out["NodeClaim "+c.Name] = fmt.Sprint(c.UID, c.Status.ProviderID, c.Status.NodeName, c.DeletionTimestamp)
		for _, condition := range c.Status.Conditions {
			if condition.Type == v1.ConditionTypeDrifted && condition.Status == metav1.ConditionTrue {
				w.Errorf("NodeClaim %s has drifted: %s %s", c.Name, condition.Reason, condition.Message)
			}
		}
	}
	for _, n := range list(w, &corev1.NodeList{}).Items {
		out["Node "+n.Name] = fmt.Sprint(n.UID, n.Spec.ProviderID, n.Spec.Unschedulable, n.Spec.Taints, n.Finalizers,
			n.DeletionTimestamp)
	}
	for _, p := range w.pods() {
		restarts := int32(0)
		for _, s := range p.Status.ContainerStatuses {
			restarts += s.RestartCount
		}
		out["Pod "+p.Name] = fmt.Sprint(p.UID, p.Spec.NodeName, restarts, p.DeletionTimestamp)
	}
	return out
}

// works has the program that leads show that it does: pods come and get a node each, which this program has asked for
// and no other; they go, and so do these nodes. What was there before is there afterwards.
func (w *world) works(leader *controller, before map[string]string) {
	w.Helper()
	const more = 2
	there := w.claimNames()
	pods := len(w.pods())
	w.scale("extra", more)
	w.eventually(w.running(pods + more))
	for _, c := range list(w, &v1.NodeClaimList{}).Items {
		if slices.Contains(there, c.Name) {
			continue
		}
		if by := c.ManagedFields[0].Manager; by != leader.manager {
			w.Errorf("NodeClaim %s was created by %q, and %s leads", c.Name, by, leader.name)
		}
	}
	w.scale("extra", 0)
	w.eventually(w.running(pods))
	w.same(before)
}

func (w *world) claimNames() []string {
	var out []string
	for _, c := range list(w, &v1.NodeClaimList{}).Items {
		out = append(out, c.Name)
	}
	return out
}

// of are the names, as everything has them, of the Deployment's pods, their nodes and the NodeClaims of these.
func (w *world) of(deployment string) []string {
	w.Helper()
	var out []string
	for _, p := range w.pods() {
		if p.Labels["app"] != deployment {
			continue
		}
		out = append(out, "Pod "+p.Name, "Node "+p.Spec.NodeName)
		for _, c := range list(w, &v1.NodeClaimList{}).Items {
			if c.Status.NodeName == p.Spec.NodeName {
				out = append(out, "NodeClaim "+c.Name)
			}
		}
	}
	return out
}

// same tells what is not as it was.
func (w *world) same(before map[string]string) {
	w.Helper()
	after := w.everything()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != before[name] {
			w.Errorf("%s was %s and is %q", name, before[name], after[name])
		}
	}
	if len(after) != len(before) {
		w.Errorf("%d objects were there, and %d are", len(before), len(after))
	}
}
