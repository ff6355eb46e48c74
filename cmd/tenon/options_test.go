package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func parse(t *testing.T, args ...string) (*options, error) {
	t.Helper()
	o, f := &options{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.register(f)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if err := fromEnvironment(f); err != nil {
		return nil, err
	}
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
		{[]string{"--batch-idle-duration", "20s"}, "--batch-max-duration (10s)"},
		{[]string{"--batch-idle-duration", "0s"}, "--batch-idle-duration"},
		{[]string{"--metrics-port", "70000"}, "--metrics-port: 70000 is not a port"},
		{[]string{"--metrics-port", "8081"}, "--metrics-port and --health-probe-port are both 8081"},
		{[]string{"--bind-address", "300.1.1.1"}, "--bind-address"},
		{[]string{"--kube-client-qps", "0"}, "--kube-client-qps"},
		{[]string{"--feature-gates", "NodeRepair"}, "--feature-gates"},
		{[]string{"--feature-gates", "NodeRepair=maybe"}, "--feature-gates"},
		{[]string{"--launch-timeout", "0s"}, "--launch-timeout"},
		{[]string{"--scheduler-config", "podTopologySpread: {defaultConstraints: [{maxSkew: 0}]}"}, "--scheduler-config: podTopologySpread.defaultConstraints[0].maxSkew: 0"},
		{[]string{"--scheduler-config", "a: ["}, "--scheduler-config: yaml: "},
		{[]string{"--no-such-flag"}, "no-such-flag"},
	} {
		if _, err := parse(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want an error with %q", c.args, err, c.want)
		}
	}
	t.Setenv("METRICS_PORT", "many")
	if _, err := parse(t); err == nil || !strings.Contains(err.Error(), "METRICS_PORT") {
		t.Errorf("a bad variable gave %v, want an error that names it", err)
	}
}

func TestSettingsWithoutEffectAreTold(t *testing.T) {
	o, f := &options{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.register(f)
	if err := f.Parse([]string{"--feature-gates", "NodeRepair=true", "--scheduler-config", "{}", "--min-values-policy", "BestEffort", "--log-level", "debug"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(o.withoutEffect(f), " "); got != "--feature-gates" {
		t.Errorf("told %q", got)
	}
}
