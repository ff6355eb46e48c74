package nodeclass_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
)

func (w *world) claimAnnotations(name string) map[string]string {
	w.t.Helper()
	c := &v1.NodeClaim{}
	if err := w.kube.Get(w.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		w.t.Fatal(err)
	}
	return c.Annotations
}

// The hash of another version says nothing: NodeClaims get the new one and don't drift. One that has drifted stays so.
func TestHashOfAnotherVersionNeverRolls(t *testing.T) {
	class := newClass()
	class.Annotations = map[string]string{awsv1.HashAnnotationKey: "1", awsv1.HashVersionAnnotationKey: "v4"}
	old := map[string]string{awsv1.HashAnnotationKey: "1", awsv1.HashVersionAnnotationKey: "v4", "mine": "kept"}
	current := map[string]string{awsv1.HashAnnotationKey: "7", awsv1.HashVersionAnnotationKey: awsv1.HashVersion}
	other := claim("other", old, false)
	other.Spec.NodeClassRef.Name = "another"
	w := newWorld(t, account.Options{}, class, claim("old", old, false), claim("drifted", old, true),
		claim("current", current, false), other)
	hash := w.ready().Annotations[awsv1.HashAnnotationKey]
	for name, want := range map[string][2]string{
		"old": {hash, "v6"}, "drifted": {"1", "v6"}, "current": {"7", "v6"}, "other": {"1", "v4"},
	} {
		got := w.claimAnnotations(name)
		if got[awsv1.HashAnnotationKey] != want[0] || got[awsv1.HashVersionAnnotationKey] != want[1] {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
	if w.claimAnnotations("old")["mine"] != "kept" {
		t.Error("an annotation of somebody else was lost")
	}
}

// With the same version a changed class has another hash, and its NodeClaims keep theirs: that is drift.
func TestChangedClassMakesNodesDrift(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass(), claim("a", nil, false))
	before := w.ready().Annotations[awsv1.HashAnnotationKey]
	if got := w.claimAnnotations("a")[awsv1.HashAnnotationKey]; got != before {
		t.Fatalf("the claim has %s, want %s", got, before)
	}
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.UserData = new("echo hello") })
	after := w.ready().Annotations[awsv1.HashAnnotationKey]
	if got := w.claimAnnotations("a")[awsv1.HashAnnotationKey]; after == before || got != before {
		t.Errorf("the class has %s, then %s; the claim %s", before, after, got)
	}
}

func (w *world) template(name, class string) {
	w.t.Helper()
	_, err := w.ec2.CreateLaunchTemplate(w.t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: new(awsv1.LaunchTemplatePrefix + name),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: "m5.large"},
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate,
			Tags: []ec2types.Tag{
				{Key: new("kubernetes.io/cluster/lab"), Value: new("owned")},
				{Key: new("karpenter.k8s.aws/ec2nodeclass"),
					Value: &class}}}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) templates() []string {
	var out []string
	for _, t := range w.World.Templates() {
		out = append(out, t.Name)
	}
	slices.Sort(out)
	return out
}

func TestClassWaitsForItsNodeClaims(t *testing.T) {
	objects := []client.Object{newClass()}
	for i := range 7 {
		objects = append(objects, claim("claim-"+strconv.Itoa(i), nil, false))
	}
	w := newWorld(t, account.Options{}, objects...)
	class := w.ready()
	w.template("mine", "default")
	w.template("theirs", "another")
	w.events.take()
	if err := w.kube.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if class, _, err := w.look(); err != nil || class.Name == "" {
			t.Fatalf("the class is gone, or %v", err)
		}
	}
	want := "Normal WaitingOnNodeClaimTermination It stays until its NodeClaims are gone: claim-0, claim-1, claim-2, " +
		"claim-3, claim-4 and 2 more"
	if lines := w.events.take(); !slices.Equal(lines, []string{want}) {
		t.Errorf("events %q, want %q once", lines, want)
	}
	if len(w.IAM.Profiles()) != 1 || len(w.templates()) != 2 {
		t.Fatalf("%d profiles and templates %v: nodes still need them", len(w.IAM.Profiles()), w.templates())
	}
	for i := range 7 {
		if err := w.kube.Delete(t.Context(), claim("claim-"+strconv.Itoa(i), nil, false)); err != nil {
			t.Fatal(err)
		}
	}
	// Without permission it stays, says why, and goes on once it may.
	w.Faults.Deny("iam:DeleteInstanceProfile")
	w.clock.pass(time.Minute)
	if class, _, err := w.look(); err == nil || class.Name == "" {
		t.Errorf("the class is gone though its profile is not (%v)", err)
	}
	if lines := w.events.take(); !has(lines, "Warning AccessDenied", "iam:DeleteInstanceProfile", "fix:") {
		t.Errorf("events %q", lines)
	}
	w.Faults.Clear()
	if class, _, err := w.look(); err != nil || class.Name != "" {
		t.Errorf("the class is still there (%v)", err)
	}
	if lines := w.events.take(); !has(lines, "Normal Finalized", "Finalized karpenter.k8s.aws/termination") {
		t.Errorf("events %q", lines)
	}
	if len(w.IAM.Profiles()) != 0 || !slices.Equal(w.templates(), []string{"karpenter.k8s.aws/theirs"}) {
		t.Errorf("left are %d profiles and templates %v", len(w.IAM.Profiles()), w.templates())
	}
}

