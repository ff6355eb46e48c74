package ingest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/tries"
)

// ranBriefly is a node on which a pod runs for so long, and which we let go then. The pod finds room on a node that was
// not made for it.
func (l *lab) ranBriefly(node, uid string, d time.Duration, reason string) {
	l.Helper()
	l.waits(uid, "rs")
	l.goodTry(node, uid, 1)
	l.b.Snapshot()
	l.c.tick(d)
	l.made(node, uid, 1, func(c *v1.NodeClaim) {
		now := metav1.NewTime(l.c.now())
		c.DeletionTimestamp = &now
		c.Status.Conditions = append(c.Status.Conditions, disruptedAs(reason))
	})
	l.b.Snapshot()
	l.runs(uid, "rs", "old", corev1.PodRunning)
	l.b.DeleteClaim(node)
	l.expect(node+" goes", "none")
}

func (l *lab) takenEarly() time.Time { return l.b.Snapshot().RemovedEarly["default/web"] }

// Consolidation takes a node from a workload whose pods have run there for less than a minute. The nodes that are made
// after that have to show first what they are good for.
func TestANodeThatIsTakenEarlyIsRemembered(t *testing.T) {
	for _, x := range []struct {
		what   string
		ran    time.Duration
		reason string
		want   bool
	}{
		{"pods seemed well", cluster.SeemsWellAfter, "Underutilized", true},
		{"pods have run for long enough", cluster.ProvenAfter, "Underutilized", false},
		{"drift", cluster.SeemsWellAfter, "Drifted", false},
	} {
		t.Run(x.what, func(t *testing.T) {
			l := newLab(t)
			l.node("old")
			l.ranBriefly("n1", "p1", x.ran, x.reason)
			if at := l.takenEarly(); at.IsZero() == x.want {
				t.Errorf("it was taken early at %s, want that: %t", at, x.want)
			}
		})
	}
}

func TestTheFirstNodeThatIsTakenEarlyCounts(t *testing.T) {
	l := newLab(t)
	l.node("old")
	l.ranBriefly("n1", "p1", cluster.SeemsWellAfter, "Underutilized")
	first := l.takenEarly()
	l.c.tick(time.Minute)
	l.ranBriefly("n2", "p2", cluster.SeemsWellAfter, "Underutilized")
	if at := l.takenEarly(); !at.Equal(first) {
		t.Errorf("a node was taken early at %s and another later: it counts from %s", first, at)
	}
	l.c.tick(first.Add(tries.RememberFor).Sub(l.c.now()) - 1)
	if l.takenEarly().IsZero() {
		t.Error("it is forgotten within the hour")
	}
	l.c.tick(1)
	if at := l.takenEarly(); !at.IsZero() {
		t.Errorf("it is remembered for more than an hour: %s", at)
	}
}

// A node that is made after that may have to be left to consolidation all the same. Then it counts like any other that
// pods were made to leave.
func TestANodeThatIsTakenEarlyAgainIsAFailure(t *testing.T) {
	l := newLab(t)
	l.node("old")
	l.ranBriefly("n1", "p1", cluster.SeemsWellAfter, "Underutilized")
	l.c.tick(time.Second)
	l.waits("p2", "rs")
	l.goodTry("n2", "p2", 1)
	l.b.Snapshot()
	l.c.tick(cluster.SeemsWellAfter)
	l.made("n2", "p2", 1, func(c *v1.NodeClaim) {
		now := metav1.NewTime(l.c.now())
		c.CreationTimestamp = metav1.NewTime(now.Add(-cluster.SeemsWellAfter))
		c.DeletionTimestamp = &now
		c.Status.Conditions = append(c.Status.Conditions, disruptedAs("Underutilized"))
	})
	l.expect("it goes", "none")
	l.waits("p3", "rs")
	l.b.DeletePod(judgedPod("p2"))
	l.expect("its pod is made anew, and waits", "1 tries, 0 coming, standing [n2], PodsEvicted")
}

func TestPodsThatRunMakeUpForANodeThatWasTakenEarly(t *testing.T) {
	l := newLab(t)
	l.node("old")
	l.ranBriefly("n1", "p1", cluster.SeemsWellAfter, "Underutilized")
	l.waits("p2", "rs")
	l.goodTry("n2", "p2", 1)
	l.b.Snapshot()
	l.c.tick(cluster.ProvenAfter)
	l.b.Snapshot()
	if at := l.takenEarly(); !at.IsZero() {
		t.Errorf("pods have run for a minute on the next, and it still counts since %s", at)
	}
}

// The nodes that were made after one was taken early were made because that one seemed well. That happens once.
func TestANodeThatWasTakenEarlySeemedWell(t *testing.T) {
	for _, early := range []bool{true, false} {
		l := newLab(t)
		l.node("old")
		if early {
			l.ranBriefly("n1", "p1", cluster.SeemsWellAfter, "Underutilized")
		}
		l.waits("p2", "rs")
		l.failedTry("n2", "p2", 1)
		l.expect("a node fails", "1 tries, 0 coming, standing [n2], Taint")
		l.waits("p3", "rs")
		l.goodTry("n3", "p3", 2)
		l.b.Snapshot()
		l.c.tick(cluster.SeemsWellAfter)
		if b := l.b.Snapshot().WorkloadTries["default/web"]; b.RunsAgain == early {
			t.Errorf("taken early: %t; pods have run for 10 s on the next, and it seems well: %t", early, b.RunsAgain)
		}
	}
}
