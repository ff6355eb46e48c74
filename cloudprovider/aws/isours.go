package aws

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// IsOurs reports whether a NodeClaim refers to an EC2NodeClass. Others belong to another controller, such as EKS Auto
// Mode, whose nodes are instances of the same account: nothing is written about them.
func IsOurs(claim *unstructured.Unstructured) bool {
	ref, _, err := unstructured.NestedMap(claim.Object, "spec", "nodeClassRef")
	return err == nil && ref["group"] == awsv1.Group && ref["kind"] == awsv1.Kind
}
