package query_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2/query"
)

// filler sets every member of a structure to a value that no other member has, so that two that are mixed up show.
type filler struct{ n int64 }

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1700000000+f.n, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Name != "ResultMetadata" {
				f.fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text <%d> & more", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(f.n)
	case reflect.Float64, reflect.Float32:
		v.SetFloat(float64(f.n) + 0.5)
	default:
		panic("no value for a " + v.Type().String())
	}
}

// answer is an HTTP client that keeps the request's form and answers with a body.
type answer struct {
	body []byte
	form url.Values
}

func (a *answer) Do(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	a.form, err = url.ParseQuery(string(sent))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.body)),
		Request: r}, err
}

// TestProtocol holds every action's request and response against the SDK: what the SDK sends with every member set must
// be read in full, and what is written with every member set must be read in full by the SDK.
func TestProtocol(t *testing.T) {
	names := query.NewNames()
	for _, action := range ec2.New(cloud.New(cloud.Config{}), ec2.NoLimits()).Actions() {
		t.Run(action, func(t *testing.T) {
			transport := &answer{}
			client := sdk.New(sdk.Options{Region: "us-west-2", HTTPClient: transport, Retryer: aws.NopRetryer{},
				Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
				})})
			call := reflect.ValueOf(client).MethodByName(action)
			input, output := reflect.New(call.Type().In(1).Elem()), reflect.New(call.Type().Out(0).Elem())
			(&filler{}).fill(input.Elem())
			(&filler{}).fill(output.Elem())
			var err error
			transport.body, err = names.Encode(action, "id", output.Interface())
			if err != nil {
				t.Fatal(err)
			}
			results := call.Call([]reflect.Value{reflect.ValueOf(context.Background()), input})
			if err, failed := results[1].Interface().(error); failed {
				t.Fatalf("the SDK can't read the response: %v", err)
			}
			read := reflect.New(input.Type().Elem())
			if err := names.Decode(transport.form, read.Interface()); err != nil {
				t.Fatalf("the SDK's request can't be read: %v", err)
			}
			compare(t, "request", input.Elem(), read.Elem())
			compare(t, "response", output.Elem(), results[0].Elem())
		})
	}
}

// compare names the members in which two structures differ.
func compare(t *testing.T, path string, want, got reflect.Value) {
	t.Helper()
	switch {
	case strings.HasSuffix(path, ".ResultMetadata"):
	case want.Kind() == reflect.Pointer && !want.IsNil() && !got.IsNil():
		compare(t, path, want.Elem(), got.Elem())
	case want.Kind() == reflect.Slice && want.Len() == got.Len():
		for i := range want.Len() {
			compare(t, fmt.Sprintf("%s[%d]", path, i), want.Index(i), got.Index(i))
		}
	case want.Kind() == reflect.Struct && want.Type() != reflect.TypeFor[time.Time]():
		for i := range want.NumField() {
			if want.Type().Field(i).IsExported() {
				compare(t, path+"."+want.Type().Field(i).Name, want.Field(i), got.Field(i))
			}
		}
	case !reflect.DeepEqual(want.Interface(), got.Interface()):
		t.Errorf("%s: sent %v, arrived %v", path, want.Interface(), got.Interface())
	}
}

func TestDecodeRefuses(t *testing.T) {
	names := query.NewNames()
	for name, form := range map[string]url.Values{
		"a word for a number": {"MaxResults": {"many"}},
		"a word for a truth":  {"DryRun": {"perhaps"}},
	} {
		if err := names.Decode(form, &sdk.DescribeSubnetsInput{}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if err := names.Decode(url.Values{"StartTime": {"yesterday"}}, &sdk.DescribeSpotPriceHistoryInput{}); err == nil {
		t.Error("a word for a time was taken")
	}
}

func TestDecodeStopsAtGap(t *testing.T) {
	var in sdk.DescribeSubnetsInput
	form := url.Values{"SubnetId.1": {"subnet-a"}, "SubnetId.2": {"subnet-b"}, "SubnetId.4": {"subnet-d"},
		"Nobody.Knows": {"this"}}
	if err := query.NewNames().Decode(form, &in); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(in.SubnetIds, " "); got != "subnet-a subnet-b" {
		t.Errorf("read %s", got)
	}
}

// TestFill merges what a launch template says under what a request says.
func TestFill(t *testing.T) {
	request := &sdk.RunInstancesInput{ImageId: aws.String("ami-mine")}
	query.Fill(request, &ec2types.RequestLaunchTemplateData{
		ImageId: aws.String("ami-template"), InstanceType: "m5.large",
		Placement: &ec2types.LaunchTemplatePlacementRequest{Tenancy: ec2types.TenancyDedicated},
		NetworkInterfaces: []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{
			DeviceIndex: aws.Int32(1),
			Groups:      []string{"sg-1"},
		}},
	})
	switch {
	case *request.ImageId != "ami-mine":
		t.Errorf("the template's image %s won", *request.ImageId)
	case request.InstanceType != "m5.large" || request.Placement.Tenancy != ec2types.TenancyDedicated:
		t.Errorf("the template's values are missing: %+v", request)
	case *request.NetworkInterfaces[0].DeviceIndex != 1 || request.NetworkInterfaces[0].Groups[0] != "sg-1":
		t.Errorf("the template's interface is wrong: %+v", request.NetworkInterfaces[0])
	}
}
