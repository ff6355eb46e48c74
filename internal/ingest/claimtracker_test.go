package ingest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
)

// lab is a book with a Deployment "web" whose ReplicaSet "rs" has pods that wait, and nodes that are made for them.
type lab struct {
	*testing.T
	b *Book
	c *clock
}

func newLab(t *testing.T) *lab {
	b, c := newBook()
	l := &lab{T: t, b: b, c: c}
	b.SetOwner(webReplicaSet("rs", "web-1"))
	return l
}

// webReplicaSet is one of the Deployment "web".
func webReplicaSet(uid, name string) cluster.Owner {
	return cluster.Owner{
		UID: uid, Kind: "ReplicaSet", Name: name, Namespace: "default", Known: true, Desired: 1,
		Workload: "web", WorkloadKind: "Deployment", WorkloadName: "web",
	}
}

// waits is a pod of a ReplicaSet for which kube-scheduler finds no place.
func (l *lab) waits(uid, owner string, change ...func(*corev1.Pod)) {
	controls := true
	p := with(judgedPod(uid), func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(owner), Kind: "ReplicaSet", Name: owner,
			Controller: &controls}}
		p.Status.Phase = corev1.PodPending
	})
	for _, f := range change {
		f(p)
	}
	l.b.SetPod(p)
}

// runs is the same pod on a node.
func (l *lab) runs(uid, owner, node string, phase corev1.PodPhase) {
	l.waits(uid, owner, func(p *corev1.Pod) {
		started := metav1.NewTime(l.c.now())
		p.Spec.NodeName, p.Status.Phase, p.Status.Conditions, p.Status.StartTime = node, phase, nil, &started
	})
}

// key is the class of a pod.
func (l *lab) key(uid string) string {
	p, _ := l.b.pods.Get(uid)
	return p.Class.Key
}

// made is a claim for the owner with seats for the class of the pod, whose node is up.
func (l *lab) made(name, uid string, try int, change ...func(*v1.NodeClaim)) {
	c := launchedClaim(name, l.key(uid)+":1", metav1.ConditionTrue)
	c.Annotations[cluster.MadeForAnnotation] = cluster.FormatMadeFor([]cluster.MadeFor{{Owner: "default/web",
		Try: try}})
	c.UID = types.UID("uid-" + name)
	c.CreationTimestamp, c.Status.NodeName = metav1.NewTime(l.c.now()), name
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastTransitionTime = metav1.NewTime(l.c.now())
	}
	for _, f := range change {
		f(c)
	}
	l.b.SetClaim(c)
}

// node is the claim's node.
func (l *lab) node(name string, change ...func(*corev1.Node)) {
	n := machine(name)
	n.UID = types.UID("node-" + name)
	n.Status.Allocatable = corev1.ResourceList{}
	for res, q := range quantity("64") {
		n.Status.Allocatable[res] = q
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods,
		corev1.ResourceEphemeralStorage} {
		n.Status.Allocatable[name] = quantity("64")[corev1.ResourceCPU]
	}
	for _, f := range change {
		f(n)
	}
	if _, err := decode.Strip(n); err != nil {
		l.Fatal(err)
	}
	l.b.SetNode(n)
}

func tainted(by string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "agent", Value: "yes",
			Effect: corev1.TaintEffectNoExecute})
		old, now := metav1.NewTime(at(11, 0)), metav1.NewTime(at(12, 0))
		n.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "kubelet", Time: &old, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:taints":{}}}`)},
			{Manager: by, Time: &now, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:taints":{}}}`)},
			{Manager: "other", Time: &now, FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
		}
	}
}

// failedTry is a node that is made for the pod's owner and comes up with a taint that the pod does not tolerate.
func (l *lab) failedTry(node, uid string, try int) {
	l.made(node, uid, try)
	l.node(node, tainted("agent"))
}

// firstTryFailed has pods wait, of which the first gets a node that is of no use to it.
func (l *lab) firstTryFailed(uids ...string) *cluster.WorkloadTries {
	l.Helper()
	for _, uid := range uids {
		l.waits(uid, "rs")
	}
	l.failedTry("n1", uids[0], 1)
	return l.expect("the first", "1 tries, 0 coming, standing [n1], Taint")
}

// goodTry is a node that is made for the pod's owner and on which the pod runs.
func (l *lab) goodTry(node, uid string, try int) {
	l.made(node, uid, try)
	l.node(node)
	l.runs(uid, "rs", node, corev1.PodRunning)
}

// disruptedAs is the condition of a claim that we let go.
func disruptedAs(reason string) metav1.Condition {
	return metav1.Condition{Type: v1.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue, Reason: reason}
}

func asksFor(cpu string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		resources := corev1.ResourceRequirements{Requests: quantity(cpu)}
		p.Spec.Containers = []corev1.Container{{Name: "main", Resources: resources}}
	}
}

