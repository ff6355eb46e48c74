// Package v1 holds the karpenter.k8s.aws/v1 API: EC2NodeClass, the settings of nodes on Amazon EC2, and the names
// (labels, annotations, tags, resources, conditions, finalizer) that objects carry because of it.
//
// It is types and constants, the reading of the fields that hold a small language of their own (an AMI alias, the
// kubelet's settings, the name of the cluster), and the hash that tells whether a node still matches its class. It
// stands below every floor, makes no decision and imports only k8s.io/api, k8s.io/apimachinery,
// k8s.io/apiextensions-apiserver and the library of the hash. The CustomResourceDefinition in charts/karpenter-crd and
// the deep copies are generated from the markers in these files (make generate), so a rule about a field stands next to
// the field.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1
