package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
)

// Reasons for drift.
const (
	AMIDrift                 cloudprovider.DriftReason = "AMIDrift"
	SubnetDrift              cloudprovider.DriftReason = "SubnetDrift"
	SecurityGroupDrift       cloudprovider.DriftReason = "SecurityGroupDrift"
	CapacityReservationDrift cloudprovider.DriftReason = "CapacityReservationDrift"
	PlacementGroupDrift      cloudprovider.DriftReason = "PlacementGroupDrift"
	NodeClassDrift           cloudprovider.DriftReason = "NodeClassDrift"
)

// Drifted implements cloudprovider.Provider. What a class has not found out yet is no reason for drift: a status that
// is empty for a moment must not replace every node.
func (p *Provider) Drifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	if claim.Spec.NodeClassRef == nil {
		return "", nil
	}
	class, err := p.classes.find(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil || class == nil || !class.DeletionTimestamp.IsZero() {
		return "", err
	}
	if staticDrift(class, claim) {
		return NodeClassDrift, nil
	}
	id, err := ownership.InstanceID(claim.Status.ProviderID)
	if err != nil {
		return "", nil
	}
	i, err := p.instances.FromRecentScan(ctx, id, claim.Status.ProviderID)
	if err != nil || i == nil {
		return "", err
	}
	c, err := p.catalog.ForClass(ctx, class)
	if err != nil {
		return "", err
	}
	switch {
	case imageDrift(class, i, c.Find(string(i.InstanceType))):
		return AMIDrift, nil
	case groupDrift(class, i):
		return SecurityGroupDrift, nil
	case subnetDrift(class, i):
		return SubnetDrift, nil
	case reservationDrift(class, claim, i):
		return CapacityReservationDrift, nil
	}
	drifted, err := p.placementDrift(ctx, class, i)
	if drifted {
		return PlacementGroupDrift, err
	}
	return "", err
}

// staticDrift compares the version of the class that the claim was launched from with the present one.
func staticDrift(class *awsv1.EC2NodeClass, claim *v1.NodeClaim) bool {
	now, then := class.Annotations[awsv1.HashAnnotationKey], claim.Annotations[awsv1.HashAnnotationKey]
	sameWay := class.Annotations[awsv1.HashVersionAnnotationKey] == claim.Annotations[awsv1.HashVersionAnnotationKey]
	return now != "" && then != "" && sameWay && now != then
}

// imageDrift tells whether the instance would boot another image now. A type that the class can't use any more has
// none.
func imageDrift(class *awsv1.EC2NodeClass, i *ec2types.Instance, kind *cloudprovider.InstanceType) bool {
	if len(class.Status.AMIs) == 0 || i.ImageId == nil {
		return false
	}
	if kind == nil {
		return !slices.ContainsFunc(class.Status.AMIs, func(a awsv1.AMI) bool { return a.ID == *i.ImageId })
	}
	ami, ok := image.For(class.Status.AMIs, kind.Labels)
	return ok && ami.ID != *i.ImageId
}

func subnetDrift(class *awsv1.EC2NodeClass, i *ec2types.Instance) bool {
	return len(class.Status.Subnets) > 0 && aws.ToString(i.SubnetId) != "" &&
		!slices.ContainsFunc(class.Status.Subnets, func(s awsv1.Subnet) bool { return s.ID == *i.SubnetId })
}

func groupDrift(class *awsv1.EC2NodeClass, i *ec2types.Instance) bool {
	if len(class.Status.SecurityGroups) == 0 || len(i.SecurityGroups) == 0 {
		return false
	}
	var want, have []string
	for _, g := range class.Status.SecurityGroups {
		want = append(want, g.ID)
	}
	for _, g := range i.SecurityGroups {
		have = append(have, aws.ToString(g.GroupId))
	}
	slices.Sort(want)
	slices.Sort(have)
	return !slices.Equal(slices.Compact(want), slices.Compact(have))
}

// reservationDrift tells whether the instance was bought from a reservation that the class no longer names. One whose
// reservation has ended runs on, on demand; and a class that has not looked for its reservations says nothing about
// them.
func reservationDrift(class *awsv1.EC2NodeClass, claim *v1.NodeClaim, i *ec2types.Instance) bool {
	id := aws.ToString(i.CapacityReservationId)
	if claim.Labels[v1.CapacityTypeLabelKey] != v1.CapacityTypeReserved || id == "" {
		return false
	}
	looked := meta.FindStatusCondition(class.Status.Conditions, awsv1.ConditionTypeCapacityReservationsReady)
	if looked == nil || looked.Status != metav1.ConditionTrue || looked.ObservedGeneration != class.Generation {
		return false
	}
	return !slices.ContainsFunc(class.Status.CapacityReservations, func(r awsv1.CapacityReservation) bool {
		return r.ID == id
	})
}

// placementDrift tells whether the class now asks for another placement group than the one that the instance is in.
func (p *Provider) placementDrift(ctx context.Context, class *awsv1.EC2NodeClass, i *ec2types.Instance) (bool, error) {
	group, err := p.o.Network.PlacementGroup(ctx, class)
	if err != nil || i.Placement == nil {
		return false, err
	}
	have := aws.ToString(i.Placement.GroupId)
	if class.Spec.PlacementGroupSelector == nil {
		return have != "", nil
	}
	return group != nil && have != group.ID, nil
}
