package ingest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/ingest/inflight"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/ingest/pools"
	"github.com/tenon-sh/tenon/internal/resource"
)

// moved says which revisions a change has moved, and whether somebody was woken.
func moved(b *Book, change func()) string {
	before := b.Snapshot()
	select {
	case <-b.Changed():
	default:
	}
	change()
	woken := false
	select {
	case <-b.Changed():
		woken = true
	default:
	}
	after := b.Snapshot()
	var out []string
	for _, kind := range []struct {
		name string
		same bool
	}{{"demand", before.DemandRev == after.DemandRev}, {"supply", before.SupplyRev == after.SupplyRev},
		{"help", before.RoomRev == after.RoomRev}, {"stakes", before.DisruptionRev == after.DisruptionRev}} {
		if !kind.same {
			out = append(out, kind.name)
		}
	}
	switch {
	case len(out) > 0:
		return strings.Join(out, " ")
	case woken:
		return "rev"
	case before.Rev != after.Rev:
		return "quiet rev"
	}
	return ""
}

func judgedPod(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: "default", Name: uid},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}}
}

func placedPod(uid, node string) *corev1.Pod {
	p := judgedPod(uid)
	p.Spec.NodeName, p.Status.Conditions = node, nil
	return p
}

func with[T any](object *T, change func(*T)) *T {
	change(object)
	return object
}

func TestPodsMoveRevisions(t *testing.T) {
	b, _ := newBook()
	for _, c := range []struct {
		what string
		pod  *corev1.Pod
		want string
	}{
		{"a pod comes", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", Namespace: "default", Name: "a"}},
			"demand"},
		{"kube-scheduler finds no place", judgedPod("a"), "demand"},
		{"it says so again", with(judgedPod("a"), func(p *corev1.Pod) {
			p.ResourceVersion, p.Status.Conditions[0].Message = "2", "0/3 nodes"
		}), ""},
		{"it gets a node", placedPod("a", "n"), "demand supply"},
		{"it starts", with(placedPod("a", "n"), func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
		}), "quiet rev"},
		{"its labels change", with(placedPod("a", "n"), func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "x"}
		}), "supply help"},
		{"it is being deleted", with(placedPod("a", "n"), func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: at(12, 0)}
		}), "supply help"},
		{"it is done", with(placedPod("a", "n"), func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
		}), "supply help"},
		{"one comes with its node", placedPod("b", "n"), "supply"},
	} {
		if got := moved(b, func() { b.SetPod(c.pod) }); got != c.want {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.want)
		}
	}
	if got := moved(b, func() { b.DeletePod(placedPod("b", "n")) }); got != "supply help" {
		t.Errorf("a pod leaves its node: %q", got)
	}
	b.SetPod(judgedPod("c"))
	if got := moved(b, func() { b.DeletePod(judgedPod("c")) }); got != "demand" {
		t.Errorf("a pending pod goes: %q", got)
	}
}

func TestNodesMoveRevisions(t *testing.T) {
	b, _ := newBook()
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}, Status: corev1.NodeStatus{
			Allocatable: quantity("4"), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
				Status: corev1.ConditionTrue}}}}
		change(n)
		return n
	}
	for _, c := range []struct {
		what string
		node *corev1.Node
		want string
	}{
		{"a node comes", node(func(*corev1.Node) {}), "supply help"},
		{"its kubelet says that it lives", node(func(n *corev1.Node) {
			n.ResourceVersion, n.Status.Conditions[0].LastHeartbeatTime = "2", metav1.NewTime(at(13, 0))
			n.Status.Images = []corev1.ContainerImage{{SizeBytes: 5}}
		}), ""},
		{"a label", node(func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }), "supply help"},
		{"a taint", node(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "a", Effect: "NoSchedule"}}
		}), "supply help"},
		{"more room", node(func(n *corev1.Node) { n.Status.Allocatable = quantity("5") }), "supply help"},
		{"not ready", node(func(n *corev1.Node) {
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		}), "supply help"},
	} {
		if got := moved(b, func() { b.SetNode(c.node) }); got != c.want {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.want)
		}
	}
	if v := b.Snapshot().Node("n").Version; v != "1" {
		t.Errorf("the version is %q", v)
	}
	if got := moved(b, func() { b.DeleteNode("n") }); got != "supply help" {
		t.Errorf("a node goes: %q", got)
	}
}

