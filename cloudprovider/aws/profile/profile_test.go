package profile_test

import (
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	simiam "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/iam"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
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

// world is a simulated IAM and a Keeper that works on it over HTTP.
type world struct {
	*simiam.Service
	clock  *clock
	server *ec2sim.Server
	faults *faults.Injector
	api    *iam.Client
	keeper *profile.Keeper
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w := &world{clock: c, faults: faults.New(faults.Options{Clock: c}),
		Service: simiam.New(simiam.Options{Clock: c, Account: "123456789012"})}
	server, err := ec2sim.New(ec2sim.Options{
		Config:   cloud.Config{Clock: c, Types: []ec2types.InstanceTypeInfo{{InstanceType: "m5.large"}}},
		Services: []wire.Service{w.Service}, Gates: []wire.Gate{w.faults},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.server = server
	http := httptest.NewServer(server)
	t.Cleanup(http.Close)
	w.api = iam.NewFromConfig(aws.Config{
		Region: "us-west-2", BaseEndpoint: &http.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIATEST",
			"secret", ""),
		Retryer: func() aws.Retryer {
			// A connection that breaks on a busy machine is no part of the story.
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxBackoff = time.Millisecond
				o.Retryables = []retry.IsErrorRetryable{retry.RetryableConnectionError{}}
			})
		},
	})
	w.keeper = profile.New(profile.Options{API: w.api, Cluster: "lab", Region: "us-west-2", Now: c.Now})
	w.PutRole("nodes")
	return w
}

func (w *world) calls(action string) int { return w.server.Calls()["iam:"+action] }

func class(role string) *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "uid-1"},
		Spec: awsv1.EC2NodeClassSpec{Role: role, Tags: map[string]string{"team": "blue"}}}
}

