package actuate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/render"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// createClaim creates the NodeClaim. One with the same name is the same claim: the name derives from the content. An
// error that leaves open whether the claim was created (a lost answer, a timeout) makes the outcome unsure: the same
// claim is asked for again until it is there or refused for good, so that its pods are never given a second node
// meanwhile.
func (a *Actor) createClaim(ctx context.Context, c command.CreateClaim) (result, error) {
	if c.ConfirmOnly {
		return a.confirmClaim(ctx, c.Name)
	}
	claim, err := newClaim(a.Names(), c)
	if err != nil {
		return result{}, err
	}
	r, err := a.tryCreate(ctx, claim)
	r.unsure = err != nil && !isRefusal(err)
	return r, err
}

// confirmClaim finds out whether a claim was made by a try that nobody knows the end of.
func (o *Objects) confirmClaim(ctx context.Context, name string) (result, error) {
	claim := &v1.NodeClaim{}
	err := o.Live.Get(ctx, client.ObjectKey{Name: name}, claim)
	if apierrors.IsNotFound(err) {
		return result{instanceGone: true}, nil
	}
	if err != nil {
		return result{unsure: true}, fmt.Errorf("finding out whether NodeClaim %s was created: %w", name, err)
	}
	return created(claim), nil
}

func created(claim *v1.NodeClaim) result {
	return result{writes: []command.Write{{Kind: command.KindClaim, Name: claim.Name, Version: claim.ResourceVersion,
		Created: true}}}
}

// isRefusal reports whether the API server has said no: then nothing was created.
func isRefusal(err error) bool {
	if errors.Is(err, errStillDeleting) {
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}

// errStillDeleting says that the name is still taken by a claim on its way out.
var errStillDeleting = errors.New("a claim of the same name is still being deleted")

func (o *Objects) tryCreate(ctx context.Context, claim *v1.NodeClaim) (result, error) {
	err := o.Client.Create(ctx, claim)
	if apierrors.IsAlreadyExists(err) {
		if err := o.Live.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return result{}, fmt.Errorf("reading NodeClaim %s: %w", claim.Name, err)
		}
		if claim.DeletionTimestamp != nil {
			return result{}, fmt.Errorf("creating NodeClaim %s: %w", claim.Name, errStillDeleting)
		}
	} else if err != nil {
		return result{}, fmt.Errorf("creating NodeClaim %s: %w", claim.Name, err)
	}
	return created(claim), nil
}

func newClaim(names *resource.Names, c command.CreateClaim) (*v1.NodeClaim, error) {
	t := &c.Template
	controls := true
	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.Name, Labels: c.Labels.Map(), Annotations: t.Annotations.Map(),
			Finalizers: []string{v1.TerminationFinalizer},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1.GroupVersion().String(), Kind: "NodePool", Name: c.Pool, UID: types.UID(c.PoolUID),
				BlockOwnerDeletion: &controls,
			}},
		},
		Spec: v1.NodeClaimSpec{
			Taints: taints(t.Taints), StartupTaints: taints(t.StartupTaints),
			Requirements: requirements(c.Requirements),
			Resources:    v1.ResourceRequirements{Requests: quantities(names, c.Requests)},
			NodeClassRef: &v1.NodeClassReference{Group: t.NodeClass.Group, Kind: t.NodeClass.Kind,
				Name: t.NodeClass.Name},
		},
	}
	// The node gets these when it has earned them.
	delete(claim.Labels, v1.NodeRegisteredLabelKey)
	delete(claim.Labels, v1.NodeInitializedLabelKey)
	claim.Annotations[cluster.SeatsAnnotation] = cluster.FormatSeats(c.Seats)
	if len(c.MadeFor) > 0 {
		claim.Annotations[cluster.MadeForAnnotation] = cluster.FormatMadeFor(c.MadeFor)
	}
	if c.Slot.Try > 0 {
		claim.Annotations[cluster.SlotAnnotation] = cluster.FormatSlot(c.Slot)
	}
	if c.DriftReplacement.PoolGeneration > 0 {
		claim.Annotations[cluster.DriftAnnotation] = cluster.FormatDriftReplacement(c.DriftReplacement)
	}
	if t.Hash.Hash != "" {
		claim.Annotations[v1.NodePoolHashAnnotationKey] = t.Hash.Hash
		claim.Annotations[v1.NodePoolHashVersionAnnotationKey] = t.Hash.Version
	}
	if c.Replaces != "" {
		claim.Annotations[cluster.ReplacesAnnotation] = c.Replaces
	}
	if c.Relaxed {
		claim.Annotations[v1.NodeClaimMinValuesRelaxedAnnotationKey] = "true"
	}
	expire, err := v1.ParseNillableDuration(t.ExpireAfter)
	if err != nil {
		return nil, fmt.Errorf("creating NodeClaim %s: %w", c.Name, err)
	}
	claim.Spec.ExpireAfter = expire
	if t.HasTerminationGrace {
		claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: t.TerminationGrace}
	}
	return claim, nil
}

