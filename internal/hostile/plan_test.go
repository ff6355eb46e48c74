package hostile_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/hostile"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// placedPods are the pods that a plan has a place for.
func placedPods(p *schedule.Placement) map[string]bool {
	out := make(map[string]bool)
	for i := range p.Bins {
		for _, pod := range p.Bins[i].Pods {
			out[pod.UID] = true
		}
	}
	for _, a := range p.Assigned {
		out[a.Pod.UID] = true
	}
	return out
}

// gpuPod is an ordinary pod that wants a GPU.
func gpuPod() *corev1.Pod {
	p := ordinaryPod(999)
	p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = apiresource.MustParse("1")
	return p
}

// TestOthersGetTheirNodes: whatever is pending beside them, ordinary pods and one with a GPU get their nodes in the
// same plan, and each hostile pod is served or told why not.
func TestOthersGetTheirNodes(t *testing.T) {
	for _, c := range slices.Concat(hostile.Cases(), hostile.AtTheBounds(), hostile.ByAdmins()) {
		book := newBook(t, ordinary)
		book.SetPod(gpuPod())
		for _, o := range c.Objects {
			feed(book, o)
		}
		stock(t, book)
		p := plan.Make(book.Snapshot(), policy(), nil, nil)
		placed := placedPods(&p.Placement)
		for i := range ordinary {
			if !placed[string(ordinaryPod(i).UID)] {
				t.Fatalf("%s: ordinary pod %d has no place", c.Name, i)
			}
		}
		if !placed[string(gpuPod().UID)] {
			t.Errorf("%s: the pod with a GPU has no place", c.Name)
		}
		told := make(map[string]string)
		for i := range p.Placement.Unplaced {
			told[p.Placement.Unplaced[i].Pod.UID] = render.Unplaced(&p.Placement.Unplaced[i])
		}
		for _, o := range c.Objects {
			pod, ok := o.(*corev1.Pod)
			if ok && pod.Spec.NodeName == "" && !placed[string(pod.UID)] && len(told[string(pod.UID)]) < 20 {
				t.Errorf("%s: pod %s has no place and is told %q", c.Name, pod.Name, told[string(pod.UID)])
			}
			if n := len(told[string(o.GetUID())]); n > 4096 {
				t.Errorf("%s: %d characters of reasons", c.Name, n)
			}
		}
	}
}

// TestManyClassesArePlannedAtOnce: each pod may be a class of its own, and ask for nodes in its own words.
func TestManyClassesArePlannedAtOnce(t *testing.T) {
	for _, c := range hostile.ManyClasses(1600) {
		switch strings.TrimRight(c.Name, "-0123456789") {
		case "selectors", "tolerations", "ports", "wishes", "spread", "distinct-classes":
		default:
			continue // they wait for each other
		}
		book := newBook(t, ordinary)
		for _, o := range c.Objects {
			feed(book, o)
		}
		p := plan.Make(book.Snapshot(), policy(), nil, nil)
		if n := len(placedPods(&p.Placement)); n != ordinary+len(c.Objects) {
			t.Errorf("%s: %d of %d pods have a place", c.Name, n, ordinary+len(c.Objects))
		}
	}
}

// planned is how many bytes a plan takes, and the plan.
func planned(book *ingest.Book) (uint64, plan.Plan) { return plannedOn(book.Snapshot()) }

func plannedOn(s *cluster.Snapshot) (uint64, plan.Plan) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := plan.Make(s, policy(), nil, nil)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, p
}

// TestHostilePodsAreCheapToPlanFor: a plan with a hostile pod takes at most five megabytes more than one without.
func TestHostilePodsAreCheapToPlanFor(t *testing.T) {
	plain, _ := planned(newBook(t, ordinary))
	for _, c := range append(hostile.Cases(), hostile.AtTheBounds()...) {
		if strings.HasPrefix(c.Name, "distinct-classes") || c.Name == "namespaces" || c.Name == "daemonsets-1000" {
			continue // thousands of objects, not one
		}
		book := newBook(t, ordinary)
		for _, o := range c.Objects {
			feed(book, o)
		}
		book.Snapshot()
		if bytes, _ := planned(book); bytes > plain+5_000_000 {
			t.Errorf("%s: the plan takes %d KiB, %d KiB without", c.Name, bytes>>10, plain>>10)
		}
	}
}

// TestRepellingClassesTakeTurns: thousands of classes that repel each other are served, some of them in each plan, and
// those that were told to wait come next.
func TestRepellingClassesTakeTurns(t *testing.T) {
	const classes = 300
	book := newBook(t, 0)
	for _, p := range hostile.Repelling(classes) {
		book.SetPod(p)
	}
	var before *plan.Plan
	first := make(map[string]bool)
	for round := range 4 {
		p := plan.Make(book.Snapshot(), policy(), before, nil)
		for i := range p.Placement.Bins {
			for _, pod := range p.Placement.Bins[i].Pods {
				first[pod.UID] = true
			}
			if n := len(p.Placement.Bins[i].Pods); n != 1 {
				t.Fatalf("%d pods that repel each other share a node", n)
			}
		}
		if p.Placement.Deferred > 0 && p.WakeAt.IsZero() {
			t.Fatal("nobody comes back for the pods that wait")
		}
		if round == 0 && p.Placement.Deferred == 0 {
			t.Fatal("all were planned for at once")
		}
		for _, c := range p.Commands {
			if create, ok := c.(command.CreateClaim); ok {
				book.Begin(create)
			}
		}
		before = &p
	}
	if len(first) != classes {
		t.Errorf("%d of %d pods have got a node", len(first), classes)
	}
}

// TestWaitingPodsComeInTurn: pods that can't be placed don't keep others waiting for ever.
func TestWaitingPodsComeInTurn(t *testing.T) {
	book := newBook(t, 0)
	const classes = 300
	for _, p := range hostile.Repelling(classes) {
		p.Spec.NodeSelector = map[string]string{"no": "such"}
		book.SetPod(p)
	}
	seen := make(map[string]bool)
	var before *plan.Plan
	for range 4 {
		p := plan.Make(book.Snapshot(), policy(), before, nil)
		for i := range p.Placement.Unplaced {
			if u := &p.Placement.Unplaced[i]; !u.Deferred {
				seen[u.Pod.UID] = true
			}
		}
		before = &p
	}
	if len(seen) != classes {
		t.Errorf("%d of %d pods have been looked at", len(seen), classes)
	}
}

// TestHostilePodsThatRunCostLittle: rules of pods that have a place are asked of the pods that look for one, not of all
// others.
func TestHostilePodsThatRunCostLittle(t *testing.T) {
	book := newBook(t, ordinary)
	for i, p := range hostile.Repelling(1000) {
		name := fmt.Sprint("node-", i)
		node := &corev1.Node{}
		node.Name, node.Labels = name, map[string]string{cluster.HostnameLabel: name}
		book.SetNode(node)
		p.Spec.NodeName, p.Status = name, corev1.PodStatus{Phase: corev1.PodRunning}
		book.SetPod(p)
	}
	bytes, p := planned(book)
	if n := len(placedPods(&p.Placement)); n != ordinary {
		t.Errorf("%d of %d ordinary pods have a place", n, ordinary)
	}
	if bytes > 16<<20 {
		t.Errorf("the plan takes %d KiB", bytes>>10)
	}
}
