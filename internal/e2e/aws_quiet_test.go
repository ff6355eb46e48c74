package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestClassAndPoolTogetherAreNoTrouble: whoever applies an EC2NodeClass and its NodePool at once, in either order, has
// made no mistake, and so no event of either is a warning. A class that does not come at all is one.
func TestClassAndPoolTogetherAreNoTrouble(t *testing.T) {
	w := newAWSWorld(t)
	w.run()
	w.create(ec2Class("default"), ec2Pool("default"))
	w.create(ec2Pool("early", ofClass("late")), ec2Class("late"))
	w.create(ec2Pool("alone", ofClass("nope")))
	for _, name := range []string{"default", "early"} {
		w.eventually(func() string { return w.ready(name) })
	}
	w.eventually(func() string {
		if len(w.messages("NodeClassNotFound", "alone")) == 0 {
			return "nobody is told that the class of the NodePool alone does not exist"
		}
		return ""
	})
	var list corev1.EventList
	w.must(w.c.List(w.ctx, &list))
	for _, e := range list.Items {
		if ours := e.InvolvedObject.Kind == "NodePool" || e.InvolvedObject.Kind == awsv1.Kind; !ours ||
			e.InvolvedObject.Name == "alone" {
			continue
		}
		if e.Type != corev1.EventTypeNormal {
			t.Errorf("%s %s of %s %s: %s", e.Type, e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
		}
	}
}

// ready says why a pool is not.
func (w *world) ready(name string) string {
	w.Helper()
	var p v1.NodePool
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: name}, &p))
	for _, c := range p.Status.Conditions {
		if c.Type == v1.ConditionTypeReady && c.Status == "True" {
			return ""
		}
	}
	return "NodePool " + name + " is not ready"
}
