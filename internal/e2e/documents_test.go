package e2e

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/internal/lab"
	"github.com/tenon-sh/tenon/internal/lab/labaws"
)

const (
	// manifests is where the manifests of the founding documents are kept in this repository.
	manifests = "../convert/testdata/founding"
	// handedOver is the variable that names the folder in which they were handed over, for those who have it.
	handedOver = "TENON_FOUNDING_MANIFESTS"
)

// document is a founding document that has manifests, and what becomes of them.
type document struct {
	name            string
	region, cluster string
	manifests       []string
	play            func(*documentWorld)
}

func documents() []document {
	return []document{
		{"000", "us-east-1", "eks-karpenter-demo", []string{"000-01-provisioner"}, (*documentWorld).theFirst},
		{"001", "us-west-2", "my-cluster", []string{"001-02-provisioner"}, (*documentWorld).theSecond},
		{"003", "us-west-2", "my-cluster", []string{
			"003-03-nodepool", "003-04-ec2nodeclass", "003-05-pod", "003-06-pod", "003-07-pod", "003-08-nodepool",
			"003-09-pod", "003-10-nodepool",
			"003-11-nodepool", "003-12-nodepool-ec2nodeclass", "003-13-nodepool", "003-14-pod",
		}, (*documentWorld).theFourth},
		{"004", "us-west-2", "my-cluster", []string{"004-15-provisioner", "004-16-deployment"},
			(*documentWorld).theFifth},
	}
}

// TestManifestsOfTheDocuments: every manifest of the founding documents applies as it is, with strict field validation,
// and does what its document says. The third document has none. What takes hours or hundreds of nodes is told in
// virtual time by TestManifestsOfTheDocuments of package sim.
func TestManifestsOfTheDocuments(t *testing.T) {
	var listed []string
	for _, d := range documents() {
		listed = append(listed, d.manifests...)
	}
	checkListed(t, listed)
	for _, d := range documents() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			w := newDocumentWorld(t, d)
			d.play(w)
			if slices.Sort(w.applied); !slices.Equal(w.applied, d.manifests) {
				t.Errorf("applied are %v, want all of %v", w.applied, d.manifests)
			}
		})
	}
}

