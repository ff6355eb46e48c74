package awscloud

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
	"github.com/tenon-sh/tenon/cloudprovider/aws/interrupt"
	"github.com/tenon-sh/tenon/operator"
)

// settings are those of the AWS provider, by the contract's names.
type settings struct {
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
	gates                 *operator.Gates
}

func newSettings() *settings {
	return &settings{gates: operator.NewGates("aws-feature-gates", "gates of the AWS provider as Name=true,Other=false",
		map[string]bool{
			gateNodeClassCEL: false,
		})}
}

// flagClusterName names the cluster, and so chooses AWS.
const flagClusterName = "cluster-name"

// gateNodeClassCEL lets settings of an EC2NodeClass's kubelet be expressions.
const gateNodeClassCEL = "NodeClassCEL"

// shortestRefresh keeps the API of EC2 from being asked all the time.
const shortestRefresh = 10 * time.Second

func (s *settings) register(f *pflag.FlagSet) {
	f.StringVar(&s.clusterName, flagClusterName, "", "name of the EKS cluster; needed for --cloud-provider=aws")
	f.StringVar(&s.clusterEndpoint, "cluster-endpoint", "", "URL of the API server that nodes join; empty to ask EKS")
	f.StringVar(&s.clusterCABundle, "cluster-ca-bundle", "", "certificate authority of the API server for nodes, in "+
		"base64; empty for the one that the controller itself uses")
	f.StringVar(&s.defaultProfile, "aws-default-instance-profile", "", "instance profile of what names neither role "+
		"nor instanceProfile: Provisioners, AWSNodeTemplates, EC2NodeClasses of older versions of the API; "+
		"if empty, one is made for the role KarpenterNodeRole-CLUSTER where the older version allows that")
	f.BoolVar(&s.isolatedVPC, "isolated-vpc", false, "the controller can't reach the Pricing API: on-demand prices "+
		"stay those of the built-in table")
	f.BoolVar(&s.eksControlPlane, "eks-control-plane", false, "the control plane is EKS: ask it for the version of "+
		"Kubernetes instead of the API server")
	f.Float64Var(&s.memoryOverheadPercent, "vm-memory-overhead-percent", 0.075, "share of a machine's memory that "+
		"its hypervisor and kernel keep, until a node of the kind has been seen: 0.075 is 7.5%")
	f.StringVar(&s.interruptionQueue, "interruption-queue", "", "name of the SQS queue that hears of spot "+
		"interruptions and other ends of instances; empty for none")
	f.StringVar(&s.rebalance, "rebalance", string(interrupt.Ignore), "what to do when AWS recommends to rebalance a "+
		"spot instance: ignore, or replace it as if it were interrupted")
	f.IntVar(&s.reservedENIs, "reserved-enis", 0, "network interfaces of each node that are not for pods")
	f.BoolVar(&s.disableDryRun, "disable-dry-run", false, "do not try launches as dry runs before an EC2NodeClass is "+
		"ready")
	f.BoolVar(&s.zonalShift, "enable-zonal-shift", false, "launch nothing in zones that a zonal shift of the cluster "+
		"has left")
	f.DurationVar(&s.amiRefresh, "ami-refresh-interval", time.Minute, "how often the images of an EC2NodeClass are "+
		"looked for")
	f.DurationVar(&s.amiLatest, "ami-latest-interval", image.DefaultLatest, "how often is asked which image @latest, "+
		"or an ssmParameter, stands for")
	f.DurationVar(&s.subnetRefresh, "subnet-refresh-interval", time.Minute, "how often the subnets of an "+
		"EC2NodeClass are looked for")
}

// validate names the flag and the fix for what makes no sense.
func (s *settings) validate() error {
	if s.clusterName == "" {
		return fmt.Errorf("--cluster-name (CLUSTER_NAME) is empty; with --cloud-provider=%s it must be the name of "+
			"the EKS cluster", Name)
	}
	if err := CheckClusterName(s.clusterName); err != nil {
		return err
	}
	// Who takes it from "aws eks describe-cluster --output json" gets it in quotation marks.
	s.clusterEndpoint = strings.Trim(s.clusterEndpoint, `"`)
	u, err := url.Parse(s.clusterEndpoint)
	if s.clusterEndpoint != "" && (err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) ||
		u.Hostname() == "") {
		return fmt.Errorf("--cluster-endpoint: %q is not the URL of an API server; use for instance "+
			"https://example.eks.amazonaws.com", s.clusterEndpoint)
	}
	if err := checkCABundle(s.clusterCABundle); err != nil {
		return err
	}
	if !(s.memoryOverheadPercent >= 0 && s.memoryOverheadPercent < 1) {
		return fmt.Errorf("--vm-memory-overhead-percent: %v is not a share; use 0 to less than 1, such as 0.075 for "+
			"7.5%%", s.memoryOverheadPercent)
	}
	if s.reservedENIs < 0 {
		return fmt.Errorf("--reserved-enis: %d is less than 0; use 0 for none", s.reservedENIs)
	}
	if known := []interrupt.Rebalance{interrupt.Ignore, interrupt.Replace}; !slices.Contains(known,
		interrupt.Rebalance(s.rebalance)) {
		return fmt.Errorf("--rebalance: %q is not one of %s, %s", s.rebalance, interrupt.Ignore, interrupt.Replace)
	}
	if strings.ContainsAny(s.interruptionQueue, "/:") {
		return fmt.Errorf("--interruption-queue: %q is not a name; use the queue's name without URL or ARN",
			s.interruptionQueue)
	}
	for flag, every := range map[string]time.Duration{"ami-refresh-interval": s.amiRefresh,
		"ami-latest-interval": s.amiLatest, "subnet-refresh-interval": s.subnetRefresh} {
		if every < shortestRefresh {
			return fmt.Errorf("--%s: %s is too often for AWS; use %s or more", flag, every, shortestRefresh)
		}
	}
	return nil
}

// checkCABundle refuses what no node could trust: with it, none would join.
func checkCABundle(text string) error {
	const use = "use the certificate authority's data as kubeconfigs have it"
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("--cluster-ca-bundle is not base64 (%w); %s", err, use)
	}
	if text != "" && !x509.NewCertPool().AppendCertsFromPEM(data) {
		return fmt.Errorf("--cluster-ca-bundle is base64 of something that has no certificate in the form of PEM "+
			"(-----BEGIN CERTIFICATE-----); %s", use)
	}
	return nil
}

// CheckClusterName refuses what neither EKS nor kOps, whose names are those of DNS, would take for a name.
func CheckClusterName(name string) error {
	if !regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,99}$`).MatchString(name) {
		return fmt.Errorf("--cluster-name: %q is not the name of a cluster; it has up to 100 letters, digits, dots, "+
			"dashes and underscores and begins with a letter or digit", name)
	}
	return nil
}
