package aws_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

// Two ask at once for the instance of one claim: the second gets what the first gets, be it an instance or a refusal.
// If the first gives up, that is no answer: the second asks itself, and the claim still gets one instance.
func TestTwoAskForOneClaim(t *testing.T) {
	denied := faults.Fault{Service: "ec2", Action: "CreateFleet", Code: "UnauthorizedOperation", Status: 403,
		Delay: time.Second, Times: 1}
	slow := faults.Fault{Service: "ec2", Action: "CreateFleet", Delay: time.Second, Times: 1}
	for _, x := range []struct {
		name   string
		fault  faults.Fault
		giveUp func(context.Context) (context.Context, context.CancelFunc)
		second bool // gets an instance
	}{
		{"both wait", slow, context.WithCancel, true},
		{"both are refused", denied, context.WithCancel, false},
		{"the first has no time left", slow, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 500*time.Millisecond)
		}, true},
		{"the first is told to stop", slow, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(500*time.Millisecond, cancel)
			return ctx, cancel
		}, true},
	} {
		inBubble(t, setup{}, func(t *testing.T, w *world, p *aws.Provider) {
			w.faults.Add(x.fault)
			c := claim()
			ctx, cancel := x.giveUp(t.Context())
			defer cancel()
			var got [2]*cloudprovider.Instance
			var errs [2]error
			var group sync.WaitGroup
			group.Go(func() { got[0], errs[0] = p.Create(ctx, c) })
			time.Sleep(300 * time.Millisecond) // of the bubble, whose clock does not wait: the first is asking by now
			group.Go(func() { got[1], errs[1] = p.Create(t.Context(), c) })
			group.Wait()
			if (errs[1] == nil) != x.second || x.second != (got[1] != nil) || !x.second &&
				(!cloudprovider.IsUnauthorized(errs[0]) || !cloudprovider.IsUnauthorized(errs[1])) {
				t.Errorf("%s: %v and %v", x.name, errs[0], errs[1])
			}
			if got[0] != nil && (got[1] == nil || got[0] == got[1] || got[0].ProviderID != got[1].ProviderID) {
				t.Errorf("%s: %+v and %+v, want one instance in two copies", x.name, got[0], got[1])
			}
			if n, want := len(w.alive()), map[bool]int{true: 1}[x.second]; n != want {
				t.Errorf("%s: EC2 runs %d instances, want %d", x.name, n, want)
			}
		})
	}
}

// A claim that has an instance is asked about again, and EC2 can't be asked: that is told, and no second instance is
// launched.
func TestCreateWhileEC2CannotBeAsked(t *testing.T) {
	w, p := start(t, setup{})
	c, _, _ := one(t, w, p)
	w.faults.Deny("ec2:DescribeInstances")
	if again, err := p.Create(t.Context(), c); !cloudprovider.IsUnauthorized(err) || again != nil {
		t.Errorf("%+v, %v", again, err)
	}
	next, err := w.provider() // one that has nothing in memory
	if err != nil {
		t.Fatal(err)
	}
	if again, err := next.Create(t.Context(), c); !cloudprovider.IsUnauthorized(err) || again != nil {
		t.Errorf("the next controller: %+v, %v", again, err)
	}
	if n := len(w.alive()); n != 1 {
		t.Errorf("EC2 runs %d instances", n)
	}
}

// What is missing for a launch is told in words, and EC2 is not asked for anything.
func TestLaunchThatCannotBePrepared(t *testing.T) {
	away := errors.New("the API server is away")
	for _, x := range []struct {
		name   string
		change func(o *aws.Options)
		class  func(*awsv1.EC2NodeClass)
		deny   string
		is     func(error) bool
		says   string
	}{
		{"how nodes join is not known", func(o *aws.Options) {
			o.Cluster = func(context.Context) (family.Cluster, error) { return family.Cluster{}, away }
		}, nil, "", func(err error) bool { return errors.Is(err, away) }, "finding out how nodes join the cluster"},
		{"what is sold can't be asked", nil, nil, "ec2:DescribeInstanceTypes", cloudprovider.IsUnauthorized, ""},
		{"no image boots", nil, func(c *awsv1.EC2NodeClass) {
			c.Status.AMIs = nil
		}, "", cloudprovider.IsNoCapacity, ""},
		{"the placement group is missing", nil, func(c *awsv1.EC2NodeClass) {
			c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: new("near")}
		}, "", cloudprovider.IsNotReady,
			`NodeClass "default" is not ready: the placement group of spec.placementGroupSelector is not there`},
		{"the placement group can't be asked for", nil, func(c *awsv1.EC2NodeClass) {
			c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: new("near")}
		}, "ec2:DescribePlacementGroups", cloudprovider.IsUnauthorized, ""},
		{"no launch template can be made", nil, nil, "ec2:CreateLaunchTemplate", cloudprovider.IsUnauthorized, ""},
		{"the placement group can't be asked for again", func(o *aws.Options) {
			o.Network = &groupless{Network: o.Network, then: away}
		}, nil, "",
			func(err error) bool { return errors.Is(err, away) }, ""},
		{"the types are not understood", func(o *aws.Options) {
			o.Shapes = fitted{Shapes: o.Shapes, shape: away}
		}, nil, "",
			func(err error) bool { return errors.Is(err, away) }, ""},
		{"what is kept for the kubelet can't be computed", func(o *aws.Options) {
			o.Shapes = fitted{Shapes: o.Shapes, kept: away}
		}, nil, "",
			func(err error) bool { return errors.Is(err, away) }, ""},
		{"its user data can't be read", nil, func(c *awsv1.EC2NodeClass) {
			c.Spec.AMIFamily, c.Spec.UserData = new(awsv1.AMIFamilyBottlerocket), new("no TOML")
		}, "", cloudprovider.IsNotReady, `NodeClass "default" is not ready: `},
	} {
		change := x.change
		if change == nil {
			change = func(*aws.Options) {}
		}
		w, p := start(t, setup{}, change)
		if x.class != nil {
			w.edit(x.class)
		}
		if x.deny != "" {
			w.faults.Deny(x.deny)
		}
		got, err := p.Create(t.Context(), claim())
		if got != nil || err == nil || !x.is(err) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %+v, %v", x.name, got, err)
		}
		if n := w.sim.Calls()["ec2:CreateFleet"]; n != 0 {
			t.Errorf("%s: EC2 was asked %d times", x.name, n)
		}
	}
}

