package aws_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
)

// exhausted are the offerings that the error names, without a word why; nil if it is none about capacity.
func exhausted(err error) []cloudprovider.OfferingRef {
	none, ok := errors.AsType[*cloudprovider.NoCapacityError](err)
	if !ok {
		return nil
	}
	out := slices.Clone(none.Exhausted)
	for i := range out {
		out[i].Why = ""
	}
	return out
}

// whys are the reasons that the error gives for offerings, each once.
func whys(err error) []string {
	none, ok := errors.AsType[*cloudprovider.NoCapacityError](err)
	if !ok {
		return nil
	}
	var out []string
	for _, ref := range none.Exhausted {
		out = append(out, ref.Why)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestWhyNothingIsSold: where people can do something about it, every offering says what, in the same words.
func TestWhyNothingIsSold(t *testing.T) {
	for code, want := range map[string]string{
		"InsufficientInstanceCapacity": "", "Unsupported": "", "VcpuLimitExceeded": "Service Quotas",
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted": "create-service-linked-role",
	} {
		for _, whole := range []bool{true, false} {
			w, p := start(t, setup{})
			if whole {
				w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Code: code, Status: 400})
			} else {
				w.sim.World.SetCapacity(cloud.CapacityRule{Code: code})
			}
			_, err := p.Create(t.Context(), claim(in(v1.CapacityTypeLabelKey, v1.CapacityTypeSpot)))
			got := whys(err)
			if len(got) != 1 || (got[0] == "") != (want == "") || want != "" && !strings.HasPrefix(got[0], code+": ") ||
				!strings.Contains(got[0], want) {
				t.Errorf("%s of the whole call (%v): %q, %v", code, whole, got, err)
			}
		}
	}
	// Each zone has a subnet of its own, and all are full for one reason; who comes later is not even asked for.
	w, p := start(t, setup{})
	for _, subnet := range w.net.Private {
		w.leave(subnet, 0)
	}
	_, err := p.Create(t.Context(), claim())
	if got := whys(err); len(got) != 1 || !strings.HasPrefix(got[0], "InsufficientFreeAddressesInSubnet: ") ||
		!strings.Contains(got[0], "spec.subnetSelectorTerms") {
		t.Errorf("full subnets: %q, %v", got, err)
	}
	other := claim()
	other.Name, other.UID = "later", "later"
	_, err = p.Create(t.Context(), other)
	if got := whys(err); len(got) != 1 || !strings.Contains(got[0], "addresses") {
		t.Errorf("a moment later: %q, %v", got, err)
	}
}