// checkListed makes sure that the list has every manifest, here and, if it is there, in the folder that was handed
// over.
func checkListed(t *testing.T, listed []string) {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	if err != nil || len(kept) != len(listed) {
		t.Fatalf("%s has %d manifests (%v), and %d are listed", manifests, len(kept), err, len(listed))
	}
	var handed []string
	if folder := os.Getenv(handedOver); folder != "" {
		if handed, err = filepath.Glob(filepath.Join(folder, "*.yaml")); err != nil || len(handed) == 0 {
			t.Fatalf("%s=%s has no manifests (%v)", handedOver, folder, err)
		}
	}
	for _, file := range slices.Concat(kept, handed) {
		name := filepath.Base(file)
		if !slices.Contains(listed, strings.TrimSuffix(name, ".yaml")) {
			t.Errorf("%s is not in the list of manifests that are tested here", file)
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(manifests, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the copy of %s in %s differs (%v)", file, manifests, err)
		}
	}
}

// documentWorld is a lab with an AWS account as `tenon lab up --cloud aws` makes it, with a controller that has the
// rights of the chart.
type documentWorld struct {
	*awsWorld
	// applied are the manifests that have been applied.
	applied []string
}

func newDocumentWorld(t *testing.T, d document) *documentWorld {
	t.Helper()
	w := &documentWorld{awsWorld: newAWSWorld(t, func(o *labaws.Options) {
		o.Region, o.Cluster, o.Families = d.region, d.cluster, nil
	})}
	w.run("--kubeconfig", w.asServiceAccount(w.lab.Config()), "--webhook-port", freePort(t))
	for _, gvk := range []schema.GroupVersionKind{
		v1beta1.GroupVersion().WithKind("NodePoolList"), {Group: awsv1.Group, Version: "v1beta1",
			Kind: "EC2NodeClassList"},
	} {
		w.eventually(func() string { // the controller has said where v1beta1 is converted
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk)
			if err := w.c.List(w.ctx, list); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	return w
}

// put applies manifests as a reader does.
func (w *documentWorld) put(names ...string) {
	w.Helper()
	for _, name := range names {
		w.kubectl("apply", "--validate=strict", "-f", filepath.Join(manifests, name+".yaml"))
		w.applied = append(w.applied, name)
	}
}

var kubectlOnce = sync.OnceValues(func() (string, error) {
	binary, err := lab.Binary(context.Background(), io.Discard)
	if err != nil {
		return "", err
	}
	path := filepath.Join(programs, "kubectl")
	return path, os.Symlink(binary, path)
})

// kubectl runs the real one in the test's namespace. It must succeed.
func (w *world) kubectl(args ...string) string {
	w.Helper()
	out, err := w.tryKubectl(args...)
	if err != nil {
		w.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// tryKubectl is kubectl for what may fail.
func (w *world) tryKubectl(args ...string) (string, error) {
	w.Helper()
	path, err := kubectlOnce()
	w.must(err)
	cmd := exec.CommandContext(w.ctx, path, append([]string{"--namespace", w.lab.Namespace()}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.lab.Kubeconfig(), "HOME="+w.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// labels are values that labels may have, separated by spaces.
type labels map[string]string

// stand makes sure that the pods of these names, or of owners with these names, run on nodes with these labels.
func (w *documentWorld) stand(pods map[string]labels) {
	w.Helper()
	nodes := map[string]corev1.Node{}
	for _, n := range w.nodes() {
		nodes[n.Name] = n
	}
	seen := map[string]bool{}
	for _, p := range w.pods() {
		name := p.Name
		if len(p.OwnerReferences) > 0 {
			name = p.Labels["app"]
		}
		for key, want := range pods[name] {
			seen[name] = true
			if got := nodes[p.Spec.NodeName].Labels[key]; got == "" || !slices.Contains(strings.Fields(want), got) {
				w.Errorf("pod %s is on node %q with %s=%q, want one of %q", p.Name, p.Spec.NodeName, key, got, want)
			}
		}
	}
	for name := range pods {
		if !seen[name] {
			w.Errorf("there is no pod of %s", name)
		}
	}
}

// runs says whether the pod runs.
func (w *documentWorld) runs(pods ...string) func() string {
	return func() string {
		var out corev1.Pod
		for _, name := range pods {
			w.must(w.c.Get(w.ctx, keyOf(w.lab.Namespace(), name), &out))
			if out.Status.Phase != corev1.PodRunning {
				return name + " does not run"
			}
		}
		return ""
	}
}

// waits makes sure that a pod gets no node, and is told why.
func (w *documentWorld) waits(pod string, words ...string) {
	w.Helper()
	w.eventually(w.hears("FailedScheduling", pod, words...))
	var out corev1.Pod
	w.must(w.c.Get(w.ctx, keyOf(w.lab.Namespace(), pod), &out))
	if out.Spec.NodeName != "" {
		w.Errorf("pod %s is on node %s", pod, out.Spec.NodeName)
	}
}

// says is what a pool says about when its nodes go and how many there may be.
func (w *documentWorld) says(name, want string) {
	w.Helper()
	p := w.pool(name)
	got := string(p.Spec.Disruption.ConsolidationPolicy) + " after " + p.Spec.Disruption.ConsolidateAfter.String() +
		", expires " + p.Spec.Template.Spec.ExpireAfter.String()
	for _, key := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if limit, limited := p.Spec.Limits[key]; limited {
			got += ", " + string(key) + " " + limit.String()
		}
	}
	if got != want {
		w.Errorf("the NodePool %s has %q, want %q", name, got, want)
	}
	for _, c := range w.claims() {
		if c.Labels[v1.NodePoolLabelKey] == name &&
			c.Spec.ExpireAfter.String() != p.Spec.Template.Spec.ExpireAfter.String() {
			w.Errorf("the NodeClaim %s expires %s", c.Name, c.Spec.ExpireAfter.String())
		}
	}
}

// tainted makes sure that every node of a pool has this taint, as kubectl writes it.
func (w *documentWorld) tainted(pool, want string) {
	w.Helper()
	found := false
	for _, n := range w.nodes() {
		if n.Labels[v1.NodePoolLabelKey] != pool {
			continue
		}
		found = true
		if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.ToString() == want }) {
			w.Errorf("node %s has the taints %v, want %s", n.Name, n.Spec.Taints, want)
		}
		if !slices.Contains(n.Finalizers, v1.TerminationFinalizer) {
			w.Errorf("node %s has the finalizers %v", n.Name, n.Finalizers)
		}
	}
	if !found {
		w.Errorf("there is no node of %s", pool)
	}
}

// machines are the instances of a pool's nodes.
func (w *documentWorld) machines(pool string) []cloud.Instance {
	w.Helper()
	var out []cloud.Instance
	for _, i := range w.alive() {
		if slices.ContainsFunc(w.nodes(), func(n corev1.Node) bool {
			return n.Labels[v1.NodePoolLabelKey] == pool && strings.HasSuffix(n.Spec.ProviderID, i.ID)
		}) {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		w.Errorf("no instance of %s runs", pool)
	}
	slices.SortFunc(out, func(a, b cloud.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
