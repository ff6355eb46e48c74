package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/actuate"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/ingest/offerings"
	"github.com/tenon-sh/tenon/internal/lease"
	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/observe"
	"github.com/tenon-sh/tenon/internal/observe/measure"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/schedule"
	"github.com/tenon-sh/tenon/internal/tolerant"
	"github.com/tenon-sh/tenon/internal/validate"
	"github.com/tenon-sh/tenon/internal/version"
)

// addController adds the loop, and what feeds it, to the manager: both run on the elected replica only. The caches are
// filled on every replica.
func addController(ctx context.Context, on *deps, cloud *Cloud) error {
	mgr, o := on.mgr, on.o
	provider, err := buildProvider(ctx, on, cloud)
	if err != nil {
		return err
	}
	repair := o.repairSettings(provider.RepairPolicies())
	book := newBook(on, cloud, provider, repair)
	if err := ingest.Prepare(ctx, mgr.GetCache(), provider.NodeClasses(), book.ExtraKinds()...); err != nil {
		return err
	}
	pods, err := podLister(mgr.GetConfig())
	if err != nil {
		return err
	}
	observer, err := addObserver(on, cloud, provider)
	if err != nil {
		return err
	}
	book.TellBreakdowns(observer.PlannerFailed)
	broke := observer.PlannerFailed
	on.failures.tell.Store(&broke)
	if err := addReadiness(ctx, on); err != nil {
		return err
	}
	watched := measure.NewCloud(provider, metrics.Registry, time.Now)
	actor, err := newActor(on, book, watched)
	if err != nil {
		return err
	}
	main := &loop.Loop{
		World: book, IsLeader: on.leads, Now: on.clock.Now, Observer: observer, Policy: o.policy(repair),
		Planner:  on.planner,
		Recorder: o.recorder(mgr.GetLogger()), Version: version.Name(), Liveness: &loop.Liveness{Now: time.Now},
		Actor: actor,
	}
	if err := errors.Join(addWatch(on, main, book), addOlderKinds(on, cloud)); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := book.Watch(ctx, mgr.GetCache(), provider.NodeClasses(), pods); err != nil {
			return err
		}
		catchUp(ctx, mgr, book)
		return runAll(ctx, main.Run, on.catalogChanged.answer(book.RefetchCatalogs),
			func(ctx context.Context) error { return book.KeepCatalogs(ctx, watched) },
			func(ctx context.Context) error { return book.KeepInventory(ctx, watched, tellTrouble(mgr.GetLogger())) },
			func(ctx context.Context) error {
				return book.KeepDrift(ctx, watched, tolerant.Reader{Reader: mgr.GetClient()},
					tellDriftTrouble(mgr.GetLogger()))
			})
	}))
}

// buildProvider has the cloud make its provider.
func buildProvider(ctx context.Context, on *deps, cloud *Cloud) (cloudprovider.Provider, error) {
	provider, err := cloud.Build(ctx, on.host())
	if err != nil {
		return nil, err
	}
	if provider == nil {
		return nil, fmt.Errorf("cloud %q has built no provider; Build must return one or an error", cloud.Name)
	}
	if provider.Name() != cloud.Name {
		return nil, fmt.Errorf("the provider of cloud %q calls itself %q; both must have the same name", cloud.Name,
			provider.Name())
	}
	return contained{provider, on.failures.add}, nil
}

// newActor makes what carries commands out.
func newActor(on *deps, book *ingest.Book, cloud cloudprovider.Instances) (*actuate.Actor, error) {
	writes, err := lease.Writer(on.mgr, on.leads)
	if err != nil {
		return nil, err
	}
	objects := actuate.Objects{Client: tolerant.Client{Client: writes},
		Live: tolerant.Reader{Reader: on.mgr.GetAPIReader()}}
	return &actuate.Actor{Objects: objects, Cloud: cloud, Now: on.clock.Now, Names: book.Names}, nil
}

// catchUp waits until all NodeClaims and Nodes are known, but not for ever.
func catchUp(ctx context.Context, mgr manager.Manager, book *ingest.Book) {
	if err := book.CatchUp(ctx, mgr.GetAPIReader(), pause); err != nil {
		mgr.GetLogger().Error(err, "not everything that is in the cluster is known yet; going on with what is")
	}
}

// addReadiness says on /readyz when the caches are filled, and that the replica has been told to end.
func addReadiness(ctx context.Context, on *deps) error {
	ready := &readiness{ended: ctx.Err, mustConvert: on.mustConvert}
	if err := on.mgr.AddReadyzCheck("readyz", ready.check); err != nil {
		return err
	}
	return on.mgr.Add(ready.standby(on.mgr.GetCache()))
}

