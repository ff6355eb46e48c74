// Package awscloud is what Amazon EC2 brings to the operator: its settings, its kinds and labels, and how its provider,
// and what works behind it, are built.
//
// It is public and wires: what is done at AWS is in cloudprovider/aws.
package awscloud

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1alpha1 "github.com/tenon-sh/tenon/api/aws/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/operator"
)

// Name is the cloud's value of --cloud-provider.
const Name = "aws"

// gateReservedCapacity is the gate of --feature-gates that is read here.
const gateReservedCapacity = "ReservedCapacity"

// New returns Amazon EC2.
func New() operator.Cloud {
	s := newSettings()
	return operator.Cloud{
		Name: Name,
		Kinds: operator.Kinds{
			AddToScheme: addToScheme,
			NodeClasses: []schema.GroupVersionKind{awsv1.GroupVersion().WithKind(awsv1.Kind)},
		},
		Settings: operator.Settings{
			Register: s.register, Validate: s.validate, ChosenBy: flagClusterName, Gates: s.gates,
			FeatureGates: []string{gateReservedCapacity},
		},
		Labels: labels,
		Provisioners: func() operator.Provisioners {
			return operator.Provisioners{
				NodeClass:   schema.GroupKind{Group: awsv1.Group, Kind: awsv1.Kind},
				ClusterName: s.clusterName, InstanceProfile: s.defaultProfile,
			}
		},
		Build: func(ctx context.Context, host *operator.Host) (cloudprovider.Provider, error) {
			return build(ctx, s, host)
		},
	}
}

// addToScheme adds EC2NodeClass, and AWSNodeTemplate, which it has replaced.
func addToScheme(scheme *runtime.Scheme) error {
	if err := awsv1.AddToScheme(scheme); err != nil {
		return err
	}
	return awsv1alpha1.AddToScheme(scheme)
}

// labels are those that instance types and offerings of EC2 decide, whether or not a type has them.
func labels() operator.Labels {
	return operator.Labels{RestrictedDomains: []string{awsv1.Group}, WellKnown: []string{
		awsv1.InstanceCategoryLabelKey, awsv1.InstanceFamilyLabelKey, awsv1.InstanceGenerationLabelKey,
		awsv1.InstanceSizeLabelKey,
		awsv1.InstanceCapabilityFlexLabelKey, awsv1.InstanceCPULabelKey, awsv1.InstanceCPUManufacturerLabelKey,
		awsv1.InstanceCPUSustainedClockSpeedMhzLabelKey, awsv1.InstanceMemoryLabelKey,
		awsv1.InstanceEBSBandwidthLabelKey,
		awsv1.InstanceNetworkBandwidthLabelKey, awsv1.InstanceHypervisorLabelKey,
		awsv1.InstanceEncryptionInTransitSupportedLabelKey,
		awsv1.InstanceLocalNVMELabelKey, awsv1.InstanceGPUNameLabelKey, awsv1.InstanceGPUManufacturerLabelKey,
		awsv1.InstanceGPUCountLabelKey,
		awsv1.InstanceGPUMemoryLabelKey, awsv1.InstanceAcceleratorNameLabelKey,
		awsv1.InstanceAcceleratorManufacturerLabelKey,
		awsv1.InstanceAcceleratorCountLabelKey, awsv1.InstanceTenancyLabelKey,
		awsv1.CapacityReservationIDLabelKey, awsv1.CapacityReservationTypeLabelKey,
		awsv1.CapacityReservationInterruptibleLabelKey,
		awsv1.PlacementGroupIDLabelKey, awsv1.PlacementGroupPartitionLabelKey, awsv1.ZoneIDLabelKey,
		awsv1.NodeClassLabelKey,
		corev1.LabelWindowsBuild,
	}}
}
