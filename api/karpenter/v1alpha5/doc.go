// Package v1alpha5 holds the karpenter.sh/v1alpha5 API: Provisioner, which NodePool has replaced.
//
// It is types and constants and nothing else. It stands below every floor and imports only k8s.io/api,
// k8s.io/apiextensions-apiserver and k8s.io/apimachinery. What a Provisioner means in v1 is for internal/translate to
// say. The CustomResourceDefinition in charts/karpenter-crd and the deep copies are generated from these files (make
// generate).
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1alpha5