func TestHeartbeatSettlesCommands(t *testing.T) {
	b, _ := newBook()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "5"}}
	b.SetNode(node)
	c := command.Fence{Claim: "a", Node: "n"}
	b.Begin(c)
	b.Record(command.Outcome{Command: c, At: b.now(), Writes: []command.Write{{Kind: command.KindNode, Name: "n",
		Version: "7"}}})
	later := node.DeepCopy()
	later.ResourceVersion = "7"
	if got := moved(b, func() { b.SetNode(later) }); got != "rev" || b.Snapshot().InFlight[c.Key()] ||
		b.Snapshot().Node("n").Version != "7" {
		t.Errorf("moved %q, busy %v", got, b.Snapshot().InFlight)
	}
}

func TestClaimsMoveRevisions(t *testing.T) {
	b, clock := newBook()
	create := command.CreateClaim{Name: "x", Pool: "default"}
	fail := func() { b.Record(command.Outcome{Command: create, At: b.now(), Err: errors.New("boom")}) }
	created := func() {
		b.Record(command.Outcome{Command: create, At: b.now(), Writes: []command.Write{{Kind: command.KindClaim,
			Name: "x", Version: "3", Created: true}}})
	}
	launched := with(claimObject("x", "4"), func(c *v1.NodeClaim) {
		c.Status.Conditions = []metav1.Condition{{Type: cluster.Launched, Status: metav1.ConditionTrue}}
	})
	for _, c := range []struct {
		what   string
		change func()
		want   string
	}{
		{"a claim is asked for", func() { b.Begin(create) }, "supply"},
		{"that fails", fail, "supply help"},
		{"it is asked for again", func() { b.Begin(create) }, "supply"},
		{"it is created", created, "rev"},
		{"the watch shows it", func() { b.SetClaim(claimObject("x", "3")) }, "supply"},
		{"only its version changes", func() { b.SetClaim(claimObject("x", "4")) }, ""},
		{"its pods' time is saved", func() {
			b.SetClaim(with(claimObject("x", "5"), func(c *v1.NodeClaim) {
				c.Status.LastPodEventTime = metav1.NewTime(at(11, 0))
			}))
		}, "rev"},
		{"it is launched", func() { b.SetClaim(launched) }, "supply help"},
		{"another command is begun", func() { b.Begin(command.Adopt{Claim: "x"}) }, "quiet rev"},
		{"it goes", func() { b.DeleteClaim("x") }, "supply help"},
	} {
		if got := moved(b, c.change); got != c.want {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.want)
		}
	}
	b.Begin(create)
	created()
	if got := moved(b, func() { clock.tick(inflight.CreateWatchTimeout + time.Second) }); got != "supply help" {
		t.Errorf("a claim that never appeared is given up: %q", got)
	}
}

func TestPoolsAndCatalogsMoveRevisions(t *testing.T) {
	b, clock := newBook()
	spot := command.UnavailableOffering{Type: "m", Zone: "z", CapacityType: "spot"}
	refuse := func() {
		b.Record(command.Outcome{Command: command.LaunchInstance{Claim: "a"}, At: b.now(), Refused: true})
	}
	for _, c := range []struct {
		what   string
		change func()
		want   string
	}{
		{"a pool comes", func() { b.SetPool(pool("default")) }, "supply help"},
		{"it is the same", func() {
			b.SetPool(with(pool("default"), func(p *v1.NodePool) { p.ResourceVersion = "2" }))
		}, ""},
		{"its status is written", func() {
			b.SetPool(with(pool("default"), func(p *v1.NodePool) { p.Status.Nodes = 3 }))
		}, "rev"},
		{"its weight changes", func() {
			b.SetPool(with(pool("default"), func(p *v1.NodePool) { weight := int32(5); p.Spec.Weight = &weight }))
		}, "supply help"},
		{"its class is ready", func() {
			b.SetNodeClass(defaultClass(), cluster.NodeClassState{Ready: true})
		}, "supply help"},
		{"its catalog comes", func() { b.setCatalog("default", 0, oneType("m"), nil) }, "supply help"},
		{"the same catalog comes in other values", func() { b.setCatalog("default", 0, oneType("m"), nil) }, ""},
		{"an offering is not available", func() {
			types := oneType("m")
			types[0].Offerings[0].Available = false
			b.setCatalog("default", 0, types, nil)
		}, "supply help"},
		{"the cloud has no more of one", func() {
			b.Record(command.Outcome{Command: command.LaunchInstance{Claim: "a"}, At: b.now(),
				Unavailable: []command.UnavailableOffering{spot}})
		}, "supply"},
		{"time passes", func() { clock.tick(time.Second) }, ""},
		{"it may have some again", func() { clock.tick(offerings.DefaultBackoff().First) }, "supply help"},
		{"a claim", func() { b.SetClaim(claimObject("a", "1")) }, "supply"},
		{"its pool is held", refuse, "supply"},
		{"its pool is free again", func() { clock.tick(offerings.FirstLaunchBackoff) }, "supply help"},
		{"nothing more follows", func() { clock.tick(offerings.FirstLaunchBackoff) }, ""},
		{"a daemon", func() { b.SetDaemon(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{UID: "d"}}) }, "supply help"},
		{"the daemon's status", func() {
			b.SetDaemon(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{UID: "d"},
				Status: appsv1.DaemonSetStatus{NumberReady: 3}})
		}, ""},
		{"a namespace", func() {
			b.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		}, "supply help"},
		{"the same namespace", func() {
			b.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", ResourceVersion: "2"}})
		}, ""},
		{"its labels", func() {
			b.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns",
				Labels: map[string]string{"a": "b"}}})
		}, "supply help"},
		{"the namespace goes", func() { b.DeleteNamespace("ns") }, "supply help"},
		{"an owner", func() { b.SetOwner(cluster.Owner{UID: "o", Known: true, Desired: 3}) }, "rev"},
		{"the pool goes", func() { b.DeletePool("default") }, "supply help"},
	} {
		if got := moved(b, c.change); got != c.want {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.want)
		}
	}
}

