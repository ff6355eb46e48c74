package operator

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/logging"
	"github.com/tenon-sh/tenon/internal/loop"
	"github.com/tenon-sh/tenon/internal/plan"
)

// options are the settings of the controller. Each flag has an environment variable: its name in capitals, with
// underscores. A flag wins over the environment.
type options struct {
	kubeconfig  string
	bindAddress string

	karpenterService string
	webhookPort      int
	// webhookPortChosen says that webhookPort was given.
	webhookPortChosen   bool
	webhookURL          string
	disableWebhook      bool
	disableOlderKinds   bool
	metricsPort         int
	healthProbePort     int
	kubeClientQPS       int
	kubeClientBurst     int
	secureMetrics       bool
	metricsCertDir      string
	enableProfiling     bool
	disableWarmup       bool
	disableElection     bool
	disableObserve      bool
	electionName        string
	electionNamespace   string
	memoryLimit         int64
	cpuRequests         int64
	logLevel            string
	logOutputPaths      string
	logErrorPaths       string
	batchMax            time.Duration
	batchIdle           time.Duration
	preferencePolicy    string
	minValuesPolicy     string
	ignoreDRA           bool
	schedulerConfig     string
	defaultSpread       []corev1.TopologySpreadConstraint // what schedulerConfig says; validate reads it
	snapshotDir         string
	launchTimeout       time.Duration
	registrationTimeout time.Duration
	initTimeout         time.Duration
	placement           string
	backoffFirst        time.Duration
	backoffMax          time.Duration
	repairMaxUnhealthy  int
	repairToleration    string
	legacyRepair        bool
	disruption          disruptionOptions
	gates               *Gates
	cloud               choice

	// planner is what tests have decide; no flag sets it.
	planner loop.Planner

	// tolerations is what validate has read of repairToleration.
	tolerations []disrupt.RepairPolicy
}

func newOptions(clouds []Cloud) *options {
	return &options{gates: newFeatureGates(), cloud: choice{clouds: clouds}}
}

