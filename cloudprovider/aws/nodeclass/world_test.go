package nodeclass_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	simec2 "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// told keeps the events that were written.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (e *told) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, kind+" "+reason+" "+fmt.Sprintf(note, args...))
}

// take returns the lines since the last time.
func (e *told) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := e.lines
	e.lines = nil
	return lines
}

// world is a simulated account, an API server in memory, and what keeps the classes of the one in the other.
type world struct {
	*account.Account
	t       *testing.T
	clock   *clock
	kube    client.Client
	ec2     *ec2.Client
	iam     *iam.Client
	events  *told
	options nodeclass.Options
	keeper  *nodeclass.Reconciler
	// rehearse, if it is set, takes the place of the real calls.
	rehearse func() ([]nodeclass.Call, error)
}

func newWorld(t *testing.T, o account.Options, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{now: time.Now()}, events: &told{}}
	limits := simec2.NoLimits()
	o.Clock, o.Limits = w.clock, &limits
	var err error
	if w.Account, err = account.New(o); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.Account)
	t.Cleanup(server.Close)
	config := w.Config(server.URL)
	config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxBackoff = time.Millisecond
			o.Retryables = []retry.IsErrorRetryable{retry.RetryableConnectionError{}}
		})
	}
	w.ec2, w.iam = ec2.NewFromConfig(config), iam.NewFromConfig(config)
	w.kube = fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).
		WithStatusSubresource(&awsv1.EC2NodeClass{}).Build()
	w.options = nodeclass.Options{
		Client: w.kube, Events: w.events, Templates: w.ec2, Cluster: w.Cluster, ReservedCapacity: true,
		Now: w.clock.Now, Rehearser: w,
		Network: network.New(network.Options{API: w.ec2, Now: w.clock.Now, VPC: func(context.Context) string {
			return w.Network.VPC
		}}),
		Images: image.New(image.Options{EC2: w.ec2, SSM: ssm.NewFromConfig(config), Now: w.clock.Now,
			Version: func(context.Context) (string, error) { return "1.33", nil }}),
		Profiles: profile.New(profile.Options{API: w.iam, Cluster: w.Cluster, Region: w.World.Region(),
			Now: w.clock.Now}),
		CABundle: func(context.Context) (string, error) { return "Y2VydGlmaWNhdGU=", nil },
	}
	w.keeper = nodeclass.New(w.options)
	return w
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, awsv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Rehearse implements nodeclass.Rehearser with calls as a launch makes them.
func (w *world) Rehearse(_ context.Context, class *awsv1.EC2NodeClass) ([]nodeclass.Call, error) {
	if w.rehearse != nil {
		return w.rehearse()
	}
	return []nodeclass.Call{
		{Action: "ec2:CreateFleet", Run: func(ctx context.Context) error {
			_, err := w.ec2.CreateFleet(ctx, &ec2.CreateFleetInput{DryRun: new(true), Type: ec2types.FleetTypeInstant,
				TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: new(
					int32(1))},
				LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
					LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
						LaunchTemplateName: new("none"), Version: new("$Latest")},
				}}})
			return err
		}},
		{Action: "ec2:CreateLaunchTemplate", Run: func(ctx context.Context) error {
			_, err := w.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{DryRun: new(true),
				LaunchTemplateName: new("none"),
				LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: &class.Status.AMIs[0].ID}})
			return err
		}},
		{Action: "ec2:RunInstances", Run: func(ctx context.Context) error {
			_, err := w.ec2.RunInstances(ctx, &ec2.RunInstancesInput{DryRun: new(true), MinCount: new(int32(1)),
				MaxCount: new(int32(1)),
				ImageId:  &class.Status.AMIs[0].ID, InstanceType: instanceTypeFor(&class.Status.AMIs[0]),
				SubnetId:           &class.Status.Subnets[0].ID,
				SecurityGroupIds:   []string{class.Status.SecurityGroups[0].ID},
				IamInstanceProfile: &ec2types.IamInstanceProfileSpecification{Name: &class.Status.InstanceProfile}})
			return err
		}},
	}, nil
}

// instanceTypeFor is a type that boots the image.
func instanceTypeFor(ami *awsv1.AMI) ec2types.InstanceType {
	for _, r := range ami.Requirements {
		if r.Key == "kubernetes.io/arch" && r.Values[0] == "arm64" {
			return "m6g.large"
		}
	}
	return "m5.large"
}

// newClass is a class as the getting-started guide writes it.
func newClass() *awsv1.EC2NodeClass {
	discovery := map[string]string{"karpenter.sh/discovery": "lab"}
	return &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "uid-1", Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			Role:                       "KarpenterNodeRole-lab",
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: discovery}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}},
		},
	}
}

// look reconciles the class once and returns it as it is then.
func (w *world) look() (*awsv1.EC2NodeClass, ctrl.Result, error) {
	w.t.Helper()
	result, err := w.keeper.Reconcile(w.t.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}})
	class := &awsv1.EC2NodeClass{}
	if getErr := w.kube.Get(w.t.Context(), client.ObjectKey{Name: "default"},
		class); client.IgnoreNotFound(getErr) != nil {
		w.t.Fatal(getErr)
	}
	return class, result, err
}

// ready looks and wants the class to be Ready.
func (w *world) ready() *awsv1.EC2NodeClass {
	w.t.Helper()
	class, result, err := w.look()
	if err != nil {
		w.t.Fatal(err)
	}
	if c := condition(class, v1.ConditionTypeReady); c.Status != metav1.ConditionTrue {
		w.t.Fatalf("Ready is %s: %s", c.Status, c.Message)
	}
	if result.RequeueAfter != time.Minute {
		w.t.Fatalf("a Ready class is looked at again after %s", result.RequeueAfter)
	}
	return class
}

// update changes the class in the API.
func (w *world) update(change func(*awsv1.EC2NodeClass)) {
	w.t.Helper()
	class := &awsv1.EC2NodeClass{}
	if err := w.kube.Get(w.t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		w.t.Fatal(err)
	}
	change(class)
	class.Generation++
	if err := w.kube.Update(w.t.Context(), class); err != nil {
		w.t.Fatal(err)
	}
}

func condition(class *awsv1.EC2NodeClass, name string) metav1.Condition {
	if c := meta.FindStatusCondition(class.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{Status: "absent"}
}

// claim is a NodeClaim of the class.
func claim(name string, annotations map[string]string, drifted bool) *v1.NodeClaim {
	c := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: v1.NodeClaimSpec{NodeClassRef: &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind,
			Name: "default"}},
	}
	if drifted {
		c.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeDrifted, Status: metav1.ConditionTrue,
			Reason: "AMIDrift"}}
	}
	return c
}

// has tells whether a line has all the parts.
func has(lines []string, parts ...string) bool {
	for _, line := range lines {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true
		}
	}
	return false
}