func TestNamespacesAndOwnersOfASnapshotStay(t *testing.T) {
	b, _ := newBook()
	b.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"a": "b"}}})
	b.SetOwner(cluster.Owner{UID: "o", Known: true, Desired: 3})
	b.SetPod(judgedPod("a"))
	s, again := b.Snapshot(), b.Snapshot()
	if &s.Pods[0] != &again.Pods[0] {
		t.Error("the list of pods was made anew although none has changed")
	}
	b.SetNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	b.DeleteOwner("", "o")
	b.DeletePod(judgedPod("a"))
	if v, _ := s.Namespaces["ns"].Get("a"); v != "b" || s.Owners["o"].Desired != 3 || s.Pods[0].UID != "a" {
		t.Errorf("the snapshot has changed: %v %v %v", s.Namespaces, s.Owners, s.Pods)
	}
	if s := b.Snapshot(); len(s.Namespaces["ns"]) != 0 || len(s.Owners) != 0 || len(s.Pods) != 0 {
		t.Errorf("the next one has not: %v %v %v", s.Namespaces, s.Owners, s.Pods)
	}
}

func odd(uid, name string) *corev1.Pod {
	return with(judgedPod(uid), func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceName(name): apiresource.MustParse("2")}}}}
	})
}

func TestNumbersOfUnusedResourcesAreGivenToOthers(t *testing.T) {
	b, clock := newBook()
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"example.com/late": apiresource.MustParse("3"), "example.com/r5": apiresource.MustParse("5")}}})
	extra := resource.Size - resource.Pods - 1
	others := corev1.ResourceList{}
	for i := range extra {
		others[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = apiresource.MustParse("1")
	}
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "others"},
		Status: corev1.NodeStatus{Allocatable: others}})
	for i := range extra {
		b.SetPod(odd(fmt.Sprint(i), fmt.Sprint("example.com/r", i)))
	}
	late := odd("late", "example.com/late")
	b.SetPod(late)
	find := func() *cluster.Pod {
		for _, p := range b.Snapshot().Pods {
			if p.UID == "late" {
				return p
			}
		}
		t.Fatal("the pod is gone")
		return nil
	}
	if p := find(); len(p.Class.Unsupported) != 1 {
		t.Fatalf("there are %d kinds of resource, yet nobody is turned away: %v", extra+1, p.Class)
	}
	clock.tick(2 * podspec.ReclaimAfter)
	b.DeletePod(odd("3", ""))
	if p := find(); len(p.Class.Unsupported) != 1 {
		t.Fatal("a number was given away at once")
	}
	clock.tick(podspec.ReclaimAfter)
	s := func() *cluster.Snapshot { find(); return b.Snapshot() }()
	p := find()
	dim, ok := s.Names.Lookup("example.com/late")
	if len(p.Class.Unsupported) != 0 || !ok || p.Class.Requests[dim] != 2 || s.Node("n").Allocatable[dim] != 3 {
		t.Fatalf("the pod %+v, dimension %d, %v, node %v", p.Class, dim, ok, s.Node("n").Allocatable)
	}
	kept, _ := s.Names.Lookup("example.com/r5")
	if _, gone := s.Names.Lookup("example.com/r3"); gone || s.Node("n").Allocatable[kept] != 5 {
		t.Errorf("the others have not kept their numbers: %v", s.Names)
	}
	broken := with(pool("limited"), func(p *v1.NodePool) {
		p.Spec.Limits = corev1.ResourceList{"example.com/more": apiresource.MustParse("1")}
	})
	b.SetPool(broken)
	if limits := b.Snapshot().Pool("limited").Limits; limits.Broken == "" {
		t.Fatalf("a limit that can't be counted: %+v", limits)
	}
	b.DeletePod(odd("4", ""))
	b.Snapshot()
	clock.tick(podspec.ReclaimAfter)
	if limits := b.Snapshot().Pool("limited").Limits; limits.Broken != "" || !limits.Any() {
		t.Errorf("the limit can be counted now: %+v", limits)
	}
	// What is free may be taken later, too, and is measured then.
	b.DeletePod(odd("5", ""))
	b.SetPod(odd("again", "example.com/r3"))
	b.Snapshot()
	clock.tick(podspec.ReclaimAfter)
	s = b.Snapshot()
	if _, ok := s.Names.Lookup("example.com/r3"); !ok {
		t.Error("r3 has not come back")
	}
}

