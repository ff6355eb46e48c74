package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/lease"
	"github.com/tenon-sh/tenon/internal/logging"
)

func parse(t *testing.T, args ...string) (*options, error) {
	t.Helper()
	o, f := newOptions(twoClouds()), pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.register(f)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	fromEnvironment(f)
	return o, o.validate()
}

func TestFlagWinsOverEnvironment(t *testing.T) {
	t.Setenv("BATCH_IDLE_DURATION", "3s")
	t.Setenv("BATCH_MAX_DURATION", "20s")
	t.Setenv("LOG_LEVEL", "debug")
	o, err := parse(t, "--batch-idle-duration", "2s")
	if err != nil {
		t.Fatal(err)
	}
	if o.batchIdle != 2*time.Second || o.batchMax != 20*time.Second || o.logLevel != "debug" || o.metricsPort != 8080 {
		t.Errorf("idle %s, max %s, level %s, port %d", o.batchIdle, o.batchMax, o.logLevel, o.metricsPort)
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--log-level", "loud"}, `--log-level: "loud" is not one of debug, info, error`},
		{[]string{"--preference-policy", "respect"}, "--preference-policy"},
		{[]string{"--min-values-policy", "None"}, "--min-values-policy"},
		{[]string{"--batch-max-duration", "0s"}, "--batch-max-duration (0s)"},
		{[]string{"--batch-idle-duration", "0s"}, "--batch-idle-duration"},
		{[]string{"--metrics-port", "70000"}, "--metrics-port: 70000 is not a port"},
		{[]string{"--metrics-port", "8081"}, "--metrics-port and --health-probe-port are both 8081"},
		{[]string{"--bind-address", "300.1.1.1"}, "--bind-address"},
		{[]string{"--metrics-cert-dir", "/certs"}, "--metrics-cert-dir is for --secure-metrics"},
		{[]string{"--kube-client-qps", "0"}, "--kube-client-qps"},
		{[]string{"--feature-gates", "NodeRepair"}, "--feature-gates"},
		{[]string{"--feature-gates", "NodeRepair=maybe"}, "--feature-gates"},
		{[]string{"--launch-timeout", "0s"}, "--launch-timeout"},
		{[]string{"--initialization-timeout", "-1s"}, "--initialization-timeout: -1s is less than 0"},
		{[]string{"--placement", "Bind"}, `--placement: "Bind" is not one of nominate, bind, event`},
		{[]string{"--capacity-backoff-first", "0s"}, "--capacity-backoff-first (0s) must be more than 0"},
		{[]string{"--capacity-backoff-first", "20m"}, "at most --capacity-backoff-max (15m0s)"},
		{[]string{"--node-repair-max-unhealthy", "120"}, "--node-repair-max-unhealthy: 120 is not a percentage"},
		{[]string{"--node-repair-toleration", "Ready"},
			`--node-repair-toleration: "Ready" is not Type=Status:duration`},
		{[]string{"--node-repair-toleration", "Ready=False"}, "--node-repair-toleration"},
		{[]string{"--node-repair-toleration", "Ready=No:30m"}, `status "No" is not one of True, False, Unknown`},
		{[]string{"--node-repair-toleration", "Ready=False:soon"}, `duration "soon"`},
		{[]string{"--node-repair-toleration", "Ready=False:1m,Ready=False:2m"}, "Ready=False is there twice"},
		{[]string{"--scheduler-config", "podTopologySpread: {defaultConstraints: [{maxSkew: 0}]}"},
			"--scheduler-config: podTopologySpread.defaultConstraints[0].maxSkew: 0"},
		{[]string{"--scheduler-config", "a: ["}, "--scheduler-config: yaml: "},
		{[]string{"--consolidation-min-saving", "5"},
			`--consolidation-min-saving: "5" can't be read; use a percentage`},
		{[]string{"--consolidation-min-saving", "100%"}, "--consolidation-min-saving"},
		{[]string{"--consolidation-min-saving-per-pod", "-1"}, "--consolidation-min-saving-per-pod: -1"},
		{[]string{"--consolidation-min-saving-per-pod", "NaN"}, "--consolidation-min-saving-per-pod: NaN"},
		{[]string{"--evictions-per-hour", "-1"}, "--evictions-per-hour: -1 is less than 0"},
		{[]string{"--balanced-k", "0"}, "--balanced-k: 0 must be more than 0"},
		{[]string{"--spot-to-spot", "never"}, `--spot-to-spot: "never" is not one of types, risk`},
		{[]string{"--spot-to-spot", "risk", "--spot-risk", "0%"}, "--spot-risk"},
		{[]string{"--spot-to-spot-min-types", "0"}, "--spot-to-spot-min-types: 0 is less than 1"},
		{[]string{"--replacement-timeout", "0s"}, "--replacement-timeout: 0s must be more than 0"},
		{[]string{"--drift-watch", "-1m"}, "--drift-watch"},
		{[]string{"--interruption-drain", "0s"}, "--interruption-drain"},
		{[]string{"--no-such-flag"}, "no-such-flag"},
	} {
		if _, err := parse(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want an error with %q", c.args, err, c.want)
		}
	}
}

