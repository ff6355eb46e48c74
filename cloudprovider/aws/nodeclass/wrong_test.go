package nodeclass_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
)

// device is a disk of 20 GiB, changed.
func device(change func(*awsv1.BlockDevice)) *awsv1.BlockDeviceMapping {
	out := &awsv1.BlockDeviceMapping{DeviceName: new("/dev/xvda"),
		EBS: &awsv1.BlockDevice{VolumeSize: new(resource.MustParse("20Gi"))}}
	change(out.EBS)
	return out
}

// volume is a disk of a type with numbers; 0 stands for none.
func volume(kind string, iops, throughput int64) *awsv1.BlockDeviceMapping {
	return device(func(v *awsv1.BlockDevice) {
		v.VolumeType = &kind
		if iops > 0 {
			v.IOPS = &iops
		}
		if throughput > 0 {
			v.Throughput = &throughput
		}
	})
}

// zeros is a disk of a type whose numbers are written down as 0, which is the same as none.
func zeros(kind string) *awsv1.BlockDeviceMapping {
	return device(func(v *awsv1.BlockDevice) {
		v.VolumeType, v.IOPS, v.Throughput = &kind, new(int64(0)), new(int64(0))
		v.VolumeSize = new(resource.MustParse("200Gi"))
	})
}

// beside is the disk under the name of one that no image boots from.
func beside(d *awsv1.BlockDeviceMapping) *awsv1.BlockDeviceMapping {
	d.DeviceName = new("/dev/sdb")
	return d
}

func sized(kind, size string) *awsv1.BlockDeviceMapping {
	return device(func(v *awsv1.BlockDevice) { v.VolumeType, v.VolumeSize = &kind, new(resource.MustParse(size)) })
}

// deviceCase is a disk, and what is wrong or doubtful with it; neither for those that are fine.
type deviceCase struct {
	disk        *awsv1.BlockDeviceMapping
	want, doubt string
}

