package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	awsv1alpha1 "github.com/tenon-sh/tenon/api/aws/v1alpha1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha5"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/observe"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/validate"
)

// The clouds.
const (
	cloudKwok = "kwok"
	cloudAWS  = "aws"
)

// cloud is what a cloud brings to the controller besides a provider.
type cloud struct {
	// scheme adds its kinds.
	scheme func(*runtime.Scheme) error
	// classes are its kinds of NodeClass, without which nothing works.
	classes []schema.GroupVersionKind
	// labels are those that its types and offerings decide, and the domains that are its own. They must be known before
	// any NodeClass is there, because pools are judged by them.
	labels validate.Labels
	// build makes the provider and adds what works in its background to the manager.
	build func(ctx context.Context, on ground) (cloudprovider.Provider, error)
}

// ground is what a provider is built on.
type ground struct {
	config *rest.Config
	mgr    manager.Manager
	// clock is the API server's, which snapshots go by.
	clock  *ingest.ServerClock
	events *observe.EventWriter
	o      *options
	// restock is rung when prices, or what the cloud sells, have changed.
	restock bell
	// refusals says what the core holds against offerings.
	refusals *refusals
	// failures are told of what failed in the provider's background.
	failures *failures
	// planner decides; the zero value is package plan. Only tests have another.
	planner loop.Planner
	// lost ends this replica for a reason.
	lost func(error)
	// leads says whether this replica may change something now; nil if it always may.
	leads func() bool
	// mustConvert says whether this replica has to be asked for conversions before its caches are filled; nil if it
	// converts nothing.
	mustConvert func() bool
}

// refusals hands on what the core holds against offerings. The provider is built before the core, which sets it before anything runs.
type refusals struct {
	ask func() func(cloudprovider.OfferingRef) bool
}

func (r *refusals) now() func(cloudprovider.OfferingRef) bool { return r.ask() }

// failures hands on what has failed in the provider's background and was contained. Who tells people of it is built after the provider.
type failures struct {
	tell atomic.Pointer[func(plan.Breakdown)]
}

// add tells of one.
func (f *failures) add(broken, stack string) {
	tell := f.tell.Load()
	if tell == nil {
		log.Log.Error(errors.New(broken), "a step failed and was contained; this is a mistake in Tenon, please report it", "step", plan.StepCloud, "stack", stack)
		return
	}
	(*tell)(plan.Breakdown{Step: plan.StepCloud, Panic: broken, Stack: stack})
}

// bell wakes one listener, once however often it is rung meanwhile.
type bell chan struct{}

func newBell() bell { return make(bell, 1) }

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// answer calls do whenever the bell was rung, until the context ends.
func (b bell) answer(do func()) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-b:
				do()
			}
		}
	}
}

// newCloud returns the cloud that the settings name.
func newCloud(o *options) (cloud, error) {
	if o.cloudProvider == cloudAWS {
		return newAWS(o)
	}
	return newKwok(o)
}

// newScheme knows Kubernetes, our kinds and those of the cloud.
func newScheme(c cloud) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme, v1alpha5.AddToScheme, awsv1alpha1.AddToScheme, c.scheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// requiredKinds are those that the API server must serve.
func (c cloud) requiredKinds() []schema.GroupVersionKind {
	return append([]schema.GroupVersionKind{v1.GroupVersion().WithKind("NodePool"), v1.GroupVersion().WithKind("NodeClaim")}, c.classes...)
}
