package apitest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// Objects made by code get the same defaults as those made by hand, and keep the text of their durations.
func TestTypedNodePool(t *testing.T) {
	c := strictClient(t)
	pool := newPool("typed")
	if err := c.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	d := pool.Spec.Disruption
	if d.ConsolidateAfter.String() != "0s" || d.ConsolidationPolicy != v1.ConsolidationPolicyWhenEmptyOrUnderutilized ||
		len(d.Budgets) != 1 || d.Budgets[0].Nodes != "10%" {
		t.Errorf("disruption is %+v", d)
	}
	if got := pool.Spec.Template.Spec.ExpireAfter; got.Raw != "720h" || *got.Duration != 720*time.Hour {
		t.Errorf("expireAfter is %+v", got)
	}

	pool.Spec.Template.Spec.ExpireAfter = v1.NeverDuration()
	pool.Spec.Disruption.ConsolidateAfter = v1.NillableDuration{Raw: "60m"}
	schedule := "@daily"
	pool.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "0", Schedule: &schedule,
		Duration: &metav1.Duration{Duration: 90 * time.Minute}}}
	pool.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
	if err := c.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	got := &v1.NodePool{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pool), got); err != nil {
		t.Fatal(err)
	}
	if !got.Spec.Template.Spec.ExpireAfter.IsNever() || got.Spec.Disruption.ConsolidateAfter.Raw != "60m" {
		t.Errorf("durations are %v and %v", got.Spec.Template.Spec.ExpireAfter, got.Spec.Disruption.ConsolidateAfter)
	}
	if got.Spec.Disruption.Budgets[0].Duration.Duration != 90*time.Minute ||
		got.Spec.Template.Spec.TerminationGracePeriod.Duration != time.Hour {
		t.Errorf("durations of the contract were lost: %+v", got.Spec)
	}
}

func TestNodePoolStatus(t *testing.T) {
	c := strictClient(t)
	pool := newPool("counted")
	pool.Status.Nodes = 5
	if err := c.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if pool.Status.Nodes != 0 {
		t.Errorf("a new pool has %d nodes, want the status that a create gives to be ignored", pool.Status.Nodes)
	}
	pool.Status.Nodes = 3
	pool.Status.Resources = corev1.ResourceList{}
	meta.SetStatusCondition(&pool.Status.Conditions, condition(v1.ConditionTypeReady, metav1.ConditionTrue))
	if err := c.Status().Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	pool.Status.Nodes = 4
	if err := c.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if pool.Status.Nodes != 3 || !meta.IsStatusConditionTrue(pool.Status.Conditions, v1.ConditionTypeReady) {
		t.Errorf("status is %+v, want 3 nodes and Ready", pool.Status)
	}
}

func TestNodeClaimStatus(t *testing.T) {
	c := strictClient(t)
	claim := newClaim("launched")
	if err := c.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if claim.Spec.ExpireAfter.String() != "720h" {
		t.Errorf("expireAfter is %s, want the default", claim.Spec.ExpireAfter)
	}
	claim.Status.ProviderID = "kwok://launched"
	claim.Status.LastPodEventTime = metav1.NewTime(time.Unix(1_700_000_000, 0))
	claim.Status.Conditions = []metav1.Condition{condition(v1.ConditionTypeLaunched, metav1.ConditionTrue)}
	if err := c.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	got := &v1.NodeClaim{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), got); err != nil {
		t.Fatal(err)
	}
	if got.Status.ProviderID != "kwok://launched" || got.Status.LastPodEventTime.Unix() != 1_700_000_000 ||
		!meta.IsStatusConditionTrue(got.Status.Conditions, v1.ConditionTypeLaunched) {
		t.Errorf("status is %+v", got.Status)
	}

	claim.Status.Conditions = append(claim.Status.Conditions, condition(v1.ConditionTypeLaunched,
		metav1.ConditionFalse))
	wantRefusal(t, c.Status().Update(t.Context(), claim), "status.conditions[1]: Duplicate value")
	claim.Status.Conditions = []metav1.Condition{condition(v1.ConditionTypeLaunched, "Maybe")}
	wantRefusal(t, c.Status().Update(t.Context(), claim), `Unsupported value: "Maybe"`)
}

// A simulated cloud needs nothing first, so its class is Ready at once; saying otherwise must stick, because that is
// how a pool is blocked.
func TestKWOKNodeClassReadiness(t *testing.T) {
	c := strictClient(t)
	class := &v1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionTrue(class.Status.Conditions, v1.ConditionTypeReady) {
		t.Fatalf("a new class has the conditions %+v, want Ready", class.Status.Conditions)
	}
	class.Status.Conditions = []metav1.Condition{condition(v1.ConditionTypeReady, metav1.ConditionFalse)}
	if err := c.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	class.Spec.NodeRegistrationDelay = metav1.Duration{Duration: time.Minute}
	if err := c.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionFalse(class.Status.Conditions, v1.ConditionTypeReady) {
		t.Errorf("conditions are %+v, want Ready to stay False", class.Status.Conditions)
	}
}
