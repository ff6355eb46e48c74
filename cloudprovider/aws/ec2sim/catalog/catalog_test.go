package catalog_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
)

func all(t *testing.T) map[string]ec2types.InstanceTypeInfo {
	t.Helper()
	types, err := catalog.Types()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]ec2types.InstanceTypeInfo{}
	for _, info := range types {
		out[string(info.InstanceType)] = info
	}
	if len(out) != len(types) || len(out) < 1300 {
		t.Fatalf("%d types have %d names; want 1300 at least", len(types), len(out))
	}
	return out
}

// TestEveryTypeIsWhole: a program that reads DescribeInstanceTypes finds everything where EC2 puts it.
func TestEveryTypeIsWhole(t *testing.T) {
	for name, info := range all(t) {
		if aws.ToInt32(info.VCpuInfo.DefaultVCpus) < 1 || aws.ToInt64(info.MemoryInfo.SizeInMiB) < 500 {
			t.Errorf("%s: %d vCPUs, %d MiB", name, aws.ToInt32(info.VCpuInfo.DefaultVCpus),
				aws.ToInt64(info.MemoryInfo.SizeInMiB))
		}
		if c := info.VCpuInfo; aws.ToInt32(c.DefaultCores)*aws.ToInt32(c.DefaultThreadsPerCore) != aws.ToInt32(
			c.DefaultVCpus) {
			t.Errorf("%s: %d cores of %d threads are not %d vCPUs", name, *c.DefaultCores, *c.DefaultThreadsPerCore,
				*c.DefaultVCpus)
		}
		if len(info.ProcessorInfo.SupportedArchitectures) == 0 || aws.ToString(info.ProcessorInfo.Manufacturer) == "" {
			t.Errorf("%s: no architecture or manufacturer", name)
		}
		if aws.ToBool(info.BareMetal) != (info.Hypervisor == "") {
			t.Errorf("%s: bare metal %v, hypervisor %q", name, *info.BareMetal, info.Hypervisor)
		}
		n := info.NetworkInfo
		total := int32(0)
		for i, card := range n.NetworkCards {
			total += aws.ToInt32(card.MaximumNetworkInterfaces)
			if aws.ToInt32(card.NetworkCardIndex) != int32(i) {
				t.Errorf("%s: card %d has index %d", name, i, aws.ToInt32(card.NetworkCardIndex))
			}
			if aws.ToFloat64(card.BaselineBandwidthInGbps) > aws.ToFloat64(card.PeakBandwidthInGbps) {
				t.Errorf("%s: baseline %v over peak %v", name, *card.BaselineBandwidthInGbps, *card.PeakBandwidthInGbps)
			}
		}
		if total < 1 || total != aws.ToInt32(n.MaximumNetworkInterfaces) ||
			aws.ToInt32(n.MaximumNetworkCards) != int32(len(n.NetworkCards)) {
			t.Errorf("%s: cards take %d interfaces, the type %d", name, total, aws.ToInt32(n.MaximumNetworkInterfaces))
		}
		if aws.ToInt32(n.Ipv4AddressesPerInterface) < 2 ||
			int(aws.ToInt32(n.DefaultNetworkCardIndex)) >= len(n.NetworkCards) {
			t.Errorf("%s: %d addresses an interface, default card %d", name, aws.ToInt32(n.Ipv4AddressesPerInterface),
				aws.ToInt32(n.DefaultNetworkCardIndex))
		}
		if (info.InstanceStorageInfo != nil) != aws.ToBool(info.InstanceStorageSupported) {
			t.Errorf("%s: storage %v, supported %v", name, info.InstanceStorageInfo, *info.InstanceStorageSupported)
		}
	}
}

