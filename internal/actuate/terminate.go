package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/command"
)

// askAgainAfter is how long to wait before asking whether an instance is gone.
const askAgainAfter = time.Second

// terminate asks the cloud to end the instance, and says when it is gone. For whom it is ended is said each time, and
// the cloud compares: the instance of another claim is left alone.
func (a *Actor) terminate(ctx context.Context, c command.Terminate) (result, error) {
	if err := mustBeEmpty(ctx, a.Live, c); err != nil {
		return result{}, fmt.Errorf("instance %s is not ended yet: %w", c.ProviderID, err)
	}
	if c.Claim == "" {
		return a.terminateOrphan(ctx, c)
	}
	owner, err := a.ownerFor(ctx, c)
	if err != nil || owner.ClaimUID == "" {
		return result{instanceGone: err == nil}, err
	}
	ids := []string{c.ProviderID}
	if c.ProviderID == "" {
		if ids, err = a.instancesOf(ctx, owner); err != nil {
			return result{}, err
		}
	}
	gone := true
	for _, id := range ids {
		ending, err := a.end(ctx, id, owner)
		if err != nil && !belongsToOther(ctx, a.Live, err) {
			return result{}, err
		}
		gone = gone && !ending
	}
	if gone {
		return result{instanceGone: true}, nil
	}
	return a.tellTerminating(ctx, c)
}

// end asks the cloud to end an instance, and reports whether it is ending.
func (a *Actor) end(ctx context.Context, id string, owner cloudprovider.Owner) (ending bool, err error) {
	err = a.Cloud.Delete(ctx, id, owner)
	if err == nil || cloudprovider.IsNotFound(err) {
		return err == nil, nil
	}
	return false, fmt.Errorf("terminating instance %s: %w", id, err)
}

// belongsToOther reports whether the error says that the instance belongs to another claim, and that claim is there:
// then the one who asks has nothing to end. If nobody is there to see to the instance, it has to be looked at by
// people.
func belongsToOther(ctx context.Context, live client.Reader, err error) bool {
	refusal, ok := errors.AsType[*cloudprovider.NotOwnedError](err)
	if !ok || refusal.Owner.ClaimUID == "" {
		return false
	}
	claims, listed := claimsOf(ctx, live, refusal.ProviderID, refusal.Owner)
	return listed == nil && slices.ContainsFunc(claims, func(c instanceClaim) bool {
		return c.uid == refusal.Owner.ClaimUID
	})
}

// ownerFor is the claim that an instance is to be ended for; without a UID if the claim is gone.
func (a *Actor) ownerFor(ctx context.Context, c command.Terminate) (cloudprovider.Owner, error) {
	out := cloudprovider.Owner{ClaimName: c.Claim, ClaimUID: c.UID}
	if c.UID != "" {
		return out, nil
	}
	object := &v1.NodeClaim{}
	if err := a.Client.Get(ctx, client.ObjectKey{Name: c.Claim}, object); err != nil {
		return out, client.IgnoreNotFound(err)
	}
	out.ClaimUID = string(object.UID)
	return out, nil
}

// instancesOf finds the instances that the cloud runs for a claim that was never seen launched: the answer to the
// launch may have been lost, and the cloud's own list tells.
func (a *Actor) instancesOf(ctx context.Context, owner cloudprovider.Owner) ([]string, error) {
	instances, err := a.Cloud.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	var ids []string
	for _, i := range instances {
		if owner.Of(i.ClaimUID) {
			ids = append(ids, i.ProviderID)
		}
	}
	return ids, nil
}

// tellTerminating writes on the claim that its instance is ending.
func (o *Objects) tellTerminating(ctx context.Context, c command.Terminate) (result, error) {
	r := result{retryAfter: askAgainAfter}
	claim := &v1.NodeClaim{}
	err := o.Client.Get(ctx, client.ObjectKey{Name: c.Claim}, claim)
	if err == nil && !isNamesake(claim, c.UID) && meta.IsStatusConditionTrue(claim.Status.Conditions,
		v1.ConditionTypeInstanceTerminating) {
		return r, nil // told before: asking again is nothing new
	}
	r.writes, err = o.editOwnStatus(ctx, c.Claim, c.UID, func(claim *v1.NodeClaim) {
		setUnlessFalse(claim, v1.ConditionTypeDrained)
		setUnlessFalse(claim, v1.ConditionTypeVolumesDetached)
		writeCondition(claim, metav1.Condition{Type: v1.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue,
			Reason: v1.ConditionTypeInstanceTerminating})
	})
	return r, err
}
