package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// Reasons of conditions, beside AWS's own codes.
const (
	ReasonSubnetsNotFound             = "SubnetsNotFound"
	ReasonSecurityGroupsNotFound      = "SecurityGroupsNotFound"
	ReasonAMINotFound                 = "AMINotFound"
	ReasonPlacementGroupNotFound      = "PlacementGroupNotFound"
	ReasonRoleNotFound                = "RoleNotFound"
	ReasonInstanceProfileNotFound     = "InstanceProfileNotFound"
	ReasonDependenciesNotReady        = "DependenciesNotReady"
	ReasonTagValidationFailed         = "TagValidationFailed"
	ReasonInvalidKubeletConfiguration = "InvalidKubeletConfiguration"
	ReasonInvalidBlockDevices         = "InvalidBlockDeviceMappings"
	ReasonInvalidUserData             = "InvalidUserData"
	ReasonUserDataTooLarge            = "UserDataSizeLimitExceeded"
	ReasonNoClusterCIDR               = "ClusterCIDRResolutionFailed"
	ReasonInvalidLaunch               = "InvalidLaunch"
	ReasonDryRunDisabled              = "DryRunDisabled"
	ReasonUnhealthyDependents         = "UnhealthyDependents"
	ReasonReconcilingDependents       = "ReconcilingDependents"
	// ReasonAWSUnreachable is for calls that AWS has not answered, ReasonNoCredentials for those that could not be
	// made, and ReasonClusterUnreachable for what the cluster itself did not tell.
	ReasonAWSUnreachable     = "AWSUnreachable"
	ReasonNoCredentials      = "NoCredentials"
	ReasonClusterUnreachable = "ClusterUnreachable"

	// EventWaitingOnNodeClaims tells why a class that was deleted is still there.
	EventWaitingOnNodeClaims = "WaitingOnNodeClaimTermination"
	// EventFinalized tells that nothing keeps a class any more that was deleted.
	EventFinalized = "Finalized"
	// EventDoubtfulSetting tells of a setting of a class that can be used and may well not do what is meant.
	EventDoubtfulSetting = "DoubtfulSetting"
	// EventInstanceProfileLeft tells of a profile that a class leaves behind.
	EventInstanceProfileLeft = "InstanceProfileLeft"
)

// verdict is what a step found out.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
	// trouble, if there is any, makes the class be looked at again soon.
	trouble error
	// passing means that the trouble says nothing about the class: a True condition stays.
	passing bool
	// waits means that all is in order and AWS needs some seconds: the class is looked at again soon, and nobody is
	// alarmed.
	waits bool
}

func yes() verdict { return verdict{status: metav1.ConditionTrue} }

func no(reason, message string) verdict {
	return verdict{status: metav1.ConditionFalse, reason: reason, message: message}
}

func unknown(reason, message string) verdict {
	return verdict{status: metav1.ConditionUnknown, reason: reason, message: message}
}

// failed is the verdict on a call that went wrong. AWS's word counts; that AWS is busy or out of reach does not.
func failed(err error) verdict {
	v := verdict{status: metav1.ConditionFalse, reason: codeReason(fault.Code(err)), message: err.Error(), trouble: err}
	denied := cloudprovider.IsUnauthorized(err) || fault.IsUnauthorized(err)
	if !denied && (cloudprovider.IsThrottled(err) || fault.IsThrottled(err) || fault.Lost(err) ||
		errors.Is(err, context.Canceled)) {
		v.status, v.passing = metav1.ConditionUnknown, true
	}
	_, calledAWS := errors.AsType[*fault.Error](err)
	switch {
	case v.reason != "":
	case fault.LacksCredentials(err):
		v.reason = ReasonNoCredentials
	case calledAWS:
		v.reason = ReasonAWSUnreachable
	default:
		v.reason = ReasonClusterUnreachable
	}
	return v
}

// codeReason is AWS's code in the form that a condition's reason has: without dots.
func codeReason(code string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' {
			return c
		}
		return -1
	}, code)
}

