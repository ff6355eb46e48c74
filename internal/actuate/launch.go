package actuate

import (
	"context"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// launchInstance has the cloud run an instance for the claim, and writes down what it got. A refusal that another try
// can't change is written as a condition; the next plan reads it there.
func (a *Actor) launchInstance(ctx context.Context, c command.LaunchInstance) (result, error) {
	claim := &v1.NodeClaim{}
	if err := a.Client.Get(ctx, client.ObjectKey{Name: c.Claim}, claim); err != nil {
		return result{}, client.IgnoreNotFound(fmt.Errorf("reading NodeClaim %s: %w", c.Claim, err))
	}
	instance, err := a.Cloud.Create(ctx, claim.DeepCopy())
	if err != nil {
		return a.refused(ctx, c, err)
	}
	if _, err := a.editClaim(ctx, c.Claim, func(claim *v1.NodeClaim) {
		if claim.Labels == nil {
			claim.Labels = map[string]string{}
		}
		maps.Copy(claim.Labels, instance.Labels)
	}); err != nil {
		return result{}, err
	}
	writes, err := a.editClaimStatus(ctx, c.Claim, func(claim *v1.NodeClaim) {
		claim.Status.ProviderID, claim.Status.ImageID = instance.ProviderID, instance.ImageID
		claim.Status.Capacity, claim.Status.Allocatable = instance.Capacity, instance.Allocatable
		setCondition(claim, isTrue(v1.ConditionTypeLaunched, v1.ConditionTypeLaunched))
		put(claim, metav1.Condition{Type: v1.ConditionTypeRegistered, Status: metav1.ConditionUnknown, Reason: "NodeNotFound", Message: "the node has not joined the cluster yet"})
		put(claim, metav1.Condition{Type: v1.ConditionTypeInitialized, Status: metav1.ConditionUnknown, Reason: "NodeNotFound", Message: "the node has not joined the cluster yet"})
	})
	return result{writes: writes}, err
}

func (a *Actor) refused(ctx context.Context, c command.LaunchInstance, err error) (result, error) {
	cond := cluster.Condition{Type: v1.ConditionTypeLaunched, Status: cluster.False, Message: err.Error()}
	var r result
	switch {
	case cloudprovider.IsNoCapacity(err):
		cond.Reason = string(command.InsufficientCapacity)
		if e, ok := errors.AsType[*cloudprovider.NoCapacityError](err); ok {
			for _, o := range e.Exhausted {
				r.exhausted = append(r.exhausted, command.Exhausted{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType})
			}
		}
	case cloudprovider.IsNotReady(err):
		cond.Reason = string(command.ClassNotReady)
	default:
		// Worth another try: shown as Unknown meanwhile, so that people see what holds the claim up.
		cond.Status, cond.Reason = cluster.Unknown, "LaunchFailed"
		_, shown := a.editClaimStatus(ctx, c.Claim, func(claim *v1.NodeClaim) { setCondition(claim, cond) })
		return r, fmt.Errorf("launching an instance for NodeClaim %s: %w", c.Claim, errors.Join(err, shown))
	}
	writes, failed := a.editClaimStatus(ctx, c.Claim, func(claim *v1.NodeClaim) { setCondition(claim, cond) })
	r.writes = writes
	return r, failed
}
