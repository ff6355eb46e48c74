package kwok

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

// Reasons of the Ready condition of a KWOKNodeClass.
const (
	ReasonReady         = "Ready"
	ReasonInvalidSpec   = "InvalidSpec"
	ReasonInvalidFault  = "InvalidFault"
	ReasonFaultNotReady = "FaultInjected"
)

// NodeClassReconciler keeps the Ready condition of KWOKNodeClasses and carries out the fault of disappearing.
type NodeClassReconciler struct {
	Client   client.Client
	Provider *Provider
}

// SetupNodeClassController makes the manager run a NodeClassReconciler.
func SetupNodeClassController(mgr ctrl.Manager, p *Provider) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("kwok.nodeclass").
		For(&kwokv1alpha1.KWOKNodeClass{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Complete(&NodeClassReconciler{Client: mgr.GetClient(), Provider: p})
	if err != nil {
		return fmt.Errorf("setting up the KWOKNodeClass controller: %w", err)
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *NodeClassReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	class := &kwokv1alpha1.KWOKNodeClass{}
	if err := r.Client.Get(ctx, request.NamespacedName, class); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("getting KWOKNodeClass %s: %w", request.Name, err)
	}
	if !class.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	faults, faultErr := ParseFaults(class.Annotations)
	if err := r.setReady(ctx, class, judge(class, faults, faultErr)); err != nil {
		return ctrl.Result{}, err
	}
	if faultErr == nil && len(faults.Disappear) > 0 {
		return ctrl.Result{}, r.disappear(ctx, class, faults.Disappear)
	}
	return ctrl.Result{}, nil
}

// judge is the Ready condition that the class should have.
func judge(class *kwokv1alpha1.KWOKNodeClass, faults FaultSet, faultErr error) metav1.Condition {
	ready := metav1.Condition{
		Type:               v1.ConditionTypeReady,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: class.Generation,
	}
	delay := class.Spec.NodeRegistrationDelay.Duration
	switch {
	case delay < 0:
		ready.Reason = ReasonInvalidSpec
		ready.Message = fmt.Sprintf("spec.nodeRegistrationDelay is %s; write a duration of zero or more, such as 30s",
			delay)
	case faultErr != nil:
		ready.Reason, ready.Message = ReasonInvalidFault, faultErr.Error()
	case faults.NotReady != "":
		ready.Reason, ready.Message = ReasonFaultNotReady, faults.NotReady
	default:
		ready.Status, ready.Reason = metav1.ConditionTrue, ReasonReady
	}
	return ready
}

// setReady writes the condition if it changes anything. A Ready condition that somebody else made false, for a reason
// that is none of ours, is theirs to change back.
func (r *NodeClassReconciler) setReady(ctx context.Context, class *kwokv1alpha1.KWOKNodeClass,
	ready metav1.Condition) error {
	have := meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady)
	ours := []string{ReasonReady, ReasonInvalidSpec, ReasonInvalidFault, ReasonFaultNotReady}
	if have != nil && have.Status == metav1.ConditionFalse && !slices.Contains(ours, have.Reason) {
		return nil
	}
	before := class.DeepCopy()
	if !meta.SetStatusCondition(&class.Status.Conditions, ready) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, class, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("setting the Ready condition of KWOKNodeClass %s: %w", class.Name, err)
	}
	return nil
}

// disappear kills the instances that the annotation names and then removes it, so that it can be given again.
func (r *NodeClassReconciler) disappear(ctx context.Context, class *kwokv1alpha1.KWOKNodeClass, names []string) error {
	if err := r.Provider.killMatching(ctx, class.Name, names); err != nil {
		return fmt.Errorf("making instances of KWOKNodeClass %s disappear: %w", class.Name, err)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, FaultDisappear)
	if err := r.Client.Patch(ctx, class, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("removing the annotation %s of KWOKNodeClass %s: %w", FaultDisappear, class.Name, err)
	}
	return nil
}
