package ingest

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/tries"
)

// Pods that run for half a minute on each node seem well there. That is believed once: after it, pods have to run for
// long enough before more than one node is made.
func TestNodesThatSeemWellAndFailAreBelievedOnce(t *testing.T) {
	l := newLab(t)
	l.firstTryFailed("p1", "p2")
	l.goodTry("n2", "p1", 2)
	l.expect("the second", "1 tries, 1 coming, standing [n1], Taint")
	l.c.tick(cluster.SeemsWellAfter)
	if b := l.expect("it seems well", "1 tries, 0 coming, standing [n1], Taint"); !b.IsFree() {
		t.Errorf("the rest may follow: %+v", b)
	}
	l.c.tick(cluster.SeemsWellAfter)
	l.node("n2", tainted("agent"))
	l.waits("p1", "rs")
	l.expect("it fails after all", "2 tries, 0 coming, standing [n1 n2], Taint")
	l.b.DeleteClaim("n1")

	l.c.tick(time.Minute)
	l.goodTry("n3", "p1", 3)
	l.expect("the third", "2 tries, 1 coming, standing [n2], Taint")
	l.c.tick(cluster.ProvenAfter - time.Second)
	b := l.expect("it has run for a while", "2 tries, 1 coming, standing [n2], Taint")
	if b.IsFree() || b.MayTry(l.c.now()) || !b.ChangesAt(l.c.now()).Equal(l.c.now().Add(time.Second)) {
		t.Errorf("a while is not enough any more, and the next look has a time: %+v", b)
	}
	l.c.tick(time.Second)
	l.expect("for long enough", "none")
}

// The look that finds the first of several nodes to be in vain must not take the others, which are about to fail, for
// well.
func TestNothingSeemsWellWhenANodeFails(t *testing.T) {
	l := newLab(t)
	for _, x := range []string{"1", "2"} {
		l.waits("p"+x, "rs")
		l.goodTry("n"+x, "p"+x, 1)
	}
	l.expect("both run", "none")
	l.c.tick(30 * time.Second)
	l.node("n1", tainted("agent"))
	l.waits("p1", "rs")
	b := l.expect("one fails", "1 tries, 0 coming, standing [n1], Taint")
	if b.IsFree() || !b.MayTry(l.c.now()) || !b.ChangesAt(l.c.now()).Equal(l.c.now().Add(cluster.SeemsWellAfter)) {
		t.Errorf("one node may be made, and the next look has a time: %+v", b)
	}
	l.c.tick(cluster.SeemsWellAfter)
	if b = l.expect("the other still runs", "1 tries, 0 coming, standing [n1], Taint"); !b.IsFree() {
		t.Errorf("it was an accident: %+v", b)
	}
}

// A node that came up fine for pods of a class that is no more must not hold up its owner, whose new pods it can't
// take.
func TestANodeThatNobodyWaitsForHoldsNothingUp(t *testing.T) {
	l := newLab(t)
	l.firstTryFailed("p1")
	l.made("n2", "p1", 2)
	l.b.DeletePod(judgedPod("p1"))
	l.waits("p2", "rs", asksFor("100"))
	l.node("n2")
	l.b.DeleteClaim("n1")
	l.c.tick(tries.MissedFor)
	b := l.expect("a rollout asks for more than the second node has", "1 tries, 0 coming, standing [], Taint")
	if !b.MayTry(l.c.now()) {
		t.Errorf("nothing is learned by waiting for it: %+v", b)
	}
	l.waits("p3", "rs")
	l.expect("one that it can take", "1 tries, 1 coming, standing [], Taint")
}

// A node that is cordoned before it is initialized is no place for the pods; as long as it was not known to be in vain,
// the next was bought.
func TestACordonIsSeenBeforeANodeIsInitialized(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "rs")
	l.made("n1", "p1", 1, func(c *v1.NodeClaim) { c.Status.Conditions[1].Status = metav1.ConditionUnknown })
	l.node("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	l.expect("it comes up cordoned", "1 tries, 0 coming, standing [n1], Cordoned")
}

