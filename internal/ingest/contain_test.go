package ingest

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/schedule"
	"github.com/tenon-sh/tenon/internal/validate"
)

func waitingPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid-x", Namespace: "default", Name: name},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}}
}

// A pod that can't be read is a problem of that pod: the list that it is in is taken in, and its event says what is
// wrong.
func TestUnreadablePodHarmsNobody(t *testing.T) {
	b := New(time.Now, validate.Labels{}, nil)
	var broken []plan.PlannerFailure
	b.TellBreakdowns(func(d plan.PlannerFailure) { broken = append(broken, d) })
	b.onRead = func(pod *corev1.Pod) {
		if pod.Name == "bad" {
			panic("what is that?")
		}
	}
	problem, good := waitingPod("bad"), waitingPod("good")
	good.UID = "uid-good"
	store := &podStore{book: b}
	if err := store.Replace([]any{problem, good}, "1"); err != nil {
		t.Fatal(err)
	}
	s := b.Snapshot()
	if len(s.Pending()) != 2 || len(broken) != 1 || broken[0].Step != plan.StepWatch ||
		!strings.Contains(broken[0].Panic, "default/bad") || broken[0].Stack == "" {
		t.Fatalf("%d pods wait, told %+v", len(s.Pending()), broken)
	}
	for _, u := range schedule.Place(s.SchedulerView(), schedule.Settings{}).Unplaced {
		if says := strings.Contains(render.Unplaced(&u), "taking in pod default/bad failed, which is a mistake in "+
			"Tenon: what "+
			"is that?"); says != (u.Pod.Name == "bad") {
			t.Errorf("%s is told %s", u.Pod.Name, render.Unplaced(&u))
		}
	}
	// It still counts where it goes, and goes.
	problem.Spec.NodeName, problem.Status.Conditions = "n", nil
	if err := store.Update(problem); err != nil || len(b.Snapshot().PodsOn("n")) != 1 {
		t.Errorf("once it is bound: %v", err)
	}
	if err := store.Delete(problem); err != nil || len(b.Snapshot().Pods) != 1 {
		t.Errorf("once it is gone: %v", err)
	}
}

// A pod that could be read before keeps what it was known for.
func TestUnreadablePodWasKnown(t *testing.T) {
	b := New(time.Now, validate.Labels{}, nil)
	store := &podStore{book: b}
	pod := waitingPod("p")
	pod.Labels = map[string]string{"app": "x"}
	if err := store.Add(pod); err != nil {
		t.Fatal(err)
	}
	before := b.Snapshot().Pods[0]
	b.onRead = func(*corev1.Pod) { panic("boom") }
	pod.Spec.NodeName = "n"
	if err := store.Update(pod); err != nil {
		t.Fatal(err)
	}
	if p := b.Snapshot().Pods[0]; p.Class != before.Class || p.Node != "n" || p.IsPending() || before.Node != "" {
		t.Errorf("it is %+v", p)
	}
}

// clumsyCloud fails at every question.
type clumsyCloud struct{ cloudprovider.Provider }

func (clumsyCloud) InstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	panic("no types")
}
func (clumsyCloud) List(context.Context) ([]*cloudprovider.Instance, error) { panic("no list") }

// A cloud that fails at a question has not answered it.
func TestCloudFails(t *testing.T) {
	b := New(time.Now, validate.Labels{}, nil)
	if asked, err := b.RefreshInventory(t.Context(), clumsyCloud{}); !asked || err == nil ||
		!strings.Contains(err.Error(), "no list") {
		t.Errorf("the census: %v, %v", asked, err)
	}
	if _, err := b.askTypes(t.Context(), clumsyCloud{}, &v1.NodePool{}); err == nil || !strings.Contains(err.Error(),
		"no types") {
		t.Errorf("the catalog: %v", err)
	}
}