// What the contract accepts does not keep the controller from starting.
func TestSettingsOfTheContract(t *testing.T) {
	o, err := parse(t, "--kube-client-qps", "50", "--kube-client-burst", "20", "--batch-idle-duration", "20s",
		"--log-level", "",
		"--cluster-name", "prod.k8s.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if o.kubeClientQPS != 50 || o.kubeClientBurst != 20 || o.batchIdle != o.batchMax {
		t.Errorf("%+v", o)
	}
	if _, flush, err := logging.New(o.log()); err != nil {
		t.Errorf("a log without a level: %v", err)
	} else {
		flush()
	}
}

// A variable that can't be read leaves the default and is told; an empty one leaves it, too.
func TestVariablesThatCantBeRead(t *testing.T) {
	for name, value := range map[string]string{"METRICS_PORT": "many", "BATCH_MAX_DURATION": "soon",
		"KUBE_CLIENT_QPS": "", "ISOLATED_VPC": "", "LOG_LEVEL": ""} {
		t.Setenv(name, value)
	}
	o, f := newOptions(twoClouds()), pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.register(f)
	got := strings.Join(fromEnvironment(f), "\n")
	want := `environment variable BATCH_MAX_DURATION: "soon" can't be read as duration; 10s is used
environment variable METRICS_PORT: "many" can't be read as int; 8080 is used`
	if got != want {
		t.Errorf("told\n%s\nwant\n%s", got, want)
	}
	if err := o.validate(); err != nil || o.metricsPort != 8080 || o.batchMax != 10*time.Second ||
		o.kubeClientQPS != 200 {
		t.Errorf("port %d, max %s, qps %d: %v", o.metricsPort, o.batchMax, o.kubeClientQPS, err)
	}
}

