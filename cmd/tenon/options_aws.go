package main

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
	"github.com/tenon-sh/tenon/cloudprovider/aws/interrupt"
)

// awsOptions are the settings of the AWS provider, by the contract's names.
type awsOptions struct {
	clusterName           string
	clusterEndpoint       string
	clusterCABundle       string
	defaultProfile        string
	isolatedVPC           bool
	eksControlPlane       bool
	memoryOverheadPercent float64
	interruptionQueue     string
	rebalance             string
	reservedENIs          int
	disableDryRun         bool
	zonalShift            bool
	amiRefresh            time.Duration
	amiLatest             time.Duration
	subnetRefresh         time.Duration
	featureGates          string

	// What validate has read of featureGates.
	gates map[string]bool
}

// gateNodeClassCEL lets settings of an EC2NodeClass's kubelet be expressions.
const gateNodeClassCEL = "NodeClassCEL"

// shortestRefresh keeps the API of EC2 from being asked all the time.
const shortestRefresh = 10 * time.Second

func (a *awsOptions) register(f *pflag.FlagSet) {
	f.StringVar(&a.clusterName, "cluster-name", "", "name of the EKS cluster; needed for --cloud-provider=aws")
	f.StringVar(&a.clusterEndpoint, "cluster-endpoint", "", "URL of the API server that nodes join; empty to ask EKS")
	f.StringVar(&a.clusterCABundle, "cluster-ca-bundle", "", "certificate authority of the API server for nodes, in base64; empty for the one that the controller itself uses")
	f.StringVar(&a.defaultProfile, "aws-default-instance-profile", "", "instance profile of what names neither role nor instanceProfile: Provisioners, AWSNodeTemplates, EC2NodeClasses of older versions of the API; "+
		"if empty, one is made for the role KarpenterNodeRole-CLUSTER where the older version allows that")
	f.BoolVar(&a.isolatedVPC, "isolated-vpc", false, "the controller can't reach the Pricing API: on-demand prices stay those of the built-in table")
	f.BoolVar(&a.eksControlPlane, "eks-control-plane", false, "the control plane is EKS: ask it for the version of Kubernetes instead of the API server")
	f.Float64Var(&a.memoryOverheadPercent, "vm-memory-overhead-percent", 0.075, "share of a machine's memory that its hypervisor and kernel keep, until a node of the kind has been seen: 0.075 is 7.5%")
	f.StringVar(&a.interruptionQueue, "interruption-queue", "", "name of the SQS queue that hears of spot interruptions and other ends of instances; empty for none")
	f.StringVar(&a.rebalance, "rebalance", string(interrupt.Ignore), "what to do when AWS recommends to rebalance a spot instance: ignore, or replace it as if it were interrupted")
	f.IntVar(&a.reservedENIs, "reserved-enis", 0, "network interfaces of each node that are not for pods")
	f.BoolVar(&a.disableDryRun, "disable-dry-run", false, "do not try launches as dry runs before an EC2NodeClass is ready")
	f.BoolVar(&a.zonalShift, "enable-zonal-shift", false, "launch nothing in zones that a zonal shift of the cluster has left")
	f.DurationVar(&a.amiRefresh, "ami-refresh-interval", time.Minute, "how often the images of an EC2NodeClass are looked for")
	f.DurationVar(&a.amiLatest, "ami-latest-interval", image.DefaultLatest, "how often is asked which image @latest, or an ssmParameter, stands for")
	f.DurationVar(&a.subnetRefresh, "subnet-refresh-interval", time.Minute, "how often the subnets of an EC2NodeClass are looked for")
	f.StringVar(&a.featureGates, "aws-feature-gates", "", "gates of the AWS provider as Name=true,Other=false")
}

