// Package nodeclass keeps EC2NodeClasses: it finds in AWS what each selects, makes its instance profile, rehearses a
// launch, and says in the class's status what it found and in its conditions what is wrong and how to mend it.
//
// It is an edge: it reads and writes EC2NodeClasses (and the hash annotations of NodeClaims) through Kubernetes and
// calls AWS through the packages beside it. What it knows is in those two places; it only remembers which rehearsals
// went well, so a restart costs nothing but calls, and every trouble is looked at again by itself, sooner at first and
// at least once a minute.
//
// The condition of a step is True, or False with the reason and the fix. Trouble that says nothing about the class,
// such as a throttled call, leaves a True condition as it is. Ready sums up.
package nodeclass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

const (
	// soon and later are when a class is looked at again that is not Ready, or is, unless Options.Every asks for more.
	soon  = 15 * time.Second
	later = time.Minute
	// verySoon is when a class is looked at again for which AWS only needs some seconds.
	verySoon = 2 * time.Second
	// A class that gives trouble is tried again after firstTry, then after ever longer, at most lastTry.
	firstTry, lastTry = time.Second, time.Minute
	// atOnce is how many classes are looked at at a time.
	atOnce = 5
)

// Images finds the images of a class; image.Finder does.
type Images interface {
	AMIs(ctx context.Context, class *awsv1.EC2NodeClass) ([]awsv1.AMI, error)
}

// Recorder writes events.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Options are what a Reconciler works with.
type Options struct {
	Client    client.Client
	Network   *network.Finder
	Images    Images
	Profiles  *profile.Keeper
	Templates TemplatesAPI
	Events    Recorder
	// Metrics may be nil.
	Metrics *Metrics
	// Rehearser says which calls a launch makes. Nil means that launches are not rehearsed (disable-dry-run).
	Rehearser Rehearser
	// CABundle is the certificate that nodes are told to trust, as it stands in their user data. It goes into the hash.
	CABundle func(ctx context.Context) (string, error)
	// Cluster is the name of the cluster.
	Cluster string
	// ReservedCapacity says whether capacity reservations are used at all (the feature gate of that name).
	ReservedCapacity bool
	// Expressions says whether settings of the kubelet may be expressions (the feature gate NodeClassCEL).
	Expressions bool
	// Guard catches panics of what is not started by a change; nil to tell nobody of them.
	Guard *recovery.Guard
	// Every is how often a class that is Ready is looked at: what it selects may have changed. 0 means every minute,
	// which is the least.
	Every time.Duration
	// Now tells the time.
	Now func() time.Time
}

// Reconciler keeps EC2NodeClasses.
type Reconciler struct {
	Options
	rehearsed rehearsals
	// said is when an event was last written about a class, by its UID, that is going.
	said sync.Map
}

// New returns a Reconciler that has seen nothing yet.
func New(o Options) *Reconciler {
	return &Reconciler{Options: o, rehearsed: rehearsals{now: o.Now, good: map[types.UID]passed{}}}
}

// Setup makes the manager run a Reconciler and a Collector.
func Setup(mgr ctrl.Manager, o Options) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("nodeclass").
		For(&awsv1.EC2NodeClass{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(newClaim(), handler.EnqueueRequestsFromMapFunc(classOf), builder.WithPredicates(onlyDeletions())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: atOnce,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstTry,
				lastTry),
		}).
		Complete(New(o))
	if err != nil {
		return fmt.Errorf("setting up the EC2NodeClass controller: %w", err)
	}
	if err := mgr.Add(NewCollector(o)); err != nil {
		return fmt.Errorf("setting up the collection of what EC2NodeClasses leave behind: %w", err)
	}
	return nil
}

func onlyDeletions() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	class := &awsv1.EC2NodeClass{}
	if err := r.Client.Get(ctx, request.NamespacedName, class); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("getting EC2NodeClass %s: %w", request.Name, err)
	}
	result, err := r.keep(ctx, class)
	if apierrors.IsConflict(err) {
		// Somebody was faster; the newer object is on its way.
		return ctrl.Result{RequeueAfter: firstTry}, nil
	}
	return result, err
}

func (r *Reconciler) keep(ctx context.Context, class *awsv1.EC2NodeClass) (ctrl.Result, error) {
	if !class.DeletionTimestamp.IsZero() {
		return r.finish(ctx, class)
	}
	if err := r.hold(ctx, class); err != nil {
		return ctrl.Result{}, err
	}
	// The hash comes first: launches wait for a look at the class as it is, and must not be older than its annotation.
	unstamped := r.stamp(ctx, class)
	before := class.DeepCopy()
	waits, trouble := r.look(ctx, class)
	if !equality.Semantic.DeepEqual(before.Status, class.Status) {
		if err := r.Client.Status().Patch(ctx, class, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, errors.Join(trouble, unstamped,
				fmt.Errorf("writing the status of EC2NodeClass %s: %w", class.Name, err))
		}
		r.tell(before, class)
		if c := meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady); waits && c != nil {
			log.FromContext(ctx).Info("an EC2NodeClass waits for AWS", "why", c.Message)
		}
	}
	if err := errors.Join(trouble, unstamped); err != nil {
		return ctrl.Result{}, err
	}
	if waits {
		return ctrl.Result{RequeueAfter: verySoon}, nil
	}
	if !ready(class) {
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	return ctrl.Result{RequeueAfter: cmp.Or(min(r.Every, later), later)}, nil
}

// hold puts the finalizer on a class that lacks it, before anything is made for it in AWS.
func (r *Reconciler) hold(ctx context.Context, class *awsv1.EC2NodeClass) error {
	before := class.DeepCopy()
	if !controllerutil.AddFinalizer(class, awsv1.TerminationFinalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, class, client.MergeFromWithOptions(before,
		client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adding the finalizer of EC2NodeClass %s: %w", class.Name, err)
	}
	return nil
}

// reference is the class as events name it.
func reference(class *awsv1.EC2NodeClass) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: awsv1.GroupVersion().String(), Kind: awsv1.Kind, Name: class.Name, UID: class.UID,
		ResourceVersion: class.ResourceVersion,
	}
}
