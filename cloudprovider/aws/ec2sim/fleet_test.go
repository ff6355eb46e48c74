package ec2sim_test

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

const (
	onDemand = ec2types.DefaultTargetCapacityTypeOnDemand
	spot     = ec2types.DefaultTargetCapacityTypeSpot
)

// TestFleet tells what a fleet gets, by what there is to get.
func TestFleet(t *testing.T) {
	mixed := func(b *bench) []ec2types.FleetLaunchTemplateOverridesRequest {
		return []ec2types.FleetLaunchTemplateOverridesRequest{b.override("m5.xlarge", 0), b.override("m5.large", 0),
			b.override("m5.large", 1)}
	}
	for name, c := range map[string]struct {
		market ec2types.DefaultTargetCapacityType
		n      int
		given  func(b *bench)
		change func(in *sdk.CreateFleetInput)
		want   string
	}{
		"the cheapest on-demand pool": {market: onDemand, n: 3, want: "3×m5.large/a"},
		"the cheapest spot pool": {market: spot, n: 2, given: func(b *bench) {
			b.world.SetSpotPrice("m5.large", "us-west-2b", 0.001)
		}, want: "2×m5.large/b"},
		"a dear spot pool is passed over": {market: spot, n: 1, given: func(b *bench) {
			b.prices(0.5, 0.4, 0.3)
		}, want: "1×m5.large/b"},
		"the next pool when one is empty": {market: onDemand, n: 2, given: func(b *bench) {
			b.capacity("m5.large", "us-west-2a", 0)
		},
			want: "2×m5.large/b !InsufficientInstanceCapacity:m5.large/a"},
		"partly from the next pool": {market: onDemand, n: 5, given: func(b *bench) {
			b.capacity("m5.large", "us-west-2a", 2)
		},
			want: "2×m5.large/a 3×m5.large/b !InsufficientInstanceCapacity:m5.large/a"},
		"less than asked for": {market: onDemand, n: 5, given: func(b *bench) {
			b.capacity("m5.large", "*", 1)
			b.capacity("m5.xlarge", "*", 0)
		},
			want: "1×m5.large/a 1×m5.large/b !InsufficientInstanceCapacity:m5.large/a " +
				"!InsufficientInstanceCapacity:m5.large/b !InsufficientInstanceCapacity:m5.xlarge/a"},
		"nothing": {market: onDemand, n: 1, given: func(b *bench) { b.capacity("*", "*", 0) },
			want: "!InsufficientInstanceCapacity:m5.large/a !InsufficientInstanceCapacity:m5.large/b " +
				"!InsufficientInstanceCapacity:m5.xlarge/a"},
		"nothing rather than less than the minimum": {market: onDemand, n: 5,
			given: func(b *bench) { b.capacity("m5.large", "*", 1); b.capacity("m5.xlarge", "*", 0) },
			change: func(in *sdk.CreateFleetInput) {
				in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{MinTargetCapacity: aws.Int32(3)}
			},
			want: "!InsufficientInstanceCapacity:m5.large/a !InsufficientInstanceCapacity:m5.large/b " +
				"!InsufficientInstanceCapacity:m5.xlarge/a"},
		"spot looks for room before price": {market: spot, n: 2, given: func(b *bench) {
			b.prices(0.3, 0.1, 0.2)
			b.capacity("m5.large", "us-west-2a", 1)
		},
			want: "2×m5.large/b"},
		"spot by room alone": {market: spot, n: 1, given: func(b *bench) {
			b.prices(0.3, 0.1, 0.2)
			b.capacity("m5.large", "*", 7)
		},
			change: strategy(ec2types.SpotAllocationStrategyCapacityOptimized), want: "1×m5.xlarge/a"},
		"spot by price alone": {market: spot, n: 3, given: func(b *bench) {
			b.prices(0.3, 0.1, 0.2)
			b.capacity("m5.large", "us-west-2a", 1)
		},
			change: strategy(ec2types.SpotAllocationStrategyLowestPrice), want: "1×m5.large/a 2×m5.large/b " +
				"!InsufficientInstanceCapacity:m5.large/a"},
		"spot all around": {market: spot, n: 4, given: func(b *bench) { b.prices(0.3, 0.1, 0.2) },
			change: strategy(ec2types.SpotAllocationStrategyDiversified), want: "2×m5.large/a 1×m5.large/b " +
				"1×m5.xlarge/a"},
		"spot by priority": {market: spot, n: 1, given: func(b *bench) { b.prices(0.3, 0.1, 0.2) },
			change: priorities(ec2types.SpotAllocationStrategyCapacityOptimizedPrioritized, 2, 3, 1),
			want:   "1×m5.large/b"},
		"on-demand by priority": {market: onDemand, n: 1, change: priorities("", 1, 2, 3), want: "1×m5.xlarge/a"},
		"a full account": {market: spot, n: 2, given: func(b *bench) {
			b.world.SetQuotas(cloud.Quotas{SpotInstances: 1})
			b.prices(0.1, 0.2, 0.3)
		}, want: "1×m5.xlarge/a !MaxSpotInstanceCountExceeded:m5.xlarge/a !MaxSpotInstanceCountExceeded:m5.large/a " +
			"!MaxSpotInstanceCountExceeded:m5.large/b"},
		"too few virtual CPUs": {market: onDemand, n: 2, given: func(b *bench) {
			b.world.SetQuotas(cloud.Quotas{OnDemandVCPUs: 3})
		}, want: "1×m5.large/a !VcpuLimitExceeded:m5.large/a !VcpuLimitExceeded:m5.large/b " +
			"!VcpuLimitExceeded:m5.xlarge/a"},
		"a full subnet": {market: onDemand, n: 3, given: func(b *bench) {
			b.world.SetFreeAddresses(b.net.Private[0], 2)
		},
			want: "2×m5.large/a 1×m5.large/b !InsufficientFreeAddressesInSubnet:m5.large/a"},
		"a pool that fails as told": {market: spot, n: 1, given: func(b *bench) {
			b.world.SetCapacity(cloud.CapacityRule{Market: cloud.Spot,
				Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted"})
		}, want: "!AuthFailure.ServiceLinkedRoleCreationNotPermitted:m5.large/a " +
			"!AuthFailure.ServiceLinkedRoleCreationNotPermitted:m5.large/b " +
			"!AuthFailure.ServiceLinkedRoleCreationNotPermitted:m5.xlarge/a"},
		"heavier instances": {market: onDemand, n: 3, change: func(in *sdk.CreateFleetInput) {
			in.LaunchTemplateConfigs[0].Overrides[0].WeightedCapacity = aws.Float64(4)
		}, want: "1×m5.xlarge/a"},
		"both markets": {market: onDemand, n: 3, change: func(in *sdk.CreateFleetInput) {
			in.TargetCapacitySpecification.SpotTargetCapacity = aws.Int32(1)
		},
			given: func(b *bench) { b.prices(0.3, 0.1, 0.2) }, want: "2×m5.large/a 1×m5.large/a"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.template()
			if c.given != nil {
				c.given(b)
			}
			in := b.fleet(c.market, c.n, mixed(b)...)
			if c.change != nil {
				c.change(in)
			}
			out := b.mustFleet(in)
			got := fleetText(out)
			if c.market == spot && len(out.Instances) == 0 {
				// Which of equal pools is tried first is nobody's promise.
				sortErrors(out)
				got = fleetText(out)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func sortErrors(out *sdk.CreateFleetOutput) {
	slices.SortFunc(out.Errors, func(a, b ec2types.CreateFleetError) int {
		x, y := *a.LaunchTemplateAndOverrides.Overrides, *b.LaunchTemplateAndOverrides.Overrides
		if string(x.InstanceType)+*x.AvailabilityZone < string(y.InstanceType)+*y.AvailabilityZone {
			return -1
		}
		return 1
	})
}

func strategy(s ec2types.SpotAllocationStrategy) func(*sdk.CreateFleetInput) {
	return func(in *sdk.CreateFleetInput) { in.SpotOptions.AllocationStrategy = s }
}

// priorities numbers the overrides and lets the market go by them.
func priorities(s ec2types.SpotAllocationStrategy, numbers ...float64) func(*sdk.CreateFleetInput) {
	return func(in *sdk.CreateFleetInput) {
		for i, n := range numbers {
			in.LaunchTemplateConfigs[0].Overrides[i].Priority = aws.Float64(n)
		}
		if s != "" {
			in.SpotOptions.AllocationStrategy = s
			return
		}
		in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{
			AllocationStrategy: ec2types.FleetOnDemandAllocationStrategyPrioritized,
		}
	}
}

// prices sets the spot prices of m5.xlarge in a, m5.large in a and m5.large in b.
func (b *bench) prices(xlargeA, largeA, largeB float64) {
	b.world.SetSpotPrice("m5.xlarge", "us-west-2a", xlargeA)
	b.world.SetSpotPrice("m5.large", "us-west-2a", largeA)
	b.world.SetSpotPrice("m5.large", "us-west-2b", largeB)
}

func (b *bench) capacity(kind, zone string, total int) {
	b.world.SetCapacity(cloud.CapacityRule{Type: kind, Zone: zone, Total: total})
}

// TestFleetInstance looks at an instance that a fleet made: everything that template, override and fleet said of it.
func TestFleetInstance(t *testing.T) {
	b := newBench(t)
	b.template(func(d *ec2types.RequestLaunchTemplateData) {
		d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes")}
		d.MetadataOptions = &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpTokens: ec2types.LaunchTemplateHttpTokensStateRequired,
		}
		d.BlockDeviceMappings = []ec2types.LaunchTemplateBlockDeviceMappingRequest{
			{DeviceName: aws.String("/dev/xvda"),
				Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(80)}},
			{DeviceName: aws.String("/dev/xvdb"),
				Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(100)}}}
	})
	id := b.launch(spot)
	i := b.describe(id)
	truth, _ := b.world.Instance(id)
	for what, ok := range map[string]bool{
		"it is a spot instance": i.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot &&
			i.SpotInstanceRequestId != nil,
		"it pends": i.State.Name == ec2types.InstanceStateNamePending && *i.State.Code == 0,
		"it is in its zone": *i.Placement.AvailabilityZone == "us-west-2a" &&
			*i.SubnetId == b.net.Private[0],
		"it has a name": *i.PrivateDnsName == "ip-10-0-0-4.us-west-2.compute.internal" &&
			*i.PrivateIpAddress == "10.0.0.4",
		"it has no public address": i.PublicIpAddress == nil,
		"it has the group": *i.SecurityGroups[0].GroupId == b.net.SecurityGroup &&
			*i.SecurityGroups[0].GroupName == "eks-cluster-sg-lab",
		"the fleet's tag won": tagOf(i.Tags, "from") == "fleet",
		"EC2's tags are there": tagOf(i.Tags, "aws:ec2:fleet-id") != "" &&
			tagOf(i.Tags, "aws:ec2launchtemplate:version") == "1",
		"it has two volumes": len(i.BlockDeviceMappings) == 2 && truth.Volumes[0].SizeGiB == 80 &&
			truth.Volumes[1].SizeGiB == 100,
		"its volumes are tagged":       b.world.Tags(*i.BlockDeviceMappings[0].Ebs.VolumeId)["disk"] == "yes",
		"metadata needs a token":       i.MetadataOptions.HttpTokens == ec2types.HttpTokensStateRequired,
		"it has the profile":           *i.IamInstanceProfile.Arn == "arn:aws:iam::123456789012:instance-profile/nodes",
		"the machine reads user data":  string(truth.UserData) == "#!/bin/sh\n",
		"it costs what the pool costs": truth.HourlyPrice > 0,
		"the image's architecture":     i.Architecture == ec2types.ArchitectureValuesX8664,
	} {
		if !ok {
			t.Errorf("not so: %s\n%+v", what, i)
		}
	}
}

// TestFleetRefusesOverrides names what is wrong with an override in the fleet's errors, not as an error of the call.
func TestFleetRefusesOverrides(t *testing.T) {
	b := newBench(t, func(o *ec2sim.Options) { o.Config.Profiles = func(name string) bool { return name == "nodes" } })
	b.template()
	for name, c := range map[string]struct {
		change func(o *ec2types.FleetLaunchTemplateOverridesRequest)
		want   string
	}{
		"no such image": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.ImageId = aws.String("ami-00000000000000000")
		}, "InvalidAMIID.NotFound"},
		"no image id": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.ImageId = aws.String("latest")
		}, "InvalidAMIID.Malformed"},
		"another processor": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.ImageId = aws.String(b.arm)
		}, "InvalidParameterValue"},
		"no such subnet": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.SubnetId = aws.String("subnet-00000000000000000")
		}, "InvalidSubnetID.NotFound"},
		"another zone's id": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.AvailabilityZone, o.AvailabilityZoneId = nil, aws.String("usw2-az2")
		}, "InvalidParameterValue"},
		"another zone": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.AvailabilityZone = aws.String("us-west-2b")
		}, "InvalidParameterValue"},
		"no such type": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.InstanceType = "m5.gigantic"
		}, "InvalidParameterValue"},
		"too low a price": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.MaxPrice = aws.String("0.0001")
		}, "SpotMaxPriceTooLow"},
		"no such group": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.Placement = &ec2types.Placement{GroupName: aws.String("nobody")}
		}, "InvalidPlacementGroup.Unknown"},
		"no such profile": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.IamInstanceProfile = &ec2types.FleetIamInstanceProfileSpecificationRequest{Name: aws.String("nobody")}
		}, "InvalidParameterValue"},
		"too small a volume": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.BlockDeviceMappings = device("/dev/xvda", 8)
		}, "InvalidBlockDeviceMapping"},
		"nothing wrong at all": {func(o *ec2types.FleetLaunchTemplateOverridesRequest) {
			o.BlockDeviceMappings = device("/dev/xvda", 21)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := b.override("m5.large", 0)
			c.change(&o)
			out := b.mustFleet(b.fleet(spot, 1, o))
			got := ""
			if len(out.Errors) == 1 {
				got = *out.Errors[0].ErrorCode
			}
			if got != c.want || (len(out.Instances) == 0) != (c.want != "") {
				t.Errorf("got %q, want %q: %s", got, c.want, fleetText(out))
			}
		})
	}
}

