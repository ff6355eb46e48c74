package loop

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/fake"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/validate"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: apiresource.MustParse(cpu), corev1.ResourceMemory: apiresource.MustParse(memory),
		corev1.ResourcePods: apiresource.MustParse("110"),
	}
}

// wasteful is a book with large nodes that carry one small pod each.
func wasteful(t *testing.T, count int) *ingest.Book {
	t.Helper()
	return wastefulAt(t, time.Now, count)
}

func wastefulAt(t *testing.T, now func() time.Time, count int) *ingest.Book {
	t.Helper()
	class := cluster.ClassRef{Group: "fake.tenon.sh", Kind: "FakeNodeClass", Name: "default"}
	book := ingest.New(now, validate.Labels{}, []cluster.ClassRef{class})
	book.SetNodeClass(class, cluster.NodeClassState{Ready: true, Generation: 1})
	pool := poolOf("default", class)
	book.SetPool(pool)
	book.FetchCatalogs(t.Context(), fake.New(fake.NewCloud()))
	book.SetOwner(cluster.Owner{UID: "rs", Namespace: "default", Kind: "ReplicaSet", Known: true, Desired: count})
	for i := range count {
		addNode(book, pool, fmt.Sprintf("n%02d", i))
	}
	return book
}

// poolOf is a pool whose nodes go as soon as they may.
func poolOf(name string, class cluster.ClassRef) *v1.NodePool {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: class.Group, Kind: class.Kind,
		Name: class.Name}
	pool.Spec.Template.Spec.ExpireAfter = v1.NeverDuration()
	pool.Spec.Disruption = v1.Disruption{
		ConsolidationPolicy: v1.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: v1.DurationOf(0),
		Budgets: []v1.Budget{{Nodes: "100%"}},
	}
	return pool
}

// addNode adds a node with a small pod, and returns its claim.
func addNode(book *ingest.Book, pool *v1.NodePool, name string) *v1.NodeClaim {
	longAgo := metav1.NewTime(time.Now().Add(-24 * time.Hour))
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("claim-" + name), ResourceVersion: "1", CreationTimestamp: longAgo,
		Finalizers: []string{v1.TerminationFinalizer},
		Labels: map[string]string{
			v1.NodePoolLabelKey: pool.Name, corev1.LabelInstanceTypeStable: "large", corev1.LabelTopologyZone: "zone-a",
			corev1.LabelArchStable: "amd64",
			corev1.LabelOSStable:   "linux", v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand,
		},
	}}
	claim.Spec.NodeClassRef, claim.Spec.ExpireAfter = pool.Spec.Template.Spec.NodeClassRef, v1.NeverDuration()
	claim.Status.ProviderID, claim.Status.NodeName = "fake://"+name, name
	claim.Status.Capacity, claim.Status.Allocatable = amounts("16", "64Gi"), amounts("15", "60Gi")
	for _, kind := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized,
		v1.ConditionTypeReady} {
		claim.Status.Conditions = append(claim.Status.Conditions, metav1.Condition{Type: kind,
			Status: metav1.ConditionTrue, LastTransitionTime: longAgo})
	}
	book.SetClaim(claim)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), ResourceVersion: "1",
		Labels: map[string]string{
			corev1.LabelHostname: name, v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true",
		}, Finalizers: []string{v1.TerminationFinalizer}}}
	for key, value := range claim.Labels {
		node.Labels[key] = value
	}
	node.Spec.ProviderID = "fake://" + name
	node.Status.Capacity, node.Status.Allocatable = amounts("16", "64Gi"), amounts("15", "60Gi")
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	book.SetNode(node)
	controls := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-" + name, UID: types.UID("pod-" + name), CreationTimestamp: longAgo,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", UID: "rs",
			Controller: &controls}},
	}}
	pod.Spec.NodeName = name
	pod.Spec.Containers = []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: amounts("500m", "512Mi")}}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &longAgo, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: longAgo}, {Type: corev1.PodReady,
			Status: corev1.ConditionTrue},
	}}
	book.SetPod(pod)
	return claim
}

// The two desks together: what the search in the background finds is begun by a plan, while plans go on and the world
// changes.
func TestWhatIsFoundIsBegun(t *testing.T) {
	book := wasteful(t, 12)
	a := &actor{began: make(chan command.Command, 10000), end: make(chan error)}
	told := &teller{silent: silent{done: make(chan command.Outcome, 10000)}}
	l := &Loop{World: book, Actor: a, Observer: told, Policy: plan.Policy{BatchIdle: time.Second, BatchMax: time.Second,
		Disrupt: disrupt.Settings{
			MinSaving: 0.05, BalancedK: 2, SpotTypes: 15, ReplacementTimeout: time.Minute, DriftWatch: time.Minute,
		}}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = l.Run(ctx); close(ended) }()
	defer func() { stop(); <-ended }()
	for i := 0; ; i++ {
		// Heartbeats of another node keep plans coming while the search runs.
		book.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other", ResourceVersion: fmt.Sprint(i)},
			Spec: corev1.NodeSpec{Unschedulable: i%2 == 0 && i < 10}})
		c := next(t, a.began, "a fence")
		if fence, ok := c.(command.Fence); ok {
			if fence.Reason != command.Underutilized || fence.Move == "" || told.count() == 0 {
				t.Errorf("begun %+v after %d searches", fence, told.count())
			}
			return
		}
		a.end <- nil
	}
}

