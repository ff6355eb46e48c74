package nodeclass

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// EC2's limits of tags. Of the number, some are left for the tags that the controller adds itself: to an instance those
// of cluster (two), NodePool, NodeClass and NodeClaim, and Name. Nothing else that is made gets more.
const (
	longestKey, longestValue = 128, 256
	mostTags                 = 50
	ownTags                  = 6
	// launchTags is the least that a launch for several claims needs besides: its own name, which claims it is for, and
	// the cluster's identity.
	launchTags = 3
)

// ownPrefix begins the keys of tags that Tenon writes beyond those of the contract.
const ownPrefix = "tenon.sh/"

// plainTag is what IAM takes in keys and values of tags. EC2 takes every character.
var plainTag = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

// checkTags looks at spec.tags.
func checkTags(class *awsv1.EC2NodeClass) findings {
	var out findings
	tags := class.Spec.Tags
	own := ownTags
	if _, named := tags[awsv1.NameTagKey]; named {
		own--
	}
	switch most := mostTags - own; {
	case len(tags) > most:
		out.problem("spec.tags has %d tags and EC2 takes %d, of which the controller needs %d; remove %d", len(tags),
			mostTags, own, len(tags)-most)
	case len(tags) > mostTags-ownTags-launchTags:
		out.doubt("spec.tags has %d tags, which leaves no room to launch nodes together: each takes a launch of its "+
			"own, and many take long; keep to %d", len(tags), mostTags-ownTags-launchTags)
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out.checkTag(key, tags[key], class)
	}
	return out
}

func (f *findings) checkTag(key, value string, class *awsv1.EC2NodeClass) {
	switch {
	case reserved(key):
		f.problem("spec.tags: the controller sets %s itself; remove it", key)
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		f.problem("spec.tags: keys that begin with aws: are AWS's own; rename %s", key)
	case len([]rune(key)) > longestKey:
		f.problem("spec.tags: the key %.20s… has %d characters and EC2 takes %d; shorten it", key, len([]rune(key)),
			longestKey)
	case len([]rune(value)) > longestValue:
		f.problem("spec.tags: the value of %s has %d characters and EC2 takes %d; shorten it", key, len([]rune(value)),
			longestValue)
	case class.Spec.InstanceProfile != nil || plainTag.MatchString(key) && plainTag.MatchString(value):
	case class.Status.InstanceProfile == "":
		f.problem("spec.tags: %s has characters that IAM refuses, and the instance profile of spec.role gets these "+
			"tags too; %s", named(key, value), plainOnly)
	default:
		// The profile is there, and its tags stay as they are.
		f.doubt("spec.tags: %s has characters that IAM refuses, so no other instance profile can be made for "+
			"spec.role; %s", named(key, value), plainOnly)
	}
}

const plainOnly = "use letters, digits, spaces and _ . : / = + - @"

// named says which of a tag is meant.
func named(key, value string) string {
	if !plainTag.MatchString(key) {
		return fmt.Sprintf("the key %q", key)
	}
	return fmt.Sprintf("the value %q of %s", value, key)
}

// reserved tells whether a tag is one that the controller sets.
func reserved(key string) bool {
	switch key {
	case awsv1.NodePoolTagKey, awsv1.NodeClaimTagKey, awsv1.NodeClassTagKey, awsv1.EKSClusterNameTagKey:
		return true
	}
	return strings.HasPrefix(key, ownPrefix) || strings.HasPrefix(key, strings.TrimSuffix(awsv1.ClusterTagPrefix, "/"))
}