func TestCollectorRemovesWhatIsLeftBehind(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	first := w.ready().Status.InstanceProfile
	w.template("mine", "default")
	w.template("orphan", "gone")
	w.IAM.PutRole("others")
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.Role = "others" })
	second := w.ready().Status.InstanceProfile
	if err := w.kube.Create(t.Context(), claim("running", map[string]string{awsv1.InstanceProfileAnnotationKey: first},
		false)); err != nil {
		t.Fatal(err)
	}
	c := nodeclass.NewCollector(w.options)
	collect := func() []string {
		t.Helper()
		if err := c.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range w.IAM.Profiles() {
			names = append(names, p.Name)
		}
		return names
	}
	collect()
	if got := w.templates(); len(got) != 2 {
		t.Errorf("templates are %v: a new one is left alone", got)
	}
	w.clock.pass(2 * time.Hour)
	if got := collect(); len(got) != 2 {
		t.Errorf("profiles are %v, want the node's %s too", got, first)
	}
	if got := w.templates(); !slices.Equal(got, []string{"karpenter.k8s.aws/mine"}) {
		t.Errorf("templates are %v, want those of classes that are there", got)
	}
	if err := w.kube.Delete(t.Context(), claim("running", nil, false)); err != nil {
		t.Fatal(err)
	}
	if got := collect(); len(got) != 2 {
		t.Errorf("profiles are %v: a launch may be on its way with %s", got, first)
	}
	w.clock.pass(time.Hour)
	if got := collect(); !slices.Equal(got, []string{second}) {
		t.Errorf("profiles are %v, want %s", got, second)
	}
}

// A NodeClaim from before the profile was noted on it needs every profile of its class.
func TestCollectorSparesUnnotedNodes(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass(), claim("old", nil, false))
	w.ready()
	w.IAM.PutRole("others")
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.Role = "others" })
	w.ready()
	c := nodeclass.NewCollector(w.options)
	for range 3 {
		if err := c.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.clock.pass(2 * time.Hour)
	}
	if got := len(w.IAM.Profiles()); got != 2 {
		t.Errorf("%d profiles, want both", got)
	}
}

// A class whose profile was given by name goes where IAM can't be reached, and nobody looks there for leftovers.
func TestNamedProfileClassGoesWithoutIAM(t *testing.T) {
	class := newClass()
	class.Spec.Role, class.Spec.InstanceProfile = "", new("mine")
	w := newWorld(t, account.Options{}, class)
	w.options.Rehearser = nil
	w.keeper = nodeclass.New(w.options)
	w.Faults.Add(faults.Fault{Service: "iam", Code: "ServiceUnavailable", Status: 503})
	class = w.ready()
	if err := nodeclass.NewCollector(w.options).Collect(t.Context()); err != nil {
		t.Errorf("collecting: %v", err)
	}
	if err := w.kube.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if class, _, err := w.look(); err != nil || class.Name != "" {
		t.Errorf("the class is still there (%v)", err)
	}
}

// A class that goes over from a role to a named profile leaves none behind.
func TestProfilesOfARoleFromBeforeAreRemoved(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	w.ready()
	w.options.Rehearser = nil
	w.keeper = nodeclass.New(w.options)
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.Role, c.Spec.InstanceProfile = "", new("mine") })
	class := w.ready()
	if class.Annotations[profile.MadeAnnotationKey] == "" {
		t.Error("the class does not say that profiles were made for it")
	}
	if err := w.kube.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if class, _, err := w.look(); err != nil || class.Name != "" || len(w.IAM.Profiles()) != 0 {
		t.Errorf("the class is %q, %d profiles are left (%v)", class.Name, len(w.IAM.Profiles()), err)
	}
}

// A profile that can't be removed is told of and does not hold up the class.
func TestProfileOutOfReach(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	class := w.ready()
	name := "old"
	if _, err := w.iam.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: &name,
		Tags: []iamtypes.Tag{
			{Key: new("kubernetes.io/cluster/lab"), Value: new("owned")}, {Key: new("karpenter.k8s.aws/ec2nodeclass"),
				Value: new("default")}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.options.Profiles.DeleteAll(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	class.Status.InstanceProfile = name
	if err := w.kube.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	w.Faults.Deny("iam:DeleteInstanceProfile")
	if class, _, err := w.look(); err != nil || class.Name != "" {
		t.Errorf("the class is still there (%v)", err)
	}
	if lines := w.events.take(); !has(lines, "Warning InstanceProfileLeft", "old", "AccessDenied") {
		t.Errorf("events %q", lines)
	}
}

// A node whose class is gone, and that does not say which profile it has, may have any that is nobody's.
func TestCollectorSparesNodesWithoutAClass(t *testing.T) {
	orphan := claim("orphan", nil, false)
	orphan.Spec.NodeClassRef.Name = "gone"
	w := newWorld(t, account.Options{}, newClass(), orphan)
	w.ready()
	name, path := "theirs", "/karpenter/"+w.World.Region()+"/lab/uid-gone/"
	if _, err := w.iam.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: &name,
		Path: &path}); err != nil {
		t.Fatal(err)
	}
	c := nodeclass.NewCollector(w.options)
	collect := func() int {
		t.Helper()
		for range 3 {
			if err := c.Collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.clock.pass(2 * time.Hour)
		}
		return len(w.IAM.Profiles())
	}
	if got := collect(); got != 2 {
		t.Errorf("%d profiles, want that of the node too", got)
	}
	if err := w.kube.Delete(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	if got := collect(); got != 1 {
		t.Errorf("%d profiles, want that of the class only", got)
	}
}