// addWatch adds what looks after the loop from outside, and hands out what it looks at.
func addWatch(on *deps, main *loop.Loop, book *ingest.Book) error {
	dog := &watchdog{pulse: main.Liveness, term: on.term, lost: on.lost}
	if err := on.mgr.AddHealthzCheck("passes", dog.check); err != nil {
		return err
	}
	if on.o.enableProfiling && on.o.metricsPort != 0 {
		if err := on.mgr.AddMetricsServerExtraHandler(snapshotPath, snapshotPage(book.Snapshot,
			main.Policy)); err != nil {
			return err
		}
	}
	return on.mgr.Add(everywhere(dog.run))
}

// newBook makes the memory, empty.
func newBook(on *deps, cloud *Cloud, provider cloudprovider.Provider, repair disrupt.RepairSettings) *ingest.Book {
	o := on.o
	book := ingest.New(on.clock.Now, known(cloud.labels()), classKinds(provider))
	refused := book.Unavailable
	on.refusals.ask.Store(&refused)
	book.SetDefaultSpread(o.defaultSpread)
	book.SetShortageBackoff(offerings.Backoff{First: o.backoffFirst, Most: o.backoffMax})
	book.WatchHealth(conditionTypes(repair.Policies)...)
	return book
}

// addObserver makes what tells people.
func addObserver(on *deps, cloud *Cloud, provider cloudprovider.Provider) (*observe.Observer, error) {
	mgr, o := on.mgr, on.o
	observer := observe.New(mgr.GetLogger(), on.events, metrics.Registry, on.clock.Now, observe.Options{
		ClusterState: !o.disableObserve, Version: version.Name(), Commit: version.Commit(),
		NodeClasses: provider.NodeClasses(),
		Elsewhere:   o.cloud.elsewhere(),
		NodeLabels:  cloud.labels().WellKnown,
	})
	for path, page := range decisions(o, observer) {
		if err := mgr.AddMetricsServerExtraHandler(path, page); err != nil {
			return nil, err
		}
	}
	return observer, nil
}

// policy is what plans go by.
func (o *options) policy(repair disrupt.RepairSettings) plan.Policy {
	return plan.Policy{
		BatchIdle: o.batchIdle, BatchMax: o.batchMax,
		Lifecycle: lifecycle.Settings{
			LaunchTimeout: o.launchTimeout, RegistrationTimeout: o.registrationTimeout,
			InitializationTimeout: o.initTimeout,
		},
		Placement: plan.PlacementMode(o.placement), StaticCapacity: o.gates.Enabled(gateStaticCapacity), Repair: repair,
		Disrupt: o.disruption.settings(o.gates.Enabled(gateSpotToSpot)),
		Schedule: schedule.Settings{IgnorePreferences: o.preferencePolicy == "Ignore",
			RelaxMinValues: o.minValuesPolicy == "BestEffort"},
	}
}

// known are the labels that a cloud adds, as they are looked up.
func known(l Labels) validate.Labels {
	out := validate.Labels{WellKnown: map[string]bool{}, RestrictedDomains: l.RestrictedDomains}
	for _, key := range l.WellKnown {
		out.WellKnown[key] = true
	}
	return out
}

func classKinds(p cloudprovider.Provider) []cluster.ClassRef {
	var out []cluster.ClassRef
	for _, gvk := range p.NodeClasses() {
		out = append(out, cluster.ClassRef{Group: gvk.Group, Kind: gvk.Kind})
	}
	return out
}

// podLister lists and watches the pods of all namespaces, in the encoding that costs least.
func podLister(config *rest.Config) (toolscache.ListerWatcher, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to watch pods: %w", err)
	}
	return toolscache.NewListWatchFromClient(core.RESTClient(), "pods", corev1.NamespaceAll, fields.Everything()), nil
}

// runAll runs what belongs together until all have come to their end; the first that fails ends the others.
func runAll(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ends := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ends <- part(ctx) }()
	}
	var first error
	for range parts {
		if err := <-ends; err != nil && first == nil {
			first = err
			stop()
		}
	}
	return first
}

// pause lets time pass unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// tellTrouble logs once that the cloud does not say what it runs, and once that it does again.
func tellTrouble(log logr.Logger) func(error) {
	return func(err error) {
		if err != nil {
			log.Error(err, "the cloud does not say what it runs; nodes and instances that nobody claims are not "+
				"looked for until it does")
			return
		}
		log.Info("the cloud says again what it runs")
	}
}

// tellDriftTrouble logs once that the cloud does not say which instances have drifted, and once that it does again.
func tellDriftTrouble(log logr.Logger) func(error) {
	return func(err error) {
		if err != nil {
			log.Error(err, "the cloud does not say whether instances have drifted; what it said last is believed "+
				"until it does")
			return
		}
		log.Info("the cloud says again whether instances have drifted")
	}
}
