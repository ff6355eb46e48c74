package nodeclass

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

// validate checks what the API server could not, and then rehearses a launch.
func (r *Reconciler) validate(ctx context.Context, class *awsv1.EC2NodeClass) verdict {
	tags, devices := checkTags(class), checkDevices(class)
	for _, seen := range []struct {
		reason   string
		problems []string
	}{
		{ReasonTagValidationFailed, tags.problems},
		{ReasonInvalidKubeletConfiguration, kubeletProblems(class, r.Expressions)},
		{ReasonInvalidBlockDevices, devices.problems},
	} {
		if len(seen.problems) > 0 {
			return no(seen.reason, strings.Join(seen.problems, "; "))
		}
	}
	if err := family.CheckUserData(class); err != nil {
		return no(ReasonInvalidUserData, err.Error())
	}
	if v, wait := awaiting(class); wait {
		return v
	}
	v := verdict{status: metav1.ConditionTrue, reason: ReasonDryRunDisabled}
	if r.Rehearser != nil {
		v = r.rehearse(ctx, class)
	}
	if v.status == metav1.ConditionTrue {
		v.message = strings.Join(slices.Concat(withoutEffect(class), tags.doubts, devices.doubts, doubtKeys(class),
			family.DoubtUserData(class)), "; ")
	}
	return v
}

// withoutEffect says which setting the contract passes over in silence.
func withoutEffect(class *awsv1.EC2NodeClass) []string {
	if _, set := class.Spec.Kubelet["podsPerCore"]; set && !family.Of(class).Flags().PodsPerCore {
		return []string{fmt.Sprintf("spec.kubelet.podsPerCore has no effect on nodes of the AMI family %s; use maxPods",
			class.AMIFamily())}
	}
	return nil
}

// awaiting tells whether something is missing without which there is nothing to rehearse.
func awaiting(class *awsv1.EC2NodeClass) (verdict, bool) {
	var wrong, open []string
	for _, name := range []string{
		awsv1.ConditionTypeAMIsReady, awsv1.ConditionTypeInstanceProfileReady,
		awsv1.ConditionTypeSecurityGroupsReady, awsv1.ConditionTypeSubnetsReady, awsv1.ConditionTypePlacementGroupReady,
	} {
		c := meta.FindStatusCondition(class.Status.Conditions, name)
		switch {
		case c == nil || c.Status == metav1.ConditionUnknown:
			open = append(open, name)
		case c.Status == metav1.ConditionFalse:
			wrong = append(wrong, name)
		}
	}
	switch {
	case len(wrong) > 0:
		return no(ReasonDependenciesNotReady, "waiting for "+strings.Join(wrong, ", ")), true
	case len(open) > 0:
		return unknown(ReasonDependenciesNotReady, "waiting for "+strings.Join(open, ", ")), true
	default:
		return verdict{}, false
	}
}
