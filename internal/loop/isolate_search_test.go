package loop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

// fencedIn are the nodes that are fenced in so many passes, ten seconds apart.
func (st *loopWorld) fencedIn(passes int) []string {
	var out []string
	for range passes {
		out = append(out, st.start().fenced...)
		st.now = st.now.Add(10 * time.Second)
	}
	return out
}

// A search that fails on one class of pods, or on one node, goes on without it: cheaper places are found for all
// others. Plans leave nothing out: a pod of that class gets a node.
func TestSearchFailsOnSome(t *testing.T) {
	causes := func(s *cluster.Snapshot) bool {
		return slices.ContainsFunc(s.PodsOn("n03"), func(p *cluster.Pod) bool {
			return p.Class.Requests[0] == 777 && !s.IsQuarantined(p)
		})
	}
	for name, fails := range map[string]func(*cluster.Snapshot) bool{
		"class": causes,
		"node":  func(s *cluster.Snapshot) bool { _, leftOut := s.Quarantine.Claims["n03"]; return !leftOut },
	} {
		t.Run(name, func(t *testing.T) {
			st := newLoopWorld(t, 0)
			st.book = wastefulAt(t, func() time.Time { return st.now }, 8)
			st.loop.World = st.book
			odd := st.book.Snapshot().PodsOn("n03")[0]
			pod := hungry(odd.Name, 777)
			pod.UID, pod.Spec.NodeName, pod.Status = "pod-n03", "n03", corev1.PodStatus{Phase: corev1.PodRunning}
			st.book.SetPod(pod)
			st.loop.Planner.Search = func(s *cluster.Snapshot, p plan.Policy) disrupt.Proposal {
				if fails(s) {
					panic("boom at n03")
				}
				return plan.Search(s, p)
			}
			if fenced := st.fencedIn(8); len(fenced) == 0 || slices.Contains(fenced, "n03") {
				t.Errorf("fenced: %v", fenced)
			}
			f, q := st.told.broken[0], st.book.Snapshot().Quarantine
			ofPlans := len(q.Classes) + len(q.Claims) + len(q.Parts)
			if len(st.told.broken) != 1 || f.Step != plan.StepSearch || f.Tries > 12 || ofPlans > 0 {
				t.Errorf("failed %d times, %d tries, left out %+v", len(st.told.broken), f.Tries, q)
			}
			want := map[string]string{"class": "1 0", "node": "0 1"}[name]
			if got := fmt.Sprint(len(q.SearchClasses), len(q.SearchClaims)); got != want {
				t.Errorf("searches leave out %s, want %s", got, want)
			}
			ofPool := func(n cluster.Note) bool { return n.Reason == plan.PlannerFailed && n.Kind == "NodePool" }
			if !slices.ContainsFunc(st.told.last.Notes, ofPool) {
				t.Errorf("nobody is told: %+v", st.told.last.Notes)
			}
			st.book.SetPod(hungry("late", 777))
			st.now = st.now.Add(time.Minute)
			if served := st.pass(); !slices.Contains(served, "late") {
				t.Errorf("served %v", served)
			}
		})
	}
}

// A search that fails on more classes than there are tries for is gone on with by the next searches.
func TestSearchFailsOnMany(t *testing.T) {
	st := newLoopWorld(t, 0)
	const nodes = 80
	st.book = wastefulAt(t, func() time.Time { return st.now }, nodes)
	st.loop.World = st.book
	for i := range nodes { // every second pod makes the search fail
		name := fmt.Sprintf("n%02d", i)
		pod := hungry("web-"+name, 100+int64(i))
		pod.UID, pod.Spec.NodeName, pod.Status = st.uidOn(name), name, corev1.PodStatus{Phase: corev1.PodRunning}
		st.book.SetPod(pod)
	}
	st.loop.Planner.Search = func(s *cluster.Snapshot, p plan.Policy) disrupt.Proposal {
		for _, pod := range s.Pods {
			if pod.Node != "" && pod.Class.Requests[0]%2 == 1 && !s.IsQuarantined(pod) {
				panic("boom at an odd pod")
			}
		}
		return disrupt.Proposal{Rev: s.Rev, Now: s.Now}
	}
	for range 10 {
		st.start()
		st.now = st.now.Add(10 * time.Second)
	}
	if searches := len(st.told.broken); searches > 4 {
		t.Errorf("%d searches told what they left out, want 4 at most", searches)
	}
	q := st.book.Snapshot().Quarantine
	if len(q.SearchClasses) != nodes/2 || anyUndecided(q.SearchClasses) || len(q.Parts) > 0 {
		t.Errorf("%d classes are left out of searches, and parts %v", len(q.SearchClasses), q.Parts)
	}
}
