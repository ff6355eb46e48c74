package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// refusals is what EC2 did not sell, and why.
type refusals struct {
	// exhausted were sold out; odd were refused for a reason that has nothing to do with capacity.
	exhausted, odd map[cloudprovider.OfferingRef]bool
	// reasons are AWS's codes and messages, each once.
	reasons []string
	// other is the last error that was not about capacity.
	other error
}

func (r *refusals) add(to *map[cloudprovider.OfferingRef]bool, reason string, refs ...cloudprovider.OfferingRef) {
	if *to == nil {
		*to = map[cloudprovider.OfferingRef]bool{}
	}
	for _, ref := range refs {
		(*to)[ref] = true
	}
	if !slices.Contains(r.reasons, reason) {
		r.reasons = append(r.reasons, reason)
	}
}

// mostReasons is how many different reasons a message names.
const mostReasons = 3

// err is what a claim without an instance gets. If something was merely sold out, the claim is planned anew without what
// was refused; otherwise it would meet the same error again.
func (r *refusals) err() error {
	if len(r.exhausted) == 0 && r.other != nil {
		return r.other
	}
	if len(r.exhausted) == 0 {
		return errors.New("launching instances: EC2 has launched fewer than it was asked for and does not say why")
	}
	var refs []cloudprovider.OfferingRef
	for _, set := range []map[cloudprovider.OfferingRef]bool{r.exhausted, r.odd} {
		for ref := range set {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, compareRefs)
	refs = slices.Compact(refs)
	reasons, more := r.reasons, ""
	if len(reasons) > mostReasons {
		more = fmt.Sprintf(" (and %d other reasons)", len(reasons)-mostReasons)
		reasons = reasons[:mostReasons]
	}
	return &cloudprovider.NoCapacityError{Exhausted: refs,
		Message: fmt.Sprintf("EC2 refused %d offerings: %s%s", len(refs), strings.Join(reasons, "; "), more)}
}

func compareRefs(a, b cloudprovider.OfferingRef) int {
	return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType, b.CapacityType))
}

// isSoldOut tells whether the code means that this offering can't be had now, while others may.
func isSoldOut(code string) bool {
	switch code {
	case "InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity", "InsufficientCapacity",
		"InsufficientCapacityOnOutpost", "InsufficientCapacityOnHost", "UnfulfillableCapacity", "Unsupported",
		"InvalidFleetConfiguration", "SpotMaxPriceTooLow", "ReservationCapacityExceeded", "CapacityReservationExceeded":
		return true
	}
	return false
}

// isQuota tells whether the code means that the account may not have more of the kind.
func isQuota(code string) bool {
	switch code {
	case "VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "SpotInstanceCountLimitExceeded", "MaxFleetCountExceeded",
		"PendingVerification":
		return true
	}
	return false
}

func isSubnetFull(code string) bool {
	return code == "InsufficientFreeAddressesInSubnet" || code == "InsufficientFreeAddresses"
}

func isSubnetGone(code string) bool {
	return code == "InvalidSubnetID.NotFound" || code == "InvalidSubnet"
}

func isTemplateGone(code string) bool { return strings.HasPrefix(code, "InvalidLaunchTemplate") }

// noSpotRole: the account has no role for spot instances yet, and we may not make it. Everything but spot can be had.
const noSpotRole = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"

// refs names the offerings of the order's lines that pass the filter.
func (o *order) refs(keep func(line) bool) []cloudprovider.OfferingRef {
	var out []cloudprovider.OfferingRef
	for _, l := range o.Lines {
		if keep(l) {
			out = append(out, cloudprovider.OfferingRef{Type: l.Type, Zone: l.Zone, CapacityType: o.CapacityType})
		}
	}
	slices.SortFunc(out, compareRefs)
	return slices.Compact(out)
}

func everything(line) bool { return true }

// noCapacity is the meaning of a call's own error if it is about capacity; nil if it is not.
func noCapacity(s *sale, err error) error {
	code := fault.Code(err)
	if !isSoldOut(code) && !isQuota(code) && !isSubnetFull(code) && code != noSpotRole {
		return nil
	}
	return &cloudprovider.NoCapacityError{Exhausted: s.order.refs(everything), Message: fault.Explain("launching instances", err).Error()}
}

