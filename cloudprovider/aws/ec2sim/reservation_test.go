package ec2sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// TestTargetedReservation launches into a named reservation until it is full, and again when there is room.
func TestTargetedReservation(t *testing.T) {
	b := newBench(t)
	id := b.world.AddReservation(ec2types.CapacityReservation{
		InstanceType: aws.String("m5.large"), AvailabilityZone: aws.String("us-west-2a"),
		TotalInstanceCount:    aws.Int32(2),
		InstanceMatchCriteria: ec2types.InstanceMatchCriteriaTargeted, Tags: []ec2types.Tag{{Key: aws.String("team"),
			Value: aws.String("ml")}},
	})
	b.capacity("*", "*", 0) // a reservation holds what nobody else can have
	b.template(func(d *ec2types.RequestLaunchTemplateData) {
		d.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: aws.String(id)}}
	})
	out := b.mustFleet(b.fleet(onDemand, 3, b.override("m5.large", 0)))
	if got := fleetText(out); got != "2×m5.large/a !ReservationCapacityExceeded:m5.large/a" {
		t.Fatalf("got %s", got)
	}
	if i := b.describe(out.Instances[0].InstanceIds[0]); aws.ToString(i.CapacityReservationId) != id {
		t.Errorf("the instance runs in reservation %q", aws.ToString(i.CapacityReservationId))
	}
	if got := b.available(id); got != 0 {
		t.Errorf("%d are still available", got)
	}
	if _, err := b.world.Terminate(out.Instances[0].InstanceIds[:1]); err != nil {
		t.Fatal(err)
	}
	b.clock.step(time.Minute)
	if got := b.available(id); got != 1 {
		t.Errorf("%d are available after one ended", got)
	}
	if got := fleetText(b.mustFleet(b.fleet(onDemand, 1, b.override("m5.xlarge",
		0)))); got != "!InvalidParameterCombination:m5.xlarge/a" {
		t.Errorf("another type got %s", got)
	}
}

// available asks for a reservation by its tag.
func (b *bench) available(id string) int32 {
	b.t.Helper()
	out, err := b.client.DescribeCapacityReservations(b.ctx, &sdk.DescribeCapacityReservationsInput{
		Filters: []ec2types.Filter{filter("tag:team", "ml"), filter("state", "active")}})
	if err != nil || len(out.CapacityReservations) != 1 || *out.CapacityReservations[0].CapacityReservationId != id {
		b.t.Fatalf("describing the reservation gave %+v, %v", out, err)
	}
	return *out.CapacityReservations[0].AvailableInstanceCount
}

func filter(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: aws.String(name), Values: values}
}

// TestOpenReservation is used by instances that don't ask for it, except by those that say none.
func TestOpenReservation(t *testing.T) {
	b := newBench(t)
	b.template()
	id := b.world.AddReservation(ec2types.CapacityReservation{InstanceType: aws.String("m5.large"),
		AvailabilityZone: aws.String("us-west-2b"), TotalInstanceCount: aws.Int32(1)})
	in := b.fleet(onDemand, 2, b.override("m5.large", 0), b.override("m5.large", 1))
	in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{
		CapacityReservationOptions: &ec2types.CapacityReservationOptionsRequest{
			UsageStrategy: ec2types.FleetCapacityReservationUsageStrategyUseCapacityReservationsFirst},
	}
	out := b.mustFleet(in)
	if got := fleetText(out); got != "2×m5.large/b" {
		t.Fatalf("got %s", got)
	}
	inside := 0
	for _, i := range b.world.Instances() {
		if i.CapacityReservation == id {
			inside++
		}
	}
	if inside != 1 {
		t.Errorf("%d instances are in the reservation", inside)
	}
}

