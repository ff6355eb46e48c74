package aws_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/go-logr/logr/funcr"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

// unpriced knows no price on demand and can't estimate one, and no other unless spot is set.
type unpriced struct {
	offer.Prices
	spot bool
}

func (unpriced) OnDemand(string, string) (float64, bool) { return 0, false }

func (unpriced) Estimate(string, price.Kind) (float64, bool) { return 0, false }

func (u unpriced) Spot(kind, zone string) (float64, bool) {
	if !u.spot {
		return 0, false
	}
	return u.Prices.Spot(kind, zone)
}

// listener notes the last calls that were made to launch something.
type listener struct {
	aws.EC2API
	fleet *ec2.CreateFleetInput
	run   *ec2.RunInstancesInput
}

func (l *listener) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput,
	opts ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	l.fleet = in
	return l.EC2API.CreateFleet(ctx, in, opts...)
}

func (l *listener) RunInstances(ctx context.Context, in *ec2.RunInstancesInput,
	opts ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	l.run = in
	return l.EC2API.RunInstances(ctx, in, opts...)
}

// rehearse plays a launch; every call must be one that EC2 would carry out.
func (l *listener) rehearse(t *testing.T, p *aws.Provider, class *awsv1.EC2NodeClass) {
	t.Helper()
	calls, err := p.Rehearse(t.Context(), class)
	if err != nil || len(calls) != 3 {
		t.Fatalf("%d calls are rehearsed: %v", len(calls), err)
	}
	for _, c := range calls {
		if err := c.Run(t.Context()); !fault.IsDryRun(err) {
			t.Errorf("%s: %v", c.Action, err)
		}
	}
}

// TestRehearsalWithoutOnDemand: if nothing can be bought on demand a launch is rehearsed on what can be bought, on its
// own terms.
func TestRehearsalWithoutOnDemand(t *testing.T) {
	for _, tc := range []struct {
		name   string
		of     *ec2types.CapacityReservation
		spot   bool
		target ec2types.DefaultTargetCapacityType
		market ec2types.MarketType
	}{
		{"reserved", &ec2types.CapacityReservation{}, false, ec2types.DefaultTargetCapacityTypeOnDemand, ""},
		{"reserved before spot", &ec2types.CapacityReservation{}, true, ec2types.DefaultTargetCapacityTypeOnDemand, ""},
		{"alone on a machine", &ec2types.CapacityReservation{Tenancy: ec2types.CapacityReservationTenancyDedicated},
			false, ec2types.DefaultTargetCapacityTypeOnDemand, ""},
		{
			"a capacity block",
			&ec2types.CapacityReservation{ReservationType: ec2types.CapacityReservationTypeCapacityBlock}, false,
			ec2types.DefaultTargetCapacityTypeCapacityBlock,
			ec2types.MarketTypeCapacityBlock,
		},
		{"an interruptible reservation", &ec2types.CapacityReservation{Interruptible: new(true)}, false,
			ec2types.DefaultTargetCapacityTypeReservedCapacity, ec2types.MarketTypeInterruptibleCapacityReservation},
		{"spot", nil, true, ec2types.DefaultTargetCapacityTypeSpot, ec2types.MarketTypeSpot},
	} {
		t.Run(tc.name, func(t *testing.T) {
			heard := &listener{}
			w, p := start(t, setup{families: []string{"m5"}}, func(o *aws.Options) {
				o.Prices, o.ReservedCapacity = unpriced{o.Prices, tc.spot}, true
				heard.EC2API, o.EC2 = o.EC2, heard
			})
			class, id := w.class(), ""
			if r := tc.of; r != nil {
				r.InstanceType, r.AvailabilityZone, r.TotalInstanceCount = new("m5.xlarge"), new("us-west-2b"),
					new(int32(1))
				r.InstanceMatchCriteria = ec2types.InstanceMatchCriteriaTargeted
				id = w.sim.World.AddReservation(*r)
				class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: id}}
			}
			heard.rehearse(t, p, class)
			if got := heard.fleet.TargetCapacitySpecification.DefaultTargetCapacityType; got != tc.target {
				t.Errorf("the fleet buys %s, want %s", got, tc.target)
			}
			market, target := ec2types.MarketType(""), ""
			if m := heard.run.InstanceMarketOptions; m != nil {
				market = m.MarketType
			}
			if r := heard.run.CapacityReservationSpecification; r != nil && r.CapacityReservationTarget != nil {
				target = *r.CapacityReservationTarget.CapacityReservationId
			}
			if market != tc.market || target != id {
				t.Errorf("the instance is bought as %q in reservation %q, want %q in %q", market, target, tc.market, id)
			}
			if tc.of != nil && tc.of.Tenancy != "" && (heard.run.Placement == nil ||
				string(heard.run.Placement.Tenancy) != string(tc.of.Tenancy)) {
				t.Errorf("the instance stands in %v, want tenancy %s", heard.run.Placement, tc.of.Tenancy)
			}
			if len(w.alive()) != 0 {
				t.Error("a rehearsal has launched something")
			}
		})
	}
}

