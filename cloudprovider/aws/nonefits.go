package aws

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

// noneFits says what of a class rules out every instance type: how many fall away for which field, those that most types
// fall for first.
func (c *catalog) noneFits(ctx context.Context, class *awsv1.EC2NodeClass) error {
	have, err := c.inStock(ctx)
	if err != nil {
		return err
	}
	on, err := c.terms(ctx, class)
	if err != nil {
		return err
	}
	if len(have.infos) == 0 {
		return fmt.Errorf("EC2 sells no instance type that EC2NodeClass %s could use: it lists none in this region", class.Name)
	}
	counts := map[string]int{}
	for i := range have.infos {
		why, err := c.whyNot(&have.infos[i], class, have, on)
		if err != nil {
			return err
		}
		counts[why]++
	}
	causes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	var told []string
	for _, why := range causes[:min(len(causes), fewCauses)] {
		told = append(told, fmt.Sprintf("%d %s", counts[why], why))
	}
	return fmt.Errorf("no instance type can be used by EC2NodeClass %s: of %d types %s; change what rules them out", class.Name, len(have.infos), strings.Join(told, ", "))
}

// whyNot says at which step a type falls away, in the order in which the catalog takes them.
func (c *catalog) whyNot(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass, have *stock, on *terms) (string, error) {
	shape, err := c.shapes.Shape(info, class)
	if err != nil {
		return "", err
	}
	if shape == nil {
		return c.shapes.Why(info, class)
	}
	if _, boots := image.For(class.Status.AMIs, shape.Labels); !boots {
		return "have no AMI that fits (spec.amiSelectorTerms)", nil
	}
	at := slices.IndexFunc(have.zones[shape.Name], func(zone string) bool { _, ok := on.ids[zone]; return ok })
	if at < 0 {
		return "are not sold in the zones of the subnets (spec.subnetSelectorTerms)", nil
	}
	if !slices.Contains(info.SupportedUsageClasses, ec2types.UsageClassTypeOnDemand) {
		return "are not sold on demand", nil
	}
	return "have no price on demand that is known", nil
}
