package main

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestWhichCloud(t *testing.T) {
	for _, c := range []struct{ args, env, want string }{
		{"", "", cloudKwok},
		{"--cluster-name=prod", "", cloudAWS},
		{"", "prod", cloudAWS},
		{"--cloud-provider=kwok --cluster-name=prod", "", cloudKwok},
		{"--cloud-provider=aws", "prod", cloudAWS},
	} {
		t.Run(c.args+" "+c.env, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("CLUSTER_NAME", c.env)
			}
			o, err := parse(t, strings.Fields(c.args)...)
			if err != nil {
				t.Fatal(err)
			}
			if o.cloudProvider != c.want {
				t.Errorf("it is %s, want %s", o.cloudProvider, c.want)
			}
			sky, err := newCloud(o)
			if err != nil || len(sky.classes) != 1 {
				t.Fatalf("classes %v, %v", sky.classes, err)
			}
			if kind := map[string]string{cloudAWS: "EC2NodeClass", cloudKwok: "KWOKNodeClass"}[c.want]; sky.classes[0].Kind != kind {
				t.Errorf("it has %v, want %s", sky.classes, kind)
			}
			scheme, err := newScheme(sky)
			if err != nil {
				t.Fatal(err)
			}
			for _, gvk := range sky.requiredKinds() {
				if !scheme.Recognizes(gvk) {
					t.Errorf("the scheme does not know %s", gvk)
				}
			}
		})
	}
}

// newCABundle is a certificate as kubeconfigs have it.
func newCABundle(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return base64.StdEncoding.EncodeToString(text)
}

func TestAWSSettings(t *testing.T) {
	t.Setenv("CLUSTER_NAME", "prod")
	t.Setenv("CLUSTER_ENDPOINT", "https://example.eks.amazonaws.com")
	bundle := newCABundle(t)
	t.Setenv("CLUSTER_CA_BUNDLE", bundle)
	t.Setenv("ISOLATED_VPC", "true")
	t.Setenv("EKS_CONTROL_PLANE", "true")
	t.Setenv("VM_MEMORY_OVERHEAD_PERCENT", "0.05")
	t.Setenv("INTERRUPTION_QUEUE", "prod")
	t.Setenv("RESERVED_ENIS", "1")
	t.Setenv("DISABLE_DRY_RUN", "true")
	t.Setenv("ENABLE_ZONAL_SHIFT", "true")
	t.Setenv("AMI_REFRESH_INTERVAL", "2m")
	t.Setenv("AMI_LATEST_INTERVAL", "5m")
	t.Setenv("SUBNET_REFRESH_INTERVAL", "3m")
	t.Setenv("AWS_FEATURE_GATES", "NodeClassCEL=false,OfTheFuture=true")
	o, err := parse(t, "--reserved-enis=2")
	if err != nil {
		t.Fatal(err)
	}
	want := awsOptions{
		clusterName: "prod", clusterEndpoint: "https://example.eks.amazonaws.com", clusterCABundle: bundle, isolatedVPC: true, eksControlPlane: true,
		memoryOverheadPercent: 0.05, interruptionQueue: "prod", rebalance: "ignore", reservedENIs: 2, disableDryRun: true, zonalShift: true,
		amiRefresh: 2 * time.Minute, amiLatest: 5 * time.Minute, subnetRefresh: 3 * time.Minute, featureGates: "NodeClassCEL=false,OfTheFuture=true",
		gates: map[string]bool{gateNodeClassCEL: false},
	}
	if !reflect.DeepEqual(o.aws, want) {
		t.Errorf("read %+v, want %+v", o.aws, want)
	}
}

func TestBadAWSSettingsAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"--cloud-provider=gcp":                             `--cloud-provider: "gcp" is not one of aws, kwok`,
		"--cloud-provider=aws":                             "--cluster-name (CLUSTER_NAME) is empty",
		"--cluster-name=my/cluster":                        `--cluster-name: "my/cluster" is not the name of a cluster`,
		"--cluster-name=c --cluster-endpoint=example.com":  "--cluster-endpoint: \"example.com\" is not the URL",
		"--cluster-name=c --cluster-endpoint=ftp://a":      "--cluster-endpoint",
		"--cluster-name=c --cluster-ca-bundle=%":           "--cluster-ca-bundle is not base64",
		"--cluster-name=c --cluster-ca-bundle=YWJj":        "--cluster-ca-bundle is base64 of something that has no certificate",
		"--cluster-name=c --vm-memory-overhead-percent=7":  "--vm-memory-overhead-percent: 7 is not a share",
		"--cluster-name=c --vm-memory-overhead-percent=-1": "--vm-memory-overhead-percent",
		"--cluster-name=c --reserved-enis=-1":              "--reserved-enis: -1 is less than 0",
		"--cluster-name=c --ami-refresh-interval=3s":       "--ami-refresh-interval: 3s is too often for AWS; use 10s or more",
		"--cluster-name=c --ami-latest-interval=-1m":       "--ami-latest-interval: -1m0s is too often for AWS; use 10s or more",
		"--cluster-name=c --subnet-refresh-interval=0s":    "--subnet-refresh-interval",
		"--cluster-name=c --aws-feature-gates=CEL":         `--aws-feature-gates: "CEL" is not Name=true`,
		"--cluster-name=c --rebalance=maybe":               `--rebalance: "maybe" is not one of ignore, replace`,
		"--cluster-name=c --interruption-queue=arn:aws:x":  "--interruption-queue",
	} {
		if _, err := parse(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", args, err, want)
		}
	}
}

func TestSettingsOfAnotherCloudAreTold(t *testing.T) {
	told := func(args ...string) string {
		o, f := &options{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
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
		"--cluster-name (it is for --cloud-provider=aws), --isolated-vpc (it is for --cloud-provider=aws)"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if got := told("--cluster-name=prod", "--isolated-vpc", "--feature-gates=ReservedCapacity=false", "--aws-feature-gates=NodeClassCEL=true"); got != "" {
		t.Errorf("told %q of settings that count", got)
	}
}
