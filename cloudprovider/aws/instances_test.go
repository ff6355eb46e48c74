package aws_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

// An instance that is launched and not answered for yet is nobody's so far, and is not listed: it would be ended as
// such.
func TestListDuringALaunch(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, w *world, p *aws.Provider) {
		w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Lose: true, Times: 1})
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := p.Create(t.Context(), claim()); err != nil {
				t.Error(err)
			}
		})
		for len(w.alive()) == 0 {
			time.Sleep(time.Millisecond)
		}
		if list, err := p.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%d are listed (%v) before the answer has come", len(list), err)
		}
		group.Wait()
		if list, err := p.List(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%d are listed (%v) after the answer has come", len(list), err)
		}
	})
}

// An instance that EC2 does not show yet is known from its launch for a minute. One that ends meanwhile is gone.
func TestInstancesBeforeTheyAreShown(t *testing.T) {
	clock, api := &ahead{}, &blind{}
	_, p := start(t, setup{}, func(o *aws.Options) { api.EC2API, o.EC2, o.Now = o.EC2, api, clock.now })
	clock.put(15 * time.Second)
	if _, err := p.List(t.Context()); err != nil { // nothing was left by another controller
		t.Fatal(err)
	}
	list := claims(3)
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	api.on.Store(true)
	seen := func() []string {
		t.Helper()
		all, err := p.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, i := range all {
			out = append(out, i.ProviderID)
		}
		if !slices.IsSorted(out) {
			t.Errorf("%v are not in order", out)
		}
		return out
	}
	if n := len(seen()); n != 3 {
		t.Errorf("%d are listed, want 3", n)
	}
	first, err := p.Get(t.Context(), got[0].ProviderID)
	if err != nil || first.Terminating || first.Owner() != got[0].Owner() {
		t.Fatalf("%+v, %v", first, err)
	}
	first.Labels["changed"], first.Annotations["changed"] = "yes", "yes"
	first.Capacity["changed"], first.Allocatable["changed"] = resource.MustParse("1"), resource.MustParse("1")
	again, err := p.Get(t.Context(), got[0].ProviderID)
	_, more := again.Capacity["changed"]
	_, free := again.Allocatable["changed"]
	if err != nil || more || free || again.Labels["changed"] != "" || again.Annotations["changed"] != "" {
		t.Errorf("what is known can be changed from outside: %+v, %v", again, err)
	}
	clock.put(time.Minute)
	if _, err := p.Get(t.Context(), got[0].ProviderID); !cloudprovider.IsNotFound(err) {
		t.Errorf("after a minute: %v", err)
	}
	if all := seen(); len(all) != 0 {
		t.Errorf("after a minute %v are listed", all)
	}
}

// Whoever gives up, or can't ask EC2, is told so, and not that there is no instance.
func TestInstancesThatCannotBeAskedFor(t *testing.T) {
	w, p := start(t, setup{})
	c, made, _ := one(t, w, p)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	before := w.sim.Calls()["ec2:DescribeInstances"]
	if _, err := p.Get(over, made.ProviderID); !errors.Is(err, context.Canceled) {
		t.Errorf("found by who has given up: %v", err)
	}
	if _, err := p.Create(over, c); !errors.Is(err, context.Canceled) {
		t.Errorf("asked for by who has given up: %v", err)
	}
	if n := w.sim.Calls()["ec2:DescribeInstances"] - before; n != 0 {
		t.Errorf("EC2 was asked %d times for somebody who has given up", n)
	}
	w.faults.Deny("ec2:DescribeInstances")
	if _, err := p.Get(t.Context(), made.ProviderID); !cloudprovider.IsUnauthorized(err) {
		t.Errorf("found: %v", err)
	}
	if list, err := p.List(t.Context()); !cloudprovider.IsUnauthorized(err) || list != nil {
		t.Errorf("listed: %v, %v", list, err)
	}
	if _, err := p.Create(t.Context(), c); !cloudprovider.IsUnauthorized(err) || !strings.Contains(err.Error(),
		"looking for the instance of NodeClaim "+c.Name) {
		t.Errorf("asked for again: %v", err)
	}
}

