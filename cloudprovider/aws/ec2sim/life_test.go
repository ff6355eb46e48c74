package ec2sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// TestLife follows an instance from its launch until EC2 has forgotten it.
func TestLife(t *testing.T) {
	b := newBench(t)
	b.template()
	id := b.launch(onDemand)
	state := func() string { return string(b.describe(id).State.Name) }
	var seen []string
	look := func(d time.Duration) { b.clock.step(d); seen = append(seen, state()) }
	look(0)
	look(9 * time.Second)
	look(time.Second)
	out, err := b.client.TerminateInstances(b.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{id}})
	if err != nil || out.TerminatingInstances[0].PreviousState.Name != ec2types.InstanceStateNameRunning ||
		*out.TerminatingInstances[0].CurrentState.Code != 32 {
		t.Fatalf("terminating gave %+v, %v", out, err)
	}
	look(0)
	look(20 * time.Second)
	if got := strings.Join(seen, " "); got != "pending pending running shutting-down terminated" {
		t.Errorf("saw %s", got)
	}
	if i := b.describe(id); i.PrivateIpAddress != nil || *i.StateReason.Code != "Client.UserInitiatedShutdown" {
		t.Errorf("a terminated instance has %v and ended by %s", i.PrivateIpAddress, *i.StateReason.Code)
	}
	again, err := b.client.TerminateInstances(b.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{id}})
	if err != nil || again.TerminatingInstances[0].CurrentState.Name != ec2types.InstanceStateNameTerminated {
		t.Errorf("terminating twice gave %+v, %v", again, err)
	}
	b.clock.step(time.Hour)
	_, err = b.client.DescribeInstances(b.ctx, &sdk.DescribeInstancesInput{InstanceIds: []string{id}})
	b.wantCode(err, "InvalidInstanceID.NotFound")
}

// TestAddressesComeBack launches into a small subnet again and again.
func TestAddressesComeBack(t *testing.T) {
	b := newBench(t)
	b.template()
	subnet, err := b.world.AddSubnet(cloud.SubnetSpec{VPC: b.net.VPC, Zone: "us-west-2a", CIDR: "10.0.255.0/28"})
	if err != nil {
		t.Fatal(err)
	}
	o := b.override("m5.large", 0)
	o.SubnetId = aws.String(subnet)
	for round := range 3 {
		out := b.mustFleet(b.fleet(onDemand, 12, o))
		if got := fleetText(out); got != "11×m5.large/a !InsufficientFreeAddressesInSubnet:m5.large/a" {
			t.Fatalf("round %d: got %s", round, got)
		}
		if free := b.freeAddresses(subnet); free != 0 {
			t.Errorf("round %d: %d addresses are free", round, free)
		}
		if _, err := b.world.Terminate(out.Instances[0].InstanceIds); err != nil {
			t.Fatal(err)
		}
		b.clock.step(time.Minute)
	}
	if free := b.freeAddresses(subnet); free != 11 {
		t.Errorf("%d addresses came back", free)
	}
}

func (b *bench) freeAddresses(subnet string) int32 {
	b.t.Helper()
	out, err := b.client.DescribeSubnets(b.ctx, &sdk.DescribeSubnetsInput{SubnetIds: []string{subnet}})
	if err != nil {
		b.t.Fatal(err)
	}
	return *out.Subnets[0].AvailableIpAddressCount
}

// TestPrefixes gives an instance whole blocks of addresses and takes them back.
func TestPrefixes(t *testing.T) {
	b := newBench(t)
	b.template(func(d *ec2types.RequestLaunchTemplateData) {
		d.SecurityGroupIds = nil
		d.NetworkInterfaces = []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			{DeviceIndex: aws.Int32(0), Groups: []string{b.net.SecurityGroup}, Ipv4PrefixCount: aws.Int32(2)}}
	})
	before := b.freeAddresses(b.net.Private[0])
	id := b.launch(onDemand)
	if taken := before - b.freeAddresses(b.net.Private[0]); taken != 33 {
		t.Errorf("%d addresses were taken", taken)
	}
	if i := b.describe(id); len(i.NetworkInterfaces[0].Ipv4Prefixes) != 2 ||
		*i.NetworkInterfaces[0].Groups[0].GroupId != b.net.SecurityGroup {
		t.Errorf("the interface is %+v", i.NetworkInterfaces[0])
	}
	if _, err := b.world.Terminate([]string{id}); err != nil {
		t.Fatal(err)
	}
	b.clock.step(time.Minute)
	if after := b.freeAddresses(b.net.Private[0]); after != before {
		t.Errorf("%d addresses are free, it were %d", after, before)
	}
}

