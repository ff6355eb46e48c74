package machine_test

import (
	"context"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
)

// TestOverHTTP: a type that has come through the SDK's own reader of EC2's XML is worth the same as before.
func TestOverHTTP(t *testing.T) {
	a, err := account.New(account.Options{Cluster: "machines", Region: region})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a)
	defer server.Close()
	types, _, err := catalog.Region(region)
	if err != nil {
		t.Fatal(err)
	}
	class := classOf(awsv1.AMIFamilyAL2)
	want := map[string]any{}
	for i := range types {
		if it, err := shapes().Shape(&types[i], class); err != nil {
			t.Fatal(err)
		} else if it != nil {
			want[it.Name] = it
		}
	}
	pages := ec2.NewDescribeInstanceTypesPaginator(ec2.NewFromConfig(a.Config(server.URL)),
		&ec2.DescribeInstanceTypesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.InstanceTypes {
			got, err := shapes().Shape(&page.InstanceTypes[i], class)
			if err != nil {
				t.Fatal(err)
			}
			if got == nil {
				continue
			}
			if !reflect.DeepEqual(want[got.Name], any(got)) {
				t.Errorf("%s: came as %+v, is %+v", got.Name, got, want[got.Name])
			}
			delete(want, got.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("%d types did not come", len(want))
	}
}
