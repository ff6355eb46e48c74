package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// slowly waits for what takes its time by design: nobody is sure that an instance is an orphan before half a minute.
func (w *world) slowly(check func() string) {
	w.Helper()
	w.within(2*patience, check)
}

// force takes an object away whatever holds it.
func (w *world) force(obj client.Object) {
	w.Helper()
	w.must(client.IgnoreNotFound(w.c.Delete(w.ctx, obj)))
	nobody := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	w.must(client.IgnoreNotFound(w.c.Patch(w.ctx, obj, nobody)))
}

// TestThingsTakenAwayByForce takes a claim, a node, and both away behind the controller's back: everything that
// belonged to them goes, and the pods run elsewhere.
func TestThingsTakenAwayByForce(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", func(p *v1.NodePool) {
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
			v1.NodeSelectorRequirementWithMinValues{
				Key: kwokv1alpha1.InstanceCPULabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"2"}})
	}))
	w.run()
	w.create(w.deployment("web", 4, "1500m"))
	w.eventually(w.allRunning(4))
	w.eventually(w.tally)
	claims := w.claims()
	if len(claims) != 4 {
		t.Fatalf("%d claims, want one for each pod", len(claims))
	}
	old := make(map[string]bool)
	for i := range claims {
		old[claims[i].Status.ProviderID] = true
	}
	node := func(i int) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claims[i].Status.NodeName}}
	}
	w.force(&claims[0])
	w.force(node(1))
	w.force(&claims[2])
	w.force(node(2))
	w.endPodsOf(claims[1].Status.NodeName, claims[2].Status.NodeName)
	w.slowly(func() string {
		for _, n := range w.nodes() {
			if old[n.Spec.ProviderID] && n.Name != claims[3].Status.NodeName {
				return "node " + n.Name + " is still there"
			}
		}
		if no := w.tally(); no != "" {
			return no
		}
		return w.allRunning(4)()
	})
}

// endPodsOf does Kubernetes' part for nodes that were taken away: what ran there has ended, and it takes a minute to
// notice.
func (w *world) endPodsOf(nodes ...string) {
	w.Helper()
	for _, p := range w.pods() {
		if slices.Contains(nodes, p.Spec.NodeName) {
			w.must(client.IgnoreNotFound(w.c.Delete(w.ctx, &p, client.GracePeriodSeconds(0))))
		}
	}
}

// TestDeadlineEndsEverything deletes a claim whose pod does not want to be disturbed: it is, at the time that the
// claim's annotation says.
func TestDeadlineEndsEverything(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"), nodePool("default", func(p *v1.NodePool) {
		p.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 8 * time.Second}
	}))
	w.run()
	grace := int64(2)
	w.create(w.pod("stubborn", "1", func(p *corev1.Pod) {
		p.Annotations = map[string]string{v1.DoNotDisruptAnnotationKey: "true"}
		p.Spec.TerminationGracePeriodSeconds = &grace
	}))
	w.eventually(w.allRunning(1))
	claim := w.claims()[0]
	w.must(w.c.Delete(w.ctx, &claim))
	var told string
	w.eventually(func() string {
		if err := w.c.Get(w.ctx, client.ObjectKeyFromObject(&claim), &claim); err != nil {
			return err.Error()
		}
		if told = claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey]; told == "" {
			return "the claim does not say when it must be gone"
		}
		c := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionTypeDrained)
		if c == nil || c.Reason != "Draining" {
			return fmt.Sprintf("the claim says of its drain: %+v", c)
		}
		return ""
	})
	at, err := time.Parse(time.RFC3339, told)
	if want := claim.DeletionTimestamp.Add(8 * time.Second); err != nil || !at.Equal(want) {
		t.Errorf("the deadline is %q (%v), want %s", told, err, want)
	}
	w.eventually(w.nothingLeft)
	if early := time.Until(at); early > 3*time.Second {
		t.Errorf("the node went %s before its time", early)
	}
	w.eventually(func() string {
		if len(w.messages("TerminationGracePeriodExpiring", claim.Status.NodeName)) == 0 {
			return "nobody was told that the time was running out"
		}
		return ""
	})
}

// TestClaimThatAPersonWrote lives like any other.
func TestClaimThatAPersonWrote(t *testing.T) {
	w := newWorld(t)
	w.create(nodeClass("default"))
	w.run()
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: v1.NodeClaimSpec{
		NodeClassRef: &v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"},
		Requirements: []v1.NodeSelectorRequirementWithMinValues{{Key: kwokv1alpha1.InstanceCPULabelKey,
			Operator: corev1.NodeSelectorOpIn, Values: []string{"4"}}},
	}}
	w.create(claim)
	w.eventually(func() string {
		w.must(w.c.Get(w.ctx, client.ObjectKeyFromObject(claim), claim))
		for _, kind := range []string{v1.ConditionTypeReady, v1.ConditionTypeConsistentStateFound} {
			if !meta.IsStatusConditionTrue(claim.Status.Conditions, kind) {
				return fmt.Sprintf("%s is not True: %+v", kind, claim.Status.Conditions)
			}
		}
		return ""
	})
	w.eventually(w.tally)
	w.must(w.c.Delete(w.ctx, claim))
	w.eventually(w.nothingLeft)
}
