package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// refusals is what EC2 did not sell, and why.
type refusals struct {
	// exhausted were sold out. temporary were, too, but what stood in the way has been seen to: they count only if
	// nobody asks again. The value is why, if somebody could do something about it.
	exhausted, temporary map[cloudprovider.OfferingRef]string
	// reasons are AWS's codes and messages, each once.
	reasons []string
	// other is the last error that was not about capacity.
	other error
}

func (r *refusals) add(to *map[cloudprovider.OfferingRef]string, told error, refs ...cloudprovider.OfferingRef) {
	if *to == nil {
		*to = map[cloudprovider.OfferingRef]string{}
	}
	for _, ref := range refs {
		(*to)[ref] = cmp.Or((*to)[ref], whyOf(told))
	}
	if reason := told.Error(); !slices.Contains(r.reasons, reason) {
		r.reasons = append(r.reasons, reason)
	}
}

// whyOf is what people can do about a refusal, under AWS's code; empty if they can only wait.
func whyOf(told error) string {
	if e, ok := errors.AsType[*fault.Error](told); ok && e.Fix != "" {
		return e.Code + ": " + e.Fix
	}
	return ""
}

// refs are the offerings that were sold out, sorted.
func (r *refusals) refs() []cloudprovider.OfferingRef {
	out := slices.SortedFunc(maps.Keys(r.exhausted), compareRefs)
	for i := range out {
		out[i].Why = r.exhausted[out[i]]
	}
	return out
}

// any tells whether EC2 has refused anything.
func (r *refusals) any() bool { return len(r.exhausted)+len(r.temporary) > 0 || r.other != nil }

// mostReasons is how many different reasons a message names.
const mostReasons = 3

// err is what a claim without an instance gets. If something was sold out, the claim is planned anew without that; but
// that we were told to slow down, or may not do it, is told before all: it is not what is sold that has to change.
func (r *refusals) err() error {
	if len(r.temporary) > 0 {
		both := maps.Clone(r.temporary)
		maps.Copy(both, r.exhausted)
		r.exhausted, r.temporary = both, nil
	}
	if r.other != nil && (len(r.exhausted) == 0 || cloudprovider.IsUnauthorized(r.other) ||
		cloudprovider.IsThrottled(r.other)) {
		return r.other
	}
	if len(r.exhausted) == 0 {
		return errors.New("launching instances: EC2 has launched fewer than it was asked for and does not say why")
	}
	reasons, more := r.reasons, ""
	if len(reasons) > mostReasons {
		more = fmt.Sprintf(" (and %d other reasons)", len(reasons)-mostReasons)
		reasons = reasons[:mostReasons]
	}
	return &cloudprovider.NoCapacityError{Exhausted: r.refs(),
		Message: fmt.Sprintf("EC2 refused %d offerings: %s%s", len(r.exhausted), strings.Join(reasons, "; "), more)}
}

func compareRefs(a, b cloudprovider.OfferingRef) int {
	return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType,
		b.CapacityType), strings.Compare(a.Within, b.Within))
}

// isSoldOut tells whether the code means that this offering can't be had now, while others may.
func isSoldOut(code string) bool {
	switch code {
	case "InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity",
		"InsufficientCapacity",
		"InsufficientCapacityOnOutpost", "InsufficientCapacityOnHost", "UnfulfillableCapacity", "Unsupported",
		"InvalidFleetConfiguration", "SpotMaxPriceTooLow", "ReservationCapacityExceeded", "CapacityReservationExceeded":
		return true
	}
	return false
}

// isQuota tells whether the code means that the account may not have more of the kind. EC2 counts by families (the
// standard ones, G, P…): who has used up one may still have others.
func isQuota(code string) bool {
	switch code {
	case "VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "SpotInstanceCountLimitExceeded":
		return true
	}
	return false
}

// isTermsRefused tells whether the code means that nothing can be had on the order's terms, whatever the type. Without
// the role for spot everything but spot can.
func isTermsRefused(code string) bool {
	return code == noSpotRole || code == "MaxFleetCountExceeded" || code == "PendingVerification"
}

