// Package machine says what an instance type of EC2 is worth as a node: the labels that it will carry, what it has, and
// what of it is left for pods once the system, the kubelet and the eviction thresholds of an EC2NodeClass have theirs.
//
// It is arithmetic over what EC2 says of a type, pure but for Memory, which remembers how much memory real nodes turned
// out to have. It belongs to the AWS provider, an edge, calls nothing, and knows neither zones nor prices.
package machine

import (
	"fmt"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
)

// Settings are those of the operator that bear on how much room a node has.
type Settings struct {
	// Region is the value of the region label.
	Region string
	// VMMemoryOverheadPercent is the share of a type's memory that its nodes don't see, such as 0.075, until a real
	// node has shown how much it is.
	VMMemoryOverheadPercent float64
	// ReservedENIs are network interfaces that are kept from pods.
	ReservedENIs int
	// Expressions lets maxPods, kubeReserved and systemReserved of a class be expressions over the instance type (the
	// feature gate NodeClassCEL).
	Expressions bool
}

// Shapes are the instance types as nodes. It is safe for concurrent use.
type Shapes struct {
	settings    Settings
	memory      *Memory
	expressions *expressions
}

// NewShapes makes shapes that count with what memory has learnt.
func NewShapes(settings Settings, memory *Memory) *Shapes {
	return &Shapes{settings: settings, memory: memory, expressions: &expressions{}}
}

// Revision changes when Shape would answer otherwise than before, because of nodes that were seen.
func (s *Shapes) Revision() uint64 { return s.memory.Revision() }

// Shape is the type as a node of the class, without offerings; nil if the class can't use it. An error means that the
// class itself can't be read, whatever the type.
func (s *Shapes) Shape(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) (*cloudprovider.InstanceType,
	error) {
	t, _, err := s.shape(info, class)
	return t, err
}

// Why says why the class can't use the type, in words that follow "these types", and the same for all types that have
// the same field to thank; empty if it can.
func (s *Shapes) Why(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) (string, error) {
	_, why, err := s.shape(info, class)
	return why, err
}

// shape is the type, or why the class can't use it.
func (s *Shapes) shape(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) (t *cloudprovider.InstanceType,
	why string, err error) {
	b, why, err := s.newBuild(info, class)
	if b == nil || err != nil {
		return nil, why, err
	}
	labels := b.labels()
	if ami, ok := image.For(class.Status.AMIs, labels); ok {
		b.learnt, _ = s.memory.Of(b.name(), ami.ID)
	}
	return b.instanceType(labels)
}

// hardware is what EC2 says of an instance type.
type hardware struct{ info *ec2types.InstanceTypeInfo }

// build is what follows from one type and one class.
type build struct {
	hardware
	class    *awsv1.EC2NodeClass
	family   family.Family
	settings Settings
	kubelet  *awsv1.KubeletSettings
	// expressions is nil if they are not allowed.
	expressions *expressions
	arch        string
	learnt      int64 // bytes of memory that nodes of this kind were seen with; 0 if none was
}

// newBuild is nil if the class can't use the type, and says why.
func (s *Shapes) newBuild(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) (b *build, why string,
	err error) {
	arch, ok := architecture(info)
	if !ok || !complete(info) {
		return nil, "are no machines for nodes", nil
	}
	kubelet, err := class.Spec.Kubelet.Settings()
	if err != nil {
		return nil, "", fmt.Errorf("EC2NodeClass %s: %w", class.Name, err)
	}
	b = &build{hardware: hardware{info}, class: class, family: family.Of(class), settings: s.settings, kubelet: kubelet,
		arch: arch}
	if s.settings.Expressions {
		b.expressions = s.expressions
	}
	if why := b.misfit(); why != "" {
		return nil, why, nil
	}
	return b, "", nil
}

func (h hardware) name() string { return string(h.info.InstanceType) }

// instanceType is nil if nothing would be left for pods; why says what takes it.
func (b *build) instanceType(labels map[string][]string) (t *cloudprovider.InstanceType, why string, err error) {
	pods, err := b.pods()
	if err != nil {
		return nil, "", fmt.Errorf("EC2NodeClass %s: %w", b.class.Name, err)
	}
	capacity := b.capacity(pods)
	overhead, err := b.overhead(capacity, pods)
	if err != nil {
		return nil, "", fmt.Errorf("EC2NodeClass %s: %w", b.class.Name, err)
	}
	if pods <= 0 {
		return nil, b.whyNoPods(), nil
	}
	for _, name := range shared() {
		if have, kept := capacity[name], overhead[name]; have.Cmp(kept) <= 0 {
			return nil, b.whyNothingLeft(name, capacity[name], pods), nil
		}
	}
	return &cloudprovider.InstanceType{
		Name:         b.name(),
		Labels:       labels,
		Capacity:     capacity,
		Overhead:     overhead,
		VolumeLimits: b.volumeLimits(),
	}, "", nil
}

// shared are the resources that the kubelet keeps a part of.
func shared() []corev1.ResourceName {
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
}
