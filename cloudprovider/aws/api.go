package aws

import (
	"context"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
)

// EC2API are the calls of Amazon EC2 that launching, finding and ending instances needs. *ec2.Client has them.
type EC2API interface {
	offer.API
	CreateFleet(context.Context, *ec2.CreateFleetInput, ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error)
	CreateLaunchTemplate(context.Context, *ec2.CreateLaunchTemplateInput,
		...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error)
	CreateTags(context.Context, *ec2.CreateTagsInput, ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
	DeleteLaunchTemplate(context.Context, *ec2.DeleteLaunchTemplateInput,
		...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error)
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput,
		...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	DescribeLaunchTemplates(context.Context, *ec2.DescribeLaunchTemplatesInput,
		...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error)
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

// Cluster is what nodes need to know to join.
type Cluster struct {
	Name string
	// Endpoint is the API server's URL, CABundle its certificate authority in base64.
	Endpoint, CABundle string
	// ServiceCIDR and DNS are the services' range and the address of the cluster's DNS.
	ServiceCIDR, DNS string
}

// ipv6 tells whether nodes of the cluster need an IPv6 address of their own.
func (c Cluster) ipv6() bool {
	if prefix, err := netip.ParsePrefix(c.ServiceCIDR); err == nil {
		return prefix.Addr().Is6()
	}
	addr, err := netip.ParseAddr(c.DNS)
	return err == nil && addr.Is6()
}
