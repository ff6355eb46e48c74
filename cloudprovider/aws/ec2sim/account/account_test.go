package account_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
)

// Another program finds the account by environment variables alone, as the provider does.
func TestServeAndEnv(t *testing.T) {
	a, err := account.New(account.Options{Cluster: "lab", Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, listener) }()
	for _, variable := range a.Env("http://" + listener.Addr().String()) {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	t.Setenv("AWS_CONFIG_FILE", "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
	loaded, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	who, err := sts.NewFromConfig(loaded).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil || aws.ToString(who.Account) != "123456789012" {
		t.Errorf("the caller is %v, %v", who, err)
	}
	subnets, err := ec2.NewFromConfig(loaded).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{
		Filters: []ec2types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{"lab"}}},
	})
	if err != nil || len(subnets.Subnets) != 3 {
		t.Errorf("the subnets for nodes are %v, %v", subnets, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestUnknownRegion(t *testing.T) {
	if _, err := account.New(account.Options{Region: "moon-north-1"}); err == nil {
		t.Error("there is a cloud on the moon")
	}
}