// TestWhatIsCalledSoldOut looks at how much is called sold out for each kind of refusal: no more than what EC2 has not
// got, and no less.
func TestWhatIsCalledSoldOut(t *testing.T) {
	large := func(zone string) cloudprovider.OfferingRef {
		return cloudprovider.OfferingRef{Type: "m5.large", Zone: zone, CapacityType: v1.CapacityTypeOnDemand}
	}
	here := []v1.NodeSelectorRequirementWithMinValues{in(corev1.LabelInstanceTypeStable, "m5.large"),
		in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand)}
	rule := func(zone, code string) func(*world) {
		return func(w *world) {
			w.sim.World.SetCapacity(cloud.CapacityRule{Type: "m5.large", Zone: zone, Code: code})
		}
	}
	whole := func(code string) func(*world) {
		return func(w *world) {
			w.faults.Add(faults.Fault{Service: "ec2", Action: "CreateFleet", Code: code, Status: 400})
		}
	}
	for _, tc := range []struct {
		name  string
		terms []v1.NodeSelectorRequirementWithMinValues
		begin []func(*world)
		kind  func(error) bool
		want  []cloudprovider.OfferingRef
	}{
		{"what is throttled is not sold out", here, []func(*world){rule("us-west-2a", ""),
			rule("us-west-2b", "RequestLimitExceeded"), rule("us-west-2c", "")},
			cloudprovider.IsThrottled, nil},
		{"a missing permission is told", here, []func(*world){rule("us-west-2a", ""),
			rule("us-west-2b", "UnauthorizedOperation"), rule("us-west-2c", "")},
			cloudprovider.IsUnauthorized, nil},
		{"what is odd is not sold out", here, []func(*world){rule("us-west-2a", ""),
			rule("us-west-2b", "SomethingElse"), rule("us-west-2c", "")},
			cloudprovider.IsNoCapacity, []cloudprovider.OfferingRef{large("us-west-2a"), large("us-west-2c")}},
		{"no room for a prefix", append(slices.Clone(here), in(corev1.LabelTopologyZone, "us-west-2a")),
			[]func(*world){rule("", "InsufficientCidrBlocks")},
			cloudprovider.IsNoCapacity, []cloudprovider.OfferingRef{large("us-west-2a")}},
		{"no role for spot", []v1.NodeSelectorRequirementWithMinValues{in(v1.CapacityTypeLabelKey,
			v1.CapacityTypeSpot)}, []func(*world){func(w *world) {
			w.sim.World.SetCapacity(cloud.CapacityRule{Market: cloud.Spot,
				Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted"})
		}}, cloudprovider.IsNoCapacity, []cloudprovider.OfferingRef{{CapacityType: v1.CapacityTypeSpot}}},
		{"the account's quota", here, []func(*world){whole("MaxFleetCountExceeded")}, cloudprovider.IsNoCapacity,
			[]cloudprovider.OfferingRef{{CapacityType: v1.CapacityTypeOnDemand}}},
		{"the quota of a family", here, []func(*world){whole("VcpuLimitExceeded")}, cloudprovider.IsNoCapacity,
			[]cloudprovider.OfferingRef{large("us-west-2a"), large("us-west-2b"), large("us-west-2c")}},
		{"a call that makes no sense", here, []func(*world){whole("InvalidFleetConfiguration")},
			func(err error) bool { return !cloudprovider.IsNoCapacity(err) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w, p := start(t, setup{})
			for _, begin := range tc.begin {
				begin(w)
			}
			_, err := p.Create(t.Context(), claim(tc.terms...))
			if err == nil || !tc.kind(err) {
				t.Fatalf("got %T: %v", err, err)
			}
			if got := exhausted(err); !slices.Equal(got, tc.want) {
				t.Errorf("sold out are %v, want %v", got, tc.want)
			}
		})
	}
}

// TestFullPlacementGroup fills a spread group: what is short is short in the group, and nowhere else.
func TestFullPlacementGroup(t *testing.T) {
	w, p := start(t, setup{})
	id := w.sim.World.AddPlacementGroup("apart", ec2types.PlacementStrategySpread, 0, nil)
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: new("apart")}
	}); err != nil {
		t.Fatal(err)
	}
	list := claims(24, in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand))
	_, errs := launchAll(t, p, list, len(list))
	refused := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		refused++
		if strings.Contains(err.Error(), "Service Quotas") || !strings.Contains(err.Error(), "placement group") {
			t.Errorf("the advice is wrong: %v", err)
		}
		for _, ref := range exhausted(err) {
			if ref.Within != id {
				t.Fatalf("%v is called sold out beyond placement group %s", ref, id)
			}
		}
	}
	if n := len(w.alive()); n != 21 || refused != 3 {
		t.Errorf("the group has %d instances, %d claims were refused; want 21 and 3", n, refused)
	}
}

// TestUsedUpReservation sells out one of two reservations: the other is not meant.
func TestUsedUpReservation(t *testing.T) {
	w, p := start(t, setup{})
	id := w.sim.World.AddReservation(ec2types.CapacityReservation{
		InstanceType: new("m5.xlarge"), AvailabilityZone: new("us-west-2b"), TotalInstanceCount: new(int32(1)),
		InstanceMatchCriteria: ec2types.InstanceMatchCriteriaTargeted})
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: id}}
	}); err != nil {
		t.Fatal(err)
	}
	list := claims(2)
	_, errs := launchAll(t, p, list, len(list))
	want := []cloudprovider.OfferingRef{{Type: "m5.xlarge", Zone: "us-west-2b", CapacityType: v1.CapacityTypeReserved,
		Within: id}}
	if got := append(exhausted(errs[0]), exhausted(errs[1])...); !slices.Equal(got, want) {
		t.Errorf("sold out is %v, want %v", got, want)
	}
}

// TestInterruptibleReservation: EC2 sells such capacity on its own terms, and so it describes the instance.
func TestInterruptibleReservation(t *testing.T) {
	w, p := start(t, setup{})
	id := w.sim.World.AddReservation(ec2types.CapacityReservation{Interruptible: new(true),
		InstanceType: new("m5.xlarge"), AvailabilityZone: new("us-west-2b"), TotalInstanceCount: new(int32(1)),
		InstanceMatchCriteria: ec2types.InstanceMatchCriteriaTargeted})
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: id}}
	}); err != nil {
		t.Fatal(err)
	}
	got, err := p.Create(t.Context(), claim())
	if err != nil {
		t.Fatal(err)
	}
	if got.Labels[awsv1.CapacityReservationIDLabelKey] != id ||
		got.Labels[awsv1.CapacityReservationInterruptibleLabelKey] != "true" {
		t.Errorf("launched %v, want one in reservation %s", got.Labels, id)
	}
	if alive := w.alive(); len(alive) != 1 || alive[0].Market != cloud.Interruptible {
		t.Errorf("EC2 has %v", alive)
	}
}