func isSubnetFull(code string) bool {
	// The last is the answer if a subnet has addresses left, but none of the whole blocks that spec.ipPrefixCount asks
	// for.
	return code == "InsufficientFreeAddressesInSubnet" || code == "InsufficientFreeAddresses" ||
		code == "InsufficientCidrBlocks"
}

func isSubnetGone(code string) bool {
	return code == "InvalidSubnetID.NotFound" || code == "InvalidSubnet"
}

func isTemplateGone(code string) bool { return strings.HasPrefix(code, "InvalidLaunchTemplate") }

// noSpotRole: the account has no role for spot instances yet, and we may not make it.
const noSpotRole = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"

// refs names the offerings of the spec's options that pass the filter.
func (s *launchSpec) refs(keep func(launchOption) bool) []cloudprovider.OfferingRef {
	var out []cloudprovider.OfferingRef
	for _, o := range s.Lines {
		if keep(o) {
			out = append(out, cloudprovider.OfferingRef{Type: o.Type, Zone: o.Zone, CapacityType: s.CapacityType,
				Within: o.capacityID})
		}
	}
	slices.SortFunc(out, compareRefs)
	return slices.Compact(out)
}

func anyOption(launchOption) bool { return true }

// wholeTerms stands for everything that is sold on the order's terms, whatever the type and the zone.
func (s *launchSpec) wholeTerms() cloudprovider.OfferingRef {
	return cloudprovider.OfferingRef{CapacityType: s.CapacityType}
}

// noCapacity is the meaning of a call's own error if it is about capacity; nil if it is not.
func noCapacity(r *fleetRequest, err error) error {
	told := fault.Explain("launching instances", err)
	out := &cloudprovider.NoCapacityError{Message: told.Error()}
	switch code := fault.Code(err); {
	case isTermsRefused(code):
		out.Exhausted = []cloudprovider.OfferingRef{r.spec.wholeTerms()}
	case code == "InvalidFleetConfiguration":
		return nil // of a whole call it is our mistake
	case isSoldOut(code) || isQuota(code) || isSubnetFull(code):
		out.Exhausted = r.spec.refs(anyOption)
	default:
		return nil
	}
	for i := range out.Exhausted {
		out.Exhausted[i].Why = whyOf(told)
	}
	return out
}

// handleRefusals takes in the errors that came with an answer. It reports whether another call may fill what is left,
// because what stood in the way has been seen to.
func (l *fleetLaunch) handleRefusals(ctx context.Context, r *fleetRequest,
	errs []ec2types.CreateFleetError) (again bool) {
	refused := &l.refusals
	refused.temporary = nil
	renewed := false
	for i := range errs {
		code := aws.ToString(errs[i].ErrorCode)
		kind, zone, subnet := r.refusedOption(&errs[i])
		err := fault.Explain("launching instances", fleetError(&errs[i]))
		tellFullGroup(r, err)
		switch {
		case isSubnetFull(code) || isSubnetGone(code):
			l.launcher.subnets.avoid(subnet)
			again = l.avoidFullSubnet(r, zone, err) || again
		case isTemplateGone(code):
			if !renewed {
				renewed, l.pauseNext = true, templateWait
				again = l.launcher.renewTemplates(ctx, r) == nil || again
			}
			refused.other = err
		case isTermsRefused(code):
			refused.add(&refused.exhausted, err, r.spec.wholeTerms())
		case isQuota(code) && kind == "":
			refused.add(&refused.exhausted, err, r.spec.refs(anyOption)...)
		case isSoldOut(code) && kind != "" || isQuota(code):
			l.launcher.forgetReservation(r, kind, zone)
			refused.add(&refused.exhausted, err, r.spec.refs(func(o launchOption) bool {
				return o.Type == kind && o.Zone == zone
			})...)
		default:
			refused.other = l.launcher.classFault(ctx, r.spec.class, err)
		}
	}
	return again
}

