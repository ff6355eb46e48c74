package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// stockLasts is how long what EC2 sells in the region is remembered. AWS adds types now and then.
	stockLasts = 12 * time.Hour
	// stockRetry is how soon it is asked for again if it could not say. What was known stands.
	stockRetry = 5 * time.Minute
)

// InstanceTypes implements cloudprovider.Provider.
func (p *Provider) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	class, err := p.readyClass(ctx, pool.Spec.Template.Spec.NodeClassRef)
	if err != nil {
		return nil, err
	}
	return p.typesOf(ctx, class)
}

func (p *Provider) typesOf(ctx context.Context, class *awsv1.EC2NodeClass) ([]*cloudprovider.InstanceType, error) {
	s, err := p.catalog.of(ctx, class)
	if err != nil {
		return nil, err
	}
	return s.types, nil
}

// typeOf finds one of the class's types; nil if the class does not have it.
func (p *Provider) typeOf(ctx context.Context, class *awsv1.EC2NodeClass, name string) (*cloudprovider.InstanceType, error) {
	s, err := p.catalog.of(ctx, class)
	if err != nil {
		return nil, err
	}
	at, found := slices.BinarySearchFunc(s.types, name, func(t *cloudprovider.InstanceType, name string) int { return strings.Compare(t.Name, name) })
	if !found {
		return nil, nil
	}
	return s.types[at], nil
}

// catalog is what can be bought, for every class. It is put together again only when something that it is made from has
// changed: the same list is handed out until then.
type catalog struct {
	api     EC2API
	shapes  Shapes
	prices  Prices
	network Network
	now     func() time.Time
	// reserved says whether reservations are sold; shifted, unless it is nil, which zones are to be left.
	reserved bool
	shifted  func(zoneID string) bool

	// reading lets one caller at a time ask EC2 what it sells; the others take what is known if there is something.
	reading sync.Mutex
	mu      sync.Mutex
	stock   *stock
	due     time.Time
	shelves map[string]*shelf
}

// stock is what EC2 sells in the region.
type stock struct {
	infos []ec2types.InstanceTypeInfo
	// zones in which each type is sold.
	zones    map[string][]string
	revision uint64
}

// shelf is what one class can buy.
type shelf struct {
	from  string
	types []*cloudprovider.InstanceType
	// shapes are the types without offerings, which depend on less.
	shaped string
	shapes []*cloudprovider.InstanceType
}

// of returns what the class can buy.
func (c *catalog) of(ctx context.Context, class *awsv1.EC2NodeClass) (*shelf, error) {
	have, err := c.inStock(ctx)
	if err != nil {
		return nil, err
	}
	terms, err := c.terms(ctx, class)
	if err != nil {
		return nil, err
	}
	shaped := fmt.Sprint(class.UID, class.Generation, have.revision, c.shapes.Revision(), imageKey(class))
	from := fmt.Sprint(shaped, c.prices.Revision(), terms)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shelves[class.Name]
	if s != nil && s.from == from {
		return s, nil
	}
	next := &shelf{from: from, shaped: shaped}
	if s != nil && s.shaped == shaped {
		next.shapes = s.shapes
	} else if next.shapes, err = c.shapesOf(class, have); err != nil {
		return nil, err
	}
	for _, t := range next.shapes {
		if full := c.withOfferings(t, have.zones[t.Name], terms); full != nil {
			next.types = append(next.types, full)
		}
	}
	c.shelves[class.Name] = next
	return next, nil
}

// imageKey is what of a class's images decides which types it can use.
func imageKey(class *awsv1.EC2NodeClass) string { return fmt.Sprint(class.Status.AMIs) }

// inStock returns what EC2 sells, by name.
func (c *catalog) inStock(ctx context.Context) (*stock, error) {
	if have := c.known(); have != nil {
		return have, nil
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if have := c.known(); have != nil {
		return have, nil
	}
	next, err := c.read(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.stock == nil {
			return nil, err
		}
		c.due = c.now().Add(stockRetry)
		return c.stock, nil
	}
	if c.stock != nil {
		next.revision = c.stock.revision + 1
	}
	c.stock, c.due = next, c.now().Add(stockLasts)
	return next, nil
}

// known is what EC2 sells, unless it is time to ask again.
func (c *catalog) known() *stock {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stock != nil && c.now().Before(c.due) {
		return c.stock
	}
	return nil
}

// read asks EC2. Only what Kubernetes runs on is asked for.
func (c *catalog) read(ctx context.Context) (*stock, error) {
	out := &stock{zones: map[string][]string{}}
	kinds := ec2.NewDescribeInstanceTypesPaginator(c.api, &ec2.DescribeInstanceTypesInput{
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
	places := ec2.NewDescribeInstanceTypeOfferingsPaginator(c.api, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: ec2types.LocationTypeAvailabilityZone, MaxResults: new(int32(pageSize)),
	})
	for places.HasMorePages() {
		page, err := places.NextPage(ctx)
		if err != nil {
			return nil, fault.Explain("listing where instance types are sold", err)
		}
		for _, o := range page.InstanceTypeOfferings {
			out.zones[string(o.InstanceType)] = append(out.zones[string(o.InstanceType)], text(o.Location))
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