// expect compares the tries of the Deployment with a line: its tries, what is coming and standing, the cause.
func (l *lab) expect(what, want string) *cluster.WorkloadTries {
	l.Helper()
	b := l.b.Snapshot().WorkloadTries["default/web"]
	got := "none"
	if b != nil {
		cause := ""
		if len(b.Failures) > 0 {
			cause = string(b.Failures[0].Cause.Kind)
		}
		got = fmt.Sprintf("%d tries, %d coming, standing %v, %s", b.FailedTries, b.ComingClaims, b.UnusedClaims, cause)
	}
	if got != want {
		l.Errorf("%s: %s, want %s", what, got, want)
	}
	return b
}

func TestWhatKeepsPodsAwayIsNamed(t *testing.T) {
	for _, c := range []struct {
		what   string
		happen func(l *lab)
		want   string
		check  func(cluster.Cause) string
	}{
		{"a taint", func(l *lab) { l.node("n", tainted("node-agent")) }, "1 tries, 0 coming, standing [n], Taint",
			func(c cluster.Cause) string { return c.Taint.String() + " " + c.By }},
		{"a cordon", func(l *lab) {
			l.node("n", func(n *corev1.Node) {
				n.Spec.Unschedulable = true
				n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-cordon",
					FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:unschedulable":{}}}`)}}
			})
		}, "1 tries, 0 coming, standing [n], Cordoned", func(c cluster.Cause) string { return c.By }},
		{"allocatable that shrank", func(l *lab) {
			l.node("n", func(n *corev1.Node) {
				n.Status.Allocatable[corev1.ResourceCPU] = quantity("0")[corev1.ResourceCPU]
			})
		}, "1 tries, 0 coming, standing [n], AllocatableShrank", func(c cluster.Cause) string {
			return c.Resource + " " + c.Promised + " " + c.Left
		}},
		{"room that a daemon has taken", func(l *lab) {
			controls := true
			d := with(judgedPod("daemon"), func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{UID: "ds", Kind: "DaemonSet", Name: "agent",
					Controller: &controls}}
				p.Spec.NodeName, p.Status.Conditions, p.Status.Phase = "n", nil, corev1.PodRunning
				asksFor("64")(p)
			})
			l.b.SetPod(d)
		}, "1 tries, 0 coming, standing [n], RoomTaken", func(c cluster.Cause) string {
			return c.Resource + " " + c.Need + " " + c.Left
		}},
		{"a node that somebody deletes", func(l *lab) {
			l.node("n", func(n *corev1.Node) { now := metav1.NewTime(l.c.now()); n.DeletionTimestamp = &now })
		}, "1 tries, 0 coming, standing [n], NodeDeleted", func(c cluster.Cause) string { return c.By }},
		{"a claim that is gone", func(l *lab) {
			l.node("n")
			l.b.DeleteClaim("n")
		}, "1 tries, 0 coming, standing [], NodeDeleted", func(c cluster.Cause) string { return c.By }},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLab(t)
			l.waits("p", "rs", asksFor("1"))
			l.made("n", "p", 1, func(c *v1.NodeClaim) {
				c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: quantity("64")[corev1.ResourceCPU]}
			})
			l.node("n")
			l.expect("a node that takes the pod", "none")
			c.happen(l)
			b := l.expect(c.what, c.want)
			if b == nil {
				return
			}
			want := map[string]string{"a taint": "agent=yes:NoExecute node-agent", "a cordon": "kubectl-cordon",
				"allocatable that shrank": "cpu 64 0", "room that a daemon has taken": "cpu 1 0",
				"a node that somebody deletes": "somebody who deleted the Node", "a claim that is gone": ""}[c.what]
			if got := c.check(b.Failures[0].Cause); got != want {
				t.Errorf("the cause is %q, want %q", got, want)
			}
			if b.Kind != "Deployment" || b.Name != "default/web" {
				t.Errorf("it is told of %s %s", b.Kind, b.Name)
			}
		})
	}
}

func TestNodesOnTheirWayAreNotInVain(t *testing.T) {
	l := newLab(t)
	for i := range 50 {
		l.waits(fmt.Sprintf("p%d", i), "rs")
		l.made(fmt.Sprintf("n%02d", i), "p0", 1, func(c *v1.NodeClaim) {
			c.Status.Conditions[1].Status = metav1.ConditionUnknown
		})
		l.node(fmt.Sprintf("n%02d", i), func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}}
		})
	}
	l.expect("a burst", "none")
	l.c.tick(5 * time.Minute)
	l.expect("five minutes later", "none")
}

