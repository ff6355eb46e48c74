package offer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
)

// fewCauses is how many causes are told of why no instance type is left.
const fewCauses = 3

// UnsoldError says that nothing of what a class could use is sold, for which the class can do nothing.
type UnsoldError struct{ error }

func (e *UnsoldError) Unwrap() error { return e.error }

// NoneFits says why there is no instance type for a class: how many fall away for which field, those that most types
// fall for first. It is an UnsoldError if the class does not rule all of them out.
func (c *Catalog) NoneFits(ctx context.Context, class *awsv1.EC2NodeClass) error {
	region, err := c.regionNow(ctx)
	if err != nil {
		return err
	}
	on, err := c.purchaseTerms(ctx, class)
	if err != nil {
		return err
	}
	if len(region.infos) == 0 {
		return fmt.Errorf("EC2 sells no instance type that EC2NodeClass %s could use: it lists none in this region",
			class.Name)
	}
	counts, usable := map[string]int{}, false
	for i := range region.infos {
		why, ruledOut, err := c.exclusionReason(&region.infos[i], class, region, on)
		if err != nil {
			return err
		}
		counts[why]++
		usable = usable || !ruledOut
	}
	causes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var told []string
	for _, why := range causes[:min(len(causes), fewCauses)] {
		told = append(told, fmt.Sprintf("%d %s", counts[why], why))
	}
	if usable {
		return &UnsoldError{fmt.Errorf("no instance type is sold that EC2NodeClass %s can use: of %d types %s",
			class.Name, len(region.infos), strings.Join(told, ", "))}
	}
	return fmt.Errorf("no instance type can be used by EC2NodeClass %s: of %d types %s; change what rules them out",
		class.Name, len(region.infos), strings.Join(told, ", "))
}

// exclusionReason says at which step a type falls away, in the order in which the catalog takes them, and whether that
// is the class's doing.
func (c *Catalog) exclusionReason(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass, region *regionTypes,
	on *purchaseTerms) (why string, ruledOut bool, err error) {
	shape, err := c.Shapes.Shape(info, class)
	if err != nil {
		return "", false, err
	}
	if shape == nil {
		why, err = c.Shapes.Why(info, class)
		return why, true, err
	}
	if _, boots := image.For(class.Status.AMIs, shape.Labels); !boots {
		return "have no AMI that fits (spec.amiSelectorTerms)", true, nil
	}
	zones := slices.DeleteFunc(slices.Clone(region.zones[shape.Name]), func(zone string) bool {
		_, ok := on.zoneIDs[zone]
		return !ok
	})
	switch {
	case len(zones) == 0:
		return "are not sold in the zones of the subnets (spec.subnetSelectorTerms)", true, nil
	case !slices.ContainsFunc(zones, func(zone string) bool { return !on.shifted[zone] }):
		return "are sold only in zones that AWS has moved traffic away from (zonal shift)", false, nil
	case !slices.Contains(info.SupportedUsageClasses, ec2types.UsageClassTypeOnDemand):
		return "are not sold on demand, and no reservation of them can be used", false, nil
	}
	return "have no price on demand that is known", false, nil
}
