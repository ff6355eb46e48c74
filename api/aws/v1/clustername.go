package v1

import (
	"maps"
	"slices"
	"strings"
)

// ClusterNameVariable in the role, or in the value of a tag to select subnets or security groups by, stands for the
// name of the cluster that the class is in. Neither can hold these characters otherwise.
const ClusterNameVariable = "${CLUSTER_NAME}"

// RoleIn returns the role in a cluster of this name.
func (c *EC2NodeClass) RoleIn(cluster string) string {
	return strings.ReplaceAll(c.Spec.Role, ClusterNameVariable, cluster)
}

// SubnetSelectorTermsIn returns the terms in a cluster of this name.
func (c *EC2NodeClass) SubnetSelectorTermsIn(cluster string) []SubnetSelectorTerm {
	out := slices.Clone(c.Spec.SubnetSelectorTerms)
	for i := range out {
		out[i].Tags = tagsIn(out[i].Tags, cluster)
	}
	return out
}

// SecurityGroupSelectorTermsIn returns the terms in a cluster of this name.
func (c *EC2NodeClass) SecurityGroupSelectorTermsIn(cluster string) []SecurityGroupSelectorTerm {
	out := slices.Clone(c.Spec.SecurityGroupSelectorTerms)
	for i := range out {
		out[i].Tags = tagsIn(out[i].Tags, cluster)
	}
	return out
}

func tagsIn(tags map[string]string, cluster string) map[string]string {
	out := maps.Clone(tags)
	for key, value := range out {
		out[key] = strings.ReplaceAll(value, ClusterNameVariable, cluster)
	}
	return out
}
