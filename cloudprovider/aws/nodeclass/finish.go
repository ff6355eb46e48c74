package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
)

// finish lets a class go that was deleted: once no NodeClaim refers to it, and what was made for it in AWS is gone.
func (r *Reconciler) finish(ctx context.Context, class *awsv1.EC2NodeClass) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(class, awsv1.TerminationFinalizer) {
		return ctrl.Result{}, nil
	}
	claims, err := listClaims(ctx, r.Client, class.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(claims) > 0 {
		names := make([]string, 0, len(claims))
		for _, c := range claims {
			names = append(names, c.GetName())
		}
		r.sayNow(class, corev1.EventTypeNormal, EventWaitingOnNodeClaims, "It stays until its NodeClaims are gone: "+
			few(names))
		return ctrl.Result{RequeueAfter: later}, nil
	}
	if err := r.clear(ctx, class); err != nil {
		r.sayNow(class, corev1.EventTypeWarning, failed(err).reason, err.Error())
		return ctrl.Result{}, err
	}
	before := class.DeepCopy()
	controllerutil.RemoveFinalizer(class, awsv1.TerminationFinalizer)
	err = r.Client.Patch(ctx, class, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("removing the finalizer of EC2NodeClass %s: %w", class.Name, err)
	}
	r.Events.Eventf(reference(class), nil, corev1.EventTypeNormal, EventFinalized, "Finish", "Finalized %s",
		awsv1.TerminationFinalizer)
	r.Metrics.left(before)
	r.rehearsed.forget(class.UID)
	r.said.Delete(class.UID)
	return ctrl.Result{}, nil
}

// sayNow writes an event about a class that is going, but not one for each of a thousand NodeClaims that go before it.
func (r *Reconciler) sayNow(class *awsv1.EC2NodeClass, kind, reason, text string) {
	last, ok := r.said.Load(class.UID)
	if at, isTime := last.(time.Time); ok && isTime && r.Now().Sub(at) < later {
		return
	}
	r.said.Store(class.UID, r.Now())
	r.Events.Eventf(reference(class), nil, kind, reason, "Finish", "%s", text)
}

// clear removes what was made for the class in AWS.
func (r *Reconciler) clear(ctx context.Context, class *awsv1.EC2NodeClass) error {
	err := r.Profiles.DeleteAll(ctx, class)
	if left, ok := errors.AsType[*profile.LeftError](err); ok {
		r.Events.Eventf(reference(class), nil, corev1.EventTypeWarning, EventInstanceProfileLeft, "Finish", "%s",
			left.Error())
	} else if err != nil {
		return err
	}
	return deleteTemplates(ctx, r.Templates, r.Cluster, class.Name)
}

// fewNames is how many names an event lists.
const fewNames = 5

// few lists some names and counts the others.
func few(names []string) string {
	slices.Sort(names)
	if len(names) <= fewNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:fewNames], ", "), len(names)-fewNames)
}
