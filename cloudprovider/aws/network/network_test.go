package network_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
)

func subnetIDs(t *testing.T, w *world, class *awsv1.EC2NodeClass) []string {
	t.Helper()
	found, err := w.finder.Subnets(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range found {
		ids = append(ids, s.ID)
	}
	return ids
}

func TestSubnetsByTerms(t *testing.T) {
	w := newWorld(t)
	b := w.subnet("us-west-2b", "10.0.1.0/24", "team", "blue", "tier", "private")
	a := w.subnet("us-west-2a", "10.0.2.0/24", "team", "blue-1", "tier", "public")
	c := w.subnet("us-west-2c", "10.0.3.0/24", "other", "x")
	cases := []struct {
		name  string
		terms []awsv1.SubnetSelectorTerm
		want  []string
	}{
		{"by tag", []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"team": "blue"}}}, []string{b}},
		{"by any value", []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"team": "*"}}}, []string{a, b}},
		{"by a pattern", []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"team": "blue-*"}}}, []string{a}},
		{"all tags must match", []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"team": "*", "tier": "private"}}},
			[]string{b}},
		{"by id", []awsv1.SubnetSelectorTerm{{ID: c}}, []string{c}},
		{"an id that is gone keeps none of the others", []awsv1.SubnetSelectorTerm{{ID: c},
			{ID: "subnet-0000000000000dead"}}, []string{c}},
		{"any term may match, none twice", []awsv1.SubnetSelectorTerm{{ID: b}, {Tags: map[string]string{"team": "*"}},
			{ID: c}}, []string{a, b, c}},
		{"none", []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"team": "red"}}}, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := subnetIDs(t, w, withSubnets(tc.terms...)); !slices.Equal(got, tc.want) {
				t.Errorf("found %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSubnetTellsItsRoom(t *testing.T) {
	w := newWorld(t)
	id := w.subnet("us-west-2a", "10.0.1.0/24")
	class := withSubnets(awsv1.SubnetSelectorTerm{ID: id})
	found, err := w.finder.Subnets(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	want := network.Subnet{ID: id, Zone: "us-west-2a", ZoneID: w.Zones()[0].ID, VPC: w.vpc, FreeIPs: 251,
		ReadAt: w.clock.Now()}
	if found[0] != want {
		t.Errorf("found %+v, want %+v", found[0], want)
	}
	if err := w.SetFreeAddresses(id, 3); err != nil {
		t.Fatal(err)
	}
	if found, _ = w.finder.Subnets(t.Context(), class); found[0].FreeIPs != 251 {
		t.Errorf("%d free, want the remembered answer", found[0].FreeIPs)
	}
	w.finder.ForgetSubnet(id)
	if found, _ = w.finder.Subnets(t.Context(), class); found[0].FreeIPs != 3 {
		t.Errorf("%d free after forgetting, want 3", found[0].FreeIPs)
	}
}

// Reservations are asked for together, and one by one only if one of them is gone.
func TestReservationsAreAskedForTogether(t *testing.T) {
	w := newWorld(t)
	var terms []awsv1.CapacityReservationSelectorTerm
	for range 5 {
		id := w.AddReservation(ec2types.CapacityReservation{InstanceType: new("m5.large"),
			AvailabilityZone: new("us-west-2a"), TotalInstanceCount: new(int32(1))})
		terms = append(terms, awsv1.CapacityReservationSelectorTerm{ID: id})
	}
	find := func(want, calls int) {
		t.Helper()
		before := w.calls("DescribeCapacityReservations")
		found, err := w.finder.CapacityReservations(t.Context(),
			&awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{CapacityReservationSelectorTerms: terms}})
		if err != nil || len(found) != want || w.calls("DescribeCapacityReservations")-before != calls {
			t.Errorf("found %d (%v) with %d calls, want %d with %d", len(found), err,
				w.calls("DescribeCapacityReservations")-before, want, calls)
		}
	}
	find(5, 1)
	terms = append(terms, awsv1.CapacityReservationSelectorTerm{ID: "cr-0000000000000dead"})
	find(5, 7)
}

func TestRefusalIsTold(t *testing.T) {
	w := newWorld(t)
	w.subnet("us-west-2a", "10.0.1.0/24", "team", "blue")
	class := withSubnets(awsv1.SubnetSelectorTerm{Tags: map[string]string{"team": "blue"}})
	subnetIDs(t, w, class)
	w.faults.Deny("ec2:DescribeSubnets")
	w.clock.pass(2 * time.Minute)
	_, err := w.finder.Subnets(t.Context(), class)
	if !cloudprovider.IsUnauthorized(err) || !strings.Contains(err.Error(), "UnauthorizedOperation") ||
		!strings.Contains(err.Error(), "spec.subnetSelectorTerms") {
		t.Errorf("error is %v, want EC2's code and the field", err)
	}
}

func TestSecurityGroupsByTerms(t *testing.T) {
	w := newWorld(t)
	nodes, pods := w.group("nodes", "team", "blue"), w.group("pods", "team", "blue")
	other := w.group("other")
	cases := []struct {
		name  string
		terms []awsv1.SecurityGroupSelectorTerm
		want  []string
	}{
		{"by tag", []awsv1.SecurityGroupSelectorTerm{{Tags: map[string]string{"team": "blue"}}}, []string{nodes, pods}},
		{"by name", []awsv1.SecurityGroupSelectorTerm{{Name: "nodes"}}, []string{nodes}},
		{"by several names and an id", []awsv1.SecurityGroupSelectorTerm{{Name: "nodes"}, {Name: "pods"}, {ID: other}},
			[]string{nodes, pods, other}},
		{"by a pattern", []awsv1.SecurityGroupSelectorTerm{{Name: "*o*"}}, []string{nodes, pods, other}},
		{"by an id that is gone", []awsv1.SecurityGroupSelectorTerm{{ID: "sg-0000000000000dead"}}, nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			found, err := w.finder.SecurityGroups(t.Context(), withGroups(tc.terms...))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range found {
				got = append(got, g.ID)
			}
			slices.Sort(tc.want)
			if !slices.Equal(got, tc.want) {
				t.Errorf("found %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCapacityReservations(t *testing.T) {
	w := newWorld(t)
	tags := []ec2types.Tag{{Key: new("team"), Value: new("blue")}}
	end := w.clock.Now().Add(41 * time.Minute)
	open := w.AddReservation(ec2types.CapacityReservation{InstanceType: new("m5.large"),
		AvailabilityZone: new("us-west-2a"), TotalInstanceCount: new(int32(3)), Tags: tags})
	block := w.AddReservation(ec2types.CapacityReservation{InstanceType: new("p5.48xlarge"),
		AvailabilityZone: new("us-west-2b"), TotalInstanceCount: new(int32(1)), Tags: tags,
		InstanceMatchCriteria: "targeted", ReservationType: "capacity-block", EndDate: &end,
		OwnerId: new("210987654321")})
	over := w.AddReservation(ec2types.CapacityReservation{InstanceType: new("m5.large"),
		AvailabilityZone: new("us-west-2a"), TotalInstanceCount: new(int32(1)), Tags: tags})
	if err := w.CancelReservation(over); err != nil {
		t.Fatal(err)
	}
	find := func(terms ...awsv1.CapacityReservationSelectorTerm) []network.Reservation {
		t.Helper()
		found, err := w.finder.CapacityReservations(t.Context(),
			&awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{CapacityReservationSelectorTerms: terms}})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := find(); got != nil {
		t.Errorf("no terms find %v", got)
	}
	if got := find(awsv1.CapacityReservationSelectorTerm{Tags: map[string]string{"team": "blue"}}); len(got) != 2 {
		t.Errorf("found %+v, want the two that are active", got)
	}
	if got := find(awsv1.CapacityReservationSelectorTerm{Tags: map[string]string{"team": "*"},
		OwnerID: "210987654321"}); len(got) != 1 || got[0].ID != block {
		t.Errorf("found %+v by owner, want %s", got, block)
	}
	if got := find(awsv1.CapacityReservationSelectorTerm{InstanceMatchCriteria: "open"}); len(got) != 1 ||
		got[0].ID != open || got[0].Available != 3 {
		t.Errorf("found %+v by criteria, want %s with 3 free", got, open)
	}
	got := find(awsv1.CapacityReservationSelectorTerm{ID: block},
		awsv1.CapacityReservationSelectorTerm{ID: "cr-0000000000000dead"},
		awsv1.CapacityReservationSelectorTerm{ID: over})
	if len(got) != 1 || got[0].ID != block {
		t.Fatalf("found %+v by id, want %s", got, block)
	}
	status := got[0].Status(w.clock.Now())
	if status.State != awsv1.CapacityReservationStateActive ||
		status.ReservationType != awsv1.CapacityReservationTypeCapacityBlock || status.EndTime.Unix() != end.Unix() {
		t.Errorf("status is %+v", status)
	}
	if got[0].State(w.clock.Now().Add(time.Minute)) != awsv1.CapacityReservationStateExpiring {
		t.Error("a capacity block is not expiring 40 minutes before its end")
	}
}

func TestPlacementGroup(t *testing.T) {
	w := newWorld(t)
	id := w.AddPlacementGroup("mine", ec2types.PlacementStrategyPartition, 5, nil)
	find := func(s *awsv1.PlacementGroupSelector) *network.PlacementGroup {
		t.Helper()
		found, err := w.finder.PlacementGroup(t.Context(),
			&awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{PlacementGroupSelector: s}})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := network.PlacementGroup{ID: id, Name: "mine", Strategy: "partition", Partitions: 5}
	if got := find(&awsv1.PlacementGroupSelector{Name: new("mine")}); got == nil || *got != want {
		t.Errorf("found %+v by name, want %+v", got, want)
	}
	if got := find(&awsv1.PlacementGroupSelector{ID: &id}); got == nil || *got != want {
		t.Errorf("found %+v by id, want %+v", got, want)
	}
	for _, s := range []*awsv1.PlacementGroupSelector{nil, {Name: new("yours")}, {ID: new("pg-0000000000000dead")}} {
		if got := find(s); got != nil {
			t.Errorf("%+v finds %+v, want none", s, got)
		}
	}
}
