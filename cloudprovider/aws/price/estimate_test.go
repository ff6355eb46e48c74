package price_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

// shapes are all types of the simulated EC2, whose data is EC2's.
func shapes(t *testing.T) []price.Shape {
	t.Helper()
	infos, err := catalog.Types()
	if err != nil {
		t.Fatal(err)
	}
	var out []price.Shape
	for _, info := range infos {
		s := price.Shape{Type: string(info.InstanceType), VCPUs: int64(*info.VCpuInfo.DefaultVCpus),
			MemoryMiB: *info.MemoryInfo.SizeInMiB}
		if info.InstanceStorageInfo != nil {
			s.DiskGB = *info.InstanceStorageInfo.TotalSizeInGB
		}
		if info.GpuInfo != nil {
			s.AcceleratorMiB = int64(aws.ToInt32(info.GpuInfo.TotalGpuMemoryInMiB))
		}
		if info.NeuronInfo != nil {
			s.AcceleratorMiB += int64(aws.ToInt32(info.NeuronInfo.TotalNeuronDeviceMemoryInMiB))
		}
		out = append(out, s)
	}
	return out
}

func bookOf(t *testing.T, region string) *price.Book {
	t.Helper()
	b, err := price.NewBook(region, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestEveryTypeHasAPrice: without the Pricing API, nothing that is sold in a region is without a price, known or
// estimated.
func TestEveryTypeHasAPrice(t *testing.T) {
	all := shapes(t)
	for _, place := range append(price.Places(), "mars-north-1") {
		if strings.Count(place, "-") > 2 && !strings.HasPrefix(place, "us-gov") {
			continue // a Local Zone has the region's
		}
		b := bookOf(t, place)
		b.Learn(all)
		estimated := 0
		for _, s := range all {
			if _, ok := b.OnDemand(s.Type, place+"a"); ok {
				continue
			}
			estimated++
			if p, ok := b.Estimate(s.Type, price.OnDemand); !ok || p <= 0 || math.IsNaN(p) || p > 5000 {
				t.Errorf("%s in %s is estimated at %v, %v", s.Type, place, p, ok)
			}
		}
		if place == "us-east-1" && estimated > 35 {
			t.Errorf("%d types have no price in us-east-1", estimated)
		}
	}
}

// TestEstimatesAreNear compares estimates with prices that are known.
func TestEstimatesAreNear(t *testing.T) {
	all := shapes(t)
	byReference := deviations{}
	for _, place := range []string{"eu-west-1", "ap-south-1", "sa-east-1", "us-gov-west-1"} {
		table, err := price.Embedded(place)
		if err != nil {
			t.Fatal(err)
		}
		b := bookOf(t, place)
		b.Learn(all)
		for _, s := range all {
			real, ok := table.OnDemand(s.Type)
			if p, estimated := b.Estimate(s.Type, price.OnDemand); ok && estimated {
				byReference.add(p, real)
			}
		}
	}
	byReference.check(t, "by the price in us-east-1", 0.01, 0.10)
}

// TestEstimateSteps: of a size, of a generation and of a machine that is like no other, in a region without built-in
// prices.
func TestEstimateSteps(t *testing.T) {
	b := bookOf(t, "mars-north-1")
	list := []price.Shape{
		{Type: "zz1.large", VCPUs: 2, MemoryMiB: 8192}, {Type: "zz1.8xlarge", VCPUs: 32, MemoryMiB: 131072},
		{Type: "zz1.4xlarge", VCPUs: 16, MemoryMiB: 65536},
		{Type: "zz2.large", VCPUs: 2, MemoryMiB: 8192}, {Type: "zx2.large", VCPUs: 2, MemoryMiB: 16384},
		{Type: "q1.large", VCPUs: 4, MemoryMiB: 24576},
		{Type: "ga1.large", VCPUs: 2, MemoryMiB: 8192, AcceleratorMiB: 1000}, {Type: "gb1.large", VCPUs: 4,
			MemoryMiB: 8192, AcceleratorMiB: 1000},
		{Type: "gc1.large", VCPUs: 2, MemoryMiB: 8192, DiskGB: 100, AcceleratorMiB: 1000}, {Type: "gd1.large", VCPUs: 4,
			MemoryMiB: 16384, AcceleratorMiB: 4000},
		{Type: "ge1.large", VCPUs: 2, MemoryMiB: 8192, AcceleratorMiB: 2000},
	}
	b.Learn(list)
	if p, ok := b.Estimate("q1.large", price.OnDemand); ok {
		t.Errorf("estimated at %v without a single price to compare with", p)
	}
	priced := &products{pages: map[string][][]string{shared: {{
		item("zz1.large", "USD", "0.1"), item("zz1.8xlarge", "USD", "1.8"), item("zx2.large", "USD", "0.18"),
		item("ga1.large", "USD", "1.1"), item("gb1.large", "USD", "1.15"), item("gc1.large", "USD", "1.11"),
		item("gd1.large", "USD", "4.2"),
	}}}}
	before := b.Revision()
	if err := b.RefreshOnDemand(t.Context(), priced); err != nil || b.Revision() == before {
		t.Fatal(err, b.Revision())
	}
	for name, want := range map[string]float64{
		"zz1.4xlarge": 0.9,  // half of its sibling, the nearest in size
		"zz2.large":   0.1,  // as the generation before
		"q1.large":    0.28, // vCPUs and memory at what they cost elsewhere
		"ge1.large":   2.1,  // by its accelerator
		"m5.large":    0.096,
	} {
		p, ok := b.Estimate(name, price.OnDemand)
		if !ok || p < want*0.9 || p > want*1.1 {
			t.Errorf("%s is estimated at %v, %v; want about %v", name, p, ok, want)
		}
	}
	if p, ok := b.Estimate("zz2.large", price.Spot); !ok || p != 0.1 {
		t.Errorf("before the spot prices are known: %v, %v", p, ok)
	}
}

// TestNoEstimateOfWhatIsNotSold: the history of spot prices has all that is sold as spot.
func TestNoEstimateOfWhatIsNotSold(t *testing.T) {
	b := bookOf(t, "us-west-2")
	b.Learn(shapes(t))
	if err := b.RefreshSpot(t.Context(), &history{prices: []ec2types.SpotPrice{
		{InstanceType: "m5.large", AvailabilityZone: aws.String("us-west-2a"), SpotPrice: aws.String("0.04"),
			Timestamp: aws.Time(time.Now())},
	}}); err != nil {
		t.Fatal(err)
	}
	if p, ok := b.Estimate("m8i.large", price.Spot); ok {
		t.Errorf("spot is estimated at %v", p)
	}
}

// deviations are relative errors.
type deviations []float64

func (d *deviations) add(got, want float64) { *d = append(*d, math.Abs(got/want-1)) }

func (d deviations) check(t *testing.T, what string, half, nine float64) {
	t.Helper()
	if len(d) < 500 {
		t.Fatalf("%s: only %d prices to compare", what, len(d))
	}
	slices.Sort(d)
	if m, n := d[len(d)/2], d[len(d)*9/10]; m > half || n > nine {
		t.Errorf("%s: half are off by more than %.3f, one of ten by more than %.3f; want %.3f and %.3f", what, m, n,
			half, nine)
	}
	t.Logf("%s: %d prices, half within %.4f, nine of ten within %.4f", what, len(d), d[len(d)/2], d[len(d)*9/10])
}
