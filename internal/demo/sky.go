package demo

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider/kwok"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
)

// sky is the cloud of a demo.
type sky interface {
	// name begins the verdict.
	name() string
	// examples are the files to apply, and what they hold in words.
	examples() (files []string, words string)
	// begin starts what the cloud needs besides the lab.
	begin(ctx context.Context) error
	// environment are more variables for the controller.
	environment() []string
	// ended says that something which begin started has ended; nil if all is well.
	ended() error
	// prices tells what a node costs in dollars per hour; 0 while it is not known.
	prices(ctx context.Context) (func(c *v1.NodeClaim, n *corev1.Node) float64, error)
	// instances counts, past every cache, what the cloud still runs.
	instances(ctx context.Context, api client.Client) (int, error)
	// end ends what begin has started.
	end() error
}

// kwokSky is the controller's own simulated cloud: nothing but the controller is needed.
type kwokSky struct{}

func (kwokSky) name() string                { return "demo" }
func (kwokSky) begin(context.Context) error { return nil }
func (kwokSky) environment() []string       { return nil }
func (kwokSky) ended() error                { return nil }
func (kwokSky) end() error                  { return nil }

func (kwokSky) examples() ([]string, string) {
	return []string{"kwok/nodepool.yaml", "kwok/inflate.yaml"}, "examples/kwok: a NodePool of simulated nodes, and " +
		"deployment inflate"
}

// prices are on the nodes; a claim does not carry them.
func (kwokSky) prices(context.Context) (func(*v1.NodeClaim, *corev1.Node) float64, error) {
	return func(_ *v1.NodeClaim, n *corev1.Node) float64 {
		if n == nil {
			return 0
		}
		price, err := strconv.ParseFloat(n.Labels[kwokv1alpha1.InstancePriceLabelKey], 64)
		if err != nil {
			return 0
		}
		return price
	}, nil
}

func (kwokSky) instances(ctx context.Context, api client.Client) (int, error) {
	types, err := catalog.Default()
	if err != nil {
		return 0, err
	}
	cloud, err := kwok.New(kwok.Options{API: api, Types: types})
	if err != nil {
		return 0, err
	}
	instances, err := cloud.List(ctx)
	return len(instances), err
}