// TestReservationOfAnotherKind has reservations that no node of the class can run in.
func TestReservationOfAnotherKind(t *testing.T) {
	w, p := start(t, setup{})
	var terms []awsv1.CapacityReservationSelectorTerm
	for _, r := range []ec2types.CapacityReservation{
		{InstancePlatform: ec2types.CapacityReservationInstancePlatformWindows},
		{Tenancy: ec2types.CapacityReservationTenancyDedicated},
	} {
		r.InstanceType, r.AvailabilityZone, r.TotalInstanceCount = new("m5.xlarge"), new("us-west-2b"), new(int32(5))
		terms = append(terms, awsv1.CapacityReservationSelectorTerm{ID: w.sim.World.AddReservation(r)})
	}
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Spec.CapacityReservationSelectorTerms = terms
	}); err != nil {
		t.Fatal(err)
	}
	got, err := p.Create(t.Context(), claim(in(awsv1.InstanceTenancyLabelKey, "default")))
	if err != nil || got.Labels[v1.CapacityTypeLabelKey] == v1.CapacityTypeReserved {
		t.Errorf("got %v (%v)", got, err)
	}
	got, err = p.Create(t.Context(), claim(in(awsv1.InstanceTenancyLabelKey, "dedicated")))
	if err != nil || got.Labels[awsv1.CapacityReservationIDLabelKey] != terms[1].ID {
		t.Errorf("who wants to be alone got %v (%v), want reservation %s", got, err, terms[1].ID)
	}
}

// TestRefusedOnTheWay sells out the cheapest: who gets another is told what was not to be had.
func TestRefusedOnTheWay(t *testing.T) {
	w, p := start(t, setup{})
	w.sim.World.SetCapacity(cloud.CapacityRule{Type: "t3*"})
	got, err := p.Create(t.Context(), claim(in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Refused) == 0 || slices.ContainsFunc(got.Refused, func(r cloudprovider.OfferingRef) bool {
		return !strings.HasPrefix(r.Type, "t3.")
	}) {
		t.Errorf("on the way to %s were refused %v, want those of t3", got.Type, got.Refused)
	}
}

// TestNewTemplatesShowLate hides new launch templates for a moment.
func TestNewTemplatesShowLate(t *testing.T) {
	w, p := start(t, setup{timing: cloud.Timing{TemplateVisibility: time.Second}})
	if _, err := p.Create(t.Context(), claim()); err != nil {
		t.Error(err)
	}
	if n := w.sim.Calls()["ec2:CreateFleet"]; n > 5 {
		t.Errorf("it took %d calls", n)
	}
}

// TestFullSubnetThatCountsWrong gives a zone two subnets. The count of the fuller one lags, so it looks best again and
// again.
func TestFullSubnetThatCountsWrong(t *testing.T) {
	w, p := start(t, setup{timing: cloud.Timing{AddressLag: time.Hour}})
	spare, err := w.sim.World.AddSubnet(cloud.SubnetSpec{VPC: w.net.VPC, Zone: "us-west-2a", CIDR: "10.0.240.0/24",
		Tags: map[string]string{"karpenter.sh/discovery": cluster}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Status.Subnets = append(c.Status.Subnets, awsv1.Subnet{ID: spare, Zone: "us-west-2a", ZoneID: "usw2-az1"})
	}); err != nil {
		t.Fatal(err)
	}
	w.sim.World.Subnets() // from here on EC2 believes that there is much room
	w.leave(w.net.Private[0], 0)
	list := claims(3, in(corev1.LabelTopologyZone, "us-west-2a"))
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	if len(got[0].Refused) > 0 {
		t.Errorf("a zone that has a spare subnet is called sold out: %v", got[0].Refused)
	}
	for _, i := range w.alive() {
		if i.Subnet != spare {
			t.Errorf("%s stands in %s, want the spare one", i.ID, i.Subnet)
		}
	}
	if n := w.sim.Calls()["ec2:CreateFleet"]; n != 2 {
		t.Errorf("it took %d calls, want 2", n)
	}
}

// TestManyTags leaves no room for tags of ours: claims are launched one by one then, and found all the same.
func TestManyTags(t *testing.T) {
	w, p := start(t, setup{})
	tags := map[string]string{}
	for n := range 44 {
		tags["tag-"+string(rune('a'+n%26))+string(rune('a'+n/26))] = "x"
	}
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) { c.Spec.Tags = tags }); err != nil {
		t.Fatal(err)
	}
	list := claims(2)
	w.store(t, list...)
	got, errs := launchAll(t, p, list, len(list))
	distinct(t, list, got, errs)
	next, err := w.provider()
	if err != nil {
		t.Fatal(err)
	}
	again, errs := launchAll(t, next, list, len(list))
	distinct(t, list, again, errs)
	if n := len(w.alive()); n != 2 {
		t.Errorf("two claims have %d instances", n)
	}
}
