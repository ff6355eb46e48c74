package nodeclass

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
)

// validate checks what the API server could not, and then rehearses a launch.
func (r *Reconciler) validate(ctx context.Context, class *awsv1.EC2NodeClass) verdict {
	if problems := tagProblems(class.Spec.Tags); len(problems) > 0 {
		return no(ReasonTagValidationFailed, strings.Join(problems, "; "))
	}
	if problems := kubeletProblems(class, r.Expressions); len(problems) > 0 {
		return no(ReasonInvalidKubeletConfiguration, strings.Join(problems, "; "))
	}
	if v, wait := awaiting(class); wait {
		return v
	}
	v := verdict{status: metav1.ConditionTrue, reason: ReasonDryRunDisabled}
	if r.Rehearser != nil {
		v = r.rehearse(ctx, class)
	}
	if v.status == metav1.ConditionTrue {
		v.message = withoutEffect(class)
	}
	return v
}

// withoutEffect says which setting the contract passes over in silence.
func withoutEffect(class *awsv1.EC2NodeClass) string {
	if _, set := class.Spec.Kubelet["podsPerCore"]; set && !family.Of(class).Flags().PodsPerCore {
		return fmt.Sprintf("spec.kubelet.podsPerCore has no effect on nodes of the AMI family %s; use maxPods", class.AMIFamily())
	}
	return ""
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

// EC2's limits of tags. Of the number, some are left for the tags that the controller adds itself.
const (
	longestKey, longestValue = 128, 256
	mostTags                 = 50
	ownTags                  = 8
)

// tagProblems lists what EC2 would refuse about the tags of a class.
func tagProblems(tags map[string]string) []string {
	var out []string
	if most := mostTags - ownTags; len(tags) > most {
		out = append(out, fmt.Sprintf("spec.tags has %d tags and EC2 takes %d, of which the controller needs %d; remove %d",
			len(tags), mostTags, ownTags, len(tags)-most))
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		switch {
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			out = append(out, fmt.Sprintf("spec.tags: keys that begin with aws: are AWS's own; rename %s", key))
		case len([]rune(key)) > longestKey:
			out = append(out, fmt.Sprintf("spec.tags: the key %.20s… has %d characters and EC2 takes %d; shorten it", key, len([]rune(key)), longestKey))
		case len([]rune(tags[key])) > longestValue:
			out = append(out, fmt.Sprintf("spec.tags: the value of %s has %d characters and EC2 takes %d; shorten it", key, len([]rune(tags[key])), longestValue))
		}
		if reserved(key) {
			out = append(out, fmt.Sprintf("spec.tags: the controller sets %s itself; remove it", key))
		}
	}
	return out
}

// reserved tells whether a tag is one that the controller sets.
func reserved(key string) bool {
	switch key {
	case awsv1.NodePoolTagKey, awsv1.NodeClaimTagKey, awsv1.NodeClassTagKey, awsv1.EKSClusterNameTagKey:
		return true
	}
	return strings.HasPrefix(key, strings.TrimSuffix(awsv1.ClusterTagPrefix, "/"))
}
