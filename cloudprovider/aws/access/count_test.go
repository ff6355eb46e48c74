package access_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tenon-sh/tenon/cloudprovider/aws/access"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/simtest"
)

// counted is each series as name, labels and number.
func counted(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			value := m.GetCounter().GetValue()
			if f.GetType() == dto.MetricType_HISTOGRAM {
				value = float64(m.GetHistogram().GetSampleCount())
				if f.GetName() == "aws_sdk_go_request_retry_count" {
					value = m.GetHistogram().GetSampleSum()
				}
			}
			line := f.GetName()
			for _, l := range m.GetLabel() {
				line += " " + l.GetValue()
			}
			out = append(out, fmt.Sprintf("%s: %v", line, value))
		}
	}
	slices.Sort(out)
	return out
}

// A request that fails twice and then works is one request of three attempts.
func TestCallsToAWSAreCounted(t *testing.T) {
	a, config := simtest.Start(t, account.Options{})
	registry := prometheus.NewRegistry()
	count, err := access.Count(registry, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	config.APIOptions = append(config.APIOptions, count)
	config.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
		})
	}
	a.Faults.Add(faults.Fault{Service: "ec2", Action: "DescribeSubnets", Code: "InternalError", Status: 500, Times: 2})
	api := ec2.NewFromConfig(config)
	if _, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); err != nil {
		t.Fatal(err)
	}
	a.Faults.Deny("ec2:DescribeImages")
	if _, err := api.DescribeImages(t.Context(), &ec2.DescribeImagesInput{}); err == nil {
		t.Fatal("a call that is not allowed works")
	}
	want := []string{
		"aws_sdk_go_request_attempt_duration_seconds DescribeImages 403 EC2: 1",
		"aws_sdk_go_request_attempt_duration_seconds DescribeSubnets 200 EC2: 1",
		"aws_sdk_go_request_attempt_duration_seconds DescribeSubnets 500 EC2: 2",
		"aws_sdk_go_request_attempt_total DescribeImages 403 EC2: 1",
		"aws_sdk_go_request_attempt_total DescribeSubnets 200 EC2: 1",
		"aws_sdk_go_request_attempt_total DescribeSubnets 500 EC2: 2",
		"aws_sdk_go_request_duration_seconds DescribeImages 403 EC2: 1",
		"aws_sdk_go_request_duration_seconds DescribeSubnets 200 EC2: 1",
		"aws_sdk_go_request_retry_count DescribeImages 403 EC2: 0",
		"aws_sdk_go_request_retry_count DescribeSubnets 200 EC2: 2",
		"aws_sdk_go_request_total DescribeImages 403 EC2: 1",
		"aws_sdk_go_request_total DescribeSubnets 200 EC2: 1",
	}
	if got := counted(t, registry); !slices.Equal(got, want) {
		t.Errorf("counted\n%q\nwant\n%q", got, want)
	}
}
