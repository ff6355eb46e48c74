package provisioner

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/api/aws/v1alpha1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/translate"
)

// TemplateReconciler keeps the EC2NodeClasses of AWSNodeTemplates.
type TemplateReconciler struct{ Options }

// Reconcile implements reconcile.Reconciler.
func (r *TemplateReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))
	if err := r.Client.Get(ctx, request.NamespacedName, u); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if u.GetDeletionTimestamp() != nil {
		class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: u.GetName()}}
		return r.letGo(ctx, owner{object: u, kind: u.GroupVersionKind()}, class)
	}
	t := &v1alpha1.AWSNodeTemplate{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading AWSNodeTemplate %s: %w (correct that field)", request.Name, err)
	}
	before := t.DeepCopy()
	v, err := r.keep(ctx, t)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: v.wait}, r.tell(ctx, before, t, v)
}

// keep makes what a template means.
func (r *TemplateReconciler) keep(ctx context.Context, t *v1alpha1.AWSNodeTemplate) (verdict, error) {
	t.Status.NodeClass = ""
	class, _, wrong := translate.AWSNodeTemplate(t, r.Target)
	if len(wrong) > 0 {
		return refused(ReasonInvalidTemplate, problems(wrong)), nil
	}
	v, err := r.ensure(ctx, owner{object: t, kind: v1alpha1.GroupVersion().WithKind(v1alpha1.Kind)}, class)
	if err != nil || !v.ok {
		return v, err
	}
	t.Status.NodeClass = class.Name
	return verdict{ok: true, reason: ReasonTranslated,
		message: fmt.Sprintf("it is EC2NodeClass %s; tenon convert shows what that means", class.Name)}, nil
}

// tell writes the status and, if the verdict is news, an event.
func (r *TemplateReconciler) tell(ctx context.Context, before, t *v1alpha1.AWSNodeTemplate, v verdict) error {
	var ready *metav1.Condition
	if v.ok {
		class := &awsv1.EC2NodeClass{}
		if err := r.Client.Get(ctx, client.ObjectKey{Name: t.Name}, class); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading EC2NodeClass %s: %w", t.Name, err)
		}
		ready = meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady)
	}
	judge(&t.Status.Conditions, t.Generation, v, "EC2NodeClass "+t.Name, ready)
	if equality.Semantic.DeepEqual(before.Status, t.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, t, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of AWSNodeTemplate %s: %w", t.Name, err)
	}
	announce(r.Events, v1alpha1.GroupVersion().String(), v1alpha1.Kind, t, before.Status.Conditions, v)
	return nil
}
