package v1

import (
	"reflect"
	"testing"
)

func TestClusterName(t *testing.T) {
	class := &EC2NodeClass{}
	class.Spec.Role = "KarpenterNodeRole-${CLUSTER_NAME}"
	class.Spec.SubnetSelectorTerms = []SubnetSelectorTerm{{Tags: map[string]string{"a": "${CLUSTER_NAME}", "b": "*"}},
		{ID: "subnet-1"}}
	class.Spec.SecurityGroupSelectorTerms =
		[]SecurityGroupSelectorTerm{{Tags: map[string]string{"a": "x-${CLUSTER_NAME}"}}, {Name: "nodes"}}
	before := class.DeepCopy()
	if got := class.RoleIn("prod"); got != "KarpenterNodeRole-prod" {
		t.Errorf("the role is %s", got)
	}
	if got, want := class.SubnetSelectorTermsIn("prod"),
		[]SubnetSelectorTerm{{Tags: map[string]string{"a": "prod", "b": "*"}},
			{ID: "subnet-1"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the terms of subnets are %v, want %v", got, want)
	}
	if got, want := class.SecurityGroupSelectorTermsIn("prod"),
		[]SecurityGroupSelectorTerm{{Tags: map[string]string{"a": "x-prod"}}, {Name: "nodes"}}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("the terms of security groups are %v, want %v", got, want)
	}
	if !reflect.DeepEqual(class, before) {
		t.Error("the class itself was changed")
	}
}
