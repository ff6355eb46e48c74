package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tenon-sh/tenon/internal/ingest/apiserver"
	"github.com/tenon-sh/tenon/internal/lease"
	"github.com/tenon-sh/tenon/internal/logging"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/observe/events"
	"github.com/tenon-sh/tenon/internal/tolerant"
	"github.com/tenon-sh/tenon/internal/version"
)

// NewCommand makes the command "controller", which runs the controller on one of the clouds: see Main. It runs until
// its context ends and hears no signals. Who does not use Execute gives it, by ExecuteContext, a context that ends with
// SIGTERM: then it gives back its lease and finishes what it has begun.
func NewCommand(clouds ...Cloud) *cobra.Command { return controllerCommand(newOptions(clouds)) }

func controllerCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the autoscaler",
		Long: `Run the autoscaler against a cluster. Every flag can be given as an environment variable too:
its name in capitals, with underscores for dashes. A flag wins over the environment.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.cloud.check(); err != nil {
				return err
			}
			unread := fromEnvironment(cmd.Flags())
			o.webhookPortChosen = cmd.Flags().Changed("webhook-port")
			if err := o.validate(); err != nil {
				return err
			}
			return runController(cmd.Context(), o, append(unread, o.withoutEffect(cmd.Flags())...))
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// lazyCollector is how much the heap may grow, in percent of what is alive, before the collector runs: each plan leaves
// a snapshot behind, and twice Go's own figure halves what is spent on clearing them away.
const lazyCollector = 200

// tuneCollector tells the garbage collector what memory it may use. GOGC, where it is set, is obeyed.
func tuneCollector(o *options) {
	if _, chosen := os.LookupEnv("GOGC"); !chosen {
		debug.SetGCPercent(lazyCollector)
	}
	if o.memoryLimit > 0 {
		debug.SetMemoryLimit(o.memoryLimit / 10 * 9)
	}
}

// deps is what the parts of the controller are built with.
type deps struct {
	config *rest.Config
	mgr    manager.Manager
	// clock is the API server's, which snapshots go by.
	clock  *apiserver.ServerClock
	events *events.Writer
	o      *options
	// catalogChanged is sent when prices, or what the cloud sells, have changed.
	catalogChanged wakeup
	// refusals says what the core holds against offerings.
	refusals *refusals
	// failures are told of what failed in the provider.
	failures *failures
	// planner decides; the zero value is package plan. Only tests have another.
	planner loop.Planner
	// term is how long this replica leads.
	term *lease.Term
	// lost ends this replica for a reason.
	lost func(error)
	// leads says whether this replica may change something now; nil if it always may.
	leads func() bool
	// mustConvert says whether this replica has to be asked for conversions before its caches are filled; nil if it
	// converts nothing.
	mustConvert func() bool
}

// host is what the provider is built on.
func (d *deps) host() *Host {
	leading := d.leads
	if leading == nil {
		leading = func() bool { return true }
	}
	return &Host{
		Manager: d.mgr, Client: tolerant.Client{Client: d.mgr.GetClient()}, Config: d.config, Metrics: metrics.Registry,
		ClusterState: !d.o.disableObserve, Events: d.events, Now: d.clock.Now, Leading: leading,
		Enabled:        d.o.gates.Enabled,
		CatalogChanged: d.catalogChanged.send, Refused: d.refusals.now, Failed: d.failures.add,
	}
}

// leads is how whoever acts asks whether this replica leads; nil if there is no election, and so nobody else.
func (o *options) leads(term *lease.Term) func() bool {
	if o.disableElection {
		return nil
	}
	return term.Holds
}

// runController puts the parts together: watch, ingest, plan, actuate, observe.
func runController(ctx context.Context, o *options, withoutEffect []string) error {
	log, flush, err := logging.New(o.log())
	if err != nil {
		return err
	}
	defer flush()
	logging.SetForLibraries(log)
	tellSettings(log, withoutEffect, o.unknownGates())
	tuneCollector(o)
	config, err := restConfig(o)
	if err != nil {
		return err
	}
	cloud := o.cloud.chosen()
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	term, clock := lease.NewTerm(), newClock(lost)
	config.Wrap(clock.Listen)
	mgr, err := newManager(config, cloud, o, term, lost)
	if err != nil {
		return err
	}
	if err := settle(mgr, clock); err != nil {
		return err
	}
	if err := checkCRDs(mgr, cloud.requiredKinds()); err != nil {
		return err
	}
	o.cloud.tellOthers(ctx, mgr.GetAPIReader(), log)
	writer := events.NewWriter(mgr.GetClient(), mgr.GetLogger(), time.Now)
	if err := mgr.Add(writer); err != nil {
		return err
	}
	on := &deps{
		config: config, mgr: mgr, clock: clock, events: writer, o: o, catalogChanged: newWakeup(),
		refusals: &refusals{},
		failures: &failures{}, planner: o.planner, term: term, lost: lost, leads: o.leads(term),
	}
	hook, err := addWebhook(ctx, on)
	if err != nil {
		return err
	}
	if hook != nil {
		on.mustConvert = hook.MustConvert
	}
	if err := addController(ctx, on, cloud); err != nil {
		return err
	}
	log.Info("starting", "version", version.Read().String(), "provider", o.cloud.name)
	err = runManager(ctx, mgr, o)
	lost(nil)
	if hook != nil {
		hook.Wait()
	}
	return err
}

// tellSettings warns of settings that do nothing. A gate that does not exist is an error if somebody relies on it.
func tellSettings(log logr.Logger, withoutEffect []string, unknownGates []unknownGate) {
	const message = "this setting has no effect"
	for _, setting := range withoutEffect {
		log.Info(message, "setting", setting)
	}
	for _, gate := range unknownGates {
		if gate.needed {
			log.Error(errors.New(gate.text), message)
		} else {
			log.Info(message, "setting", gate.text)
		}
	}
}

// runManager runs until it is told to stop, or this replica has to.
func runManager(ctx context.Context, mgr manager.Manager, o *options) error {
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controller: %w", namePort(err, o))
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("running the controller: %w", cause)
	}
	return nil
}