func (w *world) ensure(t *testing.T, c *awsv1.EC2NodeClass) string {
	t.Helper()
	name, err := w.keeper.Ensure(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Status.InstanceProfile = name
	return name
}

func TestEnsureMakesOne(t *testing.T) {
	w := newWorld(t)
	name := w.ensure(t, class("some/path/nodes"))
	all := w.Profiles()
	if len(all) != 1 || all[0].Name != name || all[0].Role != "nodes" ||
		all[0].Path != "/karpenter/us-west-2/lab/uid-1/" || !strings.HasPrefix(name, "lab_") {
		t.Fatalf("profiles are %+v, want %s", all, name)
	}
	for key, value := range map[string]string{"team": "blue", "kubernetes.io/cluster/lab": "owned",
		"eks:eks-cluster-name":           "lab",
		"karpenter.k8s.aws/ec2nodeclass": "default", "topology.kubernetes.io/region": "us-west-2"} {
		if all[0].Tags[key] != value {
			t.Errorf("tag %s is %q, want %q", key, all[0].Tags[key], value)
		}
	}
}

// A class of an older version of the API may name nothing.
func TestClassesThatNameNothing(t *testing.T) {
	w := newWorld(t)
	if _, err := w.keeper.Ensure(t.Context(), class("")); err == nil || !strings.Contains(err.Error(),
		"--aws-default-instance-profile") {
		t.Errorf("without a default: %v", err)
	}
	given := profile.New(profile.Options{API: w.api, Cluster: "lab", Region: "us-west-2", Default: "shared",
		Now: w.clock.Now})
	if name, err := given.Ensure(t.Context(), class("")); err != nil || name != "shared" {
		t.Errorf("with a default: %s, %v", name, err)
	}
	if name, err := given.Ensure(t.Context(), class("nodes")); err != nil || name == "shared" {
		t.Errorf("a class with a role: %s, %v", name, err)
	}
	converted := class("KarpenterNodeRole-${CLUSTER_NAME}") // what the conversion from v1beta1 writes
	if name, err := given.Ensure(t.Context(), converted); err != nil || name != "shared" {
		t.Errorf("a class of v1beta1 with a default: %s, %v", name, err)
	}
	if given.Managed(converted) {
		t.Error("the default counts as made for a class of v1beta1")
	}
	if _, err := w.keeper.Ensure(t.Context(), converted); err == nil ||
		!strings.Contains(err.Error(), "no IAM role is named KarpenterNodeRole-lab") {
		t.Errorf("a class of v1beta1 without a default: %v", err)
	}
	bare := class("")
	bare.Status.InstanceProfile = "shared"
	if given.Managed(bare) || given.Replaces(bare) {
		t.Error("the default counts as made for the class")
	}
}

// After a crash nobody remembers the name, and asking again is the same act.
func TestEnsureTwiceIsOnce(t *testing.T) {
	w := newWorld(t)
	first := w.ensure(t, class("nodes"))
	again := profile.New(profile.Options{API: w.api, Cluster: "lab", Region: "us-west-2", Now: w.clock.Now})
	second, err := again.Ensure(t.Context(), class("nodes"))
	if err != nil || second != first || len(w.Profiles()) != 1 {
		t.Errorf("second is %s (%v), first %s; %d profiles", second, err, first, len(w.Profiles()))
	}
}

// A crash between the two calls leaves a profile without a role.
func TestEnsureFinishesWhatWasBegun(t *testing.T) {
	w := newWorld(t)
	w.faults.Add(faults.Fault{Service: "iam", Action: "AddRoleToInstanceProfile", Code: "ServiceFailure",
		Status: 500, Times: 1})
	c := class("nodes")
	if _, err := w.keeper.Ensure(t.Context(), c); err == nil {
		t.Fatal("no error though the role was not added")
	}
	name := w.ensure(t, c)
	if all := w.Profiles(); len(all) != 1 || all[0].Name != name || all[0].Role != "nodes" {
		t.Errorf("profiles are %+v", all)
	}
}

func TestEnsureTrustsForAWhile(t *testing.T) {
	w := newWorld(t)
	c := class("nodes")
	w.ensure(t, c)
	before := w.calls("GetInstanceProfile")
	w.clock.pass(14 * time.Minute)
	w.ensure(t, c)
	if got := w.calls("GetInstanceProfile"); got != before {
		t.Errorf("%d calls, want none within a quarter of an hour", got-before)
	}
	w.clock.pass(time.Minute)
	w.ensure(t, c)
	if got := w.calls("GetInstanceProfile"); got != before+1 {
		t.Errorf("%d calls, want one after a quarter of an hour", got-before)
	}
}

func TestAnotherRoleIsAnotherProfile(t *testing.T) {
	w := newWorld(t)
	w.PutRole("others")
	c := class("nodes")
	first := w.ensure(t, c)
	c.Spec.Role = "others"
	second := w.ensure(t, c)
	if first == second || len(w.Profiles()) != 2 {
		t.Errorf("first %s, second %s, %d profiles: running nodes need the first", first, second, len(w.Profiles()))
	}
	// EC2 remembers what a name stood for, and by now the first may be gone.
	c.Spec.Role = "nodes"
	if third := w.ensure(t, c); third == first || third == second {
		t.Errorf("back to the first role the profile is %s, a name that was used before", third)
	}
}

// Karpenter's own profiles have names that we would not give.
func TestEnsureKeepsWhatKarpenterMade(t *testing.T) {
	w := newWorld(t)
	w.makeProfile(t, "lab_1234", "/", "nodes", nil)
	c := class("nodes")
	c.Status.InstanceProfile = "lab_1234"
	if name := w.ensure(t, c); name != "lab_1234" || len(w.Profiles()) != 1 {
		t.Errorf("name is %s, %d profiles", name, len(w.Profiles()))
	}
}

func TestEnsureMakesAgainWhatWasDeleted(t *testing.T) {
	w := newWorld(t)
	c := class("nodes")
	name := w.ensure(t, c)
	if err := w.keeper.DeleteAll(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.keeper.Distrust(name)
	if again := w.ensure(t, c); again == name || len(w.Profiles()) != 1 {
		t.Errorf("name is %s, %d profiles: EC2 still knows another under that name", again, len(w.Profiles()))
	}
}

// Of a class that was always given a profile by name IAM is asked nothing: many private networks can't reach it.
func TestNamedProfileNeedsNoIAM(t *testing.T) {
	w := newWorld(t)
	w.faults.Add(faults.Fault{Service: "iam", Code: "ServiceFailure", Status: 503})
	c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "uid-1"},
		Spec: awsv1.EC2NodeClassSpec{InstanceProfile: new("mine")}}
	w.ensure(t, c)
	if err := w.keeper.DeleteAll(t.Context(), c); err != nil || w.keeper.Managed(c) {
		t.Errorf("deleting asks IAM: %v", err)
	}
	for what, change := range map[string]func(*awsv1.EC2NodeClass){
		"a role":         func(c *awsv1.EC2NodeClass) { c.Spec.InstanceProfile, c.Spec.Role = nil, "nodes" },
		"a made profile": func(c *awsv1.EC2NodeClass) { c.Status.InstanceProfile = "lab_1" },
		"a note about them": func(c *awsv1.EC2NodeClass) {
			c.Annotations = map[string]string{profile.MadeAnnotationKey: "true"}
		},
	} {
		other := c.DeepCopy()
		change(other)
		if err := w.keeper.DeleteAll(t.Context(), other); err == nil {
			t.Errorf("with %s nothing was asked, so something may be left", what)
		}
	}
}

// What an older Karpenter made may be out of our reach. It stays, and is told; it does not hold up the class.
func TestProfileOutOfReachIsLeft(t *testing.T) {
	w := newWorld(t)
	w.makeProfile(t, "old", "/", "nodes", map[string]string{"kubernetes.io/cluster/lab": "owned",
		"karpenter.k8s.aws/ec2nodeclass": "default"})
	c := class("nodes")
	c.Status.InstanceProfile = "old"
	w.faults.Deny("iam:RemoveRoleFromInstanceProfile")
	err := w.keeper.DeleteAll(t.Context(), c)
	left, ok := errors.AsType[*profile.LeftError](err)
	if !ok || left.Name != "old" || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("error is %v", err)
	}
}

