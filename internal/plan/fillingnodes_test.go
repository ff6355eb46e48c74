package plan_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/resource"
)

// open has the conditions of all claims hold since a time.
func open(s *cluster.Snapshot, since time.Time) {
	for _, claim := range s.Claims {
		for i := range claim.Conditions {
			claim.Conditions[i].Since = since
		}
	}
}

// While kube-scheduler fills the nodes that were made for pods, a pod whose place was taken by another gets no node of
// its own: it is bought for what is missing at the end. Pods that are new, or for whom no node was made, don't wait.
func TestNodesBeingFilledAreWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world, s *cluster.Snapshot)
		want   int
	}{
		{"pods are being bound", func(*world, *cluster.Snapshot) {}, 0},
		{"nothing was bound for a while", func(w *world, s *cluster.Snapshot) {
			s.LastBound = w.now.Add(-2 * time.Second)
		}, 1},
		{"nothing was ever bound", func(w *world, s *cluster.Snapshot) { s.LastBound = time.Time{} }, 1},
		{"the pods are new", func(w *world, s *cluster.Snapshot) { s.PlannedAt = w.start.Add(-time.Hour) }, 1},
		{"the node has been open for long", func(w *world, s *cluster.Snapshot) { open(s, w.now.Add(-time.Hour)) }, 1},
		{"the node has been open for a minute", func(w *world, s *cluster.Snapshot) {
			open(s, w.now.Add(-time.Minute))
		}, 1},
		{"the node has been open for almost a minute", func(w *world, s *cluster.Snapshot) {
			open(s, w.now.Add(-59*time.Second))
		}, 0},
		{"the node was made for others", func(w *world, s *cluster.Snapshot) {
			s.Claims[0].Seats[0].Class = "other"
		}, 1},
	} {
		w := newWorld()
		n := &storyRunner{t: t, w: w, policy: defaultPolicy()}
		for _, line := range []string{"type small cpu=4 memory=16Gi price=0.10 zones=a", "pool default",
			"node one pool=default type=small zone=a"} {
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
		s.PlannedAt, s.LastBound = w.now.Add(-time.Second), w.now.Add(-100*time.Millisecond)
		c.change(w, s)
		p := plan.Make(s, defaultPolicy(), nil, nil)
		if got := len(creates(&p)); got != c.want {
			t.Errorf("%s: %d claims, want %d", c.name, got, c.want)
		}
		if c.want == 0 && !p.WakeAt.Equal(s.LastBound.Add(time.Second)) {
			t.Errorf("%s: looks again at %v", c.name, p.WakeAt)
		}
	}
}

// Nodes that are on their way are waited for, too, if pods have been bound since they were asked for: the room that
// they had in mind may be another's. How pods get to their nodes matters: who is told where to go has lost no place if
// he finds none.
func TestNodesOnTheirWayAreWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		mode   plan.PlacementMode
		change func(w *world, claim *cluster.Claim)
		bound  time.Duration // ago
		want   int
	}{
		{"pods were bound since", "", func(*world, *cluster.Claim) {}, 5 * time.Second, 0},
		{"pods were bound since, and events tell where to", plan.PlaceByEvent, func(*world, *cluster.Claim) {},
			5 * time.Second, 0},
		{"pods were told where to go", plan.PlaceByNomination, func(*world, *cluster.Claim) {}, 5 * time.Second, 1},
		{"pods are bound by us", plan.PlaceByBinding, func(*world, *cluster.Claim) {}, 5 * time.Second, 1},
		{"none was bound since", "", func(*world, *cluster.Claim) {}, 40 * time.Second, 1},
		{"for almost a minute", "", func(w *world, c *cluster.Claim) {
			c.Created = w.now.Add(-59 * time.Second)
		}, 5 * time.Second, 0},
		{"for a minute", "", func(w *world, c *cluster.Claim) {
			c.Created = w.now.Add(-time.Minute)
		}, 5 * time.Second, 1},
		{"it takes long, and pods are being bound elsewhere", "", func(w *world, c *cluster.Claim) {
			c.Created = w.now.Add(-5 * time.Minute)
		}, 100 * time.Millisecond, 1},
		{"one pod has a place on what is there", "", func(w *world, c *cluster.Claim) {
			w.fill("one", 2000)
		}, 5 * time.Second, 0},
		{"nobody has a place on what is there", "", func(w *world, c *cluster.Claim) {
			w.fill("one", 4000)
		}, 5 * time.Second, 2},
		{"it is up", "", func(w *world, c *cluster.Claim) {
			w.setCondition(c, cluster.Initialized, cluster.True, "", "")
		}, 5 * time.Second, 1},
		{"a pod of theirs leaves a node", "", func(w *world, _ *cluster.Claim) {
			node, claim := *w.nodes["one"], *w.claims["one"]
			node.Name, node.UID, node.ProviderID = "three", "node-three", "model://three"
			claim.Name, claim.UID, claim.ProviderID, claim.NodeName, claim.Deleting = "three", "uid-three",
				"model://three", "three", w.now
			w.nodes["three"], w.claims["three"] = &node, &claim
			w.addPod(cluster.Pod{Name: "web-9", Class: w.pods["web-1"].Class, Owner: "rs", Node: "three"})
		}, 5 * time.Second, 1},
		{"it goes, and its own pod needs a node, too", "", func(w *world, c *cluster.Claim) {
			c.Deleting = w.now
		}, 5 * time.Second, 2},
	} {
		w := newWorld()
		n := &storyRunner{t: t, w: w, policy: defaultPolicy()}
		n.policy.Placement = c.mode
		for _, line := range []string{"type small cpu=4 memory=16Gi price=0.10 zones=a", "pool default",
			"node one pool=default type=small zone=a", "node two pool=default type=small zone=a"} {
			n.tell(line)
		}
		class := w.class("web", shape{requests: resource.Vector{resource.CPU: 2000, resource.Memory: gi}})
		for _, name := range []string{"web-1", "web-2", "web-3"} {
			w.addPod(cluster.Pod{Name: name, Class: class, Owner: "rs"})
		}
		w.owners["rs"] = cluster.Owner{UID: "rs", Known: true, Desired: 3}
		w.now = w.now.Add(2 * time.Minute)
		coming := w.claims["two"]
		w.setCondition(coming, cluster.Initialized, cluster.Unknown, "", "")
		coming.Created, coming.Seats = w.now.Add(-30*time.Second), []cluster.Seat{{Class: class.Key, Count: 2}}
		w.fill("two", 4000)
		c.change(w, coming)
		s := w.snapshot(nil)
		s.PlannedAt, s.LastBound = w.now.Add(-time.Second), w.now.Add(-c.bound)
		p := plan.Make(s, n.policy, nil, nil)
		if got := len(creates(&p)); got != c.want {
			t.Errorf("%s: %d claims, want %d", c.name, got, c.want)
		}
		if at := w.now.Add(time.Second); c.want == 0 && !p.WakeAt.Equal(at) {
			t.Errorf("%s: looks again at %v, want %v", c.name, p.WakeAt, at)
		}
	}
}

// fill has a pod take so much of a node.
func (w *world) fill(node string, cpu int64) {
	name := "on-" + node
	w.addPod(cluster.Pod{Name: name, Class: w.class(name, shape{requests: resource.Vector{resource.CPU: cpu,
		resource.Memory: gi}}), Owner: "o", Node: node})
}
