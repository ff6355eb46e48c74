package operator

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/plan"
)

// Host is what a provider is built on.
type Host struct {
	// Manager runs what works in the provider's background: on the elected replica only, unless it says otherwise.
	Manager manager.Manager
	// Client is the manager's, but reads NodePools and NodeClaims one by one, by Get and by List: one that can't be
	// read hides no other.
	Client client.Client
	// Config is for clients of the provider's own. It must be copied before it is changed.
	Config *rest.Config
	// Metrics is where the provider's metrics are registered.
	Metrics prometheus.Registerer
	// ClusterState says whether metrics about the cluster's state, of which there may be many, are wanted.
	ClusterState bool
	// Events writes events.
	Events Recorder

	// Now is the time of the API server, by which everything is decided.
	Now func() time.Time
	// Leading says whether this replica may change something now. Whatever changes something in the cloud asks right
	// before.
	Leading func() bool
	// Enabled says whether a gate of --feature-gates is on.
	Enabled func(gate string) bool
	// CatalogChanged says that prices, or what the cloud sells, have changed: the catalog is asked for again. It never
	// waits.
	CatalogChanged func()
	// Refused returns which offerings the core leaves alone now, because the cloud could not sell them a while ago. It
	// must not be called by Build: nothing runs then.
	Refused func() func(cloudprovider.OfferingRef) bool
	// Failed tells of a panic in the provider's background that was contained, with the stack.
	Failed func(problem, stack string)
}

// Recorder writes events, in the words of client-go. It never waits.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// refusals hands on what the core holds against offerings. The provider is built before the core, which sets it before
// anything runs.
type refusals struct {
	ask atomic.Pointer[func() func(cloudprovider.OfferingRef) bool]
}

// now is what the core holds against offerings now: nothing before it is there.
func (r *refusals) now() func(cloudprovider.OfferingRef) bool {
	if ask := r.ask.Load(); ask != nil {
		return (*ask)()
	}
	return func(cloudprovider.OfferingRef) bool { return false }
}

// failures hands on what has failed in the provider and was contained. Who tells people of it is built
// after the provider.
type failures struct {
	tell atomic.Pointer[func(plan.PlannerFailure)]
}

// add tells of one.
func (f *failures) add(broken, stack string) {
	tell := f.tell.Load()
	if tell == nil {
		log.Log.Error(errors.New(broken), "a step failed and was contained; this is a mistake in the provider, please "+
			"report it", "step", plan.StepCloud, "stack", stack)
		return
	}
	(*tell)(plan.PlannerFailure{Step: plan.StepCloud, Panic: broken, Stack: stack})
}