// What the next controller says of an instance that it finds: from which version of its class it was launched, as far
// as that can be told, and whether it carries the cluster's identity.
func TestWhatIsToldOfAnInstanceThatIsFound(t *testing.T) {
	away := errors.New("away")
	for _, x := range []struct {
		name   string
		change func(t *testing.T, w *world, id string)
		option func(*aws.Options)
		keys   []string
		err    error
	}{
		{"all is known", nil, nil,
			[]string{awsv1.HashAnnotationKey, awsv1.HashVersionAnnotationKey, awsv1.InstanceProfileAnnotationKey,
				ownership.IdentityTaggedAnnotationKey}, nil},
		{"it lost the identity", func(t *testing.T, w *world, id string) {
			untag(t, w, id, ownership.IdentityTagKey)
		}, nil,
			[]string{awsv1.HashAnnotationKey, awsv1.HashVersionAnnotationKey, awsv1.InstanceProfileAnnotationKey}, nil},
		{"there is no identity", nil, func(o *aws.Options) { o.Identity = "" },
			[]string{awsv1.HashAnnotationKey, awsv1.HashVersionAnnotationKey, awsv1.InstanceProfileAnnotationKey}, nil},
		{"it lost its class", func(t *testing.T, w *world, id string) { untag(t, w, id, awsv1.NodeClassTagKey) }, nil,
			nil, nil},
		{"how nodes join is not known", nil, func(o *aws.Options) {
			o.Cluster = func(context.Context) (family.Cluster, error) { return family.Cluster{}, away }
		}, nil, away},
	} {
		w, p := start(t, setup{})
		c, made, id := one(t, w, p)
		if x.change != nil {
			x.change(t, w, id)
		}
		if x.option == nil {
			x.option = func(*aws.Options) {}
		}
		next, err := w.provider(x.option)
		if err != nil {
			t.Fatal(err)
		}
		again, err := next.Create(t.Context(), c)
		if !errors.Is(err, x.err) || (again != nil) != (x.err == nil) {
			t.Errorf("%s: %+v, %v", x.name, again, err)
		}
		if again == nil {
			continue
		}
		var keys []string
		for key := range again.Annotations {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		slices.Sort(x.keys)
		if again.ProviderID != made.ProviderID || !slices.Equal(keys, x.keys) {
			t.Errorf("%s: %s says %v, want %s and %v", x.name, again.ProviderID, keys, made.ProviderID, x.keys)
		}
	}
}

// An instance that has ended is forgotten: its claim gets another, by another request.
func TestInstanceThatHasEnded(t *testing.T) {
	w, p := settled(t, setup{timing: cloud.Timing{}})
	c, made, _ := one(t, w, p)
	if err := w.kill(t.Context(), made.ProviderID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Get(t.Context(), made.ProviderID); !cloudprovider.IsNotFound(err) {
		t.Errorf("found: %v", err)
	}
	again, err := p.Create(t.Context(), c)
	if err != nil || again.ProviderID == made.ProviderID || len(w.alive()) != 1 {
		t.Errorf("the claim gets %+v (%v), EC2 runs %d", again, err, len(w.alive()))
	}
	if !again.Owner().Of(string(c.UID)) || again.Labels[v1.CapacityTypeLabelKey] == "" {
		t.Errorf("it is %+v", again)
	}
}

// Instances are listed in the order of their provider ids, whatever EC2's order is.
func TestListIsSorted(t *testing.T) {
	_, p := start(t, setup{})
	for _, zone := range []string{"us-west-2b", "us-west-2a", "us-west-2c", "us-west-2a"} {
		if _, err := p.Create(t.Context(), claim(in(corev1.LabelTopologyZone, zone))); err != nil {
			t.Fatal(err)
		}
	}
	list, err := p.List(t.Context())
	if err != nil || len(list) != 4 || !slices.IsSortedFunc(list,
		func(a, b *cloudprovider.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) }) {
		t.Errorf("%v, %v", list, err)
	}
}

// forgetful is an API server that is asked for classes. Whoever asks it once on is set has no time left, and gets an
// answer only if answers is set, too.
type forgetful struct {
	client.Client
	on, answers atomic.Bool
	end         context.CancelFunc
}

func (f *forgetful) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	if f.on.Load() {
		f.end()
		if !f.answers.Load() {
			return ctx.Err()
		}
	}
	return f.Client.Get(context.WithoutCancel(ctx), key, obj, o...)
}

// Whoever runs out of time while instances are listed gets an error or the whole list, but never a list without them.
func TestListOfWhoHasNoTimeLeft(t *testing.T) {
	w, p := start(t, setup{})
	one(t, w, p)
	classes := &forgetful{}
	next, err := w.provider(func(o *aws.Options) { classes.Client, o.Classes = o.Classes.(client.Client), classes })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.List(t.Context()); err != nil { // what is sold is known from now on
		t.Fatal(err)
	}
	for _, answers := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		classes.end = cancel
		classes.on.Store(true)
		classes.answers.Store(answers)
		list, err := next.List(ctx)
		if (err == nil) != (len(list) == 1) || answers != (err == nil) {
			t.Errorf("an answer comes: %t; %d are listed (%v)", answers, len(list), err)
		}
		cancel()
	}
}

// byID is an EC2 that can't be asked for instances by their ids.
type byID struct {
	aws.EC2API
	fails atomic.Bool
}

func (b *byID) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput,
	o ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	if b.fails.Load() {
		if *in.Filters[0].Name == "instance-id" {
			return nil, errors.New("no answer")
		}
		return &ec2.DescribeInstancesOutput{}, nil
	}
	return b.EC2API.DescribeInstances(ctx, in, o...)
}

// A new instance that is not among those of the cluster has ended, or is not shown yet. While that can't be told
// nothing is listed; one that has ended is not listed.
func TestListWithoutANewInstance(t *testing.T) {
	api := &byID{}
	w, p := start(t, setup{}, func(o *aws.Options) { api.EC2API, o.EC2 = o.EC2, api })
	_, made, _ := one(t, w, p)
	api.fails.Store(true)
	if list, err := p.List(t.Context()); err == nil || list != nil {
		t.Errorf("listed %v, %v", list, err)
	}
	api.fails.Store(false)
	if err := w.kill(t.Context(), made.ProviderID); err != nil {
		t.Fatal(err)
	}
	if list, err := p.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("of one that has ended %v are listed (%v)", list, err)
	}
}

// A claim that asks again for its instance is told from which version of the class that was launched, not which there
// is now.
func TestClassThatChangesAfterALaunch(t *testing.T) {
	w, p := start(t, setup{})
	c, made, _ := one(t, w, p)
	w.edit(func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"costs": "shop"} })
	again, err := p.Create(t.Context(), c)
	hash := made.Annotations[awsv1.HashAnnotationKey]
	if err != nil || hash == "" || again.Annotations[awsv1.HashAnnotationKey] != hash {
		t.Errorf("launched from %v, told %v (%v)", made.Annotations, again.Annotations, err)
	}
}