// A pod that comes while the search runs opens a batch window. What was found is begun when it closes, and told once.
func TestWhatIsFoundWaitsForThePodsToBeCounted(t *testing.T) {
	now := time.Now()
	book := wastefulAt(t, func() time.Time { return now }, 12)
	told := &teller{silent: silent{done: make(chan command.Outcome, 100)}}
	l := &Loop{World: book, Observer: told, Policy: plan.Policy{BatchIdle: time.Second, BatchMax: 30 * time.Second,
		Disrupt: disrupt.Settings{
			MinSaving: 0.05, BalancedK: 2, SpotTypes: 15, ReplacementTimeout: time.Minute, DriftWatch: time.Minute,
		}}}
	fences := 0
	pass := func() {
		l.Pass(func(_ *cluster.Snapshot, c command.Command) {
			if f, ok := c.(command.Fence); ok && f.Move != "" {
				fences++
			}
		})
	}
	comes := func(name string) { book.SetPod(looking(name)) }
	pass()
	now = now.Add(quietBeforeSearch)
	pass()
	if l.searches.found == nil || len(l.searches.found.proposal.Moves) == 0 {
		t.Fatal("nothing was found")
	}
	comes("p")
	if pass(); fences != 0 || l.searches.found == nil || l.searches.emptySearches != 0 {
		t.Fatalf("while pods are counted: %d fences, kept %v, idle %d", fences, l.searches.found != nil,
			l.searches.emptySearches)
	}
	for i := range 12 { // more come, for longer than what was found keeps
		now = now.Add(900 * time.Millisecond)
		comes(fmt.Sprint("p", i))
		pass()
	}
	if fences != 0 || l.searches.found != nil || l.searches.emptySearches != 0 || l.searches.againAt.After(now) ||
		told.count() != 1 {
		t.Errorf("after a while: %d fences, kept %v, idle %d, again at %v, told %d times", fences,
			l.searches.found != nil, l.searches.emptySearches, l.searches.againAt, told.count())
	}
	now = now.Add(1100 * time.Millisecond)
	pass() // the window closes, and it is searched again at once
	if l.searches.found == nil {
		t.Fatal("it was not searched again")
	}
	comes("last")
	pass()
	now = now.Add(1100 * time.Millisecond)
	if pass(); fences == 0 || told.count() != 2 {
		t.Errorf("%d fences, told %d times", fences, told.count())
	}
}

// looking is a pod that has no place and can't have one.
func looking(name string) *corev1.Pod {
	controls := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(name), Namespace: "d", Name: name,
		OwnerReferences: []metav1.OwnerReference{{UID: "x", Controller: &controls}}}}
	pod.Spec.NodeSelector = map[string]string{"no": "such"}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
	return pod
}

// slow is a world whose snapshot for the first search comes when it is let. Each pass takes one: what is more is for a
// search.
type slow struct {
	*ingest.Book
	passes, snapshots  atomic.Int32
	first              sync.Once
	searching, release chan struct{}
}

func (w *slow) Snapshot() *cluster.Snapshot {
	if w.snapshots.Add(1) > w.passes.Load() {
		w.first.Do(func() {
			close(w.searching)
			<-w.release
		})
	}
	return w.Book.Snapshot()
}

// passCounter tells the world how many passes there were.
type passCounter struct {
	silent
	w *slow
}

func (c passCounter) Planning() { c.w.passes.Add(1) }

func TestStopWaitsForTheSearch(t *testing.T) {
	book := ingest.New(time.Now, validate.Labels{}, nil)
	book.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	w := &slow{Book: book, searching: make(chan struct{}), release: make(chan struct{})}
	l := &Loop{World: w, Observer: passCounter{w: w}, Policy: plan.Policy{BatchIdle: time.Second,
		BatchMax: time.Second}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = l.Run(ctx); close(ended) }()
	next(t, w.searching, "the search")
	stop()
	select {
	case <-ended:
		t.Error("the loop has ended while a search was under way")
	case <-time.After(100 * time.Millisecond):
	}
	close(w.release)
	next(t, ended, "the end")
	if l.searches.running {
		t.Error("a loop that has ended is still searching")
	}
}
