package actuate

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/command"
)

// askAgain is how long to wait before asking whether an instance is gone.
const askAgain = time.Second

// terminate asks the cloud to end the instance, and says when it is gone. A claim that was never seen launched may have
// an instance all the same, if the answer to the launch was lost: the cloud's own list tells.
func (a *Actor) terminate(ctx context.Context, c command.Terminate) (result, error) {
	ids := []string{c.ProviderID}
	if c.ProviderID == "" {
		found, err := a.instancesOf(ctx, c)
		if err != nil {
			return result{}, err
		}
		ids = found
	}
	gone := true
	for _, id := range ids {
		err := a.Cloud.Delete(ctx, id)
		if cloudprovider.IsNotFound(err) {
			continue
		}
		if err != nil {
			return result{}, fmt.Errorf("terminating instance %s: %w", id, err)
		}
		gone = false
	}
	if gone {
		return result{gone: true}, nil
	}
	r := result{again: askAgain}
	if c.Claim == "" {
		return r, nil
	}
	claim := &v1.NodeClaim{}
	err := a.Client.Get(ctx, client.ObjectKey{Name: c.Claim}, claim)
	if err == nil && !isNamesake(claim, c.UID) && meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionTypeInstanceTerminating) {
		return r, nil // told before: asking again is nothing new
	}
	r.writes, err = a.editOwnStatus(ctx, c.Claim, c.UID, func(claim *v1.NodeClaim) {
		putUnlessFalse(claim, v1.ConditionTypeDrained)
		putUnlessFalse(claim, v1.ConditionTypeVolumesDetached)
		put(claim, metav1.Condition{Type: v1.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue, Reason: v1.ConditionTypeInstanceTerminating})
	})
	return r, err
}

// instancesOf finds the instances that the cloud runs for a claim of which none is known.
func (a *Actor) instancesOf(ctx context.Context, c command.Terminate) ([]string, error) {
	uid := c.UID
	if uid == "" {
		object := &v1.NodeClaim{}
		if err := a.Client.Get(ctx, client.ObjectKey{Name: c.Claim}, object); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		uid = string(object.UID)
	}
	instances, err := a.Cloud.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	var ids []string
	for _, i := range instances {
		if i.ClaimUID == uid {
			ids = append(ids, i.ProviderID)
		}
	}
	return ids, nil
}

// release lets go of the node and the claim, in this order: a claim without finalizer would leave the node without
// anybody to finish it.
func (a *Actor) release(ctx context.Context, c command.Release) (result, error) {
	var writes []command.Write
	if c.Node != "" {
		if err := a.releaseNode(ctx, c.Node, types.UID(c.NodeUID)); err != nil {
			return result{}, err
		}
		writes = append(writes, command.Write{Kind: command.KindNode, Name: c.Node, Gone: true})
	}
	if c.Claim != "" {
		another := ""
		_, err := a.editClaim(ctx, c.Claim, func(claim *v1.NodeClaim) {
			another = ""
			switch {
			case claim.UID != types.UID(c.UID): // a namesake is another claim
			case claim.Status.ProviderID != c.ProviderID:
				another = claim.Status.ProviderID
			default:
				claim.Finalizers = without(claim.Finalizers)
			}
		})
		if err != nil {
			return result{}, err
		}
		if another != "" {
			return result{}, fmt.Errorf("releasing NodeClaim %s: it has got instance %s meanwhile", c.Claim, another)
		}
		writes = append(writes, command.Write{Kind: command.KindClaim, Name: c.Claim, Gone: true})
	}
	return result{writes: writes}, nil
}

// releaseNode takes our finalizer off the node and deletes it, unless it is another machine of the same name.
func (a *Actor) releaseNode(ctx context.Context, name string, uid types.UID) error {
	same := false
	_, err := a.editNode(ctx, name, func(n *corev1.Node) {
		if same = n.UID == uid; same {
			n.Finalizers = without(n.Finalizers)
		}
	})
	if err != nil || !same {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = a.Client.Delete(ctx, node, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting node %s: %w", name, err)
	}
	return nil
}

func without(finalizers []string) []string {
	return slices.DeleteFunc(finalizers, func(f string) bool { return f == v1.TerminationFinalizer })
}