// Pods on a Node that somebody deletes count as waiting, also if its NodeClaim is lost: new nodes are made for them,
// and were without end while the agent closed each of them.
func TestPodsOfADeletedNodeWithoutAClaimWait(t *testing.T) {
	l := newLab(t)
	l.runs("p1", "rs", "old", corev1.PodRunning)
	deleted := func(n *corev1.Node) {
		now := metav1.NewTime(l.c.now())
		n.DeletionTimestamp, n.Finalizers = &now, []string{v1.TerminationFinalizer}
	}
	l.node("old", deleted)
	l.made("n1", "p1", 1)
	l.node("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	l.expect("the new node is cordoned", "1 tries, 0 coming, standing [n1], Cordoned")
}

// The pods of a CronJob come and go: the count goes on for an hour, and is told only while it concerns somebody.
func TestTheCountGoesOnFromRunToRun(t *testing.T) {
	l := newLab(t)
	for run, name := range []string{"n1", "n2", "n3"} {
		l.waits("p1", "rs")
		s := l.b.Snapshot()
		p, _ := l.b.pods.Get("p1")
		if b, _ := s.TriesHolding(p); run > 0 && (b == nil || !b.MayTry(s.Now) || b.FailedTries != run) {
			t.Fatalf("run %d: one node may be tried, want a hold after %d tries: %+v", run, run, b)
		}
		l.failedTry(name, "p1", run+1)
		l.expect("a run", fmt.Sprintf("%d tries, 0 coming, standing [%s], Taint", run+1, name))
		l.c.tick(time.Minute)
		l.b.DeletePod(judgedPod("p1"))
		l.b.Snapshot()
		l.b.DeleteClaim(name)
		l.c.tick(tries.DormantAfter)
		l.expect("between the runs", "none")
		l.c.tick(4 * time.Minute)
	}
	l.c.tick(tries.RememberFor)
	l.b.Snapshot()
	l.waits("p1", "rs")
	l.expect("an hour later", "none")
}

// A workload that is deleted holds nobody up, and its name is known as long as it is remembered. If it comes back, all
// is as it was.
func TestADeletedWorkloadIsNotToldAndKeepsItsName(t *testing.T) {
	l := newLab(t)
	l.firstTryFailed("p1")
	check := func(what string, gone, holdsUp bool) {
		t.Helper()
		b := l.expect(what, "1 tries, 0 coming, standing [n1], Taint")
		if b == nil {
			t.Fatal("it is forgotten")
		}
		if b.Kind != "Deployment" || b.Name != "default/web" || b.WorkloadGone != gone || b.HoldsPods() != holdsUp {
			t.Errorf("%s: %s %s, gone %t, holds up %t; want Deployment default/web, gone %t, holds up %t",
				what, b.Kind, b.Name, b.WorkloadGone, b.HoldsPods(), gone, holdsUp)
		}
	}
	check("it waits", false, true)
	l.b.DeletePod(judgedPod("p1"))
	check("its ReplicaSet is there", false, true)
	l.b.DeleteOwner("default", "rs")
	check("it is deleted", true, false)
	l.b.SetOwner(webReplicaSet("rs", "web-1"))
	l.waits("p2", "rs")
	check("it is back", false, true)
}

// The kinds that nobody watches have no name of their own here: one of their pods says who they are, also when it is
// gone.
func TestAWorkloadOfAnUnknownKindIsNamedByAPod(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "gang")
	l.made("n1", "p1", 1, func(c *v1.NodeClaim) {
		c.Annotations[cluster.MadeForAnnotation] = cluster.FormatMadeFor([]cluster.MadeFor{{Owner: "default/gang",
			Try: 1}})
	})
	l.node("n1", tainted("agent"))
	for _, gone := range []bool{false, true} {
		b := l.b.Snapshot().WorkloadTries["default/gang"]
		if b == nil || b.Kind != "controller of Pod" || b.Name != "default/p1" || b.WorkloadGone != gone {
			t.Errorf("want the controller of Pod default/p1, gone %t: %+v", gone, b)
		}
		l.b.DeletePod(judgedPod("p1"))
	}
}

// TestANodeThatIsRemovedAsItJoins has somebody remove each Node the moment that it registers, as a cloud controller
// does that does not know the instance. The node may be one that the watch has yet to show. When the claim is given up
// it counts.
func TestANodeThatIsRemovedAsItJoins(t *testing.T) {
	l := newLab(t)
	registered := func(c *v1.NodeClaim) {
		at := metav1.NewTime(l.c.now())
		c.Status.Conditions = []metav1.Condition{
			{Type: v1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: at},
			{Type: v1.ConditionTypeRegistered, Status: metav1.ConditionTrue, LastTransitionTime: at}}
	}
	givenUp := func(c *v1.NodeClaim) {
		registered(c)
		at := metav1.NewTime(l.c.now())
		c.DeletionTimestamp = &at
	}
	l.waits("p1", "rs")
	l.made("n1", "p1", 1, registered)
	l.expect("it has joined and is not there", "none")
	hosts := l.b.Snapshot().SchedulerView().Hosts()
	if len(hosts) != 1 || hosts[0].Name != "n1" {
		t.Errorf("the pod can go to %+v, want to the node that may yet show", hosts)
	}
	l.made("n1", "p1", 1, givenUp)
	l.expect("it is given up", "1 tries, 0 coming, standing [n1], NodeDeleted")
	l.made("n2", "p1", 2, givenUp)
	b := l.expect("so is the second", "2 tries, 0 coming, standing [n1 n2], NodeDeleted")
	if now := l.c.now(); b.MayTry(now) || b.MayTry(now.Add(time.Hour)) {
		t.Error("another node may be made while two are there that pods can't use")
	}
}