// look takes all steps and writes what they find into the class's status. It returns what should be tried again soon.
// waits tells that AWS only needs some seconds.
func (r *Reconciler) look(ctx context.Context, class *awsv1.EC2NodeClass) (waits bool, err error) {
	steps := []struct {
		condition string
		take      func(context.Context, *awsv1.EC2NodeClass) verdict
	}{
		{awsv1.ConditionTypeSubnetsReady, r.findSubnets},
		{awsv1.ConditionTypeSecurityGroupsReady, r.findSecurityGroups},
		{awsv1.ConditionTypeAMIsReady, r.findAMIs},
		{awsv1.ConditionTypePlacementGroupReady, r.findPlacementGroup},
		{awsv1.ConditionTypeInstanceProfileReady, r.makeProfile},
		{awsv1.ConditionTypeCapacityReservationsReady, r.findReservations},
		{awsv1.ConditionTypeValidationSucceeded, r.validate},
	}
	var trouble []error
	for _, step := range steps {
		if step.condition == awsv1.ConditionTypeCapacityReservationsReady && !r.ReservedCapacity {
			meta.RemoveStatusCondition(&class.Status.Conditions, step.condition)
			class.Status.CapacityReservations = nil
			continue
		}
		v := step.take(ctx, class)
		trouble = append(trouble, v.trouble)
		waits = waits || v.waits
		r.set(class, step.condition, v)
	}
	r.sumUp(class)
	return waits, errors.Join(trouble...)
}

// set writes a condition.
func (r *Reconciler) set(class *awsv1.EC2NodeClass, condition string, v verdict) {
	have := meta.FindStatusCondition(class.Status.Conditions, condition)
	if v.passing && have != nil && have.Status == metav1.ConditionTrue && have.ObservedGeneration == class.Generation {
		return
	}
	if v.status == metav1.ConditionTrue && v.reason == "" {
		v.reason = condition
	}
	meta.SetStatusCondition(&class.Status.Conditions, metav1.Condition{
		Type: condition, Status: v.status, Reason: v.reason, Message: v.message,
		ObservedGeneration: class.Generation, LastTransitionTime: metav1.NewTime(r.Now()),
	})
}

// sumUp sets Ready: True if all others are, False if one is, and in its words.
func (r *Reconciler) sumUp(class *awsv1.EC2NodeClass) {
	var wrong, open []string
	for _, c := range class.Status.Conditions {
		switch {
		case c.Type == v1.ConditionTypeReady || c.Status == metav1.ConditionTrue:
		case c.Reason == ReasonDependenciesNotReady:
			// It only repeats the others.
			open = append(open, c.Type)
		case c.Status == metav1.ConditionFalse:
			wrong = append(wrong, fmt.Sprintf("%s=False: %s", c.Type, c.Message))
		default:
			open = append(open, fmt.Sprintf("%s=Unknown: %s", c.Type, c.Message))
		}
	}
	switch {
	case len(wrong) > 0:
		r.set(class, v1.ConditionTypeReady, no(ReasonUnhealthyDependents, strings.Join(wrong, "; ")))
	case len(open) > 0:
		r.set(class, v1.ConditionTypeReady, unknown(ReasonReconcilingDependents, strings.Join(open, "; ")))
	default:
		r.set(class, v1.ConditionTypeReady, yes())
	}
}

func ready(class *awsv1.EC2NodeClass) bool {
	return meta.IsStatusConditionTrue(class.Status.Conditions, v1.ConditionTypeReady)
}

// tell writes an event for each condition that has news.
func (r *Reconciler) tell(before, class *awsv1.EC2NodeClass) {
	for _, c := range class.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, c.Type)
		r.Metrics.moved(was, c)
		same := was != nil && was.Status == c.Status && was.Reason == c.Reason && was.Message == c.Message
		if same || c.Reason == ReasonDependenciesNotReady || spreads(&c) {
			continue
		}
		// The contract tells the change. What is wrong is told as a warning, too, under the name that AWS has for it.
		if was != nil && was.Status != c.Status {
			r.Events.Eventf(reference(class), nil, corev1.EventTypeNormal, c.Type, "Look", "%s", transition(was, &c))
		}
		switch {
		case c.Type == v1.ConditionTypeReady: // its text is that of the others
		case c.Status != metav1.ConditionTrue && c.Message != "":
			r.Events.Eventf(reference(class), nil, corev1.EventTypeWarning, c.Reason, "Look", "%s: %s",
				c.Type, c.Message)
		case c.Message != "":
			r.Events.Eventf(reference(class), nil, corev1.EventTypeWarning, EventDoubtfulSetting, "Look",
				"%s", c.Message)
		}
	}
}

func transition(was, is *metav1.Condition) string {
	text := fmt.Sprintf("%s is %s now, it was %s (%s)", is.Type, is.Status, was.Status, is.Reason)
	if is.Message != "" {
		text += ": " + is.Message
	}
	return text
}
