// Package fake is the smallest complete cloud: in memory, instant, and gone with the process. Tests use it, and it is
// the example to read before writing a provider of one's own.
//
// It has the two halves that every provider has. Cloud is the far side, which in real life is behind a network and
// outlives the controller. Provider is the near side: it translates between Tenon's words and the cloud's, keeps no
// state of its own, and can therefore be thrown away and made again at any time.
package fake

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// Provider runs nodes on a Cloud.
type Provider struct {
	cloud *Cloud
}

var _ cloudprovider.Provider = (*Provider)(nil)

// New returns a provider for the cloud. Several may share one, as a controller and its successor do.
func New(cloud *Cloud) *Provider {
	return &Provider{cloud: cloud}
}

// Name implements cloudprovider.Provider.
func (p *Provider) Name() string { return "fake" }

// NodeClasses implements cloudprovider.Provider.
func (p *Provider) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{{Group: "fake.tenon.sh", Version: "v1", Kind: "FakeNodeClass"}}
}

// InstanceTypes implements cloudprovider.Provider. All pools may buy everything that the cloud sells.
func (p *Provider) InstanceTypes(ctx context.Context, _ *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.cloud.types, nil
}

// Create implements cloudprovider.Provider. The claim's UID is the token that makes a second call find the instance
// of the first; the cloud looks at it before anything that could make the launch fail.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.cloud.launch(claim, choose.Ranked(p.cloud.types, claim))
}

// Get implements cloudprovider.Provider.
func (p *Provider) Get(ctx context.Context, providerID string) (*cloudprovider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.cloud.get(providerID)
}

// List implements cloudprovider.Provider.
func (p *Provider) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.cloud.list(), nil
}

// Delete implements cloudprovider.Provider.
func (p *Provider) Delete(ctx context.Context, providerID string, owner cloudprovider.Owner) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.cloud.end(providerID, owner)
}

// Drifted implements cloudprovider.Provider: an instance drifts when a test says so.
func (p *Provider) Drifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return p.cloud.driftOf(claim.Status.ProviderID), nil
}

// RepairPolicies implements cloudprovider.Provider.
func (p *Provider) RepairPolicies() []cloudprovider.RepairPolicy {
	atOnce := time.Duration(0)
	return []cloudprovider.RepairPolicy{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Toleration: 10 * time.Minute,
			TerminationGracePeriod: &atOnce},
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: 10 * time.Minute,
			TerminationGracePeriod: &atOnce},
	}
}
