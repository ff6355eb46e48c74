// Package v1alpha1 holds the karpenter.k8s.aws/v1alpha1 API: AWSNodeTemplate, which EC2NodeClass has replaced.
//
// It is types and constants and nothing else. It stands below every floor and imports only k8s.io/apimachinery and the
// types of karpenter.k8s.aws/v1 that have stayed the same. What an AWSNodeTemplate means in v1 is for
// internal/translate to say. The CustomResourceDefinition in charts/karpenter-crd and the deep copies are generated
// from these files (make generate).
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1alpha1
