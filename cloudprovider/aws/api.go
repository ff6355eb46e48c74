package aws

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/launch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"
)

// EC2API are the calls of Amazon EC2 that launching, finding and ending instances needs. *ec2.Client has them.
type EC2API interface {
	launch.API
	offer.API
	ownership.API
	template.API
	TerminateInstances(context.Context, *ec2.TerminateInstancesInput,
		...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error)
}

// Network finds where instances can stand. *network.Finder does.
type Network interface {
	offer.Network
	launch.Network
}
