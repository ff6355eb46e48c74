package aws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"
)

// EC2API are the calls of Amazon EC2 that launching, finding and ending instances needs. *ec2.Client has them.
type EC2API interface {
	offer.API
	ownership.API
	template.API
	CreateFleet(context.Context, *ec2.CreateFleetInput, ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error)
	RunInstances(context.Context, *ec2.RunInstancesInput, ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error)
	TerminateInstances(context.Context, *ec2.TerminateInstancesInput,
		...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error)
}

// Network finds where instances can stand. *network.Finder does.
type Network interface {
	offer.Network
	Subnets(ctx context.Context, class *awsv1.EC2NodeClass) ([]network.Subnet, error)
	// ForgetSubnet and ForgetReservation drop what is remembered, because EC2 has said that it is no longer so.
	ForgetSubnet(id string)
	ForgetReservation(id string)
}

// Images finds what instances boot. *image.Finder does.
type Images interface {
	// Forget drops what is remembered of the class's images, because EC2 has said that it is no longer so.
	Forget(ctx context.Context, class *awsv1.EC2NodeClass)
}
