package nodeclass_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
)

func TestClassOfTheGuideBecomesReady(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	class := w.ready()
	var subnets []string
	for _, s := range class.Status.Subnets {
		subnets = append(subnets, s.ID)
		if s.Zone == "" || s.ZoneID == "" {
			t.Errorf("subnet %+v has no zone", s)
		}
	}
	want := slices.Sorted(slices.Values(w.Network.Private))
	if slices.Sort(subnets); !slices.Equal(subnets, want) {
		t.Errorf("subnets are %v, want %v", subnets, want)
	}
	if g := class.Status.SecurityGroups; len(g) != 1 || g[0].ID != w.Network.SecurityGroup ||
		g[0].Name != "eks-cluster-sg-lab" {
		t.Errorf("security groups are %+v", g)
	}
	if len(class.Status.AMIs) == 0 || class.Status.InstanceProfile == "" {
		t.Errorf("AMIs are %+v, profile is %q", class.Status.AMIs, class.Status.InstanceProfile)
	}
	for _, name := range []string{awsv1.ConditionTypeSubnetsReady, awsv1.ConditionTypeSecurityGroupsReady,
		awsv1.ConditionTypeAMIsReady,
		awsv1.ConditionTypeInstanceProfileReady, awsv1.ConditionTypeValidationSucceeded,
		awsv1.ConditionTypePlacementGroupReady,
		awsv1.ConditionTypeCapacityReservationsReady, v1.ConditionTypeReady} {
		if c := condition(class, name); c.Status != metav1.ConditionTrue || c.Reason != name ||
			c.ObservedGeneration != 1 {
			t.Errorf("%s is %+v", name, c)
		}
	}
	if !slices.Contains(class.Finalizers, "karpenter.k8s.aws/termination") {
		t.Errorf("finalizers are %v", class.Finalizers)
	}
	hash, err := class.Hash("Y2VydGlmaWNhdGU=")
	if a := class.Annotations; err != nil || a["karpenter.k8s.aws/ec2nodeclass-hash"] != hash ||
		a["karpenter.k8s.aws/ec2nodeclass-hash-version"] != "v6" {
		t.Errorf("annotations are %v, want hash %s (%v)", a, hash, err)
	}
}

// A quiet account makes no writes: the object would otherwise wake everybody who watches it, every minute.
func TestNothingNewIsNotWritten(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	before := w.ready()
	w.events.take()
	w.clock.pass(time.Minute)
	if after := w.ready(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the class was written: %s, then %s", before.ResourceVersion, after.ResourceVersion)
	}
	if lines := w.events.take(); len(lines) != 0 {
		t.Errorf("events %q", lines)
	}
}

func TestClassesAreLookedAtAsOftenAsAskedFor(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	w.ready()
	for every, want := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second,
		time.Hour: time.Minute} {
		w.keeper.Every = every
		if _, result, err := w.look(); err != nil || result.RequeueAfter != want {
			t.Errorf("every %s: looked at again after %s, %v", every, result.RequeueAfter, err)
		}
	}
}