func deviceCases() []deviceCase {
	called := func(name string) *awsv1.BlockDeviceMapping {
		return &awsv1.BlockDeviceMapping{DeviceName: &name,
			EBS: &awsv1.BlockDevice{VolumeSize: new(resource.MustParse("20Gi"))}}
	}
	from := func(id string) *awsv1.BlockDeviceMapping {
		return device(func(v *awsv1.BlockDevice) { v.SnapshotID = &id })
	}
	key := func(id string, encrypted *bool) *awsv1.BlockDeviceMapping {
		return device(func(v *awsv1.BlockDevice) { v.KMSKeyID, v.Encrypted = &id, encrypted })
	}
	const id = "1234abcd-12ab-34cd-56ef-1234567890ab"
	return []deviceCase{
		{disk: called("/dev/xvda")}, {disk: called("xvdcz")}, {disk: called("/dev/sda1")}, {disk: called("/dev/sdb")},
		{disk: &awsv1.BlockDeviceMapping{}, want: "spec.blockDeviceMappings[0].deviceName is missing"},
		{disk: called("banana"), want: `spec.blockDeviceMappings[0].deviceName is "banana"`},
		{disk: from("snap-0123456789abcdef0")}, {disk: from("snap-01234567")},
		{disk: from("hello"), want: `ebs.snapshotID is "hello"`},
		{disk: volume("gp3", 0, 0)}, {disk: volume("gp3", 3000, 125)}, {disk: volume("gp3", 80000, 2000)},
		{disk: volume("gp2", 0, 0)},
		{disk: volume("io1", 100, 0)}, {disk: volume("io2", 256000, 0)},
		{disk: volume("io1", 0, 0), want: "ebs.iops is missing; volumes of type io1 need it"},
		{disk: volume("io2", 0, 0), want: "ebs.iops is missing"},
		{disk: zeros("gp3")}, {disk: zeros("gp2")}, {disk: beside(zeros("st1"))},
		{disk: zeros("io2"), want: "ebs.iops is missing; volumes of type io2 need it"},
		{disk: volume("gp2", 3000, 0), want: "ebs.iops can't be set for volumes of type gp2"},
		{disk: volume("gp2", 0, 125), want: "ebs.throughput can't be set for volumes of type gp2"},
		{disk: volume("io2", 100, 125), want: "ebs.throughput can't be set for volumes of type io2"},
		{disk: volume("gp3", 2999, 0), want: "ebs.iops is 2999; for volumes of type gp3 write 3000 to 80000"},
		{disk: volume("gp3", 0, 100000), want: "ebs.throughput is 100000; for volumes of type gp3 write 125 to 2000"},
		{disk: volume("gp3", 0, 2001), doubt: "ebs.throughput is 2001 and EC2 is known to take at most 2000"},
		// the image's type holds
		{disk: device(func(v *awsv1.BlockDevice) { v.IOPS, v.Throughput = new(int64(1)), new(int64(1)) })},
		{disk: beside(sized("st1", "125Gi"))}, {disk: beside(sized("sc1", "125Gi"))},
		{disk: sized("st1", "125Gi"), want: "spec.blockDeviceMappings[0].ebs.volumeType is st1, and EC2 boots from " +
			"no such volume; write gp3 for /dev/xvda"},
		{disk: sized("sc1", "125Gi"), want: "ebs.volumeType is sc1, and EC2 boots from no such volume"},
		{disk: &awsv1.BlockDeviceMapping{DeviceName: new("/dev/sdb")}, doubt: "spec.blockDeviceMappings[0] has no ebs"},
		{disk: sized("gp3", "64T")},
		{disk: sized("st1", "100Gi"), want: "ebs.volumeSize in GiB is 100; for volumes of type st1 write 125 to 16384"},
		{disk: sized("gp2", "20Ti"), doubt: "ebs.volumeSize in GiB is 20480"},
		{disk: key(id, new(true))}, {disk: key("alias/nodes", new(true))},
		{disk: key("arn:aws:kms:us-west-2:123456789012:key/"+id, new(true))},
		{disk: key("arn:aws-cn:kms:cn-north-1:123456789012:key/"+id, new(true)),
			doubt: "spec.blockDeviceMappings[0].ebs.kmsKeyID is a key of cn-north-1, and volumes of this class are " +
				"made in us-west-2"},
		{disk: key("mrk-1234abcd12ab34cd56ef1234567890ab", new(true))},
		{disk: key("nokey", new(true)), want: `ebs.kmsKeyID is "nokey", which names no key`},
		{disk: key(id, new(false)), want: "ebs.kmsKeyID is set but encrypted is false"},
		{disk: key(id, nil), doubt: "add encrypted: true"},
	}
}

// A disk that EC2 would refuse makes the class not Ready, with the field and the fix; one that it may refuse is a
// warning.
func TestBlockDevices(t *testing.T) {
	w := newWorld(t, account.Options{}, newClass())
	for i, tc := range deviceCases() {
		w.update(func(c *awsv1.EC2NodeClass) { c.Spec.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{tc.disk} })
		w.events.take()
		class, _, _ := w.look()
		c, lines := condition(class, awsv1.ConditionTypeValidationSucceeded), w.events.take()
		switch {
		case tc.want != "":
			if c.Status != metav1.ConditionFalse || c.Reason != "InvalidBlockDeviceMappings" ||
				!strings.Contains(c.Message, tc.want) {
				t.Errorf("%d: ValidationSucceeded is %+v, want %q", i, c, tc.want)
			}
		case c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, tc.doubt) ||
			(tc.doubt == "") != (c.Message == ""):
			t.Errorf("%d: ValidationSucceeded is %+v, want True with %q", i, c, tc.doubt)
		case tc.doubt != "" && !has(lines, "Warning DoubtfulSetting", tc.doubt):
			t.Errorf("%d: events are %q, want %q", i, lines, tc.doubt)
		}
	}
	twice := []*awsv1.BlockDeviceMapping{sized("gp3", "20Gi"), sized("gp3", "20Gi")}
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.BlockDeviceMappings = twice })
	class, _, _ := w.look()
	if c := condition(class, awsv1.ConditionTypeValidationSucceeded); !strings.Contains(c.Message,
		"spec.blockDeviceMappings[1].deviceName is /dev/xvda, as is that of spec.blockDeviceMappings[0]") {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
}

