package offer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

const (
	// regionLasts is how long what EC2 sells in the region is remembered. AWS adds types now and then.
	regionLasts = 12 * time.Hour
	// regionRetry is how soon it is asked for again if it could not say, and what was known stands; regionFirstRetry is
	// how soon if nothing was known, and nothing can be launched.
	regionRetry      = 5 * time.Minute
	regionFirstRetry = 5 * time.Second
	// placesPerPage is how many places of sale EC2 names in one answer at the most.
	placesPerPage = 1000
	// classLasts is how long a class's list is kept that nobody asks for.
	classLasts = time.Hour
)

// Find finds one of the types; nil if it is not there.
func (c *ClassCatalog) Find(name string) *cloudprovider.InstanceType {
	at, found := slices.BinarySearchFunc(c.Types, name, func(t *cloudprovider.InstanceType, name string) int {
		return strings.Compare(t.Name, name)
	})
	if !found {
		return nil
	}
	return c.Types[at]
}

// Options say what a catalog is made from. All but Shifted are required.
type Options struct {
	EC2     API
	Shapes  Shapes
	Prices  Prices
	Network Network
	// ReservedCapacity says whether the classes' capacity reservations are sold.
	ReservedCapacity bool
	// Shifted tells whether AWS has moved traffic away from the zone of the id: nothing is sold there then. Nil for no
	// zone.
	Shifted func(zoneID string) bool
	Now     func() time.Time
}

// API are the calls of EC2 that tell what it sells.
type API interface {
	DescribeInstanceTypeOfferings(context.Context, *ec2.DescribeInstanceTypeOfferingsInput,
		...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error)
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput,
		...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
}

// Network tells what of a class's network decides what it can buy.
type Network interface {
	CapacityReservations(ctx context.Context, class *awsv1.EC2NodeClass) ([]network.Reservation, error)
	PlacementGroup(ctx context.Context, class *awsv1.EC2NodeClass) (*network.PlacementGroup, error)
}

// Catalog is what can be bought, for every class. It is put together again only when something that it is made from has
// changed: the same list is handed out until then.
type Catalog struct {
	Options

	// reading lets one caller at a time ask EC2 what it sells. The others take what is known; if that is nothing they
	// wait.
	reading chan struct{}
	mu      sync.Mutex
	region  *regionTypes
	// askAt is when to ask; lastError is what came of it the last time.
	askAt     time.Time
	lastError error
	byClass   map[string]*ClassCatalog
}

// New returns a catalog that has not asked EC2 yet.
func New(o Options) *Catalog {
	return &Catalog{Options: o, reading: make(chan struct{}, 1), byClass: map[string]*ClassCatalog{}}
}

// regionTypes is what EC2 sells in the region.
type regionTypes struct {
	infos []ec2types.InstanceTypeInfo
	// zones in which each type is sold.
	zones    map[string][]string
	revision uint64
}

// ClassCatalog is what one class can buy.
type ClassCatalog struct {
	inputs string
	// Types are sorted by name.
	Types []*cloudprovider.InstanceType
	// List are the types, sorted by price.
	List *choose.List
	// shapes are the types without offerings, which depend on less.
	shapeInputs string
	shapes      []*cloudprovider.InstanceType
	// estimated is how many of them have a price on demand that is only estimated, such as example.
	estimated int
	example   string
	used      time.Time
}

// ForClass returns what the class can buy.
func (c *Catalog) ForClass(ctx context.Context, class *awsv1.EC2NodeClass) (*ClassCatalog, error) {
	region, err := c.regionNow(ctx)
	if err != nil {
		return nil, err
	}
	terms, err := c.purchaseTerms(ctx, class)
	if err != nil {
		return nil, err
	}
	shaped := fmt.Sprint(class.UID, class.Generation, region.revision, c.Shapes.Revision(), imageKey(class))
	from := fmt.Sprint(shaped, c.Prices.Revision(), terms)
	cc, before, err := c.build(class, region, terms, from, shaped)
	if err == nil && before != cc.estimated && cc.estimated > 0 {
		log.FromContext(ctx).Info("prices of instance types are estimated from those of others; allow "+
			"pricing:GetProducts, and leave out --isolated-vpc, to learn them",
			"EC2NodeClass", class.Name, "types", cc.estimated, "such as", cc.example)
	}
	return cc, err
}

