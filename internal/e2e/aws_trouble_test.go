package e2e

import (
	"fmt"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// troubleOfAll is trouble with the account: every class has it. A class that comes in the middle of it says so in a
// condition and an event, with AWS's code and the fix; once it is mended the same controller launches.
func (w *awsWorld) troubleOfAll() {
	w.Helper()
	for i, tc := range []struct {
		name        string
		spoil, mend func()
		condition   string
		reason      string
		words       []string
	}{
		{"stranger", w.forgetSessions, func() { w.cloud.Keys.Restore() },
			awsv1.ConditionTypeSubnetsReady, "AuthFailure", []string{"ec2:DescribeSubnets", "AuthFailure",
				"check them"}},
		{"expired", w.expireSessions, func() { w.cloud.Faults.Allow(takeOn) },
			awsv1.ConditionTypeSubnetsReady, "AccessDenied", []string{takeOn, "AccessDenied", "trust policy"}},
		{"forbidden", func() {
			w.cloud.Faults.Deny("ec2:CreateFleet")
		}, func() { w.cloud.Faults.Allow("ec2:CreateFleet") },
			awsv1.ConditionTypeValidationSucceeded, "CreateFleetAuthCheckFailed", []string{"ec2:CreateFleet",
				"UnauthorizedOperation", "allow ec2:CreateFleet"}},
	} {
		class := ec2Class(tc.name)
		// nobody has asked for just this one
		class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: w.cloud.Network.Private[i]}}
		tc.spoil()
		w.create(class, ec2Pool(tc.name, ofClass(tc.name), whenEmpty), w.podOf(tc.name))
		w.eventually(w.classSays(tc.name, tc.condition, tc.reason, tc.words...))
		w.eventually(w.hears(tc.reason, tc.name, tc.words...))
		tc.mend()
		w.step("%s: told and mended", tc.name)
	}
	for _, name := range []string{"stranger", "expired", "forbidden"} {
		w.eventually(w.runs(name))
	}
	w.step("their pods run")
	w.sessionIsRenewed()
}

// takeOn is the call with which a controller gets a session.
const takeOn = "sts:AssumeRoleWithWebIdentity"

// forgetSessions makes a stranger of the controller.
func (w *awsWorld) forgetSessions() {
	for _, id := range w.sessions() {
		w.cloud.Keys.Remove(id)
	}
}

// expireSessions ends the controller's session and refuses it another.
func (w *awsWorld) expireSessions() {
	w.cloud.Faults.Deny(takeOn)
	if n := w.cloud.Keys.ExpireAll(time.Now()); n != 1 {
		w.Errorf("%d sessions have expired, the controller should have one", n)
	}
}

// sessionIsRenewed ends the controller's session long before the time that it was told. It gets another by itself.
func (w *awsWorld) sessionIsRenewed() {
	w.Helper()
	before := len(w.sessions())
	w.cloud.Keys.ExpireAll(time.Now())
	w.create(w.podOf("renewed"), ec2Pool("renewed", ofClass("forbidden"), whenEmpty))
	w.eventually(w.runs("renewed"))
	if after := len(w.sessions()); after != before+1 {
		w.Errorf("the controller took %d sessions when one had expired, want 1", after-before)
	}
	w.step("a session is renewed")
}

