package offer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

// paidAlready divides the price of an instance on demand to give that of one whose capacity is reserved: it is paid for
// in any case, so it is always to be preferred, and of two the one that is worth less.
const paidAlready = 10_000_000

// purchaseTerms are where and how a class can buy.
type purchaseTerms struct {
	// zoneIDs are the zones' ids by name.
	zoneIDs map[string]string
	// shifted are zones, by name, where nothing is bought for the time being.
	shifted      map[string]bool
	reservations []network.Reservation
	group        *network.PlacementGroup
	class        string // its name
	// sharedLabels are the labels of offerings that were given out.
	sharedLabels map[[3]string]map[string]string
}

// String is equal for equal terms.
func (t *purchaseTerms) String() string {
	text := fmt.Sprint(t.zoneIDs, t.shifted)
	for _, r := range t.reservations {
		text += fmt.Sprint(r.ID, r.Zone, r.InstanceType, r.Type, r.Interruptible, r.Platform, r.Tenancy, r.Available)
	}
	if t.group != nil {
		text += fmt.Sprint(*t.group)
	}
	return text
}

// purchaseTerms finds where and how the class can buy. A reservation that is about to end is not sold any more.
func (c *Catalog) purchaseTerms(ctx context.Context, class *awsv1.EC2NodeClass) (*purchaseTerms, error) {
	out := &purchaseTerms{class: class.Name, zoneIDs: map[string]string{}, shifted: map[string]bool{}}
	for _, s := range class.Status.Subnets {
		out.zoneIDs[s.Zone] = s.ZoneID
		if c.Shifted != nil && c.Shifted(s.ZoneID) {
			out.shifted[s.Zone] = true
		}
	}
	group, err := c.Network.PlacementGroup(ctx, class)
	if err != nil || !c.ReservedCapacity {
		out.group = group
		return out, err
	}
	reservations, err := c.Network.CapacityReservations(ctx, class)
	for _, r := range reservations {
		if r.State(c.Now()) != awsv1.CapacityReservationStateExpiring {
			out.reservations = append(out.reservations, r)
		}
	}
	out.group = group
	return out, err
}

