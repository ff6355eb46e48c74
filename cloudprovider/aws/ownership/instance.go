package ownership

import (
	"fmt"
	"regexp"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/aws/aws-sdk-go-v2/aws"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

var idPattern = regexp.MustCompile(`^aws:///[^/]*/(i-[0-9a-f]+)$`)

// ProviderID is what the node of the instance will carry.
func ProviderID(zone, id string) string { return "aws:///" + zone + "/" + id }

// InstanceID reads a provider id.
func InstanceID(providerID string) (string, error) {
	m := idPattern.FindStringSubmatch(providerID)
	if m == nil {
		return "", fmt.Errorf("reading the provider id %q: want aws:///<zone>/i-…", providerID)
	}
	return m[1], nil
}

// TagOf is the value of one of the instance's tags; empty if it has none of the key.
func TagOf(i *ec2types.Instance, key string) string {
	for _, t := range i.Tags {
		if t.Key != nil && *t.Key == key && t.Value != nil {
			return *t.Value
		}
	}
	return ""
}

// tagsOf are the instance's tags.
func tagsOf(i *ec2types.Instance) map[string]string {
	out := make(map[string]string, len(i.Tags))
	for _, t := range i.Tags {
		if t.Key != nil && t.Value != nil {
			out[*t.Key] = *t.Value
		}
	}
	return out
}

// isAlive tells whether the instance runs or is about to.
func isAlive(i *ec2types.Instance) bool {
	if i.State == nil {
		return false
	}
	switch i.State.Name {
	case ec2types.InstanceStateNamePending, ec2types.InstanceStateNameRunning:
		return true
	}
	return false
}

// ClaimName is the name of the claim that the instance carries; empty if it carries none yet.
func ClaimName(i *ec2types.Instance) string { return TagOf(i, awsv1.NodeClaimTagKey) }

// ZoneOf is the zone that the instance is in; empty if EC2 does not say it.
func ZoneOf(i *ec2types.Instance) string {
	if i.Placement == nil {
		return ""
	}
	return aws.ToString(i.Placement.AvailabilityZone)
}