func TestTriesAreCountedUntilPodsRun(t *testing.T) {
	l := newLab(t)
	b := l.firstTryFailed("p1")
	if !b.MayTry(l.c.now()) || b.IsFree() || b.Retained != "n1" {
		t.Errorf("after an accident the next try is made at once, and one at a time: %+v", b)
	}

	l.made("n2", "p1", 2, func(c *v1.NodeClaim) { c.Status.Conditions[1].Status = metav1.ConditionUnknown })
	b = l.expect("the second is on its way", "1 tries, 1 coming, standing [n1], Taint")
	if b.MayTry(l.c.now()) {
		t.Error("a third is made beside the second")
	}
	l.c.tick(20 * time.Second)
	l.made("n2", "p1", 2, func(c *v1.NodeClaim) {
		c.CreationTimestamp = metav1.NewTime(l.c.now().Add(-20 * time.Second))
	})
	l.node("n2", tainted("agent"))
	b = l.expect("the second", "2 tries, 0 coming, standing [n1 n2], Taint")
	if b.Retained != "n2" || b.MayTry(l.c.now().Add(time.Hour)) {
		t.Errorf("while two stand in vain nothing is tried, and the newer one stays: %+v", b)
	}
	l.b.DeleteClaim("n1")
	b = l.expect("the first is gone", "2 tries, 0 coming, standing [n2], Taint")
	if want := l.c.now().Add(10 * time.Second); !b.NextTry.Equal(want) {
		t.Errorf("the next try is at %s, want %s", b.NextTry, want)
	}

	// The pod is evicted and made anew, by the ReplicaSet of another rollout: the count goes on.
	l.b.SetOwner(webReplicaSet("rs2", "web-2"))
	l.b.DeletePod(judgedPod("p1"))
	l.waits("p2", "rs2")
	l.made("n3", "p2", 3)
	l.node("n3")
	l.runs("p2", "rs2", "n3", corev1.PodRunning)
	b = l.expect("a pod runs", "2 tries, 1 coming, standing [n2], Taint")
	if b.RunsAgain || b.ChangesAt(l.c.now()).IsZero() {
		t.Errorf("one moment is not enough, and the next look has a time: %+v", b)
	}
	l.c.tick(cluster.SeemsWellAfter)
	if b = l.expect("for a while", "2 tries, 0 coming, standing [n2], Taint"); !b.IsFree() {
		t.Errorf("the rest may follow: %+v", b)
	}
	l.c.tick(cluster.ProvenAfter)
	l.expect("for long enough", "none")
}

// A try counts from when its node was made, whatever becomes of it: where others take the room the next comes no
// sooner.
func TestATryCountsFromItsBeginning(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "rs")
	for i, name := range []string{"n1", "n2"} {
		l.failedTry(name, "p1", i+1)
		l.expect(name, fmt.Sprintf("%d tries, 0 coming, standing %v, Taint", i+1, []string{"n1", "n2"}[:i+1]))
	}
	l.b.DeleteClaim("n1")
	l.c.tick(time.Minute)
	l.made("n3", "p1", 3)
	l.node("n3")
	l.runs("other", "batch", "n3", corev1.PodRunning)
	b := l.expect("others have taken the room", "2 tries, 0 coming, standing [n2], Taint")
	if want := l.c.now().Add(cluster.TryAfter(2)); !b.NextTry.Equal(want) || b.MayTry(l.c.now()) {
		t.Errorf("the next try is at %s, want %s", b.NextTry, want)
	}
}

func TestARestartGoesOnCounting(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "rs")
	l.failedTry("n7", "p1", 7)
	b := l.expect("from the claim alone", "7 tries, 0 coming, standing [n7], Taint")
	if want := l.c.now().Add(5 * time.Minute); !b.NextTry.Equal(want) {
		t.Errorf("the next try is at %s, want %s", b.NextTry, want)
	}
	l.c.tick(31 * time.Second)
	l.b.SetPool(pool("default"))
	l.b.SetPool(with(pool("default"), func(p *v1.NodePool) { p.Generation = 2 }))
	if b = l.expect("the pool changes", "7 tries, 0 coming, standing [n7], Taint"); !b.MayTry(l.c.now()) {
		t.Errorf("a change that may be the cure has the next try made at once: %+v", b)
	}
}

func TestOnlyPodsThatTheCauseTouchesAreHeld(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "rs")
	l.waits("p2", "rs", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "agent", Operator: corev1.TolerationOpExists}}
	})
	l.waits("p3", "other")
	l.failedTry("n1", "p1", 3)
	s := l.b.Snapshot()
	var held []string
	for _, p := range s.Pods {
		if b, _ := s.TriesHolding(p); b != nil {
			held = append(held, p.UID)
		}
	}
	if !slices.Equal(held, []string{"p1"}) {
		t.Errorf("held are %v, want p1 alone", held)
	}
}

// A node that is scaled away before its pods came is not in vain, and neither is one that others use.
func TestWhatIsNotInVain(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "rs")
	l.made("n1", "p1", 1)
	l.node("n1")
	l.b.DeletePod(judgedPod("p1"))
	l.expect("nobody waits", "none")
	l.b.SetClaim(with(launchedClaim("n1", "", metav1.ConditionTrue), func(c *v1.NodeClaim) {
		now := metav1.NewTime(l.c.now())
		c.UID, c.DeletionTimestamp = "uid-n1", &now
		c.Annotations[cluster.MadeForAnnotation] = "default/web=1"
		c.Status.Conditions = append(c.Status.Conditions, disruptedAs("Empty"))
	}))
	l.expect("it goes because it is empty", "none")
	l.waits("p2", "rs")
	l.expect("and then pods come", "none")
}
