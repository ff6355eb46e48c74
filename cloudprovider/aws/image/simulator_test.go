package image_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/account"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/images"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
)

// simulated is an account and a Finder that asks it with the real SDK, so much later than it is.
func simulated(t *testing.T, later *time.Duration) (*account.Account, *image.Finder) {
	t.Helper()
	a, err := account.New(account.Options{Kubernetes: "1.32"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	config := a.Config(server.URL)
	return a, image.New(image.Options{
		EC2: ec2.NewFromConfig(config), SSM: ssm.NewFromConfig(config),
		Version: func(context.Context) (string, error) { return "1.32", nil },
		Now:     func() time.Time { return time.Now().Add(*later) },
	})
}

// TestOverTheWire asks the simulator with the real SDK what the other tests ask a fake.
func TestOverTheWire(t *testing.T) {
	var later time.Duration
	a, f := simulated(t, &later)
	before := map[string]string{}
	for _, family := range images.Families() {
		before[family] = find(t, f, alias(family+"@latest"))
	}
	const standard = "amd64 no-instance-accelerator-count no-instance-gpu-count"
	for _, family := range []string{"al2", "al2023", "bottlerocket"} {
		for _, want := range []string{standard, "arm64 no-", "amd64 instance-gpu-count",
			"amd64 instance-accelerator-count"} {
			if !strings.Contains(before[family], want) {
				t.Errorf("%s lacks %s:\n%s", family, want, before[family])
			}
		}
	}

	release, err := a.Images.Publish("al2023", 0)
	if err != nil {
		t.Fatal(err)
	}
	later = 31 * time.Minute
	after := find(t, f, alias("al2023@latest"))
	if after == before["al2023"] || !strings.Contains(after, release.Images[0]) {
		t.Errorf("half an hour after release %s: have\n%s", release.Version, after)
	}
	if got := find(t, f, alias("al2023@"+release.Version)); got != after {
		t.Errorf("by its version: have\n%s\nwant\n%s", got, after)
	}
	if got := find(t, f, class(awsv1.AMISelectorTerm{ID: release.Images[0]})); !strings.HasPrefix(got,
		release.Images[0]) {
		t.Errorf("by id: have %s", got)
	}
	byName := class(awsv1.AMISelectorTerm{Name: "amazon-eks-node-al2023-x86_64-standard-*"})
	if got := find(t, f, byName); !strings.HasPrefix(got, release.Images[0]) {
		t.Errorf("by name: have %s, want %s", got, release.Images[0])
	}

	a.Faults.Deny("ssm:GetParameter")
	later = 2 * time.Hour
	if _, err := f.Find(t.Context(), alias("al2023@latest")); !cloudprovider.IsUnauthorized(err) ||
		!strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("without permission: %v", err)
	}
	a.Faults.Clear()
	if got := find(t, f, alias("al2023@latest")); got != after {
		t.Errorf("with permission again: have\n%s", got)
	}
}