func TestNoSubnetMatches(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	w.ready()
	w.events.take()
	w.update(func(c *awsv1.EC2NodeClass) {
		c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{
			Tags: map[string]string{"karpenter.sh/discovery": "other"},
		}}
	})
	class, result, err := w.look()
	const want = "no subnet matches tags karpenter.sh/discovery=other; 3 subnets in the cluster's VPC"
	c := condition(class, awsv1.ConditionTypeSubnetsReady)
	if err != nil || c.Status != metav1.ConditionFalse || c.Reason != "SubnetsNotFound" || !strings.HasPrefix(c.Message,
		want) || !strings.Contains(c.Message, "karpenter.sh/discovery=lab") {
		t.Errorf("SubnetsReady is %+v (%v)", c, err)
	}
	if class.Status.Subnets != nil {
		t.Errorf("subnets are %v", class.Status.Subnets)
	}
	if c := condition(class, awsv1.ConditionTypeValidationSucceeded); c.Status != metav1.ConditionFalse ||
		c.Reason != "DependenciesNotReady" {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	if c := condition(class, v1.ConditionTypeReady); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message,
		"SubnetsReady=False: "+want) {
		t.Errorf("Ready is %+v", c)
	}
	if lines := w.events.take(); !has(lines, "Warning SubnetsNotFound", want) || !has(lines, "Normal SubnetsReady",
		"SubnetsReady is False now, it was True") || !has(lines, "Normal Ready", "Ready is False now, it was True") ||
		len(lines) != 3 {
		t.Errorf("events %q", lines)
	}
	if result.RequeueAfter > 15*time.Second {
		t.Errorf("looked at again after %s", result.RequeueAfter)
	}
	// It mends by itself.
	if err := w.World.SetTags(w.Network.Public, map[string]string{"karpenter.sh/discovery": "other"}); err != nil {
		t.Fatal(err)
	}
	w.clock.pass(result.RequeueAfter)
	if class = w.ready(); len(class.Status.Subnets) != 3 {
		t.Errorf("subnets are %v", class.Status.Subnets)
	}
}

// trouble is something that goes wrong, what the class then says, and what mends it.
type trouble struct {
	name        string
	spoil, mend func(*world)
	condition   string
	reason      string
	message     []string
}

func troubles() []trouble {
	deny := func(action string) func(*world) { return func(w *world) { w.Faults.Deny(action) } }
	fault := func(f faults.Fault) func(*world) { return func(w *world) { w.Faults.Add(f) } }
	undo := func(w *world) { w.Faults.Clear() }
	return []trouble{
		{"may not describe subnets", deny("ec2:DescribeSubnets"), undo, awsv1.ConditionTypeSubnetsReady,
			"UnauthorizedOperation",
			[]string{"ec2:DescribeSubnets", "UnauthorizedOperation", "fix:"}},
		{"may not describe security groups", deny("ec2:DescribeSecurityGroups"), undo,
			awsv1.ConditionTypeSecurityGroupsReady, "UnauthorizedOperation",
			[]string{"ec2:DescribeSecurityGroups", "fix:"}},
		{"may not read parameters", deny("ssm:GetParameter"), undo, awsv1.ConditionTypeAMIsReady,
			"AccessDeniedException", []string{"ssm:GetParameter", "fix:"}},
		{"may not make profiles", deny("iam:CreateInstanceProfile"), undo, awsv1.ConditionTypeInstanceProfileReady,
			"AccessDenied",
			[]string{"iam:CreateInstanceProfile", "AccessDenied", "fix:"}},
		{"may not run instances", deny("ec2:RunInstances"), undo, awsv1.ConditionTypeValidationSucceeded,
			"RunInstancesAuthCheckFailed",
			[]string{"may not call ec2:RunInstances", "UnauthorizedOperation", "fix:"}},
		{"may not create fleets", deny("ec2:CreateFleet"), undo, awsv1.ConditionTypeValidationSucceeded,
			"CreateFleetAuthCheckFailed", []string{"ec2:CreateFleet"}},
		{"may not create launch templates", deny("ec2:CreateLaunchTemplate"), undo,
			awsv1.ConditionTypeValidationSucceeded, "CreateLaunchTemplateAuthCheckFailed",
			[]string{"ec2:CreateLaunchTemplate"}},
		{"expired token", fault(faults.Fault{Service: "ec2", Code: "ExpiredToken", Message: "The provided token has " +
			"expired."}), undo,
			awsv1.ConditionTypeSubnetsReady, "ExpiredToken", []string{"ExpiredToken", "fix:"}},
		{"wrong credentials", fault(faults.Fault{Service: "ec2", Code: "AuthFailure", Status: 401}), undo,
			awsv1.ConditionTypeSubnetsReady, "AuthFailure", []string{"AuthFailure", "fix:"}},
		{"no such role", func(w *world) {
			w.IAM.RemoveRole(w.NodeRole())
		}, func(w *world) { w.IAM.PutRole(w.NodeRole()) },
			awsv1.ConditionTypeInstanceProfileReady, "RoleNotFound",
			[]string{"no IAM role is named KarpenterNodeRole-lab", "NoSuchEntity", "spec.role"}},
		{"security group that is gone", func(w *world) {
			w.World.RemoveSecurityGroup(w.Network.SecurityGroup)
		}, func(w *world) {
			if _, err := w.World.AddSecurityGroup(w.Network.VPC, "new",
				map[string]string{"karpenter.sh/discovery": "lab"}); err != nil {
				w.t.Fatal(err)
			}
		}, awsv1.ConditionTypeSecurityGroupsReady, "SecurityGroupsNotFound", []string{"no security group matches " +
			"tags karpenter.sh/discovery=lab", "spec.securityGroupSelectorTerms"}},
	}
}

