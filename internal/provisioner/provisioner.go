// Package provisioner keeps what is made from Provisioners and AWSNodeTemplates, the kinds that came before NodePool
// and EC2NodeClass: it makes the objects of v1 that they mean, puts back what others change about these, and says in
// their status what they became.
//
// It stands on floor 4, beside the loop, which never hears of it: to the loop a NodePool is a NodePool. It reads and
// writes through Kubernetes, remembers nothing, and leaves the meaning to internal/translate. Owner references do the
// rest: whoever deletes a Provisioner deletes its NodePool and so drains its nodes, and --cascade=orphan leaves them as
// they are.
package provisioner

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/internal/translate"
)

// Reasons of the condition Translated, and of the events that tell of it.
const (
	ReasonTranslated       = "Translated"
	ReasonInvalid          = "InvalidProvisioner"
	ReasonInvalidTemplate  = "InvalidAWSNodeTemplate"
	ReasonTemplateNotFound = "AWSNodeTemplateNotFound"
	ReasonNameTaken        = "NameTaken"
	ReasonRefused          = "RefusedByAPIServer"
	ReasonLeaving          = "PredecessorLeaving"
	// ReasonNotReady is that of Ready while what was made is not.
	ReasonNotReady = "NotReady"
	// EventPutBack tells that a change of what was made was undone.
	EventPutBack = "ChangePutBack"
)

// again is when an object is looked at again that waits for another to go, or that the API server refused.
const again = 30 * time.Second

// Recorder writes events.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Options are what a Reconciler works with.
type Options struct {
	Client client.Client
	Events Recorder
	// Target is the cluster that objects are translated for.
	Target translate.Target
	// Templates says whether the cluster knows AWSNodeTemplates.
	Templates bool
}

// Reconciler keeps the NodePools, and the NodeClasses, of Provisioners.
type Reconciler struct{ Options }

// verdict is what became of an object: the condition Translated.
type verdict struct {
	ok              bool
	reason, message string
	// wait is when to look again although nothing has changed; zero for never.
	wait time.Duration
}

func refused(reason, message string) verdict { return verdict{reason: reason, message: message} }

// problems are all that is wrong with an object, in one line.
func problems(list []translate.Problem) string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	return strings.Join(out, "; ")
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha5.GroupVersion().WithKind(v1alpha5.Kind))
	if err := r.Client.Get(ctx, request.NamespacedName, u); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if u.GetDeletionTimestamp() != nil { // the owner references see to the rest
		class := blankClass(r.Target.Cloud)
		class.SetName(translate.ClassName(u.GetName()))
		pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: u.GetName()}}
		return r.letGo(ctx, owner{object: u, kind: u.GroupVersionKind()}, pool, class)
	}
	p := &v1alpha5.Provisioner{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Provisioner %s: %w (correct that field)", request.Name, err)
	}
	before := p.DeepCopy()
	v, err := r.keep(ctx, p)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil // somebody was faster; the newer object is on its way
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.tell(ctx, before, p, v); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: v.wait}, nil
}

// keep makes what a Provisioner means.
func (r *Reconciler) keep(ctx context.Context, p *v1alpha5.Provisioner) (verdict, error) {
	p.Status.NodePool, p.Status.NodeClass = "", ""
	var template *v1alpha1.AWSNodeTemplate
	if name := translate.TemplateOf(p); name != "" && r.Target.Cloud == translate.AWS {
		var err error
		if template, err = r.template(ctx, name); err != nil {
			return verdict{}, err
		}
		if template == nil {
			return refused(ReasonTemplateNotFound,
				fmt.Sprintf("spec.providerRef.name %q: there is no AWSNodeTemplate of this name; create it, or "+
					"correct the name",
					name)), nil
		}
	}
	pool, wrong := translate.Provisioner(p, template, r.Target)
	if len(wrong) > 0 {
		return refused(ReasonInvalid, problems(wrong)), nil
	}
	if pool.Class == nil && template != nil {
		if v, err := r.templatesClass(ctx, template); err != nil || !v.ok {
			return v, err
		}
	}
	owner := owner{object: p, kind: v1alpha5.GroupVersion().WithKind(v1alpha5.Kind)}
	if pool.Class != nil {
		if v, err := r.ensure(ctx, owner, pool.Class); err != nil || !v.ok {
			return v, err
		}
	}
	copyAnnotations(p, pool.NodePool)
	if v, err := r.ensure(ctx, owner, pool.NodePool); err != nil || !v.ok {
		return v, err
	}
	if pool.Class == nil {
		if err := r.dropClass(ctx, p); err != nil {
			return verdict{}, err
		}
	}
	ref := pool.NodePool.Spec.Template.Spec.NodeClassRef
	p.Status.NodePool, p.Status.NodeClass = pool.NodePool.Name, ref.Kind+"/"+ref.Name
	return verdict{ok: true, reason: ReasonTranslated, message: made(&pool)}, nil
}

// made says what a Provisioner became, and what of it has no effect here.
func made(pool *translate.Pool) string {
	ref := pool.NodePool.Spec.Template.Spec.NodeClassRef
	text := fmt.Sprintf("it is NodePool %s with %s %s; tenon convert shows what that means", pool.NodePool.Name,
		ref.Kind, ref.Name)
	for _, n := range pool.Notes {
		if strings.Contains(n.Text, "no effect") {
			text += "; " + n.String()
		}
	}
	return text
}