// shapesOf lists the types that the class can use. In place of offerings each has, without zone and price, the terms
// that it is sold on.
func (c *Catalog) shapesOf(class *awsv1.EC2NodeClass, region *regionTypes) ([]*cloudprovider.InstanceType, error) {
	var out []*cloudprovider.InstanceType
	onDemand, spot := map[string]string{v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand},
		map[string]string{v1.CapacityTypeLabelKey: v1.CapacityTypeSpot}
	for i := range region.infos {
		info := &region.infos[i]
		t, err := c.Shapes.Shape(info, class)
		if err != nil {
			return nil, fmt.Errorf("working out what instance type %s is like under EC2NodeClass %s: %w",
				info.InstanceType, class.Name, err)
		}
		if t == nil {
			continue
		}
		if _, boots := image.For(class.Status.AMIs, t.Labels); !boots {
			continue
		}
		delete(t.Labels, awsv1.NodeClassLabelKey) // the offerings have it: see terms.labels
		t.Offerings = nil
		for _, kind := range info.SupportedUsageClasses {
			switch kind {
			case ec2types.UsageClassTypeOnDemand:
				t.Offerings = append(t.Offerings, cloudprovider.Offering{Labels: onDemand})
			case ec2types.UsageClassTypeSpot:
				t.Offerings = append(t.Offerings, cloudprovider.Offering{Labels: spot})
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// withOfferings returns the type with everything that it is sold by; nil if it is not sold where the class is.
func (c *Catalog) withOfferings(shape *cloudprovider.InstanceType, zones []string,
	on *purchaseTerms) *cloudprovider.InstanceType {
	t := *shape
	t.Offerings = nil
	if on.group != nil {
		t.Labels = maps.Clone(shape.Labels)
		t.Labels[awsv1.PlacementGroupIDLabelKey] = []string{on.group.ID}
		for n := range on.group.Partitions {
			t.Labels[awsv1.PlacementGroupPartitionLabelKey] = append(t.Labels[awsv1.PlacementGroupPartitionLabelKey],
				strconv.Itoa(n+1))
		}
	}
	for _, zone := range zones {
		id, ok := on.zoneIDs[zone]
		if !ok {
			continue
		}
		for _, kind := range shape.Offerings {
			terms := kind.Labels[v1.CapacityTypeLabelKey]
			if dollars, estimated, ok := c.price(t.Name, zone, terms); ok {
				t.Offerings = append(t.Offerings, cloudprovider.Offering{
					Labels: on.labels(zone, id, terms), Price: dollars, PriceEstimated: estimated,
					Available: !on.shifted[zone]})
			}
		}
		t.Offerings = append(t.Offerings, c.reservedIn(&t, zone, id, on)...)
	}
	if len(t.Offerings) == 0 {
		return nil
	}
	return &t
}

// price is what the type costs in the zone, or probably costs; false if it is not sold on these terms.
func (c *Catalog) price(kind, zone, capacityType string) (dollars float64, estimated, ok bool) {
	ask, terms := c.Prices.OnDemand, price.OnDemand
	if capacityType == v1.CapacityTypeSpot {
		ask, terms = c.Prices.Spot, price.Spot
	}
	if dollars, ok = ask(kind, zone); ok {
		return dollars, false, true
	}
	dollars, ok = c.Prices.Estimate(kind, terms)
	return dollars, ok, ok
}

func placeLabels(zone, id, capacityType string) map[string]string {
	out := map[string]string{corev1.LabelTopologyZone: zone, v1.CapacityTypeLabelKey: capacityType}
	if id != "" {
		out[awsv1.ZoneIDLabelKey] = id
	}
	return out
}

// reservedIn are the offerings of the class's reservations of the type in the zone. A reservation serves only the
// platform and the tenancy that it was made for.
func (c *Catalog) reservedIn(t *cloudprovider.InstanceType, zone, id string,
	on *purchaseTerms) []cloudprovider.Offering {
	var out []cloudprovider.Offering
	dollars, estimated, known := c.price(t.Name, zone, v1.CapacityTypeOnDemand)
	for _, r := range on.reservations {
		if r.InstanceType != t.Name || r.Zone != zone || !serves(&r, t) {
			continue
		}
		if !known {
			dollars = 1 // what has no price on demand is compared with nothing
		}
		labels := maps.Clone(on.labels(zone, id, v1.CapacityTypeReserved))
		labels[awsv1.CapacityReservationIDLabelKey] = r.ID
		labels[awsv1.CapacityReservationTypeLabelKey] = string(r.Type)
		labels[awsv1.CapacityReservationInterruptibleLabelKey] = strconv.FormatBool(r.Interruptible)
		if r.Tenancy != "" && len(t.Labels[awsv1.InstanceTenancyLabelKey]) > 0 {
			labels[awsv1.InstanceTenancyLabelKey] = r.Tenancy
		}
		out = append(out, cloudprovider.Offering{
			Labels: labels, Price: dollars / paidAlready, PriceEstimated: estimated, Available: r.Available > 0 &&
				!on.shifted[zone], ReservationCapacity: r.Available, ReservationID: r.ID,
		})
	}
	slices.SortFunc(out, func(a, b cloudprovider.Offering) int { return b.ReservationCapacity - a.ReservationCapacity })
	return out
}

// serves tells whether nodes of the type can run in the reservation.
func serves(r *network.Reservation, t *cloudprovider.InstanceType) bool {
	windows := slices.Contains(t.Labels[corev1.LabelOSStable], "windows")
	tenancies := t.Labels[awsv1.InstanceTenancyLabelKey]
	return (r.Platform == "" || strings.HasPrefix(r.Platform, "Windows") == windows) &&
		(r.Tenancy == "" || len(tenancies) == 0 || slices.Contains(tenancies, r.Tenancy))
}

// IsBlock tells whether an offering is a capacity block.
func IsBlock(o *cloudprovider.Offering) bool {
	return o.Labels[awsv1.CapacityReservationTypeLabelKey] == string(awsv1.CapacityReservationTypeCapacityBlock)
}

// IsInterruptible tells whether an offering is a reservation that its owner may take back.
func IsInterruptible(o *cloudprovider.Offering) bool {
	return o.ReservationID != "" && o.Labels[awsv1.CapacityReservationInterruptibleLabelKey] == "true"
}