// What only decides which nodes may go moves the stakes and no placement.
func TestStakes(t *testing.T) {
	b, _ := newBook()
	b.SetClaim(claimObject("a", "1"))
	b.SetPod(placedPod("p", "n"))
	b.SetPool(pool("default"))
	claim := func(change func(*v1.NodeClaim)) func() {
		return func() { b.SetClaim(with(claimObject("a", "2"), change)) }
	}
	poolOf := func(change func(*v1.NodePool)) func() { return func() { b.SetPool(with(pool("default"), change)) } }
	noted := func(key, value string) map[string]string { return map[string]string{key: value} }
	day, hour := "@daily", "@hourly"
	window := func(p *v1.NodePool, schedule *string) {
		p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "1", Schedule: schedule,
			Duration: &metav1.Duration{Duration: time.Hour}}}
	}
	for _, c := range []struct {
		what   string
		change func()
		want   string
	}{
		{"a claim is protected", claim(func(c *v1.NodeClaim) {
			c.Annotations = noted(v1.DoNotDisruptAnnotationKey, "true")
		}), "stakes"},
		{"it rests", claim(func(c *v1.NodeClaim) {
			c.Annotations = noted(cluster.RestAnnotation, "2026-11-15T12:30:00Z 1")
		}), "stakes"},
		{"it is not taken for empty", claim(func(c *v1.NodeClaim) {
			c.Annotations = noted(cluster.SavingRestAnnotation, "2026-11-15T12:30:00Z 1")
		}), "stakes"},
		// the rest is over
		{"it is stamped", claim(func(c *v1.NodeClaim) {
			c.Annotations = noted(v1.NodePoolHashAnnotationKey, "1")
		}), "stakes"},
		{"and again", claim(func(c *v1.NodeClaim) { c.Annotations = noted(v1.NodePoolHashAnnotationKey, "2") }), "rev"},
		{"it goes in a move", claim(func(c *v1.NodeClaim) {
			c.Annotations = noted(cluster.MoveAnnotation, "m")
		}), "supply help"},
		{"a pod's eviction costs more", func() {
			b.SetPod(with(placedPod("p", "n"), func(p *corev1.Pod) {
				p.Annotations = noted(corev1.PodDeletionCost, "5")
			}))
		}, "stakes"},
		{"a pool says to be careful", poolOf(func(p *v1.NodePool) {
			p.Annotations = noted(pools.DryRunAnnotation, "true")
		}), "stakes"},
		{"its hash is written", poolOf(func(p *v1.NodePool) {
			p.Annotations = map[string]string{pools.DryRunAnnotation: "true", v1.NodePoolHashAnnotationKey: "1"}
		}), "rev"},
		{"another policy", poolOf(func(p *v1.NodePool) {
			p.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyBalanced
		}), "stakes"},
		{"a window", poolOf(func(p *v1.NodePool) { window(p, &day) }), "stakes"},
		{"the same window", poolOf(func(p *v1.NodePool) { window(p, &day) }), ""},
		{"another window", poolOf(func(p *v1.NodePool) { window(p, &hour) }), "stakes"},
		{"a disruption budget of pods", func() { b.SetPDB(budget(func(*policyv1.PodDisruptionBudget) {})) }, "stakes"},
	} {
		if got := moved(b, c.change); got != c.want {
			t.Errorf("%s: %q moved, want %q", c.what, got, c.want)
		}
	}
}