// What a missing permission, an unknown role or a wrong id ends in: a condition and an event with AWS's code and what
// to do; and once it is mended, Ready without a restart.
func TestTroubleIsToldAndMends(t *testing.T) {
	for _, tc := range troubles() {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, account.Options{}, newClass())
			tc.spoil(w)
			class, _, _ := w.look()
			c := condition(class, tc.condition)
			if c.Status != metav1.ConditionFalse || c.Reason != tc.reason || !has([]string{c.Message}, tc.message...) {
				t.Errorf("%s is %s, %s: %s", tc.condition, c.Status, c.Reason, c.Message)
			}
			if r := condition(class, v1.ConditionTypeReady); r.Status != metav1.ConditionFalse ||
				!has([]string{r.Message}, tc.message...) {
				t.Errorf("Ready is %s: %s", r.Status, r.Message)
			}
			if lines := w.events.take(); !has(lines, append([]string{"Warning " + tc.reason}, tc.message...)...) {
				t.Errorf("events %q", lines)
			}
			tc.mend(w)
			w.clock.pass(time.Minute)
			w.ready()
		})
	}
}

func TestUnknownImageAndPlacementGroup(t *testing.T) {
	class := newClass()
	class.Spec.AMIFamily, class.Spec.AMISelectorTerms = new("AL2023"),
		[]awsv1.AMISelectorTerm{{ID: "ami-0000000000000dead"}}
	class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: new("mine")}
	w := newWorld(t, account.Options{}, class)
	got, _, err := w.look()
	if c := condition(got, awsv1.ConditionTypeAMIsReady); err != nil || c.Reason != "AMINotFound" ||
		!strings.Contains(c.Message, "ami-0000000000000dead") {
		t.Errorf("AMIsReady is %+v (%v)", c, err)
	}
	if c := condition(got, awsv1.ConditionTypePlacementGroupReady); c.Reason != "PlacementGroupNotFound" ||
		!strings.Contains(c.Message, "spec.placementGroupSelector") {
		t.Errorf("PlacementGroupReady is %+v", c)
	}
	w.World.AddPlacementGroup("mine", ec2types.PlacementStrategyCluster, 0, nil)
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].ID = *w.World.Images()[0].ImageId })
	w.clock.pass(time.Minute)
	got, _, _ = w.look()
	if c := condition(got, awsv1.ConditionTypePlacementGroupReady); c.Status != metav1.ConditionTrue {
		t.Errorf("PlacementGroupReady is %+v", c)
	}
}

// A busy AWS says nothing about the class: what was known stays, and it is tried again.
func TestThrottledIsNotUnready(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	w.ready()
	w.events.take()
	w.Faults.Add(faults.Fault{Code: "RequestLimitExceeded", Status: 503})
	w.clock.pass(2 * time.Hour)
	class, _, err := w.look()
	if err == nil || condition(class, v1.ConditionTypeReady).Status != metav1.ConditionTrue ||
		len(class.Status.Subnets) != 3 {
		t.Errorf("Ready is %+v, %d subnets (%v)", condition(class, v1.ConditionTypeReady), len(class.Status.Subnets),
			err)
	}
	// A class that was never looked at is not known to be good.
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.UserData = new("echo hello") })
	class, _, err = w.look()
	if c := condition(class, v1.ConditionTypeReady); err == nil || c.Status != metav1.ConditionUnknown ||
		c.Reason != "ReconcilingDependents" {
		t.Errorf("Ready of a changed class is %+v (%v)", c, err)
	}
	w.Faults.Clear()
	w.clock.pass(5 * time.Second) // EC2 is left alone for as long
	w.ready()
}

