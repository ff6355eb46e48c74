package ingest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/tries"
)

// Whoever creates pods writes the UID of their owner.
func TestOwnersAreThoseOfTheirNamespace(t *testing.T) {
	b, _ := newBook()
	b.SetOwner(webReplicaSet("rs", "web-1"))
	root := func(uid, namespace, owner string) string {
		p := ownedPod(uid, owner, at(11, 0))
		p.Namespace = namespace
		b.SetPod(p)
		have, _ := b.pods.Get(uid)
		return b.workloadOf(have)
	}
	if got := root("p1", "default", "rs"); got != "default/web" {
		t.Errorf("a pod of the Deployment counts for %q", got)
	}
	for _, owner := range []string{"rs", "web", "p1", "default/rs", "default/web"} {
		if got := root("p2", "evil", owner); !strings.HasPrefix(got, "evil/") || strings.Count(got, "/") != 1 {
			t.Errorf("a pod of another namespace that says it is of %q counts for %q", owner, got)
		}
	}
	if got := root("p3", "evil", strings.Repeat("u", 1<<20)); len(got) > 100 {
		t.Errorf("an owner's name of %d bytes is kept", len(got))
	}
	b.SetOwner(cluster.Owner{UID: "rs2", Namespace: "evil", Workload: "web", Known: true, Desired: 1})
	if got := root("p4", "evil", "rs2"); got != "evil/web" {
		t.Errorf("a pod of a ReplicaSet that says it is of another's Deployment counts for %q", got)
	}
	if whole, known := b.Snapshot().IsComplete(cluster.OwnerKey("default", "rs")); !known || !whole {
		t.Errorf("of the pods of the ReplicaSet all are there: %v, known: %v", whole, known)
	}
}

// A pod of another namespace that finishes ends nobody's count.
func TestStrangersEndNoCount(t *testing.T) {
	l := newLab(t)
	l.waits("p1", "rs")
	l.made("n1", "p1", 1)
	l.node("n1", tainted("agent"))
	stranger := func(phase corev1.PodPhase) {
		p := placedPod("s", "n1")
		controls, started := true, metav1.NewTime(l.c.now())
		p.Namespace = "evil"
		p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID("rs"), Kind: "X", Controller: &controls}}
		p.Status.Phase, p.Status.StartTime = phase, &started
		l.b.SetPod(p)
	}
	stranger(corev1.PodRunning)
	stranger(corev1.PodSucceeded)
	if b := l.b.Snapshot().WorkloadTries["default/web"]; b == nil || b.FailedTries != 1 {
		t.Errorf("the node is tainted, and the setback is %+v", b)
	}
}

// What can't be read of for whom a claim was made is told, and the node counts all the same.
func TestMadeForThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"a,b", "default/web", "other/x=1,default/web=one"} {
		t.Run(text, func(t *testing.T) {
			l := newLab(t)
			l.waits("p1", "rs")
			write := func(text string) func(*v1.NodeClaim) {
				return func(c *v1.NodeClaim) { c.Annotations[cluster.MadeForAnnotation] = text }
			}
			l.made("n1", "p1", 1, write(text))
			l.node("n1", tainted("agent"))
			s := l.b.Snapshot()
			if b := s.WorkloadTries["default/web"]; b == nil || b.FailedTries != 1 || len(b.UnusedClaims) != 1 {
				t.Errorf("the node is tainted, and the setback is %+v", b)
			}
			if got := told(s, "InvalidMadeFor"); got != 1 {
				t.Errorf("told %d times of the annotation: %+v", got, s.Notes)
			}
			l.made("n1", "p1", 1, write("default/web=1"))
			s = l.b.Snapshot()
			if b := s.WorkloadTries["default/web"]; b == nil || b.FailedTries != 1 || told(s, "InvalidMadeFor") != 0 {
				t.Errorf("mended: the setback is %+v, told %+v", b, s.Notes)
			}
			l.made("n1", "p1", 1, write(text))
			l.b.DeleteClaim("n1")
			if s = l.b.Snapshot(); told(s, "InvalidMadeFor") != 0 {
				t.Errorf("told of a claim that is gone: %+v", s.Notes)
			}
			for range 3 {
				l.b.Snapshot()
			}
			l.b.DeletePod(judgedPod("p1"))
			l.c.tick(2 * tries.RememberFor)
			l.b.Snapshot()
			if l.b.tries.HasTrackers() {
				t.Error("a claim is still followed")
			}
		})
	}
}

func told(s *cluster.Snapshot, reason string) int {
	n := 0
	for _, note := range s.Notes {
		if note.Reason == reason {
			n++
		}
	}
	return n
}

// Pods that say they are of DaemonSets that are not there leave nothing for ever.
func TestPodsOfFakeDaemonSetsAreForgotten(t *testing.T) {
	b, _ := newBook()
	ds := daemonSet(func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests = amounts("100m", "") })
	b.SetPod(daemonPodOf(ds, "real", "1", "400m", 0))
	b.SetDaemon(ds)
	most := 0
	for i := range 4 * collectFrom {
		p := daemonPodOf(ds, fmt.Sprint("p", i), "1", "100m", 0)
		p.OwnerReferences[0].UID = types.UID(fmt.Sprint("fake", i))
		b.SetPod(p)
		b.DeletePod(p)
		if i%100 == 0 {
			b.Snapshot()
		}
		kept, _ := b.daemons.Remembered()
		most = max(most, kept)
	}
	if most > collectFrom+200 {
		t.Errorf("up to %d pods of DaemonSets are remembered, expected at most %d", most, collectFrom+200)
	}
	wantRequests(t, daemonOf(t, b), 400, 0)
	if b.specs.Bytes() < 0 {
		t.Errorf("%d bytes are said to be kept", b.specs.Bytes())
	}
}
