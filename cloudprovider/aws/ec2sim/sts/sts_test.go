package sts_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return fmt.Sprint(err)
}

// token is what the SDK reads from a file that Kubernetes projects.
type token string

func (t token) GetIdentityToken() ([]byte, error) { return []byte(t), nil }

func jwt(expires time.Time) token {
	body := fmt.Sprintf(`{"sub":"system:serviceaccount:karpenter:karpenter","exp":%d}`, expires.Unix())
	part := base64.RawURLEncoding.EncodeToString
	return token(part([]byte(`{"alg":"none"}`)) + "." + part([]byte(body)) + "." + part([]byte("unchecked")))
}

// withToken is a configuration whose credentials come from a web identity.
func withToken(a *account.Account, config aws.Config, role string, t token) aws.Config {
	unsigned := config.Copy()
	unsigned.Credentials = aws.AnonymousCredentials{}
	config.Credentials = aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(sts.NewFromConfig(unsigned), role,
		t))
	return config
}

func TestWebIdentity(t *testing.T) {
	ctx := context.Background()
	clock := simtest.NewClock()
	a, config := simtest.Start(t, account.Options{Clock: clock})
	mine := withToken(a, config, a.ControllerRole(), jwt(clock.Now().Add(time.Hour)))
	who, err := sts.NewFromConfig(mine).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(aws.ToString(who.Arn), "arn:aws:sts::123456789012:assumed-role/lab-karpenter/") ||
		aws.ToString(who.Account) != "123456789012" {
		t.Errorf("the caller is %s of %s", aws.ToString(who.Arn), aws.ToString(who.Account))
	}
	if _, err := ec2.NewFromConfig(mine).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{}); err != nil {
		t.Errorf("the credentials are no good: %v", err)
	}
	clock.Advance(2 * time.Hour)
	_, err = ec2.NewFromConfig(mine).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if code(err) != "RequestExpired" {
		t.Errorf("EC2 answers credentials that have expired with %v", err)
	}
	_, err = sts.NewFromConfig(mine).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if code(err) != "ExpiredToken" {
		t.Errorf("STS answers credentials that have expired with %v", err)
	}
}

func TestWebIdentityRefused(t *testing.T) {
	a, config := simtest.Start(t, account.Options{})
	for name, c := range map[string]struct {
		role  string
		token token
		code  string
	}{
		"no such role": {"arn:aws:iam::123456789012:role/nobody", jwt(time.Now().Add(time.Hour)),
			"AccessDenied"},
		"an expired token":       {a.ControllerRole(), jwt(time.Now().Add(-time.Hour)), "ExpiredTokenException"},
		"something else":         {a.ControllerRole(), "not-a-token", "InvalidIdentityToken"},
		"three parts of nothing": {a.ControllerRole(), "a.b.c", "InvalidIdentityToken"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sts.NewFromConfig(withToken(a, config, c.role, c.token)).GetCallerIdentity(context.Background(),
				&sts.GetCallerIdentityInput{})
			if code(err) != c.code {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
}

func TestEveryServiceRefusesBadCredentials(t *testing.T) {
	ctx := context.Background()
	_, config := simtest.Start(t, account.Options{})
	for _, service := range []struct {
		name                string
		stranger, wrongSign string
		call                func(aws.Config) error
	}{
		{"ec2", "AuthFailure", "AuthFailure", func(c aws.Config) error {
			_, err := ec2.NewFromConfig(c).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
			return err
		}},
		{"iam", "InvalidClientTokenId", "SignatureDoesNotMatch", func(c aws.Config) error {
			_, err := iam.NewFromConfig(c).ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
			return err
		}},
		{"sts", "InvalidClientTokenId", "SignatureDoesNotMatch", func(c aws.Config) error {
			_, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
			return err
		}},
		{"sqs", "InvalidClientTokenId", "SignatureDoesNotMatch", func(c aws.Config) error {
			_, err := sqs.NewFromConfig(c).GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("lab")})
			return err
		}},
		{"ssm", "UnrecognizedClientException", "InvalidSignatureException", func(c aws.Config) error {
			_, err := ssm.NewFromConfig(c).GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/x")})
			return err
		}},
		{"pricing", "UnrecognizedClientException", "InvalidSignatureException", func(c aws.Config) error {
			_, err := pricing.NewFromConfig(c).GetProducts(ctx,
				&pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2")})
			return err
		}},
		{"eks", "UnrecognizedClientException", "InvalidSignatureException", func(c aws.Config) error {
			_, err := eks.NewFromConfig(c).DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("lab")})
			return err
		}},
	} {
		t.Run(service.name, func(t *testing.T) {
			for id, want := range map[string]string{"AKIANOBODY": service.stranger,
				"AKIASIMULATED0000000": service.wrongSign} {
				with := config.Copy()
				with.Credentials = credentials.NewStaticCredentialsProvider(id, "guess", "")
				if err := service.call(with); code(err) != want {
					t.Errorf("%s gets %v, want %s", id, err, want)
				}
			}
		})
	}
}

func TestAssumeRole(t *testing.T) {
	ctx := context.Background()
	a, config := simtest.Start(t, account.Options{})
	provider := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(config), a.ControllerRole())
	assumed := config.Copy()
	assumed.Credentials = provider
	who, err := sts.NewFromConfig(assumed).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil || !strings.Contains(aws.ToString(who.Arn), ":assumed-role/lab-karpenter/") {
		t.Errorf("the caller is %v, %v", who, err)
	}
}