func TestSettingsWithoutEffectAreTold(t *testing.T) {
	o, f := newOptions(twoClouds()), pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.register(f)
	if err := f.Parse([]string{
		"--feature-gates", "NodeRepair=true,NodeOverlay=true,TerminateFirstDrift=true,PodDeletionCostManagement=true,ReservedCapacity=false,OfTheFuture=true,StaticCapcity=true,Newer=false,ReservedCapcity=false", "--scheduler-config", "{}",
		"--min-values-policy", "BestEffort", "--log-level", "debug", "--cpu-requests", "7", "--karpenter-service",
		"karpenter", "--disable-controller-warmup=false",
	}); err != nil {
		t.Fatal(err)
	}
	if err := o.validate(); err != nil {
		t.Fatal(err)
	}
	want := "--disable-controller-warmup, --feature-gates NodeOverlay=true, " +
		"--feature-gates PodDeletionCostManagement=true: the annotation controller.kubernetes.io/pod-deletion-cost " +
		"is read and never written; set it yourself, " +
		"--feature-gates ReservedCapacity=false, --feature-gates TerminateFirstDrift=true: a node goes only once its " +
		"replacement is ready; " +
		"where there is no room for one, raise limits.nodes of the NodePool, or delete the NodeClaim"
	if got := strings.Join(o.withoutEffect(f), ", "); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if !o.gates.Enabled(gateNodeRepair) || o.gates.Enabled(gateStaticCapacity) {
		t.Errorf("gates %v", o.gates.on)
	}
	path := filepath.Join(t.TempDir(), "log")
	log, flush, err := logging.New(logging.Options{Level: "info", Output: path, Errors: "stderr"})
	if err != nil {
		t.Fatal(err)
	}
	tellSettings(log, nil, o.unknownGates())
	flush()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	told := []struct{ level, text string }{
		{"ERROR", `--feature-gates: \"OfTheFuture\" is not a gate of this version; the gates are CapacityBuffer, `},
		{"ERROR", `--feature-gates: \"StaticCapcity\" is not a gate of this version; did you mean StaticCapacity?`},
		{"INFO", `--feature-gates: \"Newer\" is not a gate of this version; the gates are CapacityBuffer, `},
		// on by default
		{"ERROR", `--feature-gates: \"ReservedCapcity\" is not a gate of this version; did you mean ReservedCapacity?`},
	}
	if len(lines) != len(told) {
		t.Fatalf("the log has %d lines, want one for each gate that does not exist:\n%s", len(lines), data)
	}
	for i, w := range told {
		if !strings.Contains(lines[i], `"level":"`+w.level+`"`) || !strings.Contains(lines[i], w.text) {
			t.Errorf("line %d is %s, want level %s and %s", i, lines[i], w.level, w.text)
		}
	}
}