// A claim that leaves EC2 no choice is launched like any other.
func TestLaunchWithoutAChoice(t *testing.T) {
	_, p := start(t, setup{})
	got, err := p.Create(t.Context(), claim(in(corev1.LabelInstanceTypeStable, "m5.large"),
		in(corev1.LabelTopologyZone, "us-west-2a"), in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand)))
	if err != nil || got.Type != "m5.large" || got.Labels[corev1.LabelTopologyZone] != "us-west-2a" {
		t.Errorf("%+v, %v", got, err)
	}
}

// While EC2 may not show what the last controller has launched, it is looked at twice a second, not without end.
func TestHiddenInstanceIsLookedForWithPauses(t *testing.T) {
	inBubble(t, setup{timing: cloud.Timing{Visibility: 6 * time.Second}}, func(t *testing.T, w *world,
		p *aws.Provider) {
		c := claim()
		w.store(t, c)
		made, err := p.Create(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		next, err := w.provider()
		if err != nil {
			t.Fatal(err)
		}
		before, began := w.sim.Calls()["ec2:DescribeInstances"], time.Now()
		again, err := next.Create(t.Context(), c)
		if err != nil || again.ProviderID != made.ProviderID || len(w.alive()) != 1 {
			t.Errorf("%+v (%v), want %s; EC2 runs %d", again, err, made.ProviderID, len(w.alive()))
		}
		took, calls := time.Since(began), w.sim.Calls()["ec2:DescribeInstances"]-before
		if most := 3 + int(took/(500*time.Millisecond)); took < 500*time.Millisecond || calls > most {
			t.Errorf("it took %s and %d calls, want %d at most", took, calls, most)
		}
	})
}

// Whoever gives up while an instance may be hidden is told so.
func TestHiddenInstanceThatIsGivenUp(t *testing.T) {
	inBubble(t, setup{timing: cloud.Timing{Visibility: 6 * time.Second}}, func(t *testing.T, w *world,
		p *aws.Provider) {
		c := claim()
		w.store(t, c)
		if _, err := p.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		next, err := w.provider()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		if got, err := next.Create(ctx, c); !errors.Is(err, context.DeadlineExceeded) || got != nil {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// An instance says to whom it belongs and who pays for it, and its claim is told from which version of the class it is.
func TestTagsOfALaunch(t *testing.T) {
	w, p := start(t, setup{})
	w.edit(func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"costs": "shop"} })
	_, made, id := one(t, w, p)
	tags := w.sim.World.Tags(id)
	for key, want := range map[string]string{"costs": "shop", awsv1.ClusterTagPrefix + cluster: "owned",
		awsv1.EKSClusterNameTagKey: cluster, awsv1.NodePoolTagKey: "general", awsv1.NodeClassTagKey: "default"} {
		if tags[key] != want {
			t.Errorf("tag %s is %q, want %q", key, tags[key], want)
		}
	}
	var keys []string
	for key := range made.Annotations {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	want := []string{awsv1.HashAnnotationKey, awsv1.HashVersionAnnotationKey, awsv1.InstanceProfileAnnotationKey,
		ownership.IdentityTaggedAnnotationKey}
	slices.Sort(want)
	if !slices.Equal(keys, want) || made.Labels[v1.NodePoolLabelKey] != "" &&
		made.Labels[v1.NodePoolLabelKey] != "general" {
		t.Errorf("the claim is told %v, want %v; labels %v", keys, want, made.Labels)
	}
}
