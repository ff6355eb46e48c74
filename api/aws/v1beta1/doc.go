// Package v1beta1 holds the karpenter.k8s.aws/v1beta1 API, the version before v1: EC2NodeClass, and its conversion to
// v1 and back, which loses nothing.
//
// Objects are stored as v1; this version is for manifests and clients that still use it. Fields that are the same in
// both versions have v1's types, and so its rules. The package stands below every floor, makes no decision and imports
// only k8s.io/apimachinery, api/aws/v1, api/roundtrip and the interfaces of a conversion from controller-runtime. The
// CustomResourceDefinition in charts/karpenter-crd and the deep copies are generated from the markers in these files
// (make generate). They don't serve this version: only the controller can convert it, so the controller turns it on
// (internal/webhook). Without that, objects would be stored unconverted.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.k8s.aws
package v1beta1