// TestRehearsalPrefersThePools: what a pool can only have from a reservation is rehearsed before what no pool uses; but
// a pool that buys on demand goes first.
func TestRehearsalPrefersThePools(t *testing.T) {
	heard := &listener{}
	w, p := start(t, setup{families: []string{"m5", "t3"}}, func(o *aws.Options) {
		o.Prices, o.ReservedCapacity = unpricedFamily{o.Prices, "m5."}, true
		heard.EC2API, o.EC2 = o.EC2, heard
	})
	class := w.class()
	class.Spec.CapacityReservationSelectorTerms =
		[]awsv1.CapacityReservationSelectorTerm{{ID: w.sim.World.AddReservation(ec2types.CapacityReservation{
			InstanceType: new("m5.xlarge"), AvailabilityZone: new("us-west-2b"), TotalInstanceCount: new(int32(1)),
			InstanceMatchCriteria: ec2types.InstanceMatchCriteriaTargeted})}}
	for _, step := range []struct{ name, kind string }{{"a", "m5.xlarge"}, {"b", "t3.large"}} {
		one := pool()
		one.Name = step.name
		one.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{in(
			corev1.LabelInstanceTypeStable, step.kind)}
		if err := w.kube.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		if heard.rehearse(t, p, class); string(heard.run.InstanceType) != step.kind {
			t.Errorf("with pool %s %s is rehearsed, want %s", step.name, heard.run.InstanceType, step.kind)
		}
	}
}

// unpricedFamily knows no price on demand of a family and can't estimate one.
type unpricedFamily struct {
	offer.Prices
	prefix string
}

func (u unpricedFamily) OnDemand(kind, zone string) (float64, bool) {
	if strings.HasPrefix(kind, u.prefix) {
		return 0, false
	}
	return u.Prices.OnDemand(kind, zone)
}

func (u unpricedFamily) Estimate(kind string, terms price.Kind) (float64, bool) {
	if strings.HasPrefix(kind, u.prefix) {
		return 0, false
	}
	return u.Prices.Estimate(kind, terms)
}

// TestShiftIsNoFaultOfTheClass moves traffic away from all zones of a class: a launch is rehearsed all the same.
func TestShiftIsNoFaultOfTheClass(t *testing.T) {
	heard := &listener{}
	w, p := start(t, setup{families: []string{"m5"}}, func(o *aws.Options) {
		o.Shifted = func(string) bool { return true }
		heard.EC2API, o.EC2 = o.EC2, heard
	})
	heard.rehearse(t, p, w.class())
}

// TestUsedUpReservationIsNoFaultOfTheClass: neither is that a reservation has no room left.
func TestUsedUpReservationIsNoFaultOfTheClass(t *testing.T) {
	w, p := start(t, setup{families: []string{"m5"}}, func(o *aws.Options) {
		o.Prices, o.ReservedCapacity = unpriced{o.Prices, false}, true
	})
	class := w.class()
	class.Spec.CapacityReservationSelectorTerms =
		[]awsv1.CapacityReservationSelectorTerm{{ID: w.sim.World.AddReservation(ec2types.CapacityReservation{
			InstanceType: new("m5.xlarge"), AvailabilityZone: new("us-west-2b"), TotalInstanceCount: new(int32(1)),
			AvailableInstanceCount: new(int32(0))})}}
	calls, err := p.Rehearse(t.Context(), class)
	if err != nil || len(calls) != 3 {
		t.Fatalf("%d calls are rehearsed: %v", len(calls), err)
	}
	for _, c := range calls {
		if err := c.Run(t.Context()); !fault.IsDryRun(err) && fault.Code(err) != "ReservationCapacityExceeded" {
			t.Errorf("%s: %v", c.Action, err)
		}
	}
}

// TestNothingIsSold: if nothing that the class could use is sold there is nothing to rehearse, and the log says why;
// the class is not to blame.
func TestNothingIsSold(t *testing.T) {
	for want, shifted := range map[string]bool{"have no price on demand that is known": false, "zonal shift": true} {
		w, p := start(t, setup{families: []string{"m5", "r6g"}}, func(o *aws.Options) {
			o.Prices, o.Shifted = unpriced{o.Prices, false}, func(string) bool { return shifted }
		})
		class := w.class()
		class.Status.AMIs = class.Status.AMIs[:1] // that other types are ruled out does not change it
		var lines []string
		calls, err := p.Rehearse(log.IntoContext(t.Context(), funcr.New(func(_, args string) {
			lines = append(lines, args)
		}, funcr.Options{})), class)
		if err != nil || len(calls) != 0 {
			t.Errorf("%d calls are rehearsed, and the class is told %v", len(calls), err)
		}
		if text := strings.Join(lines, "\n"); !strings.Contains(text, "no launch can be rehearsed") ||
			!strings.Contains(text, want) || strings.Contains(text, "change what") {
			t.Errorf("the log lacks %q: %s", want, text)
		}
	}
}