// template is an AWSNodeTemplate; nil if there is none.
func (r *Reconciler) template(ctx context.Context, name string) (*v1alpha1.AWSNodeTemplate, error) {
	if !r.Templates {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, u); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	out := &v1alpha1.AWSNodeTemplate{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("reading AWSNodeTemplate %s: %w (correct that field)", name, err)
	}
	return out, nil
}

// templatesClass sees to it that a pool uses the EC2NodeClass of its AWSNodeTemplate, and not one of that name that
// somebody else made: that may have another role, other images and other networks.
func (r *Reconciler) templatesClass(ctx context.Context, template *v1alpha1.AWSNodeTemplate) (verdict, error) {
	class := &awsv1.EC2NodeClass{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: template.Name}, class)
	if apierrors.IsNotFound(err) {
		return verdict{ok: true}, nil // it is on its way; without it the NodePool is not ready
	}
	if err != nil {
		return verdict{}, fmt.Errorf("reading EC2NodeClass %s: %w", template.Name, err)
	}
	if metav1.IsControlledBy(class, template) {
		return verdict{ok: true}, nil
	}
	by := owner{object: template, kind: v1alpha1.GroupVersion().WithKind(v1alpha1.Kind)}
	v := taken(by, "EC2NodeClass "+template.Name, class)
	v.message = "spec.providerRef.name: " + v.message
	return v, nil
}

// dropClass removes the NodeClass that a Provisioner had for itself and needs no more. An EC2NodeClass stays until its
// nodes are gone.
func (r *Reconciler) dropClass(ctx context.Context, p *v1alpha5.Provisioner) error {
	class := blankClass(r.Target.Cloud)
	err := r.Client.Get(ctx, client.ObjectKey{Name: translate.ClassName(p.Name)}, class)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(class, p) || class.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := class.GetUID()
	err = r.Client.Delete(ctx, class, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the NodeClass %s, which Provisioner %s no longer needs: %w", class.GetName(),
			p.Name, err)
	}
	return nil
}

func blankClass(cloud string) client.Object {
	if cloud == translate.AWS {
		return &awsv1.EC2NodeClass{}
	}
	return &kwokv1alpha1.KWOKNodeClass{}
}

// tell writes the status and, if the verdict is news, an event.
func (r *Reconciler) tell(ctx context.Context, before, p *v1alpha5.Provisioner, v verdict) error {
	var ready *metav1.Condition
	if v.ok {
		pool, err := r.nodePool(ctx, p.Name)
		if err != nil {
			return err
		}
		p.Status.Resources = pool.Status.Resources
		ready = meta.FindStatusCondition(pool.Status.Conditions, v1.ConditionTypeReady)
	}
	judge(&p.Status.Conditions, p.Generation, v, "NodePool "+p.Name, ready)
	if equality.Semantic.DeepEqual(before.Status, p.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, p, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of Provisioner %s: %w", p.Name, err)
	}
	announce(r.Events, v1alpha5.GroupVersion().String(), v1alpha5.Kind, p, before.Status.Conditions, v)
	return nil
}

// nodePool reads the pool of a Provisioner as far as its status can be read.
func (r *Reconciler) nodePool(ctx context.Context, name string) (*v1.NodePool, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1.GroupVersion().WithKind("NodePool"))
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, u); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading NodePool %s: %w", name, err)
	}
	out := &v1.NodePool{}
	status, _, err := unstructured.NestedMap(u.Object, "status")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": status}, out)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the status of NodePool %s: %w", name, err)
	}
	return out, nil
}

// judge sets the conditions: Translated by the verdict, Ready if what was made is ready, too.
func judge(conditions *[]metav1.Condition, generation int64, v verdict, what string, ready *metav1.Condition) {
	translated := metav1.Condition{Type: v1alpha5.ConditionTypeTranslated, Status: metav1.ConditionFalse,
		Reason: v.reason, Message: v.message, ObservedGeneration: generation}
	sum := metav1.Condition{Type: v1.ConditionTypeReady, Status: metav1.ConditionFalse, Reason: v.reason,
		Message: v.message, ObservedGeneration: generation}
	if v.ok {
		translated.Status = metav1.ConditionTrue
		switch {
		case ready == nil:
			sum.Status, sum.Reason, sum.Message = metav1.ConditionUnknown, ReasonNotReady,
				what+" does not say yet whether it is ready"
		case ready.Status == metav1.ConditionTrue:
			sum.Status, sum.Reason, sum.Message = metav1.ConditionTrue, v1.ConditionTypeReady, ""
		default:
			sum.Status, sum.Reason, sum.Message = ready.Status, ReasonNotReady, what+": "+ready.Message
		}
	}
	meta.SetStatusCondition(conditions, translated)
	meta.SetStatusCondition(conditions, sum)
}

// announce writes an event if an object can't be translated, and did not say so before.
func announce(events Recorder, apiVersion, kind string, object client.Object, before []metav1.Condition, v verdict) {
	was := meta.FindStatusCondition(before, v1alpha5.ConditionTypeTranslated)
	if v.ok || was != nil && was.Reason == v.reason && was.Message == v.message {
		return
	}
	ref := &corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: object.GetName(), UID: object.GetUID()}
	events.Eventf(ref, nil, corev1.EventTypeWarning, v.reason, "Translate", "%s", v.message)
}
