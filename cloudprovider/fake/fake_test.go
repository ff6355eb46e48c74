package fake_test

import (
	"context"
	"testing"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/conformance"
	"github.com/tenon-sh/tenon/cloudprovider/fake"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Env{New: func(context.Context) (*conformance.Cloud, error) {
		cloud := fake.NewCloud()
		class := v1.NodeClassReference{Group: "fake.tenon.sh", Kind: "FakeNodeClass", Name: "default"}
		pool := &v1.NodePool{}
		pool.Name = "default"
		pool.Spec.Template.Spec.NodeClassRef = &class
		return &conformance.Cloud{
			Provider:  fake.New(cloud),
			Pool:      pool,
			NodeClass: class,
			Restart:   func(context.Context) (cloudprovider.Provider, error) { return fake.New(cloud), nil },
			Exhaust: func(_ context.Context, offerings ...cloudprovider.OfferingRef) error {
				cloud.Exhaust(offerings...)
				return nil
			},
			Kill: func(_ context.Context, id string) error { cloud.Kill(id); return nil },
			BlockNodeClass: func(context.Context) error {
				cloud.BlockNodeClass("default", "blocked by the test")
				return nil
			},
		}, nil
	}})
}

func TestDriftIsWhatTheTestSays(t *testing.T) {
	cloud := fake.NewCloud()
	provider := fake.New(cloud)
	claim := &v1.NodeClaim{}
	claim.Status.ProviderID = "fake://1"
	cloud.Drift("fake://1", "ImageDrift")
	if got, err := provider.Drifted(t.Context(), claim); err != nil || got != "ImageDrift" {
		t.Errorf("Drifted = %q, %v", got, err)
	}
	cloud.Drift("fake://1", "")
	if got, err := provider.Drifted(t.Context(), claim); err != nil || got != "" {
		t.Errorf("Drifted = %q, %v after the drift ended", got, err)
	}
}