func (o *options) register(f *pflag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "path to a kubeconfig; empty for the in-cluster configuration")
	f.StringVar(&o.bindAddress, "bind-address", "", "address that metrics, health probes and the webhook listen on; "+
		"empty for all")
	f.StringVar(&o.karpenterService, "karpenter-service", "", "name of the controller's Service, by which the API "+
		"server reaches the webhook")
	f.IntVar(&o.webhookPort, "webhook-port", 8443, "port on which objects are converted for the API server, and that "+
		"of the Service; 0 for none")
	f.StringVar(&o.webhookURL, "webhook-url", "", "URL by which the API server reaches the webhook, for a controller "+
		"outside of the cluster; empty for the Service")
	f.BoolVar(&o.disableWebhook, "disable-webhook", false, "convert nothing for the API server: v1beta1 can't be used")
	f.BoolVar(&o.disableOlderKinds, "disable-older-kinds", false,
		"make nothing of Provisioners and AWSNodeTemplates; what was made from them stays as it is")
	f.IntVar(&o.metricsPort, "metrics-port", 8080, "port of /metrics; 0 for none")
	f.IntVar(&o.healthProbePort, "health-probe-port", 8081, "port of /healthz and /readyz; 0 for none")
	f.IntVar(&o.kubeClientQPS, "kube-client-qps", 200, "requests per second to the API server")
	f.IntVar(&o.kubeClientBurst, "kube-client-burst", 300, "requests to the API server that may come at once")
	f.BoolVar(&o.secureMetrics, "secure-metrics", false, "serve the metrics port over HTTPS, and only to who may get "+
		"the path by the cluster's RBAC")
	f.StringVar(&o.metricsCertDir, "metrics-cert-dir", "", "folder with tls.crt and tls.key for --secure-metrics; "+
		"empty for a certificate signed by itself")
	f.BoolVar(&o.enableProfiling, "enable-profiling", false, "serve /debug/pprof, what is known about disruption at "+
		"/debug/tenon/disruption, and a snapshot file at /debug/tenon/snapshot, on the metrics port")
	f.StringVar(&o.snapshotDir, "snapshot-dir", defaultSnapshotDir(), "folder for snapshot files, written when the "+
		"planner fails; empty for none")
	f.BoolVar(&o.disableWarmup, "disable-controller-warmup", true, "fill caches only once elected")
	f.BoolVar(&o.disableElection, "disable-leader-election", false, "run without a lease; only for a single replica")
	f.BoolVar(&o.disableObserve, "disable-cluster-state-observability", false, "leave out metrics about the "+
		"cluster's state")
	f.StringVar(&o.electionName, "leader-election-name", "karpenter-leader-election", "name of the lease")
	f.StringVar(&o.electionNamespace, "leader-election-namespace", "", "namespace of the lease; empty for the "+
		"controller's own")
	f.Int64Var(&o.memoryLimit, "memory-limit", -1, "memory limit of the container in bytes, of which 90% are used "+
		"before the collector works harder; -1 for none")
	f.Int64Var(&o.cpuRequests, "cpu-requests", 1000, "CPU request of the container in thousandths")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info or error")
	f.StringVar(&o.logOutputPaths, "log-output-paths", "stdout", "where logs go, separated by commas")
	f.StringVar(&o.logErrorPaths, "log-error-output-paths", "stderr", "where the logger's own errors go, separated "+
		"by commas")
	f.DurationVar(&o.batchMax, "batch-max-duration", 10*time.Second, "longest wait for more pods before planning")
	f.DurationVar(&o.batchIdle, "batch-idle-duration", time.Second, "longest wait for the next pod before planning")
	f.StringVar(&o.preferencePolicy, "preference-policy", "Respect", "Respect or Ignore pods' preferences")
	f.StringVar(&o.minValuesPolicy, "min-values-policy", "Strict", "Strict, or BestEffort to relax minValues")
	f.BoolVar(&o.ignoreDRA, "ignore-dra-requests", true, "leave pods with dynamic resource claims alone")
	o.gates.register(f)
	f.StringVar(&o.schedulerConfig, "scheduler-config", "", "topology spread constraints of pods that have none: "+
		"podTopologySpread.defaultConstraints or a KubeSchedulerConfiguration, as YAML")
	f.DurationVar(&o.launchTimeout, "launch-timeout", 5*time.Minute, "how long a NodeClaim may wait for its instance")
	f.DurationVar(&o.registrationTimeout, "registration-timeout", 15*time.Minute,
		"how long an instance may take to join")
	f.DurationVar(&o.initTimeout, "initialization-timeout", 0, "how long a node that has joined may take to be ready "+
		"for pods; 0 for as long as it likes")
	f.StringVar(&o.placement, "placement", string(plan.PlaceByNomination), "how pods get to the nodes made for them: "+
		"nominate tells kube-scheduler before the node opens, bind binds them as soon as the node is registered if "+
		"it is not Ready by then, event only says so")
	f.DurationVar(&o.backoffFirst, "capacity-backoff-first", 30*time.Second, "how long an offering is left alone "+
		"that the cloud could not sell; twice as long each time it happens again")
	f.DurationVar(&o.backoffMax, "capacity-backoff-max", 15*time.Minute, "longest time that an offering is left alone")
	f.IntVar(&o.repairMaxUnhealthy, "node-repair-max-unhealthy", 20, "percentage of a pool's nodes that may be "+
		"unhealthy; if more are, none is replaced")
	f.BoolVar(&o.legacyRepair, "legacy-node-repair", false, "with the gate NodeRepair: end unhealthy nodes at once, "+
		"within budgets, without waiting for what takes their place")
	o.disruption.register(f)
	f.StringVar(&o.repairToleration, "node-repair-toleration", "", "conditions for which a node is replaced, and "+
		"after how long, instead of the provider's or besides: Ready=False:30m,...")
	o.cloud.register(f)
}

