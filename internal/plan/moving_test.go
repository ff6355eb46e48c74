package plan_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// While kube-scheduler fills the nodes that were made for pods, a pod whose place was taken by another gets no node of its
// own: it is bought for what is missing at the end. Pods that are new, or for whom no node was made, don't wait.
func TestNodesBeingFilledAreWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world, s *cluster.Snapshot)
		want   int
	}{
		{"pods are being bound", func(*world, *cluster.Snapshot) {}, 0},
		{"nothing was bound for a while", func(w *world, s *cluster.Snapshot) { s.Bound = w.now.Add(-2 * time.Second) }, 1},
		{"nothing was ever bound", func(w *world, s *cluster.Snapshot) { s.Bound = time.Time{} }, 1},
		{"the pods are new", func(w *world, s *cluster.Snapshot) { s.Planned = w.start.Add(-time.Hour) }, 1},
		{"the node has been open for long", func(w *world, s *cluster.Snapshot) {
			for _, claim := range s.Claims {
				for i := range claim.Conditions {
					claim.Conditions[i].Since = w.now.Add(-time.Hour)
				}
			}
		}, 1},
		{"the node was made for others", func(w *world, s *cluster.Snapshot) { s.Claims[0].Seats[0].Class = "other" }, 1},
	} {
		w := newWorld()
		n := &narrator{t: t, w: w, policy: defaultPolicy()}
		for _, line := range []string{"type small cpu=4 memory=16Gi price=0.10 zones=a", "pool default", "node one pool=default type=small zone=a"} {
			n.tell(line)
		}
		class := w.class("web", shape{requests: resource.Vector{resource.CPU: 2000, resource.Memory: gi}})
		for _, name := range []string{"web-1", "web-2", "web-3"} {
			w.addPod(cluster.Pod{Name: name, Class: class, Owner: "rs"})
		}
		w.owners["rs"] = cluster.Owner{UID: "rs", Known: true, Desired: 3}
		w.claims["one"].Seats = []cluster.Seat{{Class: class.Key, Count: 2}}
		w.setCondition(w.claims["one"], cluster.Initialized, cluster.False, "", "") // it has just been opened
		w.setCondition(w.claims["one"], cluster.Initialized, cluster.True, "", "")
		w.now = w.now.Add(5 * time.Second)
		s := w.snapshot(nil)
		s.Planned, s.Bound = w.now.Add(-time.Second), w.now.Add(-100*time.Millisecond)
		c.change(w, s)
		p := plan.Make(s, defaultPolicy(), nil, nil)
		if got := len(creates(&p)); got != c.want {
			t.Errorf("%s: %d claims, want %d", c.name, got, c.want)
		}
		if c.want == 0 && !p.WakeAt.Equal(s.Bound.Add(time.Second)) {
			t.Errorf("%s: looks again at %v", c.name, p.WakeAt)
		}
	}
}
