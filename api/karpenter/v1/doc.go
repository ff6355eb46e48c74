// Package v1 holds the karpenter.sh/v1 API: NodePool and NodeClaim, and the names (labels, annotations, taints,
// conditions, finalizer) that objects of a cluster carry because of them.
//
// It is types and constants and nothing else: no decision is made here. It stands below every floor, so anything may
// import it except floors 0 to 2, which know no Kubernetes types; it imports only k8s.io/api and k8s.io/apimachinery.
// The CustomResourceDefinitions in charts/karpenter-crd and the deep copies are generated from the markers in these
// files (make generate), so a rule about a field stands next to the field.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1
