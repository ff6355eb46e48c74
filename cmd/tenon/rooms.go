package main

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/actuate"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/lifecycle"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/observe"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/schedule"
)

// addController adds the loop, and what feeds it, to the manager: both run on the elected replica only. The caches are
// filled on every replica.
func addController(ctx context.Context, on ground, sky cloud, reign *term) error {
	mgr, o := on.mgr, on.o
	provider, err := sky.build(ctx, on)
	if err != nil {
		return err
	}
	repair := o.repairSettings(provider.RepairPolicies())
	book := newBook(on, sky, provider, repair)
	if err := ingest.Prepare(ctx, mgr.GetCache(), provider.NodeClasses(), book.AlsoWatched()...); err != nil {
		return err
	}
	pods, err := podLister(mgr.GetConfig())
	if err != nil {
		return err
	}
	observer, err := addObserver(on, sky, provider)
	if err != nil {
		return err
	}
	book.TellBreakdowns(observer.Broke)
	broke := observer.Broke
	on.failures.tell.Store(&broke)
	if err := addReadiness(ctx, on); err != nil {
		return err
	}
	watched := observe.NewCloud(provider, metrics.Registry, time.Now)
	actor, err := newActor(on, book, watched)
	if err != nil {
		return err
	}
	main := &loop.Loop{
		World: book, Leads: on.leads, Now: on.clock.Now, Observer: observer, Policy: o.policy(repair), Planner: on.planner,
		Recorder: o.recorder(mgr.GetLogger()), Version: version(), Pulse: &loop.Pulse{Now: time.Now}, Actor: actor,
	}
	if err := errors.Join(addWatch(on, reign, main, book), addOlderKinds(on)); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := book.Watch(ctx, mgr.GetCache(), provider.NodeClasses(), pods); err != nil {
			return err
		}
		catchUp(ctx, mgr, book)
		return runAll(ctx, main.Run, on.restock.answer(book.Restock),
			func(ctx context.Context) error { return book.Catalogs(ctx, watched) },
			func(ctx context.Context) error { return book.Census(ctx, watched, tellTrouble(mgr.GetLogger())) },
			func(ctx context.Context) error {
				return book.Drifts(ctx, watched, tolerantReader{mgr.GetClient()}, tellDriftTrouble(mgr.GetLogger()))
			})
	}))
}

// newActor makes what carries commands out.
func newActor(on ground, book *ingest.Book, cloud cloudprovider.Instances) (*actuate.Actor, error) {
	writes, err := writer(on.mgr, on.leads)
	if err != nil {
		return nil, err
	}
	return &actuate.Actor{Client: tolerantClient{writes}, Live: tolerantReader{on.mgr.GetAPIReader()}, Cloud: cloud, Now: on.clock.Now, Names: book.Names}, nil
}

// catchUp waits until all NodeClaims and Nodes are known, but not for ever.
func catchUp(ctx context.Context, mgr manager.Manager, book *ingest.Book) {
	if err := book.CatchUp(ctx, mgr.GetAPIReader(), pause); err != nil {
		mgr.GetLogger().Error(err, "not everything that is in the cluster is known yet; going on with what is")
	}
}

// addReadiness says on /readyz when the caches are filled, and that the replica has been told to end.
func addReadiness(ctx context.Context, on ground) error {
	ready := &readiness{ended: ctx.Err, mustConvert: on.mustConvert}
	if err := on.mgr.AddReadyzCheck("readyz", ready.check); err != nil {
		return err
	}
	return on.mgr.Add(ready.standby(on.mgr.GetCache()))
}

// addWatch adds what looks after the loop from outside, and hands out what it looks at.
func addWatch(on ground, reign *term, main *loop.Loop, book *ingest.Book) error {
	dog := &watchdog{pulse: main.Pulse, reign: reign, lost: on.lost}
	if err := on.mgr.AddHealthzCheck("passes", dog.check); err != nil {
		return err
	}
	if on.o.enableProfiling && on.o.metricsPort != 0 {
		if err := on.mgr.AddMetricsServerExtraHandler(snapshotPath, snapshotPage(book.Snapshot, main.Policy)); err != nil {
			return err
		}
	}
	return on.mgr.Add(everywhere(dog.run))
}

// newBook makes the memory, empty.
func newBook(on ground, sky cloud, provider cloudprovider.Provider, repair disrupt.RepairSettings) *ingest.Book {
	o := on.o
	book := ingest.New(on.clock.Now, sky.labels, classKinds(provider))
	on.refusals.ask = book.Refusals
	book.SpreadByDefault(o.defaultSpread)
	book.SetBackoff(ingest.Backoff{First: o.backoffFirst, Most: o.backoffMax})
	book.WatchHealth(conditionTypes(repair.Policies)...)
	return book
}

// addObserver makes what tells people.
func addObserver(on ground, sky cloud, provider cloudprovider.Provider) (*observe.Observer, error) {
	mgr, o := on.mgr, on.o
	observer := observe.New(mgr.GetLogger(), on.events, metrics.Registry, on.clock.Now, observe.Options{
		ClusterState: !o.disableObserve, Version: version(), Commit: commit(), NodeClasses: provider.NodeClasses(),
		Elsewhere:  otherClouds(o),
		NodeLabels: slices.Collect(maps.Keys(sky.labels.WellKnown)),
	})
	for path, page := range decisions(o, observer) {
		if err := mgr.AddMetricsServerExtraHandler(path, page); err != nil {
			return nil, err
		}
	}
	return observer, nil
}

// decisions serves why nodes stay on the metrics port if that is asked for: it names pods and nodes, and goes through all of them.
func decisions(o *options, observer *observe.Observer) map[string]http.Handler {
	if !o.enableProfiling || o.metricsPort == 0 {
		return nil
	}
	return map[string]http.Handler{observe.DisruptionPath: observer.Disruption()}
}

// policy is what plans go by.
func (o *options) policy(repair disrupt.RepairSettings) plan.Policy {
	return plan.Policy{
		BatchIdle: o.batchIdle, BatchMax: o.batchMax,
		Lifecycle: lifecycle.Settings{
			LaunchTimeout: o.launchTimeout, RegistrationTimeout: o.registrationTimeout, InitializationTimeout: o.initTimeout,
		},
		Placement: plan.PlacementMode(o.placement), StaticCapacity: o.gates[gateStaticCapacity], Repair: repair,
		Disrupt:  o.disruption.settings(o.gates[gateSpotToSpot]),
		Schedule: schedule.Settings{IgnoreWishes: o.preferencePolicy == "Ignore", RelaxMinValues: o.minValuesPolicy == "BestEffort"},
	}
}
