package aws

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// instanceConverter describes instances. It asks for a class and its types once, however many instances are of it.
type instanceConverter struct {
	provider *Provider
	classes  map[string]*classTypes
}

// classTypes is a class with its types, or why they are not known.
type classTypes struct {
	class   *awsv1.EC2NodeClass
	catalog *offer.ClassCatalog
	err     error
}

func (p *Provider) newConverter() *instanceConverter {
	return &instanceConverter{provider: p, classes: map[string]*classTypes{}}
}

// classFor finds the class; its class is nil if there is none of the name.
func (c *instanceConverter) classFor(ctx context.Context, name string) *classTypes {
	if s := c.classes[name]; s != nil {
		return s
	}
	s := &classTypes{}
	if s.class, s.err = c.provider.classes.find(ctx, name); s.err == nil && s.class != nil {
		s.catalog, s.err = c.provider.catalog.ForClass(ctx, s.class)
	}
	c.classes[name] = s
	return s
}

// toInstance describes an instance in cloudprovider's words: what EC2 shows of it, what the register knows of its
// claim, and what the catalog says of its type and price. If that can't be said, what is known comes with the error.
func (c *instanceConverter) toInstance(ctx context.Context, i *ec2types.Instance) (*cloudprovider.Instance, error) {
	out := &cloudprovider.Instance{
		ProviderID: ownership.ProviderID(ownership.ZoneOf(i), *i.InstanceId), ClaimName: ownership.ClaimName(i),
		Type:        string(i.InstanceType),
		ImageID:     aws.ToString(i.ImageId),
		Terminating: i.State != nil && i.State.Name == ec2types.InstanceStateNameShuttingDown,
		Unproven:    c.provider.o.Identity != "" && ownership.TagOf(i, ownership.IdentityTagKey) == "",
	}
	if i.LaunchTime != nil {
		out.CreatedAt = *i.LaunchTime
	}
	held := c.provider.register.AssignmentOf(*i.InstanceId)
	if held != nil {
		out.Terminating = out.Terminating || !held.EndingSince.IsZero()
		if held.UID != "" {
			out.ClaimName, out.ClaimUID = held.Name, string(held.UID)
		}
	}
	if held != nil && held.CreateAnswer != nil {
		known := held.CreateAnswer.DeepCopy()
		out.Labels, out.Annotations = known.Labels, known.Annotations
		out.Capacity, out.Allocatable = known.Capacity, known.Allocatable
		out.Price, out.PriceEstimated = known.Price, known.PriceEstimated
		return out, nil
	}
	return out, c.describeByCatalog(ctx, i, out)
}

// describeByCatalog fills in what follows from the instance's type and from how it was bought. What the class no longer
// offers stays without it: the instance is there all the same.
func (c *instanceConverter) describeByCatalog(ctx context.Context, i *ec2types.Instance,
	out *cloudprovider.Instance) error {
	out.Labels = map[string]string{
		corev1.LabelInstanceTypeStable: out.Type, corev1.LabelTopologyZone: ownership.ZoneOf(i),
		v1.CapacityTypeLabelKey: boughtAs(i),
	}
	of := c.classFor(ctx, ownership.TagOf(i, awsv1.NodeClassTagKey))
	if of.class != nil {
		out.Labels[awsv1.NodeClassLabelKey] = of.class.Name
	}
	if of.err != nil || of.catalog == nil {
		return of.err
	}
	kind := of.catalog.Find(out.Type)
	if kind == nil {
		return nil
	}
	for key, values := range kind.Labels {
		if len(values) == 1 {
			out.Labels[key] = values[0]
		}
	}
	decidedAtLaunch(i, kind, out.Labels)
	out.Capacity, out.Allocatable = kind.Capacity.DeepCopy(), kind.Allocatable()
	if o := offeringOf(i, kind); o != nil {
		for key, value := range o.Labels {
			out.Labels[key] = value
		}
		out.Price, out.PriceEstimated = o.Price, o.PriceEstimated
	}
	return nil
}

// decidedAtLaunch fills in labels of which the type leaves a choice.
func decidedAtLaunch(i *ec2types.Instance, kind *cloudprovider.InstanceType, labels map[string]string) {
	if i.Placement == nil {
		return
	}
	if len(kind.Labels[awsv1.InstanceTenancyLabelKey]) > 0 && i.Placement.Tenancy != "" {
		labels[awsv1.InstanceTenancyLabelKey] = string(i.Placement.Tenancy)
	}
	if n := i.Placement.PartitionNumber; n != nil && len(kind.Labels[awsv1.PlacementGroupPartitionLabelKey]) > 0 {
		labels[awsv1.PlacementGroupPartitionLabelKey] = strconv.Itoa(int(*n))
	}
}

// offeringOf finds the offering that the instance was bought by; nil if it is not sold any more. An instance that EC2
// has put into a reservation which its class does not name is one on demand.
func offeringOf(i *ec2types.Instance, kind *cloudprovider.InstanceType) *cloudprovider.Offering {
	var plain *cloudprovider.Offering
	terms := boughtAs(i)
	if terms == v1.CapacityTypeReserved {
		terms = v1.CapacityTypeOnDemand
	}
	for k := range kind.Offerings {
		o := &kind.Offerings[k]
		if o.Labels[corev1.LabelTopologyZone] != ownership.ZoneOf(i) {
			continue
		}
		if o.ReservationID != "" && o.ReservationID == aws.ToString(i.CapacityReservationId) {
			return o
		}
		if o.ReservationID == "" && o.Labels[v1.CapacityTypeLabelKey] == terms {
			plain = o
		}
	}
	return plain
}

// boughtAs is the capacity type of an instance.
func boughtAs(i *ec2types.Instance) string {
	switch {
	case i.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot:
		return v1.CapacityTypeSpot
	case aws.ToString(i.CapacityReservationId) != "":
		return v1.CapacityTypeReserved
	}
	return v1.CapacityTypeOnDemand
}