func device(name string, size int32) []ec2types.FleetBlockDeviceMappingRequest {
	return []ec2types.FleetBlockDeviceMappingRequest{{DeviceName: aws.String(name),
		Ebs: &ec2types.FleetEbsBlockDeviceRequest{VolumeSize: aws.Int32(size)}}}
}

// TestFleetRefused lists what makes the whole call fail.
func TestFleetRefused(t *testing.T) {
	b := newBench(t)
	b.template()
	for want, change := range map[string]func(*sdk.CreateFleetInput){
		"InvalidLaunchTemplateName.NotFoundException": func(in *sdk.CreateFleetInput) {
			in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("nobody")
		},
		"InvalidLaunchTemplateId.VersionNotFound": func(in *sdk.CreateFleetInput) {
			in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.Version = aws.String("9")
		},
		"InvalidTargetCapacitySpecification": func(in *sdk.CreateFleetInput) {
			in.TargetCapacitySpecification.SpotTargetCapacity = aws.Int32(7)
		},
		"UnsupportedOperation": func(in *sdk.CreateFleetInput) { in.Type = ec2types.FleetTypeMaintain },
		"InvalidTagSpecification": func(in *sdk.CreateFleetInput) {
			in.TagSpecifications[0].ResourceType = ec2types.ResourceTypeSubnet
		},
		"DryRunOperation": func(in *sdk.CreateFleetInput) { in.DryRun = aws.Bool(true) },
	} {
		in := b.fleet(onDemand, 1, b.override("m5.large", 0))
		change(in)
		_, err := b.client.CreateFleet(b.ctx, in)
		b.wantCode(err, want)
	}
	dry := b.fleet(onDemand, 1, b.override("m5.large", 0))
	dry.DryRun = aws.Bool(true)
	dry.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("nobody")
	_, err := b.client.CreateFleet(b.ctx, dry)
	b.wantCode(err, "DryRunOperation")
	if n := len(b.world.Instances()); n > 0 {
		t.Errorf("%d instances came of it", n)
	}
}