// noteRefused counts what EC2 refused of a fleet request: the offerings that it names, or, if the whole call failed,
// every zone.
func (p *Launcher) noteRefused(r *fleetRequest, errs []ec2types.CreateFleetError, err error) {
	ids := map[string]string{}
	for _, subnet := range r.spec.class.Status.Subnets {
		ids[subnet.Zone] = subnet.ZoneID
	}
	note := func(zone, code, message string) {
		p.o.Metrics.NoteRefused(zone, ids[zone], r.spec.CapacityType, code, message)
	}
	for i := range errs {
		_, zone, _ := r.refusedOption(&errs[i])
		note(zone, aws.ToString(errs[i].ErrorCode), aws.ToString(errs[i].ErrorMessage))
	}
	if err == nil {
		return
	}
	for _, zone := range r.spec.zones() {
		note(zone, fault.Code(err), err.Error())
	}
}

// tellFullGroup corrects the advice where not the account's quota is used up but that of a placement group.
func tellFullGroup(r *fleetRequest, err error) {
	told, ok := errors.AsType[*fault.Error](err)
	if ok && isQuota(told.Code) && r.spec.class.Spec.PlacementGroupSelector != nil &&
		strings.Contains(strings.ToLower(told.Message), "placement group") {
		told.Fix = "the placement group takes no more in this zone (a spread group takes seven instances); let the " +
			"pool use more zones, or another group"
	}
}

// avoidFullSubnet notes that a zone has no room where we asked for it, and reports whether it has another subnet.
func (l *fleetLaunch) avoidFullSubnet(r *fleetRequest, zone string, err error) bool {
	to := &l.refusals.exhausted
	if r.subnets[zone].hasAlternative {
		to = &l.refusals.temporary
	}
	l.refusals.add(to, err, r.spec.refs(func(o launchOption) bool { return o.Zone == zone })...)
	return r.subnets[zone].hasAlternative
}

// forgetReservation has the reservation read again in which EC2 finds no room.
func (p *Launcher) forgetReservation(r *fleetRequest, kind, zone string) {
	if _, v := r.requests[0].candidate(kind, zone); v != nil && v.Reservation != "" {
		p.o.Network.ForgetReservation(v.Reservation)
	}
}

// refusedOption says which line an error is about.
func (r *fleetRequest) refusedOption(e *ec2types.CreateFleetError) (kind, zone, subnet string) {
	o := e.LaunchTemplateAndOverrides
	if o == nil || o.Overrides == nil {
		return "", "", ""
	}
	subnet = aws.ToString(o.Overrides.SubnetId)
	if zone = r.zones[subnet]; zone == "" {
		zone = aws.ToString(o.Overrides.AvailabilityZone)
	}
	return string(o.Overrides.InstanceType), zone, subnet
}

// fleetError is an error in a fleet's answer as if it had been the answer. What differs between offerings is kept out
// of its message, so that equal reasons are told once.
func fleetError(e *ec2types.CreateFleetError) error {
	message := aws.ToString(e.ErrorMessage)
	if at := strings.Index(message, ". "); at > 0 {
		message = message[:at+1]
	}
	return &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet",
		Err: &smithy.GenericAPIError{Code: aws.ToString(e.ErrorCode), Message: message}}
}

// classFault makes an error that only a change of the NodeClass can end, or of what it selects, a NotReadyError; others
// stay what they are.
func (p *Launcher) classFault(ctx context.Context, class *awsv1.EC2NodeClass, err error) error {
	code := fault.Code(err)
	image := strings.HasPrefix(code, "InvalidAMIID.")
	if image && p.o.Images != nil {
		p.o.Images.Forget(ctx, class)
	}
	for _, prefix := range []string{"InvalidGroup", "InvalidSecurityGroup", "InvalidCapacityReservation",
		"InvalidPlacementGroup",
		"InvalidBlockDeviceMapping", "InvalidSnapshot", "InvalidParameterValue", "InvalidParameterCombination",
		"InvalidUserData", "InvalidIamInstanceProfile"} {
		if image || strings.HasPrefix(code, prefix) {
			return &cloudprovider.NotReadyError{NodeClass: class.Name, Message: err.Error()}
		}
	}
	return err
}

// renewTemplates makes the launch templates of a fleet request again that somebody has deleted.
func (p *Launcher) renewTemplates(ctx context.Context, r *fleetRequest) error {
	for name := range r.spec.templates {
		p.o.Templates.Forget(name)
	}
	return p.o.Templates.Ensure(ctx, r.spec.templates)
}