// TestKnownTypes compares with what EC2's documentation says of types that stand for a rule each.
func TestKnownTypes(t *testing.T) {
	types := all(t)
	for name, want := range map[string]float64{ // Gbit/s that are always there
		"m5.large": 0.75, "m5.4xlarge": 5, "m5.8xlarge": 10, "t3.nano": 0.032, "t3.2xlarge": 2.048, "c6i.large": 0.781,
		"c6i.xlarge": 1.562, "p4d.24xlarge": 400, "p5.48xlarge": 3200,
	} {
		got := 0.0
		for _, card := range types[name].NetworkInfo.NetworkCards {
			got += aws.ToFloat64(card.BaselineBandwidthInGbps)
		}
		if got < want*0.999 || got > want*1.001 {
			t.Errorf("%s: baseline bandwidth %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]int32{"m5.large": 0, "c5n.18xlarge": 1, "p4d.24xlarge": 4, "trn1.32xlarge": 8,
		"p5.48xlarge": 32, "m6i.32xlarge": 1, "m7g.16xlarge": 1, "g5.8xlarge": 1, "t3.large": 0} {
		got := int32(0)
		if efa := types[name].NetworkInfo.EfaInfo; efa != nil {
			got = aws.ToInt32(efa.MaximumEfaInterfaces)
		}
		if got != want {
			t.Errorf("%s: %d EFA interfaces, want %d", name, got, want)
		}
	}
	for name, want := range map[string]bool{"m5.large": false, "c5n.large": true, "m6i.large": true, "t3.large": false,
		"m4.large": false, "p3dn.24xlarge": true, "i3.large": false, "i3en.large": true, "a1.large": false} {
		if got := aws.ToBool(types[name].NetworkInfo.EncryptionInTransitSupported); got != want {
			t.Errorf("%s: encryption in transit %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]ec2types.EbsOptimizedSupport{"m5.large": "default", "a1.large": "default",
		"d2.xlarge": "default", "m4.large": "default", "c3.xlarge": "supported", "t2.micro": "unsupported",
		"m3.medium": "unsupported"} {
		if got := types[name].EbsInfo.EbsOptimizedSupport; got != want {
			t.Errorf("%s: EBS-optimized %s, want %s", name, got, want)
		}
	}
}

func TestAccelerators(t *testing.T) {
	types := all(t)
	for name, want := range map[string]string{
		"g4dn.xlarge": "1 NVIDIA T4 16384", "p3.16xlarge": "8 NVIDIA V100 16384",
		"g4ad.8xlarge": "2 AMD Radeon Pro V520 8192",
		"dl1.24xlarge": "8 Habana Gaudi HL-205 32768", "g5g.xlarge": "1 NVIDIA T4g 16384", "m5.large": "",
		"inf1.xlarge": "",
	} {
		got := ""
		if g := types[name].GpuInfo; g != nil {
			got = strings.Join([]string{text(g.Gpus[0].Count), *g.Gpus[0].Manufacturer, *g.Gpus[0].Name,
				text(g.Gpus[0].MemoryInfo.SizeInMiB)}, " ")
		}
		if got != want {
			t.Errorf("%s: GPUs %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"inf1.24xlarge": "16 Inferentia 4", "inf2.48xlarge": "12 Inferentia2 2", "trn1.2xlarge": "1 Trainium 2",
		"trn2.48xlarge": "16 Trainium2 8", "p3.16xlarge": "",
	} {
		got := ""
		if n := types[name].NeuronInfo; n != nil {
			got = strings.Join([]string{text(n.NeuronDevices[0].Count), *n.NeuronDevices[0].Name,
				text(n.NeuronDevices[0].CoreInfo.Count)}, " ")
		}
		if got != want {
			t.Errorf("%s: Neuron devices %q, want %q", name, got, want)
		}
	}
}

func text(n *int32) string { return strconv.Itoa(int(aws.ToInt32(n))) }

func TestRegions(t *testing.T) {
	regions := catalog.Regions()
	if len(regions) < 30 || !slices.Contains(regions, "us-gov-west-1") || slices.Contains(regions, "us-west-2-lax-1") {
		t.Fatalf("regions %v", regions)
	}
	for _, region := range regions {
		types, zones, err := catalog.Region(region)
		if err != nil {
			t.Fatal(err)
		}
		list, err := catalog.Zones(region)
		if err != nil {
			t.Fatal(err)
		}
		if len(types) < 150 || len(types) != len(zones) || len(list) < 2 {
			t.Errorf("%s: %d types, zones of %d, %d zones", region, len(types), len(zones), len(list))
		}
		names := map[string]bool{}
		for _, zone := range list {
			names[zone.Name] = true
		}
		prices, err := catalog.Prices(region)
		if err != nil {
			t.Fatal(err)
		}
		spot := 0
		for _, info := range types {
			name := string(info.InstanceType)
			for _, zone := range zones[name] {
				if !names[zone] {
					t.Errorf("%s: %s is in %s, which is no zone of the region", region, name, zone)
				}
				_, sold := prices.Spot(name, zone)
				if sold != slices.Contains(info.SupportedUsageClasses, ec2types.UsageClassTypeSpot) {
					t.Errorf("%s: %s has a spot price: %v, usage classes %v", region, name, sold,
						info.SupportedUsageClasses)
				}
				if sold {
					spot++
				}
			}
		}
		if spot < 100 {
			t.Errorf("%s: %d spot prices", region, spot)
		}
	}
}

func TestZones(t *testing.T) {
	zones, err := catalog.Zones("us-west-1")
	if err != nil || !slices.Equal(zones, []catalog.Zone{{Name: "us-west-1a", ID: "usw1-az1"},
		{Name: "us-west-1c", ID: "usw1-az3"}}) {
		t.Errorf("zones of us-west-1: %v, %v", zones, err)
	}
	if zones, err := catalog.Zones("us-gov-west-1"); err != nil || zones[0].ID != "usgw1-az1" || len(zones) != 3 {
		t.Errorf("zones of us-gov-west-1: %v, %v", zones, err)
	}
	for _, region := range []string{"", "us-west-2-lax-1", "mars-north-1", "us-west"} {
		if _, err := catalog.Zones(region); err == nil || !strings.Contains(err.Error(), "us-east-1") {
			t.Errorf("region %q: error %v does not name regions that are known", region, err)
		}
	}
}

func TestPrices(t *testing.T) {
	prices, err := catalog.Prices("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := prices.OnDemand("m5.large"); !ok || p != 0.096 {
		t.Errorf("m5.large costs %v, %v; want 0.096", p, ok)
	}
	if _, ok := prices.OnDemand("mac1.metal"); ok {
		t.Error("a Mac has a price for Linux")
	}
	different := map[float64]bool{}
	for _, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"} {
		p, ok := prices.Spot("m5.large", zone)
		if !ok || p <= 0 || p >= 0.096 {
			t.Errorf("m5.large as spot in %s costs %v, %v", zone, p, ok)
		}
		different[p] = true
	}
	if len(different) < 2 {
		t.Error("m5.large has the same spot price in every zone")
	}
}

// TestNesting: some processors run virtual machines in the machine, as a class can ask for.
func TestNesting(t *testing.T) {
	types := all(t)
	for name, want := range map[string]bool{"m8i.large": true, "m7i.large": true, "m6i.large": false,
		"m8g.large": false} {
		if got := slices.Contains(types[name].ProcessorInfo.SupportedFeatures,
			ec2types.SupportedAdditionalProcessorFeatureNestedVirtualization); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