// TestEventualConsistency hides a new instance for a while from everybody.
func TestEventualConsistency(t *testing.T) {
	b := newBench(t, func(o *ec2sim.Options) {
		o.Config.Timing.Visibility = 5 * time.Second
		o.Config.Timing.TemplateVisibility = time.Second
	})
	b.template()
	_, err := b.client.CreateFleet(b.ctx, b.fleet(onDemand, 1, b.override("m5.large", 0)))
	b.wantCode(err, "InvalidLaunchTemplateName.NotFoundException")
	b.clock.step(time.Second)
	id := b.launch(onDemand)
	ids := []string{id}
	for range 2 {
		_, err = b.client.DescribeInstances(b.ctx, &sdk.DescribeInstancesInput{InstanceIds: ids})
		b.wantCode(err, "InvalidInstanceID.NotFound")
		_, err = b.client.CreateTags(b.ctx, &sdk.CreateTagsInput{Resources: ids,
			Tags: []ec2types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
		b.wantCode(err, "InvalidInstanceID.NotFound")
		_, err = b.client.TerminateInstances(b.ctx, &sdk.TerminateInstancesInput{InstanceIds: ids})
		b.wantCode(err, "InvalidInstanceID.NotFound")
		all, err := b.client.DescribeInstances(b.ctx, &sdk.DescribeInstancesInput{})
		if err != nil || len(all.Reservations) != 0 {
			t.Errorf("the list has %d reservations, %v", len(all.Reservations), err)
		}
		b.clock.step(2 * time.Second)
	}
	b.clock.step(time.Second)
	b.describe(id)
}

// TestStateLag shows an old state for a while, in lists and in filters; the call that changed it knows better.
func TestStateLag(t *testing.T) {
	b := newBench(t, func(o *ec2sim.Options) { o.Config.Timing.StateLag = 3 * time.Second })
	b.template()
	id := b.launch(onDemand)
	b.clock.step(time.Minute)
	out, err := b.client.TerminateInstances(b.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{id}})
	if err != nil || out.TerminatingInstances[0].CurrentState.Name != ec2types.InstanceStateNameShuttingDown {
		t.Fatalf("terminating gave %+v, %v", out, err)
	}
	b.clock.step(2 * time.Second)
	running, err := b.client.DescribeInstances(b.ctx,
		&sdk.DescribeInstancesInput{Filters: []ec2types.Filter{filter("instance-state-name", "running")}})
	if err != nil || len(running.Reservations) != 1 {
		t.Errorf("two seconds later %+v runs, %v", running, err)
	}
	b.clock.step(time.Second)
	if got := b.describe(id).State.Name; got != ec2types.InstanceStateNameShuttingDown {
		t.Errorf("three seconds later it is %s", got)
	}
}

// TestInterruption warns a spot instance, and ends it two minutes later.
func TestInterruption(t *testing.T) {
	b := newBench(t)
	b.template()
	var heard []string
	b.world.OnChange(func(c cloud.Change) {
		heard = append(heard, fmt.Sprintf("%s@%s:%s", c.Kind, c.At.Format("04:05"), c.Instance.State))
	})
	id := b.launch(spot)
	b.clock.step(time.Minute)
	if err := b.world.InterruptSpot(id); err != nil {
		t.Fatal(err)
	}
	b.clock.step(119 * time.Second)
	if got := b.describe(id).State.Name; got != ec2types.InstanceStateNameRunning {
		t.Errorf("it is %s before the two minutes are over", got)
	}
	b.clock.step(time.Minute)
	i := b.describe(id)
	if i.State.Name != ec2types.InstanceStateNameTerminated || *i.StateReason.Code != "Server.SpotInstanceTermination" {
		t.Errorf("it is %s by %s", i.State.Name, *i.StateReason.Code)
	}
	want := "state-changed@00:00:pending state-changed@00:10:running spot-warned@01:00:running " +
		"state-changed@03:00:shutting-down state-changed@03:20:terminated"
	if got := strings.Join(heard, " "); got != want {
		t.Errorf("heard %s\nwant  %s", got, want)
	}
	if err := b.world.InterruptSpot(b.launch(onDemand)); err == nil {
		t.Error("an on-demand instance was interrupted")
	}
}

// TestHooksMayCall lets a hook call the world, which makes the next change, and keeps the order.
func TestHooksMayCall(t *testing.T) {
	b := newBench(t)
	b.template()
	var order []string
	b.world.OnChange(func(c cloud.Change) {
		order = append(order, string(c.Instance.State))
		if c.Instance.State == cloud.Pending {
			if _, err := b.world.Terminate([]string{c.Instance.ID}); err != nil {
				t.Error(err)
			}
		}
	})
	b.launch(onDemand)
	if got := strings.Join(order, " "); got != "pending shutting-down" {
		t.Errorf("heard %s", got)
	}
}

// TestStatus shows dead machines and planned events, and nothing of machines that don't run.
func TestStatus(t *testing.T) {
	b := newBench(t)
	b.template()
	healthy, dead, planned := b.launch(onDemand), b.launch(onDemand), b.launch(spot)
	if got := b.statuses(); got != "" {
		t.Errorf("pending machines have statuses: %s", got)
	}
	b.clock.step(time.Minute)
	if err := b.world.Kill(dead); err != nil {
		t.Fatal(err)
	}
	if err := b.world.ScheduleEvent(planned, "instance-retirement", b.clock.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := b.statuses(filter("system-status.status", "impaired")); got != dead+"=impaired/impaired/" {
		t.Errorf("impaired: %s", got)
	}
	if got := b.statuses(filter("event.code", "instance-*")); got != planned+"=ok/ok/instance-retirement" {
		t.Errorf("planned: %s", got)
	}
	if got := b.statuses(filter("instance-status.reachability", "passed")); !strings.Contains(got, healthy) ||
		strings.Contains(got, dead) {
		t.Errorf("reachable: %s", got)
	}
	if err := b.world.Impair(dead, false, false); err != nil {
		t.Fatal(err)
	}
	if got := b.statuses(filter("instance-status.status", "impaired")); got != "" {
		t.Errorf("still impaired: %s", got)
	}
}

func (b *bench) statuses(filters ...ec2types.Filter) string {
	b.t.Helper()
	out, err := b.client.DescribeInstanceStatus(b.ctx, &sdk.DescribeInstanceStatusInput{Filters: filters})
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for _, s := range out.InstanceStatuses {
		events := ""
		for _, e := range s.Events {
			events += string(e.Code)
		}
		all = append(all, fmt.Sprintf("%s=%s/%s/%s", *s.InstanceId, s.InstanceStatus.Status,
			s.SystemStatus.Status, events))
	}
	return strings.Join(all, " ")
}

// TestRunInstances launches with and without a template, all or nothing.
func TestRunInstances(t *testing.T) {
	b := newBench(t)
	b.template()
	in := func(least, most int32) *sdk.RunInstancesInput {
		return &sdk.RunInstancesInput{MinCount: aws.Int32(least), MaxCount: aws.Int32(most), InstanceType: "m5.large",
			SubnetId:       aws.String(b.net.Private[0]),
			LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(templateName)}}
	}
	out, err := b.client.RunInstances(b.ctx, in(1, 3))
	if err != nil || len(out.Instances) != 3 || *out.Instances[2].AmiLaunchIndex != 2 {
		t.Fatalf("got %+v, %v", out, err)
	}
	if got := tagOf(out.Instances[0].Tags, "from"); got != "template" {
		t.Errorf("the template's tag is %q", got)
	}
	b.capacity("m5.large", "us-west-2a", 5)
	if out, err = b.client.RunInstances(b.ctx, in(1, 9)); err != nil || len(out.Instances) != 2 {
		t.Errorf("nine or less gave %d, %v", len(out.Instances), err)
	}
	b.capacity("m5.large", "us-west-2a", 7)
	_, err = b.client.RunInstances(b.ctx, in(3, 3))
	b.wantCode(err, "InsufficientInstanceCapacity")
	if n := len(b.world.Instances()); n != 5 {
		t.Errorf("%d instances are there, though three were not to be had", n)
	}
	dry := in(1, 1)
	dry.DryRun = aws.Bool(true)
	_, err = b.client.RunInstances(b.ctx, dry)
	b.wantCode(err, "DryRunOperation")
	dry.ImageId = aws.String("ami-0123456789abcdef0")
	_, err = b.client.RunInstances(b.ctx, dry)
	b.wantCode(err, "InvalidAMIID.NotFound")
	big := in(1, 1)
	big.UserData = aws.String(strings.Repeat("QUJD", 6000))
	_, err = b.client.RunInstances(b.ctx, big)
	b.wantCode(err, "InvalidParameterValue")
}
