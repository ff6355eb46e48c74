package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestWhatIsWrongIsSaid makes the mistakes that users make; each is refused or explained where they look, and the rest
// of the cluster goes on.
func TestWhatIsWrongIsSaid(t *testing.T) {
	w := newWorld(t)
	strict := client.WithFieldValidation(w.c, "Strict")
	typo := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "typo"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"nodeClassRef": map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
			"requirements": []any{}, "requirments": []any{},
		}}},
	}}
	if err := strict.Create(w.ctx, typo); err == nil || !strings.Contains(err.Error(), "requirments") {
		t.Errorf("a NodePool with a typo gave %v, want a refusal that names the field", err)
	}

	never := "0 0 30 2 *" // the 30th of February
	w.create(nodeClass("default"), nodePool("default"),
		nodePool("unknown-class", func(p *v1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "nope" }),
		nodePool("no-such-day", func(p *v1.NodePool) {
			p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "1", Schedule: &never,
				Duration: &metav1.Duration{Duration: time.Hour}}}
		}))
	w.create(nodePool("no-such-arch", func(p *v1.NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
			v1.NodeSelectorRequirementWithMinValues{
				Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"x86_64"}})
	}))
	w.run()
	w.create(w.pod("huge", "5000"), w.pod("lost", "1", func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"team": "red"}
	}),
		w.deployment("fine", 3, "1"))

	w.eventually(func() string {
		return w.condition("unknown-class", v1.ConditionTypeNodeClassReady, `"nope" was not found`)
	})
	w.eventually(func() string { return w.condition("unknown-class", v1.ConditionTypeReady, `"nope" was not found`) })
	w.eventually(func() string {
		return w.condition("no-such-day", v1.ConditionTypeValidationSucceeded, "spec.disruption.budgets[0].schedule")
	})
	w.eventually(func() string {
		return w.condition("no-such-arch", "tenon.sh/CanLaunch", "kubernetes.io/arch In [x86_64]")
	})
	w.eventually(func() string { return w.told("huge", "cpu: the pod needs 5000") })
	// Another cause with the same reason is another event.
	w.change("no-such-arch", func(p *v1.NodePool) { p.Spec.Template.Spec.Requirements[2].Values = []string{"riscv"} })
	for _, cause := range []string{"x86_64", "riscv"} {
		w.eventually(func() string {
			if !slices.ContainsFunc(w.messages("NoCompatibleInstanceTypes", "no-such-arch"), func(m string) bool {
				return strings.Contains(m, cause)
			}) {
				return "no event of the pool names " + cause
			}
			return ""
		})
	}
	w.eventually(func() string { return w.told("lost", "label team In [red]") })
	w.eventually(w.allRunning(3))
}

// condition says what is missing: the pool's condition is False and its message names the cause.
func (w *world) condition(pool, kind, cause string) string {
	var p v1.NodePool
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: pool}, &p))
	c := meta.FindStatusCondition(p.Status.Conditions, kind)
	if c == nil || c.Status != "False" || !strings.Contains(c.Message, cause) {
		return "condition " + kind + " of " + pool + " does not say " + cause
	}
	return ""
}

// told says what is missing: an event on the pod names the cause.
func (w *world) told(pod, cause string) string {
	texts := w.messages("FailedScheduling", pod)
	if !slices.ContainsFunc(texts, func(m string) bool { return strings.Contains(m, cause) }) {
		return fmt.Sprintf("the events of pod %s say %q, not %s", pod, texts, cause)
	}
	return ""
}
