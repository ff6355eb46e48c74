package measure

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/observe/series"
)

// The parts of the program that the contract names as those who call the cloud.
const (
	lifecycleCaller = "nodeclaim.lifecycle"
	censusCaller    = "nodeclaim.garbagecollection"
	driftCaller     = "nodeclaim.disruption"
)

// Cloud counts and times what is asked of a provider, and hands everything on.
type Cloud struct {
	cloudprovider.Provider
	now    func() time.Time
	took   *prometheus.HistogramVec
	errors *prometheus.CounterVec
}

// NewCloud returns the provider with its calls counted and timed.
func NewCloud(provider cloudprovider.Provider, registry series.Registerer, now func() time.Time) *Cloud {
	mk := series.Maker{Registry: registry}
	return &Cloud{
		Provider: provider, now: now,
		took: mk.Histogram("karpenter_cloudprovider_duration_seconds", "Time that a call to the cloud took.",
			prometheus.DefBuckets, "controller", "method", "provider"),
		errors: mk.Counter("karpenter_cloudprovider_errors_total", "Calls to the cloud that failed, by what it said.",
			"controller", "method", "provider", "error", "nodepool"),
	}
}

// Create launches an instance.
func (c *Cloud) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	began := c.now()
	instance, err := c.Provider.Create(ctx, claim)
	c.called(began, lifecycleCaller, "Create", claim.Labels[v1.NodePoolLabelKey], err)
	return instance, err
}

// Get finds an instance.
func (c *Cloud) Get(ctx context.Context, providerID string) (*cloudprovider.Instance, error) {
	began := c.now()
	instance, err := c.Provider.Get(ctx, providerID)
	c.called(began, lifecycleCaller, "Get", "", err)
	return instance, err
}

// List finds all instances.
func (c *Cloud) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	began := c.now()
	instances, err := c.Provider.List(ctx)
	c.called(began, censusCaller, "List", "", err)
	return instances, err
}

// Delete ends an instance. That it is gone already counts as an error, as it does in the contract.
func (c *Cloud) Delete(ctx context.Context, providerID string, owner cloudprovider.Owner) error {
	began := c.now()
	err := c.Provider.Delete(ctx, providerID, owner)
	c.called(began, lifecycleCaller, "Delete", "", err)
	return err
}

// InstanceTypes lists what may be bought; the contract's name for it is GetInstanceTypes.
func (c *Cloud) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	began := c.now()
	types, err := c.Provider.InstanceTypes(ctx, pool)
	c.called(began, series.Planner, "GetInstanceTypes", pool.Name, err)
	return types, err
}

// Drifted says whether an instance is still what its NodeClass asks for; the contract's name for it is IsDrifted.
func (c *Cloud) Drifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	began := c.now()
	reason, err := c.Provider.Drifted(ctx, claim)
	c.called(began, driftCaller, "IsDrifted", claim.Labels[v1.NodePoolLabelKey], err)
	return reason, err
}

func (c *Cloud) called(began time.Time, caller, method, pool string, err error) {
	c.took.WithLabelValues(caller, method, c.Name()).Observe(series.Elapsed(began, c.now()))
	if err != nil {
		c.errors.WithLabelValues(caller, method, c.Name(), cloudError(err), pool).Inc()
	}
}

// cloudError is the contract's word for what a provider says.
func cloudError(err error) string {
	switch {
	case cloudprovider.IsNoCapacity(err):
		return "InsufficientCapacityError"
	case cloudprovider.IsNotFound(err):
		return "NodeClaimNotFoundError"
	case cloudprovider.IsNotReady(err):
		return "NodeClassNotReadyError"
	case cloudprovider.IsNotOwned(err):
		return "NotOwnedError"
	}
	return "unknown"
}