// User data that no node makes anything of is told, whether or not launches are rehearsed.
func TestUserData(t *testing.T) {
	class := newClass()
	class.Spec.UserData = new("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: [broken")
	w := newWorld(t, account.Options{}, class)
	w.options.Rehearser = nil
	w.keeper = nodeclass.New(w.options)
	got, _, _ := w.look()
	if c := condition(got, awsv1.ConditionTypeValidationSucceeded); c.Status != metav1.ConditionFalse ||
		c.Reason != "InvalidUserData" || !strings.Contains(c.Message, "spec.userData begins like a NodeConfig") {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.UserData = new("echo hi") })
	if c := condition(w.ready(), awsv1.ConditionTypeValidationSucceeded); c.Message != "" {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	// Custom images may join by themselves.
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.AMIFamily, c.Spec.UserData = new(awsv1.AMIFamilyCustom), nil })
	w.events.take()
	if c := condition(w.ready(), awsv1.ConditionTypeValidationSucceeded); !strings.Contains(c.Message,
		"spec.userData is empty") {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	if lines := w.events.take(); !has(lines, "Warning DoubtfulSetting", "spec.userData is empty") {
		t.Errorf("events are %q", lines)
	}
	w.clock.pass(time.Minute)
	w.ready()
	if lines := w.events.take(); len(lines) != 0 {
		t.Errorf("it is told again: %q", lines)
	}
}

// Tags that can't be used never reach IAM, and the profile is made once they are mended.
func TestBadTagsDoNotReachIAM(t *testing.T) {
	for want, tags := range map[string]map[string]string{
		"aws: are AWS's own":                         {"aws:mine": "x"},
		"has 129 characters":                         {strings.Repeat("k", 129): "x"},
		`the key "a<b>" has characters`:              {"a<b>": "x"},
		`the value "{x}|" of team has characters`:    {"team": "{x}|"},
		"the controller sets tenon.sh/claims itself": {"tenon.sh/claims": "x"},
	} {
		class := newClass()
		class.Spec.Tags = tags
		w := newWorld(t, account.Options{}, class)
		got, _, _ := w.look()
		if c := condition(got, awsv1.ConditionTypeValidationSucceeded); c.Status != metav1.ConditionFalse ||
			c.Reason != "TagValidationFailed" || !strings.Contains(c.Message, want) {
			t.Errorf("ValidationSucceeded is %+v, want %q", c, want)
		}
		if c := condition(got, awsv1.ConditionTypeInstanceProfileReady); c.Status != metav1.ConditionUnknown ||
			c.Reason != "DependenciesNotReady" || !strings.Contains(c.Message, "spec.tags") {
			t.Errorf("InstanceProfileReady is %+v", c)
		}
		for _, action := range []string{"iam:GetInstanceProfile", "iam:CreateInstanceProfile",
			"iam:AddRoleToInstanceProfile"} {
			if n := w.Calls(action); n != 0 {
				t.Errorf("%q: %s was called %d times", want, action, n)
			}
		}
		w.update(func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"team": "blue"} })
		w.clock.pass(time.Minute)
		w.ready()
	}
}