// learn takes in the errors that came with an answer. It reports whether another call may fill what is left, because
// what stood in the way has been seen to.
func (p *Provider) learn(ctx context.Context, s *sale, errs []ec2types.CreateFleetError, refused *refusals) (again bool) {
	renewed := false
	for i := range errs {
		e := &errs[i]
		code := text(e.ErrorCode)
		kind, zone, subnet := s.refusedLine(e)
		ref := cloudprovider.OfferingRef{Type: kind, Zone: zone, CapacityType: s.order.CapacityType}
		err := fault.Explain("launching instances", fleetError(e))
		switch {
		case isSubnetFull(code) || isSubnetGone(code):
			p.subnets.avoid(subnet)
			again = again || s.picks[zone].spare
			refused.add(&refused.exhausted, err.Error(), s.order.refs(func(l line) bool { return l.Zone == zone })...)
		case isTemplateGone(code):
			if !renewed {
				renewed = true
				again = p.renewTemplates(ctx, s) == nil || again
			}
			refused.other = err
		case code == noSpotRole || isQuota(code) && kind == "":
			refused.add(&refused.exhausted, err.Error(), s.order.refs(everything)...)
		case isSoldOut(code) && kind != "" || isQuota(code):
			p.forgetReservation(s, kind, zone)
			refused.add(&refused.exhausted, err.Error(), ref)
		default:
			refused.add(&refused.odd, err.Error(), ref)
			refused.other = p.classFault(ctx, s.order.class, err)
		}
	}
	return again
}

// forgetReservation has the reservation read again in which EC2 finds no room.
func (p *Provider) forgetReservation(s *sale, kind, zone string) {
	if _, m := s.buyers[0].candidate(kind, zone); m != nil && m.Reservation != "" {
		p.network.ForgetReservation(m.Reservation)
	}
}

// refusedLine says which line an error is about.
func (s *sale) refusedLine(e *ec2types.CreateFleetError) (kind, zone, subnet string) {
	o := e.LaunchTemplateAndOverrides
	if o == nil || o.Overrides == nil {
		return "", "", ""
	}
	subnet = text(o.Overrides.SubnetId)
	if zone = s.zones[subnet]; zone == "" {
		zone = text(o.Overrides.AvailabilityZone)
	}
	return string(o.Overrides.InstanceType), zone, subnet
}

// fleetError is an error in a fleet's answer as if it had been the answer. What differs between offerings is kept out of
// its message, so that equal reasons are told once.
func fleetError(e *ec2types.CreateFleetError) error {
	message := text(e.ErrorMessage)
	if at := strings.Index(message, ". "); at > 0 {
		message = message[:at+1]
	}
	return &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet", Err: &smithy.GenericAPIError{Code: text(e.ErrorCode), Message: message}}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// classFault makes an error that only a change of the NodeClass can end, or of what it selects, a NotReadyError; others
// stay what they are.
func (p *Provider) classFault(ctx context.Context, class *awsv1.EC2NodeClass, err error) error {
	code := fault.Code(err)
	image := strings.HasPrefix(code, "InvalidAMIID.")
	if image && p.images != nil {
		p.images.Forget(ctx, class)
	}
	for _, prefix := range []string{"InvalidGroup", "InvalidSecurityGroup", "InvalidCapacityReservation", "InvalidPlacementGroup",
		"InvalidBlockDeviceMapping", "InvalidSnapshot", "InvalidParameterValue", "InvalidParameterCombination", "InvalidUserData", "InvalidIamInstanceProfile"} {
		if image || strings.HasPrefix(code, prefix) {
			return &cloudprovider.NotReadyError{NodeClass: class.Name, Message: err.Error()}
		}
	}
	return err
}

// renewTemplates makes the launch templates of a sale again that somebody has deleted.
func (p *Provider) renewTemplates(ctx context.Context, s *sale) error {
	for name := range s.order.templates {
		p.templates.forget(name)
	}
	return p.templates.ensure(ctx, s.order.templates)
}