func TestPortInUseNamesItsSetting(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	_, inUse := net.Listen("tcp", taken.Addr().String())
	if inUse == nil {
		t.Fatal("a port was given twice")
	}
	failed := fmt.Errorf("starting: %w", inUse)
	other := fmt.Sprintf(" %d: %v; give another port, or 0 for none", port, inUse)
	for want, o := range map[string]*options{
		"--metrics-port" + other:      {metricsPort: port, healthProbePort: 1},
		"--health-probe-port" + other: {metricsPort: 1, healthProbePort: port},
		failed.Error():                {},
	} {
		if got := namePort(failed, o); got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

func TestRepairSettings(t *testing.T) {
	grace := 45 * time.Second
	provider := []cloudprovider.RepairPolicy{
		{Type: "Ready", Status: "False", Toleration: 30 * time.Minute}, {Type: "Ready", Status: "Unknown",
			Toleration: 30 * time.Minute, TerminationGracePeriod: &grace},
	}
	for _, c := range []struct{ args, want string }{
		{"", "enabled false, 20%: Ready=False:30m0s Ready=Unknown:30m0s(45s)"},
		{"--feature-gates=NodeRepair=true --node-repair-max-unhealthy=50", "enabled true, 50%: Ready=False:30m0s " +
			"Ready=Unknown:30m0s(45s)"},
		{"--node-repair-toleration=Ready=Unknown:5m,DiskBroken=True:1h", "enabled false, 20%: Ready=False:30m0s " +
			"Ready=Unknown:5m0s(45s) DiskBroken=True:1h0m0s"},
	} {
		o, err := parse(t, strings.Fields(c.args)...)
		if err != nil {
			t.Fatal(err)
		}
		set := o.repairSettings(provider)
		got := fmt.Sprintf("enabled %v, %d%%:", set.Enabled, set.MaxUnhealthy)
		for _, p := range set.Policies {
			got += fmt.Sprintf(" %s=%s:%s", p.Type, p.Status, p.Toleration)
			if p.HasGrace {
				got += fmt.Sprintf("(%s)", p.Grace)
			}
		}
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
}

func TestDefaultsOfTheLifecycle(t *testing.T) {
	o, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	if o.placement != "nominate" || o.initTimeout != 0 || o.backoffFirst != 30*time.Second ||
		o.backoffMax != 15*time.Minute {
		t.Errorf("placement %s, initialization %s, backoff %s to %s", o.placement, o.initTimeout, o.backoffFirst,
			o.backoffMax)
	}
}

func TestDisruptionSettings(t *testing.T) {
	o, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	want := disrupt.Settings{
		MinSaving: 0.05, MinSavingPerPod: 0.0001, EvictionsPerHour: 2, BalancedK: 2, SpotTypes: 15,
		ReplacementTimeout: 10 * time.Minute, DriftWatch: 10 * time.Minute, InterruptionDrain: 45 * time.Second,
	}
	if got := o.disruption.settings(o.gates.Enabled(gateSpotToSpot)); !reflect.DeepEqual(got, want) {
		t.Errorf("by default %+v, want %+v", got, want)
	}
	t.Setenv("SPOT_TO_SPOT", "risk")
	t.Setenv("LEGACY_NODE_REPAIR", "true")
	if o, err = parse(t, "--feature-gates=SpotToSpotConsolidation=true", "--spot-risk=20%",
		"--consolidation-min-saving=0%"); err != nil {
		t.Fatal(err)
	}
	got := o.disruption.settings(o.gates.Enabled(gateSpotToSpot))
	if !got.SpotToSpot || got.SpotRisk != 0.2 || got.MinSaving != 0 || !o.repairSettings(nil).Legacy ||
		len(idleGates(o.gates, o.cloud.chosen())) != 0 {
		t.Errorf("%+v, idle gates %v", got, idleGates(o.gates, o.cloud.chosen()))
	}
}

func TestTheFirstFailureEndsTheOthers(t *testing.T) {
	boom := errors.New("boom")
	wait := func(ctx context.Context) error { <-ctx.Done(); return nil }
	if err := runAll(t.Context(), wait, func(context.Context) error { return boom }, wait); !errors.Is(err, boom) {
		t.Errorf("ended with %v, want %v", err, boom)
	}
}

// Without an election there is nobody to give way to, and a provider that asks is told to go on.
func TestNobodyIsAskedWithoutAnElection(t *testing.T) {
	if (&options{disableElection: true}).leads(lease.NewTerm()) != nil {
		t.Error("a replica that is alone asks whether it leads")
	}
	if leads := (&options{}).leads(lease.NewTerm()); leads == nil || leads() {
		t.Error("a replica leads before it is elected")
	}
}

func TestSettingsOfAnotherCloudAreTold(t *testing.T) {
	told := func(args ...string) string {
		o, f := newOptions(twoClouds()), pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.register(f)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		if err := o.validate(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(o.withoutEffect(f), ", ")
	}
	if got, want := told("--cloud-provider=kwok", "--isolated-vpc", "--cluster-name=prod"),
		"--cluster-name (it is for --cloud-provider=aws), "+
			"--isolated-vpc (it is for --cloud-provider=aws)"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if got, want := told("--cluster-name=prod", "--instance-types-file-path=a.json"), "--instance-types-file-path "+
		"(it is for --cloud-provider=kwok)"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if got := told("--cluster-name=prod", "--isolated-vpc", "--feature-gates=ReservedCapacity=false",
		"--aws-feature-gates=NodeClassCEL=true"); got != "" {
		t.Errorf("told %q of settings that count", got)
	}
}

func TestTheCatalogIsAskedForOnce(t *testing.T) {
	w := newWakeup()
	w.send()
	w.send() // nobody has heard the first yet
	ctx, cancel := context.WithCancel(t.Context())
	heard := 0
	if err := w.answer(func() {
		heard++
		if len(w) == 0 {
			cancel()
		}
	})(ctx); err != nil || heard != 1 {
		t.Errorf("it was heard %d times, %v", heard, err)
	}
}
