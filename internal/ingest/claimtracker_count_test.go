package ingest

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/tries"
)

// An agent evicts pods, and kube-scheduler puts them on the same nodes again: the nodes are in vain all the same until
// a pod has run there.
func TestANodeInVainCountsWhilePodsComeToItAgain(t *testing.T) {
	l := newLab(t)
	for _, x := range []string{"1", "2", "3"} {
		l.waits("p"+x, "rs")
		l.failedTry("n"+x, "p"+x, 1)
	}
	l.expect("all are tainted", "1 tries, 0 coming, standing [n1 n2 n3], Taint")
	for _, x := range []string{"1", "2"} {
		l.node("n" + x)
		l.runs("p"+x, "rs", "n"+x, corev1.PodRunning)
	}
	b := l.expect("pods come to two of them", "1 tries, 0 coming, standing [n3], Taint")
	if b.UnusedWithPods != 2 || b.CountUnused() != 3 || b.MayTry(l.c.now().Add(time.Hour)) {
		t.Errorf("nothing is tried while three are in vain: %+v", b)
	}
	if want := l.c.now().Add(cluster.ProvenAfter); !b.ChangesAt(l.c.now()).Equal(want) {
		t.Errorf("the next look is at %s, want %s", b.ChangesAt(l.c.now()), want)
	}
	l.c.tick(cluster.ProvenAfter)
	if b := l.b.Snapshot().WorkloadTries["default/web"]; b != nil {
		t.Errorf("pods have run for long enough: %+v", b)
	}
}

// Where nodes are of use again and more stand in vain than may, others are made only in place of those that go.
func TestNodesTakeThePlaceOfThoseInVainThatGo(t *testing.T) {
	l := newLab(t)
	for _, x := range []string{"1", "2", "3"} {
		l.waits("p"+x, "rs")
		l.goodTry("n"+x, "p"+x, 1)
	}
	for _, x := range []string{"1", "2"} {
		l.waits("p"+x, "rs")
		l.node("n"+x, tainted("agent"))
	}
	l.c.tick(cluster.SeemsWellAfter)
	l.expect("two fail", "1 tries, 0 coming, standing [n1 n2], Taint")
	l.c.tick(cluster.SeemsWellAfter)
	b := l.expect("the third seems well", "1 tries, 0 coming, standing [n1 n2], Taint")
	if !b.RunsAgain || b.Unproven != 1 || b.MostUnproven != 3 || b.MayTry(l.c.now()) {
		t.Errorf("three are there and three were: %+v", b)
	}
	l.b.DeleteClaim("n1")
	if b = l.expect("one goes", "1 tries, 0 coming, standing [n2], Taint"); !b.IsFree() {
		t.Errorf("only the witness stands: %+v", b)
	}
}

// A pod that tolerates everything stays on a node that somebody has deleted, and its kubelet does not say when it has
// stopped.
func TestTimeOnANodeThatGoesDoesNotCount(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "rs")
	l.goodTry("n1", "p1", 1)
	l.expect("it runs", "none")
	l.c.tick(cluster.ProvenAfter - time.Second)
	l.b.Snapshot()
	deleted := metav1.NewTime(l.c.now())
	l.node("n1", func(n *corev1.Node) { n.DeletionTimestamp = &deleted })
	b := l.expect("the node is deleted", "1 tries, 0 coming, standing [], NodeDeleted")
	if b.UnusedWithPods != 0 || !b.MayTry(l.c.now()) {
		t.Errorf("the pod is still there, and goes only if it has another place: %+v", b)
	}
	l.c.tick(cluster.ProvenAfter)
	l.expect("the pod is still said to run", "1 tries, 0 coming, standing [], NodeDeleted")
}

// A pod that can't start must not hold up the others of its owner for ever.
func TestAPodThatDoesNotStartHoldsUpNothingForLong(t *testing.T) {
	l := newLab(t)
	l.firstTryFailed("p1", "p2")
	l.made("n2", "p1", 2)
	l.node("n2")
	l.runs("p1", "rs", "n2", corev1.PodPending)
	b := l.expect("its image is missing", "1 tries, 1 coming, standing [n1], Taint")
	if b.MayTry(l.c.now().Add(time.Minute)) {
		t.Errorf("the second is looked at first: %+v", b)
	}
	l.c.tick(tries.TrackFor)
	if b := l.expect("later", "1 tries, 0 coming, standing [n1], Taint"); !b.MayTry(l.c.now()) || b.IsFree() {
		t.Errorf("one node may be tried: %+v", b)
	}
}