// TestFleetTokens asks twice with one token.
func TestFleetTokens(t *testing.T) {
	b := newBench(t)
	b.template()
	in := b.fleet(onDemand, 2, b.override("m5.large", 0))
	in.ClientToken = aws.String("once")
	first := b.mustFleet(in)
	if _, err := b.client.DeleteLaunchTemplate(b.ctx,
		&sdk.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(templateName)}); err != nil {
		t.Fatal(err) // the second call must not need it any more
	}
	second := b.mustFleet(in)
	if *first.FleetId != *second.FleetId || !slices.Equal(first.Instances[0].InstanceIds,
		second.Instances[0].InstanceIds) || len(b.world.Instances()) != 2 {
		t.Errorf("the second call was another fleet: %s, %s", *first.FleetId, *second.FleetId)
	}
	in.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(3)
	_, err := b.client.CreateFleet(b.ctx, in)
	b.wantCode(err, "IdempotentParameterMismatch")
}

// TestSpotTagsOnDemand is a mistake that EC2 punishes and that is easily made: tags for spot requests where there are
// none.
func TestSpotTagsOnDemand(t *testing.T) {
	b := newBench(t)
	b.template(func(d *ec2types.RequestLaunchTemplateData) {
		d.TagSpecifications = append(d.TagSpecifications, ec2types.LaunchTemplateTagSpecificationRequest{
			ResourceType: ec2types.ResourceTypeSpotInstancesRequest,
			Tags:         []ec2types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
	})
	if got := fleetText(b.mustFleet(b.fleet(onDemand, 1,
		b.override("m5.large", 0)))); got != "!InvalidParameterValue:m5.large/a" {
		t.Errorf("on-demand got %s", got)
	}
	id := b.launch(spot)
	i, _ := b.world.Instance(id)
	if b.world.Tags(i.SpotRequest)["a"] != "b" {
		t.Error("the spot request has no tags")
	}
}

// TestFleetOfAThousand is one call.
func TestFleetOfAThousand(t *testing.T) {
	b := newBench(t)
	b.template()
	out := b.mustFleet(b.fleet(onDemand, 1000, b.override("m5.large", 0), b.override("m5.large", 1)))
	addresses := map[string]bool{}
	for _, i := range b.world.Instances() {
		addresses[i.PrivateIP] = true
	}
	if got := fleetText(out); got != "1000×m5.large/a" || len(addresses) != 1000 {
		t.Errorf("got %s with %d addresses", got, len(addresses))
	}
}