func TestNamedProfileIsUsedAsItIs(t *testing.T) {
	w := newWorld(t)
	c := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{InstanceProfile: new("mine")}}
	if name := w.ensure(t, c); name != "mine" || len(w.Profiles()) != 0 {
		t.Errorf("name is %s, %d profiles", name, len(w.Profiles()))
	}
}

func TestEnsureSaysWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	_, err := w.keeper.Ensure(t.Context(), class("nobody"))
	missing, ok := errors.AsType[*profile.NoRoleError](err)
	if !ok || !strings.Contains(missing.Error(), "no IAM role is named nobody") || !strings.Contains(missing.Error(),
		"spec.role") {
		t.Errorf("error is %v", err)
	}
	w.faults.Deny("iam:CreateInstanceProfile")
	_, err = w.keeper.Ensure(t.Context(), &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{UID: "uid-2"},
		Spec: awsv1.EC2NodeClassSpec{Role: "nodes"}})
	if !cloudprovider.IsUnauthorized(err) || !strings.Contains(err.Error(), "AccessDenied") ||
		!strings.Contains(err.Error(), "iam:CreateInstanceProfile") {
		t.Errorf("error is %v, want the call and the code", err)
	}
}

func (w *world) makeProfile(t *testing.T, name, path, role string, tags map[string]string) {
	t.Helper()
	in := &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: &path}
	for key, value := range tags {
		in.Tags = append(in.Tags, iamtypes.Tag{Key: new(key), Value: new(value)})
	}
	if _, err := w.api.CreateInstanceProfile(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := w.api.AddRoleToInstanceProfile(t.Context(),
		&iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &role}); err != nil {
		t.Fatal(err)
	}
}

func names(w *world) []string {
	var out []string
	for _, p := range w.Profiles() {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

func TestDeleteAll(t *testing.T) {
	w := newWorld(t)
	w.PutRole("others")
	c := class("nodes")
	w.ensure(t, c)
	c.Spec.Role = "others"
	w.ensure(t, c)
	mine := map[string]string{"kubernetes.io/cluster/lab": "owned", "karpenter.k8s.aws/ec2nodeclass": "default"}
	w.makeProfile(t, "old", "/", "nodes", mine)
	w.makeProfile(t, "stranger", "/karpenter/us-west-2/lab/uid-2/", "nodes", mine)
	w.makeProfile(t, "by-hand", "/", "nodes", nil)
	c.Status.InstanceProfile = "old"
	if err := w.keeper.DeleteAll(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := names(w); !slices.Equal(got, []string{"by-hand", "stranger"}) {
		t.Errorf("left are %v, want what belongs to others", got)
	}
	c.Status.InstanceProfile = "by-hand"
	if err := w.keeper.DeleteAll(t.Context(), c); err != nil || len(w.Profiles()) != 2 {
		t.Errorf("left are %v (%v), want what has no tags of ours", names(w), err)
	}
	c.Spec.Role, c.Spec.InstanceProfile, c.Status.InstanceProfile = "", new("stranger"), "stranger"
	if err := w.keeper.DeleteAll(t.Context(), c); err != nil || len(w.Profiles()) != 2 {
		t.Errorf("left are %v (%v), want what the user named", names(w), err)
	}
}

func TestCollect(t *testing.T) {
	w := newWorld(t)
	w.makeProfile(t, "used", "/karpenter/us-west-2/lab/uid-1/", "nodes", nil)
	w.makeProfile(t, "unused", "/karpenter/us-west-2/lab/uid-1/", "nodes", nil)
	w.makeProfile(t, "elsewhere", "/karpenter/us-west-2/other/uid-1/", "nodes", nil)
	c := profile.NewCollector(w.keeper, w.clock.Now)
	collect := func() []string {
		t.Helper()
		gone, err := c.Collect(t.Context(), func(p profile.Profile) bool {
			return p.Name == "used" && p.ClassUID == "uid-1"
		})
		if err != nil {
			t.Fatal(err)
		}
		return gone
	}
	if gone := collect(); len(gone) != 0 {
		t.Errorf("%v went at once", gone)
	}
	w.clock.pass(59 * time.Minute)
	if gone := collect(); len(gone) != 0 {
		t.Errorf("%v went before an hour was over", gone)
	}
	w.clock.pass(time.Minute)
	w.faults.Add(faults.Fault{Service: "iam", Action: "DeleteInstanceProfile", Code: "ServiceFailure",
		Status: 500, Times: 1})
	if _, err := c.Collect(t.Context(), func(p profile.Profile) bool { return p.Name == "used" }); err == nil {
		t.Error("no error though one could not be deleted")
	}
	if gone := collect(); !slices.Equal(gone, []string{"unused"}) {
		t.Errorf("%v went, want unused", gone)
	}
	if got := names(w); !slices.Equal(got, []string{"elsewhere", "used"}) {
		t.Errorf("left are %v", got)
	}
}