// validate names the flag and the fix for what makes no sense.
func (a *awsOptions) validate() error {
	if a.clusterName == "" {
		return fmt.Errorf("--cluster-name (CLUSTER_NAME) is empty; with --cloud-provider=%s it must be the name of the EKS cluster", cloudAWS)
	}
	if err := checkClusterName(a.clusterName); err != nil {
		return err
	}
	// Who takes it from "aws eks describe-cluster --output json" gets it in quotation marks.
	a.clusterEndpoint = strings.Trim(a.clusterEndpoint, `"`)
	u, err := url.Parse(a.clusterEndpoint)
	if a.clusterEndpoint != "" && (err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "") {
		return fmt.Errorf("--cluster-endpoint: %q is not the URL of an API server; use for instance https://example.eks.amazonaws.com", a.clusterEndpoint)
	}
	if err := checkCABundle(a.clusterCABundle); err != nil {
		return err
	}
	if !(a.memoryOverheadPercent >= 0 && a.memoryOverheadPercent < 1) {
		return fmt.Errorf("--vm-memory-overhead-percent: %v is not a share; use 0 to less than 1, such as 0.075 for 7.5%%", a.memoryOverheadPercent)
	}
	if a.reservedENIs < 0 {
		return fmt.Errorf("--reserved-enis: %d is less than 0", a.reservedENIs)
	}
	if known := []interrupt.Rebalance{interrupt.Ignore, interrupt.Replace}; !slices.Contains(known, interrupt.Rebalance(a.rebalance)) {
		return fmt.Errorf("--rebalance: %q is not one of %s, %s", a.rebalance, interrupt.Ignore, interrupt.Replace)
	}
	if strings.ContainsAny(a.interruptionQueue, "/:") {
		return fmt.Errorf("--interruption-queue: %q is not a name; use the queue's name without URL or ARN", a.interruptionQueue)
	}
	for flag, every := range map[string]time.Duration{"ami-refresh-interval": a.amiRefresh, "ami-latest-interval": a.amiLatest, "subnet-refresh-interval": a.subnetRefresh} {
		if every < shortestRefresh {
			return fmt.Errorf("--%s: %s is too often for AWS; use %s or more", flag, every, shortestRefresh)
		}
	}
	a.gates, err = parseAWSGates(a.featureGates)
	return err
}

// checkCABundle refuses what no node could trust: with it, none would join.
func checkCABundle(text string) error {
	const use = "use the certificate authority's data as kubeconfigs have it"
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("--cluster-ca-bundle is not base64 (%w); %s", err, use)
	}
	if text != "" && !x509.NewCertPool().AppendCertsFromPEM(data) {
		return fmt.Errorf("--cluster-ca-bundle is base64 of something that has no certificate in the form of PEM (-----BEGIN CERTIFICATE-----); %s", use)
	}
	return nil
}

// checkClusterName refuses what neither EKS nor kOps, whose names are those of DNS, would take for a name.
func checkClusterName(name string) error {
	if !regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,99}$`).MatchString(name) {
		return fmt.Errorf("--cluster-name: %q is not the name of a cluster; it has up to 100 letters, digits, dots, dashes and underscores and begins with a letter or digit", name)
	}
	return nil
}

// parseAWSGates reads Name=true,Other=false. Gates that are not the contract's are ignored, so that a deployment of a newer
// version starts.
func parseAWSGates(text string) (map[string]bool, error) {
	gates := map[string]bool{gateNodeClassCEL: false}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		on, err := strconv.ParseBool(value)
		if !ok || err != nil {
			return nil, fmt.Errorf("--aws-feature-gates: %q is not Name=true or Name=false", part)
		}
		if _, known := gates[name]; known {
			gates[name] = on
		}
	}
	return gates, nil
}

// withoutEffect lists the settings that were changed although another cloud is used, which reads none of them.
func (a *awsOptions) withoutEffect(f *pflag.FlagSet, cloud string) []string {
	if cloud == cloudAWS {
		return nil
	}
	mine := pflag.NewFlagSet("aws", pflag.ContinueOnError)
	(&awsOptions{}).register(mine)
	var out []string
	mine.VisitAll(func(flag *pflag.Flag) {
		if f.Changed(flag.Name) {
			out = append(out, fmt.Sprintf("--%s (it is for --cloud-provider=%s)", flag.Name, cloudAWS))
		}
	})
	slices.Sort(out)
	return out
}