// build puts the class's list together, unless it is there. before is how many types had an estimated price the last
// time.
func (c *Catalog) build(class *awsv1.EC2NodeClass, region *regionTypes, terms *purchaseTerms, from,
	shaped string) (cc *ClassCatalog, before int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cc = c.byClass[class.Name]; cc != nil {
		cc.used, before = c.Now(), cc.estimated
	}
	if cc != nil && cc.inputs == from {
		return cc, before, nil
	}
	next := &ClassCatalog{inputs: from, shapeInputs: shaped, used: c.Now()}
	if cc != nil && cc.shapeInputs == shaped {
		next.shapes = cc.shapes
	} else if next.shapes, err = c.shapesOf(class, region); err != nil {
		return nil, before, err
	}
	alike := c.similar(class.Name)
	for _, other := range alike {
		share(next.shapes, other.shapes)
	}
	for _, t := range next.shapes {
		if full := c.withOfferings(t, region.zones[t.Name], terms); full != nil {
			next.Types = append(next.Types, full)
		}
	}
	for _, other := range alike {
		share(next.Types, other.Types)
	}
	next.List = choose.NewList(next.Types)
	next.estimated, next.example = countEstimated(next.Types)
	maps.DeleteFunc(c.byClass, func(_ string, old *ClassCatalog) bool {
		return c.Now().Sub(old.used) > classLasts
	})
	c.byClass[class.Name] = next
	return next, before, nil
}

// countEstimated counts the types whose price on demand is an estimate. The built-in table is older than the newest
// types, and where the Pricing API can't be reached it is all there is.
func countEstimated(types []*cloudprovider.InstanceType) (count int, example string) {
	for _, t := range types {
		if slices.ContainsFunc(t.Offerings, func(o cloudprovider.Offering) bool {
			return o.PriceEstimated && o.Labels[v1.CapacityTypeLabelKey] == v1.CapacityTypeOnDemand
		}) {
			count, example = count+1, t.Name
		}
	}
	return count, example
}

// imageKey is what of a class's images decides which types it can use.
func imageKey(class *awsv1.EC2NodeClass) string { return fmt.Sprint(class.Status.AMIs) }

// regionNow returns what EC2 sells, by name. If that could not be found out a moment ago, it is not tried again:
// thousands may ask.
func (c *Catalog) regionNow(ctx context.Context) (*regionTypes, error) {
	region, lastError, due := c.known()
	if !due {
		return region, lastError
	}
	if region != nil {
		select {
		case c.reading <- struct{}{}:
		default:
			return region, nil // somebody is asking
		}
	} else {
		select {
		case c.reading <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { <-c.reading }()
	if region, lastError, due = c.known(); !due {
		return region, lastError
	}
	next, err := c.read(ctx)
	return c.update(ctx, next, err)
}

// update takes in what EC2 has answered.
func (c *Catalog) update(ctx context.Context, next *regionTypes, err error) (*regionTypes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil && c.region != nil:
		next.revision = c.region.revision + 1
	case err != nil && c.region != nil:
		c.askAt = c.Now().Add(regionRetry)
		return c.region, nil
	case err != nil:
		if ctx.Err() == nil { // that somebody has given up is nobody else's trouble
			c.askAt, c.lastError = c.Now().Add(regionFirstRetry), err
		}
		return nil, err
	}
	c.region, c.lastError, c.askAt = next, nil, c.Now().Add(regionLasts)
	c.Prices.Learn(priceShapes(next.infos))
	return next, nil
}

// priceShapes are the types as far as prices follow from what they are made of.
func priceShapes(infos []ec2types.InstanceTypeInfo) []price.Shape {
	out := make([]price.Shape, 0, len(infos))
	for i := range infos {
		info := &infos[i]
		s := price.Shape{Type: string(info.InstanceType)}
		if info.VCpuInfo != nil && info.VCpuInfo.DefaultVCpus != nil {
			s.VCPUs = int64(*info.VCpuInfo.DefaultVCpus)
		}
		if info.MemoryInfo != nil && info.MemoryInfo.SizeInMiB != nil {
			s.MemoryMiB = *info.MemoryInfo.SizeInMiB
		}
		if disks := info.InstanceStorageInfo; disks != nil && disks.TotalSizeInGB != nil {
			s.DiskGB = *disks.TotalSizeInGB
		}
		if gpus := info.GpuInfo; gpus != nil && gpus.TotalGpuMemoryInMiB != nil {
			s.AcceleratorMiB += int64(*gpus.TotalGpuMemoryInMiB)
		}
		if neurons := info.NeuronInfo; neurons != nil && neurons.TotalNeuronDeviceMemoryInMiB != nil {
			s.AcceleratorMiB += int64(*neurons.TotalNeuronDeviceMemoryInMiB)
		}
		out = append(out, s)
	}
	return out
}

// estimatedCounts counts, for every class that was asked about, the types whose price is estimated.
func (c *Catalog) estimatedCounts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for class, cc := range c.byClass {
		out[class] = cc.estimated
	}
	return out
}

