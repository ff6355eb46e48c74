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
	if isNamesake(claim, c.UID) {
		return result{}, nil // the claim is gone, and this is another
	}
	instance, err := a.Cloud.Create(ctx, claim.DeepCopy())
	if err != nil {
		return a.refusedResult(ctx, c, err)
	}
	writes, err := a.writeInstance(ctx, c, instance)
	if err != nil {
		return result{}, err
	}
	if len(writes) < 2 {
		// The claim was removed by force while the instance was being launched: nobody else knows of the instance.
		owner := cloudprovider.Owner{ClaimName: claim.Name, ClaimUID: string(claim.UID)}
		if err := a.Cloud.Delete(ctx, instance.ProviderID, owner); err != nil && !cloudprovider.IsNotFound(err) {
			return result{}, fmt.Errorf("terminating instance %s, whose NodeClaim %s is gone: %w", instance.ProviderID,
				c.Claim, err)
		}
	}
	return result{writes: writes, unavailable: unavailableOfferings(instance.Refused)}, nil
}

// unavailableOfferings says which offerings could not be bought, in the core's words.
func unavailableOfferings(list []cloudprovider.OfferingRef) []command.UnavailableOffering {
	var out []command.UnavailableOffering
	for _, o := range list {
		out = append(out, command.UnavailableOffering{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType,
			Within: o.Within, Advice: o.Why})
	}
	return out
}

// writeInstance puts the instance's labels and then its state on its claim. In this order: what is Launched is never
// launched again, so that labels which a crash or a fault kept from being written after it would be missing for ever.
// Nobody else writes these fields now, so neither write needs a lock. A write is missing from the answer if the claim
// was gone, or is another by now.
func (o *Objects) writeInstance(ctx context.Context, c command.LaunchInstance,
	instance *cloudprovider.Instance) ([]command.Write, error) {
	labels, err := o.writeClaim(ctx, c.Claim, func(claim *v1.NodeClaim) {
		if claim.Labels == nil {
			claim.Labels = map[string]string{}
		}
		maps.Copy(claim.Labels, instance.Labels)
		if claim.Annotations == nil && len(instance.Annotations) > 0 {
			claim.Annotations = map[string]string{}
		}
		maps.Copy(claim.Annotations, instance.Annotations)
	}, func(claim *v1.NodeClaim, base client.Object) error {
		if isNamesake(claim, c.UID) {
			return errNamesake(claim)
		}
		return o.Client.Patch(ctx, claim, uidPatch{base})
	})
	if err != nil {
		return nil, err
	}
	status, err := o.writeClaim(ctx, c.Claim, func(claim *v1.NodeClaim) {
		claim.Status.ProviderID, claim.Status.ImageID = instance.ProviderID, instance.ImageID
		claim.Status.Capacity, claim.Status.Allocatable = instance.Capacity, instance.Allocatable
		setCondition(claim, launched(instance))
		for _, kind := range []string{v1.ConditionTypeRegistered, v1.ConditionTypeInitialized} {
			setIfAbsent(claim, metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: "NodeNotFound",
				Message: "the node has not joined the cluster yet"})
		}
	}, func(claim *v1.NodeClaim, base client.Object) error {
		if isNamesake(claim, c.UID) {
			return errNamesake(claim)
		}
		return o.Client.Status().Patch(ctx, claim, uidPatch{base})
	})
	return append(labels, status...), err
}

// launched says that the instance runs, and whether what it costs is only an estimate.
func launched(instance *cloudprovider.Instance) cluster.Condition {
	cond := isTrue(v1.ConditionTypeLaunched, v1.ConditionTypeLaunched)
	if instance.PriceEstimated {
		cond.Message = fmt.Sprintf("nobody has told the price of %s; it is estimated at $%.4f an hour from what "+
			"other instance types cost", instance.Type, instance.Price)
	}
	return cond
}

// heldUp names what keeps an instance from being launched although it may go well later.
func heldUp(err error) string {
	switch {
	case cloudprovider.IsThrottled(err):
		return "Throttled"
	case cloudprovider.IsUnauthorized(err):
		return "Unauthorized"
	}
	return "LaunchFailed"
}

func (o *Objects) refusedResult(ctx context.Context, c command.LaunchInstance, err error) (result, error) {
	cond := cluster.Condition{Type: v1.ConditionTypeLaunched, Status: cluster.False, Message: err.Error()}
	r := result{refused: true}
	switch {
	case cloudprovider.IsNoCapacity(err):
		cond.Reason = string(command.InsufficientCapacity)
		if e, ok := errors.AsType[*cloudprovider.NoCapacityError](err); ok {
			r.unavailable = unavailableOfferings(e.Exhausted)
		}
	case cloudprovider.IsNotReady(err):
		cond.Reason = string(command.ClassNotReady)
	default:
		// Worth another try: shown as Unknown meanwhile, so that people see what holds the claim up.
		r.refused, cond.Status, cond.Reason = false, cluster.Unknown, heldUp(err)
		_, shown := o.editOwnStatus(ctx, c.Claim, c.UID, func(claim *v1.NodeClaim) { setCondition(claim, cond) })
		return r, fmt.Errorf("launching an instance for NodeClaim %s: %w", c.Claim, errors.Join(err, shown))
	}
	r.refusal = command.Refusal{Reason: command.Reason(cond.Reason), Message: cond.Message}
	writes, failed := o.editOwnStatus(ctx, c.Claim, c.UID, func(claim *v1.NodeClaim) { setCondition(claim, cond) })
	r.writes = writes
	return r, failed
}
