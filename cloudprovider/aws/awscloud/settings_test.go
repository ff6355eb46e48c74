package awscloud

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/operator"
)

// read reads and judges settings.
func read(args ...string) (*settings, error) {
	s, f := newSettings(), pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.register(f)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	return s, s.validate()
}

// newCABundle is a certificate as kubeconfigs have it.
func newCABundle(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return base64.StdEncoding.EncodeToString(text)
}

func TestSettings(t *testing.T) {
	bundle := newCABundle(t)
	got, err := read("--cluster-name=prod", "--cluster-endpoint=https://example.eks.amazonaws.com",
		"--cluster-ca-bundle="+bundle, "--isolated-vpc",
		"--eks-control-plane", "--vm-memory-overhead-percent=0.05", "--interruption-queue=prod", "--reserved-enis=2",
		"--disable-dry-run",
		"--enable-zonal-shift", "--ami-refresh-interval=2m", "--ami-latest-interval=5m", "--subnet-refresh-interval=3m")
	if err != nil {
		t.Fatal(err)
	}
	want := &settings{
		clusterName: "prod", clusterEndpoint: "https://example.eks.amazonaws.com", clusterCABundle: bundle,
		isolatedVPC: true, eksControlPlane: true,
		memoryOverheadPercent: 0.05, interruptionQueue: "prod", rebalance: "ignore", reservedENIs: 2,
		disableDryRun: true, zonalShift: true,
		amiRefresh: 2 * time.Minute, amiLatest: 5 * time.Minute, subnetRefresh: 3 * time.Minute, gates: got.gates,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
}

// Who takes the endpoint from "aws eks describe-cluster --output json" gets it in quotation marks.
func TestTheEndpointMayBeQuoted(t *testing.T) {
	got, err := read("--cluster-name=prod.k8s.example.com", `--cluster-endpoint="http://10.0.0.1:6443"`)
	if err != nil || got.clusterEndpoint != "http://10.0.0.1:6443" {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"":                          "--cluster-name (CLUSTER_NAME) is empty",
		"--cluster-name=my/cluster": `--cluster-name: "my/cluster" is not the name of a cluster`,
		"--cluster-name=c --cluster-endpoint=example.com": "--cluster-endpoint: \"example.com\" is not the URL",
		"--cluster-name=c --cluster-endpoint=ftp://a":     "--cluster-endpoint",
		"--cluster-name=c --cluster-ca-bundle=%":          "--cluster-ca-bundle is not base64",
		"--cluster-name=c --cluster-ca-bundle=YWJj": "--cluster-ca-bundle is base64 of something that has no " +
			"certificate",
		"--cluster-name=c --vm-memory-overhead-percent=7":  "--vm-memory-overhead-percent: 7 is not a share",
		"--cluster-name=c --vm-memory-overhead-percent=-1": "--vm-memory-overhead-percent",
		"--cluster-name=c --reserved-enis=-1":              "--reserved-enis: -1 is less than 0",
		"--cluster-name=c --ami-refresh-interval=3s": "--ami-refresh-interval: 3s is too often for AWS; use " +
			"10s or more",
		"--cluster-name=c --ami-latest-interval=-1m": "--ami-latest-interval: -1m0s is too often for AWS; use " +
			"10s or more",
		"--cluster-name=c --subnet-refresh-interval=0s":   "--subnet-refresh-interval",
		"--cluster-name=c --rebalance=maybe":              `--rebalance: "maybe" is not one of ignore, replace`,
		"--cluster-name=c --interruption-queue=arn:aws:x": "--interruption-queue",
	} {
		if _, err := read(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
}

// The cluster's name chooses AWS, and its settings are read by the operator: from the environment, too, and with its
// gates.
func TestTheOperatorReadsTheSettings(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none")) // nothing is started
	t.Setenv("CLUSTER_NAME", "prod")
	for env, want := range map[string]string{
		"AWS_FEATURE_GATES=CEL":                            `--aws-feature-gates: "CEL" is not Name=true`,
		"CLUSTER_NAME=a/b":                                 `--cluster-name: "a/b" is not the name of a cluster`,
		"AWS_FEATURE_GATES=NodeClassCEL=true,OfLater=true": "finding the cluster",
	} {
		t.Run(env, func(t *testing.T) {
			name, value, _ := strings.Cut(env, "=")
			t.Setenv(name, value)
			cloud := New()
			cmd := operator.NewCommand(cloud)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs([]string{"--log-output-paths=" + filepath.Join(t.TempDir(), "log")})
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want an error with %q", err, want)
			}
			if on := cloud.Settings.Gates.Enabled(gateNodeClassCEL); on != strings.Contains(env,
				gateNodeClassCEL+"=true") {
				t.Errorf("the gate %s is on: %v", gateNodeClassCEL, on)
			}
		})
	}
}
