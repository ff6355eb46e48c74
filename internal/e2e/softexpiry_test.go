package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestSoftExpiry lets a node live for a short time and asks for a gentle end: it is replaced before its time is up, and
// its pod leaves only when there is room for it elsewhere.
func TestSoftExpiry(t *testing.T) {
	const life = 40 * time.Second
	w := newWorld(t)
	class := nodeClass("default")
	// whoever did not wait would be caught
	class.Spec.NodeRegistrationDelay = metav1.Duration{Duration: 2 * time.Second}
	w.create(class, nodePool("default", onDemand("16"), budgets("1"), func(p *v1.NodePool) {
		p.Spec.Template.Spec.ExpireAfter = v1.DurationOf(life)
		p.Annotations = map[string]string{"tenon.sh/soft-expiry": "38s"}
	}))
	e := w.record()
	w.create(w.deployment("web", 1, "9"))
	w.run()
	w.eventually(w.allRunning(1))
	old := w.claimOf(w.nodeOf("web")) // its replacement may have been asked for already
	w.eventually(func() string {
		claims := w.claims()
		if slices.ContainsFunc(claims, func(c v1.NodeClaim) bool { return c.UID == old.UID }) {
			return fmt.Sprintf("claim %s is still there", old.Name)
		}
		return ""
	})
	w.eventually(w.allRunning(1))
	e.held(1, 0)
	if !e.gave("Expired") {
		t.Error("the node was not chosen because its life came to its end: it was just ended")
	}
	gone := e.departures()
	if len(gone) == 0 || gone[0].node != old.Status.NodeName {
		t.Fatalf("the pods left so: %+v; want that of %s first", gone, old.Status.NodeName)
	}
	if late := gone[0].at.Sub(old.CreationTimestamp.Add(life)); late > 0 {
		t.Errorf("the pod left %s after the node's time was up", late)
	}
	// What has taken its place lives as short, and may be gone again.
	if !e.anotherReadyBy(old.Name, gone[0].at) {
		t.Error("the pod had to leave before a new node was ready")
	}
}

// claimOf is the claim of a node.
func (w *world) claimOf(node string) v1.NodeClaim {
	w.Helper()
	for _, c := range w.claims() {
		if c.Status.NodeName == node {
			return c
		}
	}
	w.Fatalf("node %s has no claim", node)
	return v1.NodeClaim{}
}