// Pods of others may take each node that is made for an owner. Where they run well, it need not wait for its next turn.
func TestATryThatOthersTakeIsMadeAgainSoon(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "rs")
	l.failedTry("n7", "p1", 7)
	l.expect("seven tries", "7 tries, 0 coming, standing [n7], Taint")
	l.made("n8", "p1", 8)
	l.node("n8")
	l.runs("other", "batch", "n8", corev1.PodRunning)
	b := l.expect("others take the room", "7 tries, 0 coming, standing [n7], Taint")
	if b.MayTry(l.c.now()) || !b.ChangesAt(l.c.now()).Equal(l.c.now().Add(cluster.ProvenAfter)) {
		t.Errorf("the next try waits, and the next look has a time: %+v", b)
	}
	l.c.tick(cluster.ProvenAfter)
	if b = l.expect("they run well", "7 tries, 0 coming, standing [n7], Taint"); !b.MayTry(l.c.now()) || b.IsFree() {
		t.Errorf("one node may be tried: %+v", b)
	}
	l.made("n9", "p1", 8)
	l.c.tick(cluster.ProvenAfter)
	if b = l.expect("it is tried", "7 tries, 1 coming, standing [n7], Taint"); b.MayTry(l.c.now()) {
		t.Errorf("the node that others have is good for one try: %+v", b)
	}
}

// A DaemonSet that changes ends only the backoff of those with whose failures it can have to do.
func TestADaemonSetEasesThoseThatItConcerns(t *testing.T) {
	full := func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = quantity("0")[corev1.ResourceCPU] }
	for _, x := range []struct {
		what    string
		change  func(*corev1.Node)
		changes string
		eased   bool
	}{
		{"a taint of somebody else", tainted("gpu-operator"), "log-shipper", false},
		{"a taint of its own", tainted("node-agent"), "node-agent-v2", true},
		{"too little room", full, "log-shipper", true},
	} {
		t.Run(x.what, func(t *testing.T) {
			l := newLab(t)
			ds := func(generation int64) *appsv1.DaemonSet {
				meta := metav1.ObjectMeta{UID: "ds", Namespace: "kube-system", Name: x.changes, Generation: generation}
				return &appsv1.DaemonSet{ObjectMeta: meta}
			}
			l.b.SetDaemon(ds(1))
			l.waits("p1", "rs", asksFor("1"))
			l.made("n7", "p1", 7, func(c *v1.NodeClaim) {
				c.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: quantity("64")[corev1.ResourceCPU]}
			})
			l.node("n7", x.change)
			mayTry := func() bool {
				s := l.b.Snapshot()
				return s.WorkloadTries["default/web"].MayTry(s.Now)
			}
			if mayTry() {
				t.Fatal("the next try is due already")
			}
			l.c.tick(tries.RetryAllowedEvery)
			l.b.SetDaemon(ds(2))
			if mayTry() != x.eased {
				t.Errorf("it changes: the next try may be made: %t, want %t", !x.eased, x.eased)
			}
			l.made("n8", "p1", 8)
			l.node("n8", x.change)
			l.b.Snapshot()
			l.b.DeleteClaim("n7")
			l.c.tick(tries.RetryAllowedEvery)
			l.b.DeleteDaemon("ds")
			if mayTry() != x.eased {
				t.Errorf("it is deleted: the next try may be made: %t, want %t", !x.eased, x.eased)
			}
		})
	}
}

// A node that we let go takes nobody's try with it, however long its pods stay.
func TestANodeThatWeLetGoHoldsUpNothing(t *testing.T) {
	l := newLab(t)
	l.firstTryFailed("p1", "p2")
	l.goodTry("n2", "p1", 2)
	l.expect("a pod has just come", "1 tries, 1 coming, standing [n1], Taint")
	l.made("n2", "p1", 2, func(c *v1.NodeClaim) {
		now := metav1.NewTime(l.c.now())
		c.DeletionTimestamp = &now
		c.Status.Conditions = append(c.Status.Conditions, disruptedAs("Underutilized"))
	})
	b := l.expect("its node is consolidated", "1 tries, 0 coming, standing [n1], Taint")
	if b.Unproven != 1 || b.RunsAgain {
		t.Errorf("it counts as a node on which pods are, and does not seem well: %+v", b)
	}
}

