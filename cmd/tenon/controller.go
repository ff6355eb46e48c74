package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tenon-sh/tenon/internal/ingest"
	"github.com/tenon-sh/tenon/internal/observe"
)

func newControllerCommand() *cobra.Command { return controllerCommand(&options{}) }

func controllerCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the autoscaler",
		Long: `Run the autoscaler against a cluster. Every flag can be given as an environment variable too: its name in capitals,
with underscores for dashes. A flag wins over the environment.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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

// lazyCollector is how much the heap may grow, in percent of what is alive, before the collector runs: each plan leaves a
// snapshot behind, and twice Go's own figure halves what is spent on clearing them away.
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

// runController wires the rooms together: watch, ingest, plan, actuate, observe.
func runController(ctx context.Context, o *options, withoutEffect []string) error {
	log, flush, err := newLogger(o)
	if err != nil {
		return err
	}
	defer flush()
	setLoggers(log)
	tellSettings(log, withoutEffect, o.unknownGates())
	tuneCollector(o)
	config, err := restConfig(o)
	if err != nil {
		return err
	}
	sky, err := newCloud(o)
	if err != nil {
		return err
	}
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	reign, clock := newTerm(), newClock(lost)
	config.Wrap(clock.Listen)
	mgr, err := newManager(config, sky, o, reign, lost)
	if err != nil {
		return err
	}
	if err := settle(mgr, clock); err != nil {
		return err
	}
	if err := checkCRDs(mgr, sky.requiredKinds()); err != nil {
		return err
	}
	tellOtherCloud(ctx, mgr.GetAPIReader(), o, log)
	events := observe.NewEventWriter(mgr.GetClient(), mgr.GetLogger(), time.Now)
	if err := mgr.Add(events); err != nil {
		return err
	}
	on := ground{config: config, mgr: mgr, clock: clock, events: events, o: o, restock: newBell(), refusals: &refusals{}, failures: &failures{}, planner: o.planner, lost: lost, leads: reign.asked(o)}
	hook, err := addWebhook(ctx, on)
	if err != nil {
		return err
	}
	if hook != nil {
		on.mustConvert = hook.MustConvert
	}
	if err := addController(ctx, on, sky, reign); err != nil {
		return err
	}
	log.Info("starting", "version", version(), "provider", o.cloudProvider)
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

func restConfig(o *options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (give --kubeconfig or set KUBECONFIG): %w", err)
	}
	config.QPS, config.Burst = float32(o.kubeClientQPS), o.kubeClientBurst
	config.UserAgent = "tenon"
	return config, nil
}

// newManager makes the manager. reign is how long this replica leads; lost is told when another has taken the lease from it.
func newManager(config *rest.Config, sky cloud, o *options, reign *term, lost func(error)) (manager.Manager, error) {
	scheme, err := newScheme(sky)
	if err != nil {
		return nil, err
	}
	election := rest.CopyConfig(config)
	election.QPS, election.Burst = 20, 30 // the lease must not wait behind a burst of launches
	config = rest.CopyConfig(config)
	config.Wrap(observe.Calls(metrics.Registry, time.Now))
	var lease resourcelock.Interface
	if !o.disableElection {
		if lease, err = newLease(election, o, reign, lost); err != nil {
			return nil, err
		}
	}
	lasts := leaseLasts
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   cache.Options{DefaultTransform: ingest.Strip, NewInformer: ingest.NewInformer},
		Client:                  client.Options{Cache: &client.CacheOptions{Unstructured: true}}, // see tolerantReader
		Metrics:                 metricsOptions(o),
		HealthProbeBindAddress:  address(o.bindAddress, o.healthProbePort),
		LeaderElection:          !o.disableElection,
		LeaderElectionID:        o.electionName,
		LeaderElectionNamespace: electionNamespace(o),
		LeaderElectionConfig:    election,
		LeaseDuration:           &lasts,

		LeaderElectionResourceLockInterface: lease,
		LeaderElectionReleaseOnCancel:       true,
	})
	if err != nil {
		return nil, namePort(fmt.Errorf("connecting to the cluster: %w", err), o)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, nil
}

// namePort names the setting behind a port that can't be listened on, and what to do. Other errors stay as they are.
func namePort(err error, o *options) error {
	var failed *net.OpError
	if !errors.As(err, &failed) || failed.Op != "listen" {
		return err
	}
	at, ok := failed.Addr.(*net.TCPAddr)
	if !ok {
		return err
	}
	for _, setting := range []struct {
		flag string
		port int
	}{{"--metrics-port", o.metricsPort}, {"--health-probe-port", o.healthProbePort}} {
		if at.Port != 0 && at.Port == setting.port {
			return fmt.Errorf("%s %d: %w; give another port, or 0 for none", setting.flag, setting.port, failed)
		}
	}
	return err
}

// address is host:port, or "0", controller-runtime's word for no server.
func address(host string, port int) string {
	if port == 0 {
		return "0"
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// electionNamespace is where the lease lives: as told, or the controller's own namespace, or kube-system outside of a
// cluster.
func electionNamespace(o *options) string {
	if o.electionNamespace != "" {
		return o.electionNamespace
	}
	return ownNamespace()
}

// ownNamespace is where the controller runs.
func ownNamespace() string {
	if ns := os.Getenv("SYSTEM_NAMESPACE"); ns != "" {
		return ns
	}
	if ns, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		return string(ns)
	}
	return "kube-system"
}

// checkCRDs fails early, and with the fix, if the cluster does not know our kinds.
func checkCRDs(mgr manager.Manager, kinds []schema.GroupVersionKind) error {
	for _, gvk := range kinds {
		_, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return fmt.Errorf("the cluster does not serve %s %s: install the CustomResourceDefinitions first (kubectl apply -f charts/karpenter-crd/templates): %w", gvk.Kind, gvk.GroupVersion(), err)
		}
		if err != nil {
			return fmt.Errorf("asking the cluster at %s what it serves (check --kubeconfig): %w", mgr.GetConfig().Host, err)
		}
	}
	return nil
}