// variable is the name of a flag's environment variable.
func variable(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// fromEnvironment fills the flags that were not given from the environment. A variable that is empty or can't be read
// leaves the default, as the contract has it: charts set variables for values that nobody gave. It returns those that
// can't be read.
func fromEnvironment(f *pflag.FlagSet) (unread []string) {
	f.VisitAll(func(flag *pflag.Flag) {
		name := variable(flag.Name)
		value, set := os.LookupEnv(name)
		if !set || flag.Changed || flag.Name == "help" || value == "" && flag.Value.Type() != "string" {
			return
		}
		before := flag.Value.String()
		if f.Set(flag.Name, value) == nil {
			return
		}
		unread = append(unread, fmt.Sprintf("environment variable %s: %q can't be read as %s; %s is used", name, value,
			flag.Value.Type(), before))
		_ = flag.Value.Set(before) // some kinds of flags forget their value when they can't read another
	})
	return unread
}

// validate names the flag and the fix for everything that makes no sense.
func (o *options) validate() error {
	choices := []struct {
		flag, value string
		allowed     []string
	}{
		{"log-level", cmp.Or(o.logLevel, "info"), []string{"debug", "info", "error"}},
		{"preference-policy", o.preferencePolicy, []string{"Respect", "Ignore"}},
		{"min-values-policy", o.minValuesPolicy, []string{"Strict", "BestEffort"}},
		{"placement", o.placement, []string{string(plan.PlaceByNomination), string(plan.PlaceByBinding),
			string(plan.PlaceByEvent)}},
	}
	for _, c := range choices {
		if !slices.Contains(c.allowed, c.value) {
			return fmt.Errorf("--%s: %q is not one of %s", c.flag, c.value, strings.Join(c.allowed, ", "))
		}
	}
	if o.batchIdle <= 0 || o.batchMax <= 0 {
		return fmt.Errorf("--batch-idle-duration (%s) and --batch-max-duration (%s) must be more than 0", o.batchIdle,
			o.batchMax)
	}
	o.batchIdle = min(o.batchIdle, o.batchMax) // nothing waits longer than the longest wait
	for _, p := range []struct {
		flag string
		port int
	}{{"metrics-port", o.metricsPort}, {"health-probe-port", o.healthProbePort}, {"webhook-port", o.webhookPort}} {
		if p.port < 0 || p.port > 65535 {
			return fmt.Errorf("--%s: %d is not a port; use 1 to 65535, or 0 for none", p.flag, p.port)
		}
	}
	if o.metricsPort != 0 && o.metricsPort == o.healthProbePort {
		return fmt.Errorf("--metrics-port and --health-probe-port are both %d; give one of them another port",
			o.metricsPort)
	}
	if err := o.validateWebhook(); err != nil {
		return err
	}
	if o.metricsCertDir != "" && !o.secureMetrics {
		return fmt.Errorf(
			"--metrics-cert-dir is for --secure-metrics, which is off; turn it on or leave the folder out")
	}
	if o.bindAddress != "" && net.ParseIP(o.bindAddress) == nil {
		return fmt.Errorf("--bind-address: %q is not an IP address; use for instance 127.0.0.1", o.bindAddress)
	}
	if o.kubeClientQPS <= 0 || o.kubeClientBurst <= 0 {
		return fmt.Errorf("--kube-client-qps (%d) and --kube-client-burst (%d) must be more than 0", o.kubeClientQPS,
			o.kubeClientBurst)
	}
	if err := o.validateCloud(); err != nil {
		return err
	}
	return o.validateLifecycle()
}

// validateCloud chooses the cloud and is validate for its settings, which it may judge by what gates are on.
func (o *options) validateCloud() error {
	if err := o.cloud.choose(); err != nil {
		return err
	}
	if err := o.gates.read(); err != nil {
		return err
	}
	settings := &o.cloud.chosen().Settings
	if settings.Gates != nil {
		if err := settings.Gates.read(); err != nil {
			return err
		}
	}
	if settings.Validate != nil {
		if err := settings.Validate(); err != nil {
			return err
		}
	}
	if o.disableOlderKinds {
		return nil
	}
	return o.cloud.chosen().checkProvisioners()
}

// validateLifecycle is validate for what decides about the life of nodes.
func (o *options) validateLifecycle() error {
	if o.launchTimeout <= 0 || o.registrationTimeout <= 0 {
		return fmt.Errorf("--launch-timeout and --registration-timeout must be more than 0")
	}
	if o.initTimeout < 0 {
		return fmt.Errorf("--initialization-timeout: %s is less than 0; use 0 for as long as a node likes",
			o.initTimeout)
	}
	if o.backoffFirst <= 0 || o.backoffMax < o.backoffFirst {
		return fmt.Errorf("--capacity-backoff-first (%s) must be more than 0 and at most --capacity-backoff-max (%s)",
			o.backoffFirst, o.backoffMax)
	}
	if o.repairMaxUnhealthy < 0 || o.repairMaxUnhealthy > 100 {
		return fmt.Errorf("--node-repair-max-unhealthy: %d is not a percentage; use 0 to 100", o.repairMaxUnhealthy)
	}
	err := o.disruption.validate()
	if err != nil {
		return err
	}
	if o.defaultSpread, err = decode.ReadSchedulerConfig(o.schedulerConfig); err != nil {
		return fmt.Errorf("--scheduler-config: %w", err)
	}
	o.tolerations, err = parseTolerations(o.repairToleration)
	return err
}

// unknownGates lists the gates that do not exist.
func (o *options) unknownGates() []unknownGate {
	out := o.gates.unknown()
	if own := o.cloud.chosen().Settings.Gates; own != nil {
		out = append(out, own.unknown()...)
	}
	return out
}

// withoutEffect lists the settings that were changed and that nothing reads yet, so that nobody relies on them. The CPU
// request is not among them: the chart sets it in every pod, and it promises nothing.
func (o *options) withoutEffect(f *pflag.FlagSet) []string {
	var out []string
	if warmup := f.Lookup("disable-controller-warmup"); warmup.Changed && warmup.Value.String() != warmup.DefValue {
		out = append(out, "--"+warmup.Name)
	}
	out = append(out, o.cloud.withoutEffect()...)
	out = append(out, idleGates(o.gates, o.cloud.chosen())...)
	if !o.ignoreDRA {
		out = append(out, "--ignore-dra-requests=false")
	}
	return out
}

// log are the settings of the log.
func (o *options) log() logging.Options {
	return logging.Options{Level: o.logLevel, Output: o.logOutputPaths, Errors: o.logErrorPaths}
}