// A controller that starts does not know how many nodes there were. It must not wait for nodes in vain to go that a
// budget keeps.
func TestAfterARestartNodesInVainHoldUpNobodyForEver(t *testing.T) {
	l := newLab(t)
	for _, x := range []string{"1", "2", "3", "4"} {
		l.waits("p"+x, "rs")
		l.made("n"+x, "p"+x, 1)
	}
	for _, x := range []string{"1", "2", "3"} {
		l.node("n"+x, tainted("agent"))
	}
	l.node("n4")
	l.waits("p4", "rs", func(p *corev1.Pod) {
		started := metav1.NewTime(l.c.now().Add(-2 * cluster.ProvenAfter))
		p.Spec.NodeName, p.Status.Phase, p.Status.Conditions, p.Status.StartTime = "n4", corev1.PodRunning,
			nil, &started
	})
	b := l.expect("pods run on one of four", "0 tries, 0 coming, standing [n1 n2 n3], Taint")
	if b.IsFree() || !b.MayTry(l.c.now()) {
		t.Errorf("one node may be made: %+v", b)
	}
	l.made("n5", "p1", 1)
	if b = l.expect("it is made", "0 tries, 1 coming, standing [n1 n2 n3], Taint"); b.MayTry(l.c.now()) {
		t.Errorf("and no other: %+v", b)
	}
}

// Nothing keeps pods off a node that the cloud interrupts when they have run there for a while: the replacement must
// not wait.
func TestAnInterruptedNodeOnWhichPodsRanIsNoFailure(t *testing.T) {
	l := newLab(t)
	names := []string{"1", "2", "3"}
	for _, x := range names {
		l.waits("p"+x, "rs")
		l.goodTry("n"+x, "p"+x, 1)
	}
	l.expect("they run", "none")
	l.c.tick(cluster.SeemsWellAfter)
	for _, x := range names {
		l.made("n"+x, "p"+x, 1, func(c *v1.NodeClaim) {
			warned := cloudprovider.Interruption{Kind: cloudprovider.SpotInterruption}
			c.Annotations[cloudprovider.InterruptionAnnotation] = warned.String()
		})
	}
	l.expect("all are interrupted, and pods have run there for a while", "none")
	l.c.tick(cluster.ProvenAfter - cluster.SeemsWellAfter)
	l.expect("they have run for long enough", "none")
}

// Two nodes stand in vain and a budget keeps them; others are of use. A pod whose image is missing must not keep the
// owner's other pods from their nodes for ever: TestAPodThatDoesNotStartHoldsUpNothingForLong where pods run again.
func TestAPodThatDoesNotStartHoldsUpNothingWherePodsRun(t *testing.T) {
	l := newLab(t)
	for _, x := range []string{"1", "2", "3"} {
		l.waits("p"+x, "rs")
		l.made("n"+x, "p"+x, 1)
	}
	l.b.Snapshot()
	l.node("n1", tainted("agent"))
	l.node("n2", tainted("agent"))
	l.node("n3")
	l.runs("p3", "rs", "n3", corev1.PodRunning)
	l.b.Snapshot()
	for range 5 {
		l.c.tick(cluster.ProvenAfter / 2)
		l.b.Snapshot()
	}
	s := l.b.Snapshot()
	b := s.WorkloadTries["default/web"]
	if b == nil || b.FailedTries != 0 || b.CountUnused() != 2 || !b.MayTry(s.Now) {
		t.Fatalf("the third node is of use, one more may be made: %+v", b)
	}
	l.made("n4", "p1", 1)
	l.node("n4")
	l.runs("p1", "rs", "n4", corev1.PodPending) // its image is missing
	for range 48 {
		l.c.tick(30 * time.Minute)
		l.waits("p2", "rs")
		if s = l.b.Snapshot(); s.WorkloadTries["default/web"] == nil || s.WorkloadTries["default/web"].IsFree() ||
			s.WorkloadTries["default/web"].MayTry(s.Now) {
			return
		}
	}
	t.Errorf("a day later no node may be made for the owner's other pods: %+v", s.WorkloadTries["default/web"])
}
