package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/tenon-sh/tenon/bench/internal/report"
)

func pod(uid, node string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	p.UID = types.UID(uid)
	return p
}

func TestPodSteps(t *testing.T) {
	waiting := pod("a", "", corev1.PodPending)
	waiting.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
	leaving := pod("a", "n", corev1.PodRunning)
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	cases := []struct {
		name string
		pod  *corev1.Pod
		want []string
	}{
		{"new", pod("a", "", corev1.PodPending), []string{podCreated}},
		{"unschedulable", waiting, []string{podCreated, podUnschedulable}},
		{"bound", pod("a", "n", corev1.PodPending), []string{podCreated, podBound}},
		{"running", pod("a", "n", corev1.PodRunning), []string{podCreated, podBound, podRunning}},
		{"leaving", leaving, []string{podCreated, podBound}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := podSteps(c.pod); !slices.Equal(got, c.want) {
				t.Errorf("got %v; want %v", got, c.want)
			}
		})
	}
}

func TestNodeSteps(t *testing.T) {
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady,
		Status: corev1.ConditionTrue}}}
	tainted := func(key string) corev1.NodeSpec { return corev1.NodeSpec{Taints: []corev1.Taint{{Key: key}}} }
	cases := []struct {
		name string
		node *corev1.Node
		want []string
	}{
		{"new", &corev1.Node{}, []string{nodeCreated}},
		{"ready but not accepted", &corev1.Node{Status: ready, Spec: tainted(unregistered)},
			[]string{nodeCreated, nodeReady}},
		{"ready but still marked", &corev1.Node{Status: ready, Spec: tainted(corev1.TaintNodeNotReady)},
			[]string{nodeCreated, nodeReady, nodeAdmitted}},
		{"open", &corev1.Node{Status: ready, Spec: tainted("team")}, []string{nodeCreated, nodeReady, nodeAdmitted,
			nodeOpen}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := nodeSteps(c.node); !slices.Equal(got, c.want) {
				t.Errorf("got %v; want %v", got, c.want)
			}
		})
	}
}

func TestClaimSteps(t *testing.T) {
	claim := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Launched", "status": "True"},
		map[string]any{"type": "Registered", "status": "Unknown"},
	}}}}
	if got, want := claimSteps(claim), []string{claimCreated, claimLaunched}; !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

func TestTimelineCountsEachObjectOnce(t *testing.T) {
	line := newTimeline()
	begin := time.Unix(100, 0)
	line.restart(begin)
	line.step("pod/a", begin.Add(time.Second), podCreated)
	line.step("pod/b", begin.Add(2*time.Second), podCreated, podRunning)
	line.step("pod/a", begin.Add(9*time.Second), podCreated)
	if got, want := line.stages()[podCreated], (report.Span{First: 1, Half: 1, Most: 1, Last: 2,
		Count: 2}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
	line.gone("pod/b", begin.Add(10*time.Second))
	if line.now(podCreated) != 1 || line.now(podRunning) != 0 {
		t.Errorf("a pod that is gone still counts: %d, %d", line.now(podCreated), line.now(podRunning))
	}
}

func TestTimelineRemembersTheLastChangeAndTheFewestPods(t *testing.T) {
	line := newTimeline()
	begin := time.Unix(100, 0)
	for _, name := range []string{"pod/a", "pod/b", "pod/c"} {
		line.step(name, begin, podCreated, podRunning)
	}
	line.restart(begin.Add(time.Minute))
	if since, least := line.still(); !since.Equal(begin.Add(time.Minute)) || least != 3 {
		t.Errorf("at the beginning: %s, %d", since, least)
	}
	line.gone("pod/a", begin.Add(2*time.Minute))
	line.gone("pod/b", begin.Add(3*time.Minute))
	line.step("pod/d", begin.Add(4*time.Minute), podCreated, podRunning)
	line.step("pod/d", begin.Add(5*time.Minute), podCreated, podRunning) // nothing new
	if since, least := line.still(); !since.Equal(begin.Add(4*time.Minute)) || least != 1 {
		t.Errorf("got %s, %d; want 4 minutes, 1", since.Sub(begin), least)
	}
	if got := line.objects(podRunning); !slices.Equal(got, []string{"pod/c", "pod/d"}) {
		t.Errorf("got %v", got)
	}
}

func TestSettledNeedsTheRightPodsAndQuiet(t *testing.T) {
	w := &Watch{timeline: newTimeline()}
	w.Begin(time.Now().Add(-time.Hour))
	w.saw(pod("a", "n", corev1.PodRunning))
	if done, _ := w.Settled(2, 0)(); done {
		t.Error("one of two pods is enough")
	}
	w.saw(pod("b", "n", corev1.PodRunning))
	if done, state := w.Settled(2, time.Hour)(); done {
		t.Errorf("settled at once: %s", state)
	}
	if done, state := w.Settled(2, 0)(); !done {
		t.Errorf("not settled: %s", state)
	}
	w.saw(pod("c", "", corev1.PodPending))
	if done, _ := w.Settled(2, 0)(); done {
		t.Error("a pod that waits does not matter")
	}
}

func quiet(string) {}

func TestAwait(t *testing.T) {
	w := &Watch{timeline: newTimeline()}
	go func() {
		w.saw(pod("a", "n", corev1.PodRunning))
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.Await(ctx, w.Running(1), quiet); err != nil {
		t.Fatal(err)
	}
	go w.lost(cache.DeletedFinalStateUnknown{Obj: pod("a", "n", corev1.PodRunning)})
	if err := w.Await(ctx, w.NoNodes, quiet); err != nil {
		t.Fatal(err)
	}
}

func TestAwaitSaysHowFarItCame(t *testing.T) {
	w := &Watch{timeline: newTimeline()}
	w.saw(pod("a", "n", corev1.PodRunning))
	reason := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	err := w.Await(ctx, w.Running(2), quiet)
	if !errors.Is(err, reason) || err.Error() != "1 of 2 pods are Running, 1 bound, on 0 nodes: too late" {
		t.Errorf("got %v", err)
	}
}

func TestPodsFillTheNodes(t *testing.T) {
	requests := deployment("a", 7).Spec.Template.Spec.Containers[0].Resources.Requests
	if *deployment("a", 7).Spec.Replicas != 7 {
		t.Error("the Deployment has another number of pods")
	}
	for name, room := range map[corev1.ResourceName]string{corev1.ResourceCPU: nodeCPU,
		corev1.ResourceMemory: nodeMemory} {
		one, all := requests[name], resource.MustParse(room)
		if PodsPerNode*one.MilliValue() > all.MilliValue() {
			t.Errorf("%d pods of %s do not fit %s of %s", PodsPerNode, one.String(), room, name)
		}
	}
	if one, all := requests[corev1.ResourceCPU], resource.MustParse(nodeCPU); (PodsPerNode+
		1)*one.MilliValue() <= all.MilliValue() {
		t.Errorf("more than %d pods fit a node", PodsPerNode)
	}
}
