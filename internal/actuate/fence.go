package actuate

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// fence keeps new pods off the node. What it is for is written to the claim first: the move it is part of, then the
// reason, then the taint. So a taint of ours always says why it is there, and whatever a crash leaves behind is the
// beginning of this list; unfence takes it down from the end.
func (a *Actor) fence(ctx context.Context, c command.Fence) (result, error) {
	var writes []command.Write
	if c.Reason != command.Requested {
		w, err := a.setMove(ctx, c.Claim, c.UID, c.Move)
		if err != nil {
			return result{}, err
		}
		writes = w
		w, err = a.editOwnStatus(ctx, c.Claim, c.UID, func(claim *v1.NodeClaim) {
			writeCondition(claim, metav1.Condition{Type: v1.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue,
				Reason: string(c.Reason)})
			if c.Reason == command.Empty || c.Reason == command.Underutilized {
				// Only such nodes go for that, and one that goes at once would never have said so.
				writeCondition(claim, metav1.Condition{Type: v1.ConditionTypeConsolidatable,
					Status: metav1.ConditionTrue})
			}
		})
		if err != nil {
			return result{}, err
		}
		if len(w) == 0 { // the claim that was meant is gone, and its node is none of ours to fence
			return result{}, nil
		}
		writes = append(writes, w...)
	}
	nodeWrites, err := a.editNode(ctx, c.Node, func(node *corev1.Node) {
		addTaint(node, v1.DisruptedNoScheduleTaint())
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels[excludeFromBalancers] = "karpenter"
	})
	if err == nil && len(nodeWrites) == 0 && c.Reason != command.Requested {
		// Whoever asked has an old view, and would take half a fence down and put it up again until he sees it.
		return result{}, fmt.Errorf("fencing node %s: it is gone", c.Node)
	}
	return result{writes: append(writes, nodeWrites...)}, err
}

// unfence opens the node again: taint, reason and move go in the reverse order of fence. For how long the node is to
// rest is written when the move goes, so that nobody sees it free of both. The fence of a namesake is not ours to take
// down.
func (a *Actor) unfence(ctx context.Context, c command.Unfence) (result, error) {
	claim := &v1.NodeClaim{}
	if err := a.Client.Get(ctx, client.ObjectKey{Name: c.Claim}, claim); err != nil || isNamesake(claim, c.UID) {
		return result{}, client.IgnoreNotFound(err) // without its claim the node is on its way out
	}
	writes, err := a.editNode(ctx, c.Node, func(node *corev1.Node) {
		removeTaint(node, v1.DisruptedNoScheduleTaint())
		if node.Labels[excludeFromBalancers] == "karpenter" {
			delete(node.Labels, excludeFromBalancers)
		}
	})
	if err != nil {
		return result{}, err
	}
	claimWrites, err := a.editOwnStatus(ctx, c.Claim, c.UID, func(claim *v1.NodeClaim) {
		claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1.ConditionTypeDisruptionReason
		})
	})
	if err != nil {
		return result{}, err
	}
	var moveWrites []command.Write
	rest := cluster.RestAnnotation
	if c.ForSaving {
		rest = cluster.SavingRestAnnotation
	}
	if c.RestUntil.IsZero() {
		moveWrites, err = a.setMove(ctx, c.Claim, c.UID, "")
	} else {
		moveWrites, err = a.annotate(ctx, c.Claim, c.UID, map[string]string{cluster.MoveAnnotation: "",
			rest: cluster.FormatRest(c.RestUntil, c.Rests)})
	}
	return result{writes: slices.Concat(writes, claimWrites, moveWrites)}, err
}

// setMove writes on a claim which move its node goes in; none if that is empty. Most claims are in none, and nothing is
// asked of the API server to leave it so.
func (o *Objects) setMove(ctx context.Context, name, uid, move string) ([]command.Write, error) {
	if move == "" {
		claim := &v1.NodeClaim{}
		if err := o.Client.Get(ctx, client.ObjectKey{Name: name}, claim); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		if claim.Annotations[cluster.MoveAnnotation] == "" {
			return nil, nil
		}
	}
	return o.annotate(ctx, name, uid, map[string]string{cluster.MoveAnnotation: move})
}

// annotate sets annotations of a claim if it is still the one that was meant; an empty value takes one away.
func (o *Objects) annotate(ctx context.Context, name, uid string, values map[string]string) ([]command.Write, error) {
	return o.writeClaim(ctx, name, func(claim *v1.NodeClaim) {
		claim.Annotations = annotated(claim.Annotations, values)
	}, func(claim *v1.NodeClaim, base client.Object) error {
		if isNamesake(claim, uid) {
			return errNamesake(claim)
		}
		return o.Client.Patch(ctx, claim, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
}

// annotated is what annotations become with the values; empty ones go.
func annotated(have, values map[string]string) map[string]string {
	if have == nil {
		have = make(map[string]string, len(values))
	}
	for key, value := range values {
		if value == "" {
			delete(have, key)
			continue
		}
		have[key] = value
	}
	return have
}
