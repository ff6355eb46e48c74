package nodeclass

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
)

func (r *Reconciler) findSubnets(ctx context.Context, class *awsv1.EC2NodeClass) verdict {
	found, err := r.Network.Subnets(ctx, class)
	if err != nil {
		return failed(err)
	}
	class.Status.Subnets = nil
	for _, s := range found {
		class.Status.Subnets = append(class.Status.Subnets, awsv1.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID})
	}
	if len(found) == 0 {
		return no(ReasonSubnetsNotFound, r.Network.WhyNoSubnets(ctx, class))
	}
	return yes()
}

func (r *Reconciler) findSecurityGroups(ctx context.Context, class *awsv1.EC2NodeClass) verdict {
	found, err := r.Network.SecurityGroups(ctx, class)
	if err != nil {
		return failed(err)
	}
	class.Status.SecurityGroups = nil
	for _, g := range found {
		class.Status.SecurityGroups = append(class.Status.SecurityGroups, awsv1.SecurityGroup{ID: g.ID, Name: g.Name})
	}
	if len(found) == 0 {
		return no(ReasonSecurityGroupsNotFound, r.Network.WhyNoSecurityGroups(ctx, class))
	}
	return yes()
}

func (r *Reconciler) findAMIs(ctx context.Context, class *awsv1.EC2NodeClass) verdict {
	found, err := r.Images.AMIs(ctx, class)
	if nothing, ok := errors.AsType[*image.NoMatchError](err); ok {
		class.Status.AMIs = nil
		return no(ReasonAMINotFound, nothing.Error())
	}
	if err != nil {
		return failed(err)
	}
	class.Status.AMIs = found
	return yes()
}

func (r *Reconciler) findReservations(ctx context.Context, class *awsv1.EC2NodeClass) verdict {
	found, err := r.Network.CapacityReservations(ctx, class)
	if err != nil {
		return failed(err)
	}
	// None is fine: nodes are then bought without.
	class.Status.CapacityReservations = nil
	for _, one := range found {
		class.Status.CapacityReservations = append(class.Status.CapacityReservations, one.Status(r.Now()))
	}
	return yes()
}

func (r *Reconciler) findPlacementGroup(ctx context.Context, class *awsv1.EC2NodeClass) verdict {
	found, err := r.Network.PlacementGroup(ctx, class)
	if err != nil {
		return failed(err)
	}
	if selector := class.Spec.PlacementGroupSelector; selector != nil && found == nil {
		return no(ReasonPlacementGroupNotFound, network.WhyNoPlacementGroup(selector))
	}
	return yes()
}

func (r *Reconciler) makeProfile(ctx context.Context, class *awsv1.EC2NodeClass) verdict {
	if class.Spec.InstanceProfile == nil && len(checkTags(class).problems) > 0 {
		return unknown(ReasonDependenciesNotReady, "no instance profile is made while spec.tags, which it gets too, "+
			"can't be used; see ValidationSucceeded")
	}
	if r.Profiles.Replaces(class) {
		// Its status will no longer show that there are profiles to remove.
		if err := r.note(ctx, class, profile.MadeAnnotationKey); err != nil {
			return failed(err)
		}
	}
	name, err := r.Profiles.Ensure(ctx, class)
	if early, ok := errors.AsType[*profile.EarlyError](err); ok {
		return verdict{status: metav1.ConditionUnknown, reason: ReasonInstanceProfileNotFound,
			message: fmt.Sprintf("the instance profile %s %s", early.Name, justMade), waits: true}
	}
	if missing, ok := errors.AsType[*profile.NoRoleError](err); ok {
		return verdict{status: no("", "").status, reason: ReasonRoleNotFound, message: missing.Error(), trouble: err}
	}
	if err != nil {
		return failed(err)
	}
	class.Status.InstanceProfile = name
	return yes()
}

// note puts an annotation on the class in the API, without a change to what this look has found so far.
func (r *Reconciler) note(ctx context.Context, class *awsv1.EC2NodeClass, key string) error {
	return annotate(ctx, r.Client, class.DeepCopy(), map[string]string{key: "true"})
}