// EC2 takes every character. A class whose profile is there, or is its own, goes on; only the first is warned.
func TestTagsThatOnlyIAMRefuses(t *testing.T) {
	class := newClass()
	w := newWorld(t, account.Options{}, class)
	w.ready()
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"a<b>": "x"} })
	w.events.take()
	if c := condition(w.ready(), awsv1.ConditionTypeValidationSucceeded); !strings.Contains(c.Message,
		`the key "a<b>" has characters that IAM refuses`) {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	if lines := w.events.take(); !has(lines, "Warning DoubtfulSetting", "a<b>") {
		t.Errorf("events are %q", lines)
	}
	name := w.ready().Status.InstanceProfile
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.Role, c.Spec.InstanceProfile = "", &name })
	if c := condition(w.ready(), awsv1.ConditionTypeValidationSucceeded); c.Message != "" {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
}

// That EC2 has not heard of a new profile yet is nothing to warn of; that it never does, is.
func TestNewProfileIsNoTrouble(t *testing.T) {
	w := newWorld(t, account.Options{Propagation: 10 * time.Minute}, newClass())
	for range 3 {
		class, result, err := w.look()
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 5*time.Second {
			t.Errorf("the controller would log %v as an error; it looks again after %s", err, result.RequeueAfter)
		}
		if c := condition(class, v1.ConditionTypeReady); c.Status != metav1.ConditionUnknown ||
			!strings.Contains(c.Message, "was just made; EC2 will know it in some seconds") {
			t.Errorf("Ready is %+v", c)
		}
		if lines := w.events.take(); has(lines, "Warning") {
			t.Errorf("events are %q", lines)
		}
		w.clock.pass(30 * time.Second)
	}
	w.clock.pass(time.Minute)
	class, _, err := w.look()
	if err == nil {
		t.Error("a delay that lasts is no error")
	}
	if c := condition(class, awsv1.ConditionTypeValidationSucceeded); c.Status != metav1.ConditionFalse ||
		c.Reason != "InstanceProfileNotFound" {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	if lines := w.events.take(); !has(lines, "Warning InstanceProfileNotFound", "check that nothing deletes it") {
		t.Errorf("events are %q", lines)
	}
}

// slowIAM does not know for a while the profiles that it has made.
type slowIAM struct {
	profile.API
	until time.Time
	now   func() time.Time
}

func (s slowIAM) GetInstanceProfile(ctx context.Context, in *iam.GetInstanceProfileInput,
	opts ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error) {
	if s.now().Before(s.until) {
		return nil, &iamtypes.NoSuchEntityException{Message: new("Instance Profile " + *in.InstanceProfileName +
			" cannot be found.")}
	}
	return s.API.GetInstanceProfile(ctx, in, opts...)
}

func (s slowIAM) AddRoleToInstanceProfile(ctx context.Context, in *iam.AddRoleToInstanceProfileInput,
	opts ...func(*iam.Options)) (*iam.AddRoleToInstanceProfileOutput, error) {
	if s.now().Before(s.until) {
		return nil, &iamtypes.NoSuchEntityException{Message: new("Instance Profile " + *in.InstanceProfileName +
			" cannot be found.")}
	}
	return s.API.AddRoleToInstanceProfile(ctx, in, opts...)
}

// IAM itself may take seconds until it knows the profile that it has just made. That is no error either, unless it
// lasts.
func TestIAMMayTakeAMoment(t *testing.T) {
	for _, tc := range []struct {
		slow, wait time.Duration
		want       metav1.ConditionStatus
	}{{20 * time.Second, 30 * time.Second, metav1.ConditionTrue}, {10 * time.Minute, 3 * time.Minute,
		metav1.ConditionFalse}} {
		w := newWorld(t, account.Options{}, newClass())
		slow := slowIAM{API: w.iam, until: w.clock.Now().Add(tc.slow), now: w.clock.Now}
		w.options.Profiles = profile.New(profile.Options{API: slow, Cluster: w.Cluster, Region: w.World.Region(),
			Now: w.clock.Now})
		w.keeper = nodeclass.New(w.options)
		for range 2 {
			class, result, err := w.look()
			c := condition(class, awsv1.ConditionTypeInstanceProfileReady)
			if err != nil || result.RequeueAfter <= 0 || c.Status != metav1.ConditionUnknown ||
				!strings.Contains(c.Message, "was just made") {
				t.Errorf("%v, InstanceProfileReady is %+v", err, c)
			}
			if lines := w.events.take(); has(lines, "Warning") {
				t.Errorf("events are %q", lines)
			}
		}
		w.clock.pass(tc.wait)
		class, _, err := w.look()
		if c := condition(class, awsv1.ConditionTypeInstanceProfileReady); c.Status != tc.want ||
			(err != nil) != (tc.want == metav1.ConditionFalse) {
			t.Errorf("after %s: %v, InstanceProfileReady is %+v", tc.wait, err, c)
		}
	}
}

// A profile that somebody deleted is not called new: that EC2 does not know it is told at once, and another is made.
func TestDeletedProfileIsNotNew(t *testing.T) {
	w := newWorld(t, account.Options{Propagation: 5 * time.Second}, newClass())
	w.look()
	w.clock.pass(10 * time.Second)
	before := w.ready()
	w.clock.pass(10 * time.Minute) // its profile is trusted, and no longer new
	other := profile.New(profile.Options{API: w.iam, Cluster: w.Cluster, Region: w.World.Region(), Now: w.clock.Now})
	if err := other.DeleteAll(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	w.update(func(c *awsv1.EC2NodeClass) { c.Spec.DetailedMonitoring = new(true) }) // so that a launch is rehearsed
	w.events.take()
	class, _, _ := w.look()
	want := "EC2 does not know the instance profile " + before.Status.InstanceProfile + " (yet); if somebody deleted " +
		"it, it is made again"
	if c := condition(class, awsv1.ConditionTypeValidationSucceeded); c.Status != metav1.ConditionUnknown ||
		c.Message != want {
		t.Errorf("ValidationSucceeded is %+v", c)
	}
	if lines := w.events.take(); !has(lines, "Warning InstanceProfileNotFound", want) {
		t.Errorf("events are %q", lines)
	}
	class, _, _ = w.look()
	c := condition(class, awsv1.ConditionTypeValidationSucceeded)
	if class.Status.InstanceProfile == before.Status.InstanceProfile || !strings.Contains(c.Message, "was just made") {
		t.Errorf("the profile is %s, ValidationSucceeded is %+v", class.Status.InstanceProfile, c)
	}
	w.clock.pass(10 * time.Second)
	w.ready()
}

// Whether a profile is new is read from IAM after a restart.
func TestNewProfileAfterARestart(t *testing.T) {
	w := newWorld(t, account.Options{Propagation: time.Minute}, newClass())
	for _, tc := range []struct {
		after time.Duration
		want  string
	}{{30 * time.Second, "was just made"}, {10 * time.Minute, "(yet); if somebody deleted it"}} {
		w.look()
		w.clock.pass(tc.after)
		w.options.Profiles = profile.New(profile.Options{API: w.iam, Cluster: w.Cluster, Region: w.World.Region(),
			Now: w.clock.Now})
		w.options.Rehearser = unknowing{w}
		w.keeper = nodeclass.New(w.options)
		class, _, _ := w.look()
		if c := condition(class, awsv1.ConditionTypeValidationSucceeded); c.Status != metav1.ConditionUnknown ||
			!strings.Contains(c.Message, tc.want) {
			t.Errorf("after %s ValidationSucceeded is %+v", tc.after, c)
		}
	}
}

// unknowing rehearses with an EC2 that does not know the profile.
type unknowing struct{ *world }

func (u unknowing) Rehearse(ctx context.Context, class *awsv1.EC2NodeClass) ([]nodeclass.Call, error) {
	class = class.DeepCopy()
	class.Status.InstanceProfile = "none"
	return u.world.Rehearse(ctx, class)
}