// EC2 hears of a new instance profile some seconds after IAM.
func TestNewProfileSpreads(t *testing.T) {
	w := newWorld(t, account.Options{Propagation: 30 * time.Second}, newClass())
	class, _, _ := w.look()
	if c := condition(class, awsv1.ConditionTypeValidationSucceeded); c.Status != metav1.ConditionUnknown ||
		c.Reason != "InstanceProfileNotFound" {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	w.clock.pass(30 * time.Second)
	w.ready()
}

func TestNamedProfileThatDoesNotExist(t *testing.T) {
	class := newClass()
	class.Spec.Role, class.Spec.InstanceProfile = "", new("mine")
	w := newWorld(t, account.Options{}, class)
	got, _, _ := w.look()
	c := condition(got, awsv1.ConditionTypeValidationSucceeded)
	if c.Status != metav1.ConditionFalse || c.Reason != "InstanceProfileNotFound" || !has([]string{c.Message}, "mine",
		"InvalidParameterValue", "spec.instanceProfile") {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
}

func TestProfileThatSomebodyDeletedIsMadeAgain(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	class := w.ready()
	if err := w.options.Profiles.DeleteAll(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	w.clock.pass(time.Hour)
	if w.ready(); len(w.IAM.Profiles()) != 1 {
		t.Errorf("%d profiles", len(w.IAM.Profiles()))
	}
}

func TestRehearsalCountsForAWhile(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	calls := func() int { return w.Calls("ec2:RunInstances") }
	w.ready()
	w.clock.pass(29 * time.Minute)
	if w.ready(); calls() != 1 {
		t.Errorf("%d rehearsals, want one for half an hour", calls())
	}
	w.clock.pass(time.Minute)
	if w.ready(); calls() != 2 {
		t.Errorf("%d rehearsals, want another after half an hour", calls())
	}
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.UserData = new("echo hello") })
	if w.ready(); calls() != 3 {
		t.Errorf("%d rehearsals, want another for a changed class", calls())
	}
}

func TestNoRehearsal(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	w.options.Rehearser = nil
	w.keeper = nodeclass.New(w.options)
	class := w.ready()
	if c := condition(class, awsv1.ConditionTypeValidationSucceeded); w.Calls("ec2:RunInstances") != 0 ||
		c.Reason != "DryRunDisabled" {
		t.Errorf("a launch was rehearsed, or %+v", c)
	}
}

// What the class has to do with trouble that is not AWS's is nothing, and who has no credentials is told so.
func TestReasonsOfTrouble(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	w.rehearse = func() ([]nodeclass.Call, error) {
		return nil, &nodeclass.PassingError{Cause: errors.New("listing NodePools: the server is away")}
	}
	class, _, _ := w.look()
	if c := condition(class, awsv1.ConditionTypeValidationSucceeded); c.Status != metav1.ConditionUnknown ||
		c.Reason != "ClusterUnreachable" {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	nobody := &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet",
		Err: errors.New("get identity: get credentials: none found")}
	w.rehearse = func() ([]nodeclass.Call, error) {
		return []nodeclass.Call{{Action: "ec2:CreateFleet", Run: func(context.Context) error { return nobody }}}, nil
	}
	class, _, _ = w.look()
	if c := condition(class, awsv1.ConditionTypeValidationSucceeded); c.Status != metav1.ConditionFalse ||
		c.Reason != "NoCredentials" {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	// The role could not be taken on: that is not about the call that was to follow.
	trust := &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet", Err: &smithy.OperationError{
		ServiceID: "STS", OperationName: "AssumeRoleWithWebIdentity", Err: &smithy.GenericAPIError{Code: "AccessDenied",
			Message: "no"}}}
	w.rehearse = func() ([]nodeclass.Call, error) {
		return []nodeclass.Call{{Action: "ec2:CreateFleet", Run: func(context.Context) error { return trust }}}, nil
	}
	class, _, _ = w.look()
	if c := condition(class, awsv1.ConditionTypeValidationSucceeded); c.Reason != "AccessDenied" ||
		!strings.Contains(c.Message, "trust policy") || strings.Contains(c.Message, "may not call") {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
}

func TestRehearsalThatSaysNothingAboutTheClass(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	w.Faults.Add(faults.Fault{Service: "ec2", Action: "RunInstances", Code: "Unsupported",
		Message: "m5.large is not sold in us-west-2a"})
	w.ready()
}

func TestLaunchThatCanNotBeMadeUp(t *testing.T) {
	for reason, err := range map[string]error{
		"UserDataSizeLimitExceeded":   &family.TooLargeError{Bytes: 20000},
		"ClusterCIDRResolutionFailed": family.ErrNoServiceCIDR,
		"InvalidLaunch":               errors.New("spec.userData is not TOML"),
	} {
		w := newWorld(t, account.Options{}, newClass())
		w.rehearse = func() ([]nodeclass.Call, error) { return nil, err }
		want := metav1.ConditionFalse
		if errors.Is(err, family.ErrNoServiceCIDR) {
			want = metav1.ConditionUnknown // EKS has not told it yet, which says nothing about the class
		}
		class, _, _ := w.look()
		if c := condition(class, awsv1.ConditionTypeValidationSucceeded); c.Status != want || c.Reason != reason ||
			c.Message != err.Error() {
			t.Errorf("ValidationSucceeded is %+v, want %s", c, reason)
		}
		if lines := w.events.take(); !has(lines, "Warning "+reason, err.Error()) {
			t.Errorf("events %q", lines)
		}
		w.rehearse = nil
		w.ready()
	}
}

func TestReservations(t *testing.T) {
	class := newClass()
	class.Spec.CapacityReservationSelectorTerms =
		[]awsv1.CapacityReservationSelectorTerm{{InstanceMatchCriteria: "open"}}
	w := newWorld(t, account.Options{}, class)
	if got := w.ready(); got.Status.CapacityReservations != nil {
		t.Errorf("reservations are %v", got.Status.CapacityReservations)
	}
	id := w.World.AddReservation(ec2types.CapacityReservation{InstanceType: new("m5.large"),
		AvailabilityZone: new("us-west-2a"), TotalInstanceCount: new(int32(2))})
	w.clock.pass(time.Minute)
	if got := w.ready().Status.CapacityReservations; len(got) != 1 || got[0].ID != id || got[0].State != "active" ||
		got[0].InstanceType != "m5.large" {
		t.Errorf("reservations are %+v, want %s", got, id)
	}
	w.options.ReservedCapacity = false
	w.keeper = nodeclass.New(w.options)
	got := w.ready()
	if got.Status.CapacityReservations != nil || condition(got, awsv1.ConditionTypeCapacityReservationsReady).
		Status != "absent" {
		t.Errorf("with the gate off the status is %+v", got.Status)
	}
}

func TestNewImageIsSeen(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	before := w.ready().Status.AMIs
	if _, err := w.Images.Publish("al2023", 0); err != nil {
		t.Fatal(err)
	}
	w.clock.pass(31 * time.Minute)
	if after := w.ready().Status.AMIs; after[0].ID == before[0].ID {
		t.Errorf("AMIs are still %+v", after)
	}
}

// Without the cluster's certificate there is no hash, and a wrong one would roll every node.
func TestNoCertificateNoHash(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	w.options.CABundle = func(context.Context) (string, error) { return "", errors.New("not known yet") }
	w.keeper = nodeclass.New(w.options)
	class, _, err := w.look()
	if err == nil || class.Annotations[awsv1.HashAnnotationKey] != "" ||
		condition(class, v1.ConditionTypeReady).Status != metav1.ConditionTrue {
		t.Errorf("annotations are %v, error %v", class.Annotations, err)
	}
}