func taints(list []cluster.Taint) []v1.Taint {
	var out []v1.Taint
	for _, t := range list {
		out = append(out, v1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

// requirements writes a set as API items: one for each operator that it takes.
func requirements(set require.Set) []v1.NodeSelectorRequirementWithMinValues {
	out := []v1.NodeSelectorRequirementWithMinValues{}
	for _, e := range set {
		for i, term := range e.Values.Terms() {
			item := v1.NodeSelectorRequirementWithMinValues{
				Key: e.Key, Operator: corev1.NodeSelectorOperator(term.Op), Values: slices.Clone(term.Values)}
			if i == 0 && e.MinValues > 0 {
				item.MinValues = &e.MinValues
			}
			out = append(out, item)
		}
	}
	return out
}

// quantities writes a vector as a resource list.
func quantities(names *resource.Names, v resource.Vector) corev1.ResourceList {
	out := corev1.ResourceList{}
	for dim, amount := range v {
		if amount == 0 || names.Attaches(dim) { // no node reports attachments as a resource
			continue
		}
		var q *apiresource.Quantity
		switch dim {
		case resource.CPU:
			q = apiresource.NewMilliQuantity(amount, apiresource.DecimalSI)
		case resource.Memory, resource.Storage:
			q = apiresource.NewQuantity(amount, apiresource.BinarySI)
		default:
			q = apiresource.NewQuantity(amount, apiresource.DecimalSI)
		}
		out[corev1.ResourceName(names.Name(dim))] = *q
	}
	return out
}

// adopt puts the finalizer on a claim that somebody else created.
func (a *Actor) adopt(ctx context.Context, c command.Adopt) (result, error) {
	writes, err := a.editClaim(ctx, c.Claim, func(claim *v1.NodeClaim) {
		if claim.DeletionTimestamp == nil && !slices.Contains(claim.Finalizers, v1.TerminationFinalizer) {
			claim.Finalizers = append(claim.Finalizers, v1.TerminationFinalizer)
		}
	})
	return result{writes: writes}, err
}

// deleteClaim begins the end of a claim; the UID keeps a namesake safe. The time by which it must be gone is written
// first: once it is being deleted everybody goes by it.
func (a *Actor) deleteClaim(ctx context.Context, c command.DeleteClaim) (result, error) {
	if err := mustBeMissing(ctx, a.Live, c.Missing, c.ProviderID); err != nil {
		return result{}, fmt.Errorf("deleting NodeClaim %s: %w", c.Claim, err)
	}
	if !c.Deadline.IsZero() {
		if _, err := a.setDeadline(ctx, c.Claim, c.UID, c.Deadline); err != nil {
			return result{}, err
		}
	}
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: c.Claim}}
	uid := types.UID(c.UID)
	err := a.Client.Delete(ctx, claim, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return result{}, fmt.Errorf("deleting NodeClaim %s: %w", c.Claim, err)
	}
	return result{writes: []command.Write{{Kind: command.KindClaim, Name: c.Claim}}}, nil
}

// setDeadline writes by when a claim must be gone. An earlier time stands. An empty UID is anybody's.
func (o *Objects) setDeadline(ctx context.Context, name, uid string, at time.Time) ([]command.Write, error) {
	return o.editClaim(ctx, name, func(claim *v1.NodeClaim) {
		if uid != "" && claim.UID != types.UID(uid) {
			return // a namesake is another claim
		}
		have, err := time.Parse(time.RFC3339, claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey])
		if err == nil && !at.Before(have) {
			return
		}
		if claim.Annotations == nil {
			claim.Annotations = map[string]string{}
		}
		claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey] = at.UTC().Format(time.RFC3339)
	})
}

