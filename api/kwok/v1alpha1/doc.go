// Package v1alpha1 holds the karpenter.kwok.sh/v1alpha1 API: KWOKNodeClass, the settings of the simulated cloud, and
// the labels that its nodes carry.
//
// It is types and constants and nothing else. It stands below every floor and imports only k8s.io/apimachinery. The
// CustomResourceDefinition in charts/karpenter-crd and the deep copies are generated from these files (make generate).
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.kwok.sh
package v1alpha1
