package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// day is the length of a day.
const day = 24 * time.Hour

// TestManifestsOfTheDocuments: what the NodePools of the founding documents say about time and amounts, in the form of
// v1 that the golden files of package convert have. The test of the same name in package e2e tries the rest on a lab.
func TestManifestsOfTheDocuments(t *testing.T) {
	t.Run("a node is replaced after 30 days", func(t *testing.T) {
		w := playDocument(t, "001-02-provisioner")
		w.deploy(1, "1")
		w.pass(29 * day)
		first := w.machines()
		if len(first) != 1 || w.running() != 1 || w.sim.cloud.launched != 1 {
			t.Fatalf("after 29 days: %d machines of %d, and %d pods run; want the first machine and its pod",
				len(first), w.sim.cloud.launched, w.running())
		}
		w.pass(day + 10*time.Minute)
		if now := w.machines(); len(now) != 1 || now[0] == first[0] || w.running() != 1 {
			t.Errorf("after 30 days: %v, before it was %v; %d pods run", now, first, w.running())
		}
	})
	t.Run("no more than 1,000 CPUs", func(t *testing.T) {
		w := playDocument(t, "003-03-nodepool")
		w.deploy(300, "3500m") // each needs a node of four CPUs
		w.pass(30 * time.Minute)
		if n := len(w.machines()); n != 250 || w.running() != 250 {
			t.Errorf("%d nodes of 4 CPUs have %d of 300 pods, want 250", n, w.running())
		}
	})
	for _, tc := range []struct {
		file  string
		after time.Duration
		// others says that nodes whose pods have room elsewhere go, too.
		others bool
	}{
		{"000-01-provisioner", 30 * time.Second, false}, {"001-02-provisioner", 30 * time.Second, false},
		{"004-15-provisioner", 30 * time.Second, false},
		{"003-03-nodepool", 30 * time.Second, false}, {"003-10-nodepool", 0, false},
		{"003-13-nodepool", 10 * time.Second, false},
		{"003-08-nodepool", 0, true}, {"003-11-nodepool", 0, true}, {"003-12-nodepool-ec2nodeclass", 0, true},
	} {
		t.Run(tc.file+" when pods leave", func(t *testing.T) {
			w := playDocument(t, tc.file)
			w.deploy(6, "700m") // two on each of the smallest nodes
			w.pass(10 * time.Minute)
			w.leaveOneOnEach()
			w.pass(time.Hour)
			want := 3
			if tc.others {
				want = 2
			}
			if n := len(w.machines()); n != want || w.running() != 3 {
				t.Errorf("an hour after one of two pods has left each of three nodes "+
					"there are %d with %d pods, want %d",
					n, w.running(), want)
			}
			w.scale(0)
			w.pass(max(0, tc.after-time.Second))
			if n := len(w.machines()); tc.after > 0 && n != want {
				t.Errorf("less than %s after the last pods %d of %d nodes are there", tc.after, n, want)
			}
			w.pass(5 * time.Minute)
			if left := w.machines(); len(left) > 0 {
				t.Errorf("%v are there minutes after the last pod left", left)
			}
		})
	}
}

// documentWorld is a calm world with one pool.
type documentWorld struct {
	*testing.T
	sim  *Sim
	pool *v1.NodePool
}

// playDocument begins a world with the NodePool of a golden file. The cloud sells the types that the pool names, each
// with twice the CPUs of the one before for three times the price; its zones and its one NodeClass take the place of
// those in the file.
func playDocument(t *testing.T, file string) *documentWorld {
	t.Helper()
	pool := goldenPool(t, file)
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: classGroup, Kind: classKind, Name: className}
	names := []string{"m5.large"}
	for i, r := range pool.Spec.Template.Spec.Requirements {
		switch r.Key {
		case corev1.LabelInstanceTypeStable:
			names = r.Values
		case corev1.LabelTopologyZone:
			pool.Spec.Template.Spec.Requirements[i].Values = zones()
		}
	}
	s := newSim(1, Options{})
	s.cloud.types = nil
	cpus, price := int64(2), 0.1
	for _, name := range names {
		memory := apiresource.NewQuantity(4*cpus<<30, apiresource.BinarySI)
		s.cloud.types = append(s.cloud.types, machineType(name, apiresource.NewQuantity(cpus,
			apiresource.DecimalSI).String(), memory.String(), price))
		cpus, price = 2*cpus, 3*price
	}
	s.store.create(pool)
	s.start()
	t.Cleanup(func() {
		for len(s.replicas) > 0 {
			s.replicas[0].kill()
		}
	})
	return &documentWorld{T: t, sim: s, pool: pool}
}

// goldenPool reads the NodePool of a golden file.
func goldenPool(t *testing.T, file string) *v1.NodePool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "convert", "testdata", "golden", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(text), "\n---\n") {
		pool := &v1.NodePool{}
		if err := yaml.Unmarshal([]byte(document), pool); err == nil && pool.Kind == "NodePool" {
			return pool
		}
	}
	t.Fatalf("%s has no NodePool", file)
	return nil
}

// deploy makes pods that tolerate the pool's taints.
func (w *documentWorld) deploy(n int32, cpu string) {
	w.Helper()
	grace := int64(0)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	set.Spec.Replicas, set.Spec.Selector = &n, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	t := &set.Spec.Template
	t.Labels, t.Spec.TerminationGracePeriodSeconds = set.Spec.Selector.MatchLabels, &grace
	for _, taint := range w.pool.Spec.Template.Spec.Taints {
		t.Spec.Tolerations = append(t.Spec.Tolerations, corev1.Toleration{Key: taint.Key,
			Operator: corev1.TolerationOpExists})
	}
	t.Spec.Containers = []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse(
			cpu)}}}}
	w.sim.store.create(set)
}

// scale has so many pods wanted.
func (w *documentWorld) scale(n int32) {
	w.Helper()
	set, found := find[*appsv1.ReplicaSet](w.sim.store, sets, namespace+"/web")
	if !found {
		w.Fatal("nothing was deployed")
	}
	w.sim.scaleTo(set, n)
}

// leaveOneOnEach takes all pods but one from each node.
func (w *documentWorld) leaveOneOnEach() {
	w.Helper()
	kept := map[string]bool{}
	var leave []*corev1.Pod
	for _, p := range list[*corev1.Pod](w.sim.store, pods) {
		if kept[p.Spec.NodeName] {
			leave = append(leave, p)
		}
		kept[p.Spec.NodeName] = true
	}
	w.scale(int32(len(kept)))
	now := int64(0)
	for _, p := range leave {
		w.sim.store.endPod(p, &now)
	}
}

// pass lets time pass.
func (w *documentWorld) pass(d time.Duration) {
	w.Helper()
	w.sim.clock.runUntil(w.sim.clock.now.Add(d), w.sim.over)
	if w.sim.failure != nil {
		w.Fatal(w.sim.failure)
	}
}

// machines are the instances that run.
func (w *documentWorld) machines() []string {
	var out []string
	for _, m := range w.sim.cloud.machines {
		if !m.instance.Terminating && !m.gone {
			out = append(out, m.instance.ProviderID)
		}
	}
	slices.Sort(out)
	return out
}

// running counts the pods that run.
func (w *documentWorld) running() int {
	n := 0
	for _, p := range list[*corev1.Pod](w.sim.store, pods) {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}