// setClaim writes the time by which the claim must be gone, conditions and the time of the last pod event.
func (a *Actor) setClaim(ctx context.Context, c command.SetClaim) (result, error) {
	var deadline []command.Write
	if !c.Deadline.IsZero() {
		var err error
		if deadline, err = a.setDeadline(ctx, c.Claim, "", c.Deadline); err != nil {
			return result{}, err
		}
	}
	if len(c.Conditions) == 0 && c.LastPodEvent.IsZero() {
		return result{writes: deadline}, nil
	}
	writes, err := a.editClaimStatus(ctx, c.Claim, func(claim *v1.NodeClaim) {
		for _, cond := range c.Conditions {
			setCondition(claim, render.Condition(cond))
		}
		if !c.LastPodEvent.IsZero() {
			claim.Status.LastPodEventTime = metav1.NewTime(c.LastPodEvent)
		}
	})
	return result{writes: append(deadline, writes...)}, err
}

// setCondition sets one condition of a claim and keeps Ready in step with the three that it sums up.
func setCondition(claim *v1.NodeClaim, c cluster.Condition) {
	if c.Status == cluster.Absent {
		meta.RemoveStatusCondition(&claim.Status.Conditions, c.Type)
		return
	}
	writeCondition(claim, metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason,
		Message: c.Message})
	ready := metav1.Condition{Type: v1.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: v1.ConditionTypeReady}
	for _, kind := range []string{v1.ConditionTypeInitialized, v1.ConditionTypeRegistered, v1.ConditionTypeLaunched} {
		if !meta.IsStatusConditionTrue(claim.Status.Conditions, kind) && ready.Status != metav1.ConditionFalse {
			ready = metav1.Condition{Type: v1.ConditionTypeReady, Status: metav1.ConditionUnknown,
				Reason: "ReconcilingDependents", Message: kind + " is not True"}
		}
		if meta.IsStatusConditionFalse(claim.Status.Conditions, kind) {
			ready = metav1.Condition{Type: v1.ConditionTypeReady, Status: metav1.ConditionFalse,
				Reason: "UnhealthyDependents", Message: kind + " is False"}
		}
	}
	writeCondition(claim, ready)
}

// setIfAbsent sets a condition that has not been judged yet: a repeated act must not take back what happened since.
func setIfAbsent(claim *v1.NodeClaim, c metav1.Condition) {
	if meta.FindStatusCondition(claim.Status.Conditions, c.Type) == nil {
		writeCondition(claim, c)
	}
}

// setUnlessFalse sets a condition to True, unless somebody has found that it does not hold.
func setUnlessFalse(claim *v1.NodeClaim, kind string) {
	if !meta.IsStatusConditionFalse(claim.Status.Conditions, kind) {
		writeCondition(claim, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind})
	}
}

func writeCondition(claim *v1.NodeClaim, c metav1.Condition) {
	c.ObservedGeneration = claim.Generation
	if c.Reason == "" {
		c.Reason = c.Type
	}
	meta.SetStatusCondition(&claim.Status.Conditions, c)
}

func isTrue(kind, reason string) cluster.Condition {
	return cluster.Condition{Type: kind, Status: cluster.True, Reason: reason}
}
