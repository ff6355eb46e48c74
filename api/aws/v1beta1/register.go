package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// Version is the name of this version.
const Version = "v1beta1"

// GroupVersion returns karpenter.k8s.aws/v1beta1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: awsv1.Group, Version: Version}
}

// AddToScheme teaches a scheme the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(addKnownTypes)
	return builder.AddToScheme(s)
}

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &EC2NodeClass{}, &EC2NodeClassList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