// TestReservationEnds lets a reservation expire and another be taken back.
func TestReservationEnds(t *testing.T) {
	b := newBench(t)
	b.template()
	end := b.clock.Now().Add(time.Hour)
	b.world.AddReservation(ec2types.CapacityReservation{InstanceType: aws.String("m5.large"),
		AvailabilityZone: aws.String("us-west-2a"), TotalInstanceCount: aws.Int32(1), EndDate: &end})
	id := b.launch(onDemand)
	var warned []string
	b.world.OnChange(func(c cloud.Change) { warned = append(warned, fmt.Sprintf("%s %s", c.Kind, c.Instance.State)) })
	i, _ := b.world.Instance(id)
	if err := b.world.InterruptReservation(i.CapacityReservation); err != nil {
		t.Fatal(err)
	}
	b.clock.step(2 * time.Minute)
	b.world.Tick()
	if got := fmt.Sprint(warned); got != "[reservation-warned pending state-changed running state-changed "+
		"shutting-down]" {
		t.Errorf("heard %s", got)
	}
	b.clock.step(2 * time.Hour)
	out, err := b.client.DescribeCapacityReservations(b.ctx, &sdk.DescribeCapacityReservationsInput{})
	if err != nil || out.CapacityReservations[0].State != ec2types.CapacityReservationStateExpired {
		t.Errorf("the reservation is %s, %v", out.CapacityReservations[0].State, err)
	}
}

// TestPlacementGroups spreads, partitions and gathers.
func TestPlacementGroups(t *testing.T) {
	for name, c := range map[string]struct {
		strategy ec2types.PlacementStrategy
		n        int
		zones    []int
		want     string
	}{
		"seven of a spread group in a zone": {ec2types.PlacementStrategySpread, 8, []int{0}, "7×m5.large/a " +
			"!InstanceLimitExceeded:m5.large/a"},
		"the rest in the next zone": {ec2types.PlacementStrategySpread, 8, []int{0, 1},
			"7×m5.large/a 1×m5.large/b !InstanceLimitExceeded:m5.large/a"},
		"a cluster group has no limit": {ec2types.PlacementStrategyCluster, 9, []int{0}, "9×m5.large/a"},
		"partitions":                   {ec2types.PlacementStrategyPartition, 5, []int{0}, "5×m5.large/a"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			group := b.world.AddPlacementGroup("mine", c.strategy, 3, nil)
			b.template(func(d *ec2types.RequestLaunchTemplateData) {
				d.Placement = &ec2types.LaunchTemplatePlacementRequest{GroupName: aws.String("mine")}
			})
			var overrides []ec2types.FleetLaunchTemplateOverridesRequest
			for _, zone := range c.zones {
				overrides = append(overrides, b.override("m5.large", zone))
			}
			out := b.mustFleet(b.fleet(onDemand, c.n, overrides...))
			if got := fleetText(out); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			perPartition := map[int32]int{}
			for _, i := range b.world.Instances() {
				perPartition[i.Partition]++
			}
			if c.strategy == ec2types.PlacementStrategyPartition && fmt.Sprint(perPartition) != "map[1:2 2:2 3:1]" {
				t.Errorf("the partitions hold %v", perPartition)
			}
			if i := b.describe(out.Instances[0].InstanceIds[0]); aws.ToString(i.Placement.GroupId) != group ||
				aws.ToString(i.Placement.GroupName) != "mine" {
				t.Errorf("the instance is in %+v", i.Placement)
			}
		})
	}
}

// TestClusterGroupStaysInItsZone refuses a second zone.
func TestClusterGroupStaysInItsZone(t *testing.T) {
	b := newBench(t)
	b.world.AddPlacementGroup("mine", ec2types.PlacementStrategyCluster, 0, map[string]string{"team": "hpc"})
	b.template(func(d *ec2types.RequestLaunchTemplateData) {
		d.Placement = &ec2types.LaunchTemplatePlacementRequest{GroupName: aws.String("mine")}
	})
	b.launch(onDemand)
	if got := fleetText(b.mustFleet(b.fleet(onDemand, 1,
		b.override("m5.large", 1)))); got != "!InsufficientInstanceCapacity:m5.large/b" {
		t.Errorf("got %s", got)
	}
	out, err := b.client.DescribePlacementGroups(b.ctx, &sdk.DescribePlacementGroupsInput{GroupNames: []string{"mine"},
		Filters: []ec2types.Filter{filter("tag:team", "h*")}})
	if err != nil || len(out.PlacementGroups) != 1 {
		t.Errorf("describing gave %+v, %v", out, err)
	}
	_, err = b.client.DescribePlacementGroups(b.ctx, &sdk.DescribePlacementGroupsInput{GroupIds: []string{"pg-none"}})
	b.wantCode(err, "InvalidPlacementGroup.Unknown")
}