// troubleOfOne is trouble with what one class selects, which goes wrong after the class was found to be ready: the
// launch fails, and its NodeClaim says why.
func (w *awsWorld) troubleOfOne(e *recorder) {
	w.Helper()
	subnet := func(cidr string) string {
		id, err := w.cloud.World.AddSubnet(cloud.SubnetSpec{VPC: w.cloud.Network.VPC, Zone: "us-west-2a", CIDR: cidr})
		w.must(err)
		return id
	}
	gone, full := subnet("10.0.240.0/24"), subnet("10.0.241.0/24")
	image := w.cloud.World.AddImage(ec2types.Image{Name: new("mine"), Architecture: ec2types.ArchitectureValuesX8664})
	classes := map[string]func(*awsv1.EC2NodeClass){
		"gone": func(c *awsv1.EC2NodeClass) { c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: gone}} },
		"full": func(c *awsv1.EC2NodeClass) { c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: full}} },
		"image": func(c *awsv1.EC2NodeClass) {
			c.Spec.AMIFamily, c.Spec.AMISelectorTerms = new(awsv1.AMIFamilyAL2023), []awsv1.AMISelectorTerm{{ID: image}}
		},
	}
	for name, change := range classes {
		class := ec2Class(name)
		change(class)
		w.create(class, ec2Pool(name, ofClass(name), bought("on-demand"), whenEmpty))
	}
	for name := range classes {
		w.eventually(w.classReady(name))
	}
	w.step("the classes are ready")
	w.cloud.World.RemoveSubnet(gone)
	w.cloud.World.SetFreeAddresses(full, 0)
	w.cloud.World.RemoveImage(image)
	for name := range classes {
		w.create(w.podOf(name))
	}
	for _, words := range [][]string{
		{"InvalidSubnetID.NotFound", "spec.subnetSelectorTerms"}, {"InsufficientFreeAddressesInSubnet",
			"spec.subnetSelectorTerms"},
		{"InvalidAMIID.NotFound", "spec.amiSelectorTerms"},
	} {
		w.eventually(e.heard(words...))
		w.eventually(w.someEvent(words...))
		w.step("%s is told", words[0])
	}
	w.cloud.World.SetFreeAddresses(full, 100)
	for _, name := range []string{"gone", "image"} {
		w.changeClass(name, func(c *awsv1.EC2NodeClass) { c.Spec = ec2Class(name).Spec })
	}
	for _, name := range []string{"gone", "image", "full"} {
		w.eventually(w.runs(name))
		w.step("%s: told, mended, and its pod runs", name)
	}
}

// whenEmpty keeps the nodes of single pods, which nobody makes again.
func whenEmpty(p *v1.NodePool) {
	p.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmpty
}

// podOf is a pod that wants a node of the pool.
func (w *awsWorld) podOf(pool string) *corev1.Pod {
	return w.pod(pool, "3", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{v1.NodePoolLabelKey: pool} })
}

// runs says that a pod does not run.
func (w *awsWorld) runs(pod string) func() string {
	return func() string {
		var p corev1.Pod
		w.must(w.c.Get(w.ctx, client.ObjectKey{Namespace: w.lab.Namespace(), Name: pod}, &p))
		if p.Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("pod %s is %s", pod, p.Status.Phase)
		}
		return ""
	}
}

func (w *awsWorld) classOf(name string) *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{}
	w.must(w.c.Get(w.ctx, client.ObjectKey{Name: name}, class))
	return class
}

// classSays says what is missing: a condition of the class is False for the reason, with the words, and so Ready is.
func (w *awsWorld) classSays(name, condition, reason string, words ...string) func() string {
	return func() string {
		class := w.classOf(name)
		cond, ready := meta.FindStatusCondition(class.Status.Conditions, condition),
			meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady)
		if cond == nil || cond.Status != "False" || cond.Reason != reason || !containsAll(cond.Message, words) ||
			ready == nil || ready.Status != "False" || !containsAll(ready.Message, words) {
			return fmt.Sprintf("class %s does not say in %s, for %s, %q: %+v", name, condition, reason, words,
				class.Status.Conditions)
		}
		return ""
	}
}

func (w *awsWorld) classReady(name string) func() string {
	return func() string {
		if class := w.classOf(name); !meta.IsStatusConditionTrue(class.Status.Conditions, v1.ConditionTypeReady) {
			return fmt.Sprintf("class %s is not ready: %+v", name, class.Status.Conditions)
		}
		return ""
	}
}

// changeClass changes a class that is there.
func (w *awsWorld) changeClass(name string, change func(*awsv1.EC2NodeClass)) {
	w.Helper()
	w.eventually(func() string {
		class := w.classOf(name)
		change(class)
		// The controller may have written its status in between.
		if err := w.c.Update(w.ctx, class); err != nil {
			return err.Error()
		}
		return ""
	})
}

// someEvent says what is missing: a warning of the controller says all the words.
func (w *awsWorld) someEvent(words ...string) func() string {
	return func() string {
		var list corev1.EventList
		w.must(w.c.List(w.ctx, &list))
		for _, event := range list.Items {
			if event.Type == corev1.EventTypeWarning && event.ReportingController == "karpenter" &&
				containsAll(event.Message, words) {
				return ""
			}
		}
		return fmt.Sprintf("no event says %q", words)
	}
}
