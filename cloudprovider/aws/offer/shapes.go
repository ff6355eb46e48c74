package offer

import (
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

// Shapes say what a machine is like: what it has, and what of it is left for pods under a class.
type Shapes interface {
	// Shape returns the type without offerings; nil if the class can't use it.
	Shape(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) (*cloudprovider.InstanceType, error)
	// Why says why the class can't use the type, in words that follow the number of such types; empty if it can.
	Why(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) (string, error)
	// Kept is what the class keeps for the kubelet and the system on such a machine, if that has to be computed.
	Kept(info *ec2types.InstanceTypeInfo, class *awsv1.EC2NodeClass) (machine.Kept, error)
	// Revision changes when Shape would answer otherwise than before, because real nodes were seen.
	Revision() uint64
}

// Prices are dollars per hour.
type Prices interface {
	OnDemand(instanceType, zone string) (float64, bool)
	Spot(instanceType, zone string) (float64, bool)
	// Learn says which types are sold; Estimate infers from their prices that of a type that has none.
	Learn(shapes []price.Shape)
	Estimate(instanceType string, kind price.Kind) (float64, bool)
	// Revision changes when a price changes.
	Revision() uint64
}