// all are the types of every class that was asked about.
func (c *Catalog) all() [][]*cloudprovider.InstanceType {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out [][]*cloudprovider.InstanceType
	for _, cc := range c.byClass {
		out = append(out, cc.Types)
	}
	return out
}

// KubeletReserve is what the class keeps on nodes of the type, if that has to be computed.
func (c *Catalog) KubeletReserve(ctx context.Context, class *awsv1.EC2NodeClass, name string) (machine.Kept, error) {
	region, err := c.regionNow(ctx)
	if err != nil {
		return machine.Kept{}, err
	}
	at, found := slices.BinarySearchFunc(region.infos, name, func(i ec2types.InstanceTypeInfo, name string) int {
		return strings.Compare(string(i.InstanceType), name)
	})
	if !found {
		return machine.Kept{}, nil
	}
	return c.Shapes.Kept(&region.infos[at], class)
}

// known is what EC2 sells as far as we know, or why we don't; due says that it is time to ask.
func (c *Catalog) known() (region *regionTypes, lastError error, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.region, c.lastError, !c.Now().Before(c.askAt)
}

// read asks EC2. Only what Kubernetes runs on is asked for.
func (c *Catalog) read(ctx context.Context) (*regionTypes, error) {
	out := &regionTypes{zones: map[string][]string{}}
	kinds := ec2.NewDescribeInstanceTypesPaginator(c.EC2, &ec2.DescribeInstanceTypesInput{
		Filters: []ec2types.Filter{
			{Name: new("supported-virtualization-type"), Values: []string{"hvm"}},
			{Name: new("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
		},
		MaxResults: new(int32(100)),
	})
	for kinds.HasMorePages() {
		page, err := kinds.NextPage(ctx)
		if err != nil {
			return nil, fault.Explain("listing instance types", err)
		}
		out.infos = append(out.infos, page.InstanceTypes...)
	}
	places := ec2.NewDescribeInstanceTypeOfferingsPaginator(c.EC2, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: ec2types.LocationTypeAvailabilityZone, MaxResults: new(int32(placesPerPage)),
	})
	for places.HasMorePages() {
		page, err := places.NextPage(ctx)
		if err != nil {
			return nil, fault.Explain("listing where instance types are sold", err)
		}
		for _, o := range page.InstanceTypeOfferings {
			out.zones[string(o.InstanceType)] = append(out.zones[string(o.InstanceType)], aws.ToString(o.Location))
		}
	}
	slices.SortFunc(out.infos, func(a, b ec2types.InstanceTypeInfo) int {
		return strings.Compare(string(a.InstanceType), string(b.InstanceType))
	})
	for _, zones := range out.zones {
		slices.Sort(zones)
	}
	return out, nil
}
