package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

func answer(code, message string) error {
	return &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet",
		Err: &smithy.GenericAPIError{Code: code, Message: message}}
}

func TestExplain(t *testing.T) {
	never := func(error) bool { return false }
	for _, tc := range []struct {
		code, message string
		kind          func(error) bool
		texts         []string
		lost          bool
	}{
		{"UnauthorizedOperation", "You are not authorized to perform this operation. Encoded authorization failure " +
			"message: aGVsbG8", cloudprovider.IsUnauthorized,
			[]string{"launching: ec2:CreateFleet: UnauthorizedOperation: You are not authorized",
				"fix: allow ec2:CreateFleet in the IAM policy"}, false},
		{"RequestExpired", "Request has expired.", cloudprovider.IsUnauthorized, []string{"session has ended"}, false},
		{"InvalidClientTokenId", "The security token included in the request is invalid.", cloudprovider.IsUnauthorized,
			[]string{"aws sts get-caller-identity"}, false},
		{"RequestLimitExceeded", "Request limit exceeded.", cloudprovider.IsThrottled, []string{"RequestLimitExceeded"},
			false},
		{"InvalidSubnetID.NotFound", "The subnet ID 'subnet-1' does not exist", never,
			[]string{"spec.subnetSelectorTerms"}, false},
		{"InvalidSnapshot.NotFound", "The snapshot 'snap-1' does not exist.", never,
			[]string{"fix: the snapshot is gone", "snapshotID in spec.blockDeviceMappings"}, false},
		{"InvalidBlockDeviceMapping", "Volume of size 19GB is smaller than snapshot 'snap-1', expect size>= 20GB",
			never, []string{"fix: check spec.blockDeviceMappings"}, false},
		{"InternalError", "An internal error has occurred", never, []string{"InternalError"}, true},
		{"InsufficientInstanceCapacity", "There is no capacity.", never, nil, false},
	} {
		t.Run(tc.code, func(t *testing.T) {
			raw := answer(tc.code, tc.message)
			err := fault.Explain("launching", raw)
			for _, text := range tc.texts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q lacks %q", err, text)
				}
			}
			if strings.Contains(err.Error(), "aGVsbG8") {
				t.Errorf("%q shows what nobody can read", err)
			}
			if got := cloudprovider.IsUnauthorized(err) || cloudprovider.IsThrottled(err); got != tc.kind(err) ||
				tc.kind(err) != tc.kind(fmt.Errorf("outside: %w", err)) {
				t.Errorf("%q has the wrong kind: %T", err, err)
			}
			if fault.Code(err) != tc.code || fault.Lost(raw) != tc.lost {
				t.Errorf("code %q, lost %v", fault.Code(err), fault.Lost(raw))
			}
			if again := fault.Explain("outside", err); strings.Count(again.Error(), tc.code) != 1 {
				t.Errorf("explained twice it reads %q", again)
			}
		})
	}
}

func TestNoAnswer(t *testing.T) {
	lost := &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet",
		Err: errors.New("connection reset by peer")}
	if !fault.Lost(lost) || fault.Code(lost) != "" {
		t.Errorf("a connection that broke: lost %v, code %q", fault.Lost(lost), fault.Code(lost))
	}
	if fault.Lost(nil) || fault.Explain("doing", nil) != nil {
		t.Error("no error became one")
	}
	none := &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet",
		Err: errors.New("get identity: get credentials: failed to refresh cached credentials")}
	err := fault.Explain("launching", none)
	if !cloudprovider.IsUnauthorized(err) || fault.Lost(none) || !strings.Contains(err.Error(), "service account") {
		t.Errorf("without credentials: %v", err)
	}
	if !errors.Is(fault.Explain("launching", fmt.Errorf("x: %w", context.Canceled)), context.Canceled) {
		t.Error("that nobody waits any more was lost")
	}
}

// TestNoWayToTheRole: in a closed network nobody refuses us, there is no way to ask.
func TestNoWayToTheRole(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	roles := sts.New(sts.Options{Region: "us-west-2", BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{}})
	api := ec2.New(ec2.Options{Region: "us-west-2", BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{},
		Credentials: aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(roles,
			"arn:aws:iam::123456789012:role/tenon", token("secret")))})
	_, raw := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	if err := fault.Explain("finding subnets", raw); cloudprovider.IsUnauthorized(err) || !strings.Contains(err.Error(),
		"AWS_ENDPOINT_URL_STS") || fault.Lost(raw) {
		t.Errorf("%T %v", err, err)
	}
}

// TestTakingOnARole is the most common mistake with credentials on EKS: the trust policy. The error is the SDK's own.
func TestTakingOnARole(t *testing.T) {
	for code, want := range map[string]string{
		"AccessDenied": "trust policy", "InvalidIdentityToken": "OIDC provider",
		"ExpiredTokenException": "token of the controller's service account",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `<ErrorResponse><Error><Code>%s</Code><Message>no</Message></Error></ErrorResponse>`,
				code)
		}))
		defer server.Close()
		roles := sts.New(sts.Options{Region: "us-west-2", BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{}})
		api := ec2.New(ec2.Options{Region: "us-west-2", BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{},
			Credentials: aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(roles,
				"arn:aws:iam::123456789012:role/tenon", token("secret")))})
		_, raw := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
		err := fault.Explain("finding subnets", raw)
		for _, text := range []string{"sts:AssumeRoleWithWebIdentity", code, want} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q lacks %q", err, text)
			}
		}
		if strings.Contains(err.Error(), "ec2:DescribeSubnets") || !cloudprovider.IsUnauthorized(err) ||
			!fault.IsIdentity(err) || fault.Lost(raw) {
			t.Errorf("%s: %T %v", code, err, err)
		}
	}
}

type token string

func (t token) GetIdentityToken() ([]byte, error) { return []byte(t), nil }

func TestThrottled(t *testing.T) {
	for _, code := range []string{"RequestLimitExceeded", "BandwidthLimitExceeded", "PriorRequestNotComplete",
		"ProvisionedThroughputExceededException"} {
		if !fault.IsThrottled(answer(code, "")) {
			t.Errorf("%s is not taken for throttling", code)
		}
	}
	busy := &smithy.OperationError{ServiceID: "EC2", OperationName: "CreateFleet", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusTooManyRequests}},
		Err:      errors.New("no body")}}
	if !fault.IsThrottled(busy) || fault.Lost(busy) {
		t.Errorf("a status of 429: throttled %v, lost %v", fault.IsThrottled(busy), fault.Lost(busy))
	}
}

func TestPredicates(t *testing.T) {
	for code, notFound := range map[string]bool{"InvalidInstanceID.NotFound": true, "NoSuchEntity": true,
		"InvalidLaunchTemplateName.NotFoundException": true, "AuthFailure": false} {
		if fault.IsNotFound(answer(code, "")) != notFound {
			t.Errorf("%s: not found is %v", code, !notFound)
		}
	}
	if !fault.IsDryRun(answer("DryRunOperation", "")) {
		t.Error("a dry run that went well is not known")
	}
}
