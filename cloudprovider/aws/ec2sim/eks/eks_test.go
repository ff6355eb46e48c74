package eks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	sim "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/eks"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

func TestDescribeCluster(t *testing.T) {
	ctx := context.Background()
	a, config := simtest.Start(t, account.Options{Cluster: "lab", Endpoint: "https://api.example", CABundle: "Y2E=",
		Kubernetes: "1.34"})
	client := eks.NewFromConfig(config)
	out, err := client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("lab")})
	if err != nil {
		t.Fatal(err)
	}
	c := out.Cluster
	if aws.ToString(c.Endpoint) != "https://api.example" || aws.ToString(c.CertificateAuthority.Data) != "Y2E=" ||
		aws.ToString(c.Version) != "1.34" ||
		c.Status != types.ClusterStatusActive ||
		aws.ToString(c.KubernetesNetworkConfig.ServiceIpv4Cidr) != "10.100.0.0/16" ||
		aws.ToString(c.ResourcesVpcConfig.VpcId) != a.Network.VPC || c.CreatedAt == nil {
		t.Errorf("got %+v", c)
	}
	a.EKS.Put(sim.Cluster{Name: "six", ServiceCIDR: "fd00::/108"})
	out, err = client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("six")})
	if err != nil || out.Cluster.KubernetesNetworkConfig.IpFamily != types.IpFamilyIpv6 ||
		aws.ToString(out.Cluster.KubernetesNetworkConfig.ServiceIpv6Cidr) != "fd00::/108" {
		t.Errorf("got %+v, %v", out, err)
	}
	_, err = client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("none")})
	if missing := (*types.ResourceNotFoundException)(nil); !errors.As(err, &missing) {
		t.Errorf("a cluster that is not there gives %v", err)
	}
}
