package awscloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/access"
	"github.com/tenon-sh/tenon/cloudprovider/aws/cluster"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
	"github.com/tenon-sh/tenon/cloudprovider/aws/interrupt"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
	"github.com/tenon-sh/tenon/cloudprovider/aws/refresh"
	"github.com/tenon-sh/tenon/operator"
)

// parts find out what is there.
type parts struct {
	settings *settings
	host     *operator.Host
	config   sdk.Config
	ec2      *ec2.Client
	cluster  *cluster.Finder
	network  *network.Finder
	images   *image.Finder
	prices   *price.Book
	memory   *machine.Memory
	shifts   *refresh.Shifts // nil if zonal shifts are not looked at
	// identity tells the cluster from others of the same name.
	identity string
	guard    *recovery.Guard
}

// clusterIdentity is the UID of the namespace kube-system: no two clusters have the same, whatever they are called.
func clusterIdentity(ctx context.Context, host *operator.Host) (string, error) {
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := host.Manager.GetAPIReader().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("finding out the cluster's identity, the UID of namespace %s: %w",
			metav1.NamespaceSystem, err)
	}
	return string(system.UID), nil
}

// build makes the provider and what works behind it: the keeper of EC2NodeClasses, the prices, the names of instances.
func build(ctx context.Context, s *settings, host *operator.Host) (cloudprovider.Provider, error) {
	conf, err := sdkConfig(ctx, host)
	if err != nil {
		return nil, err
	}
	found, err := newParts(conf, s, host)
	if err != nil {
		return nil, err
	}
	if found.identity, err = clusterIdentity(ctx, host); err != nil {
		return nil, err
	}
	provider, err := found.newProvider()
	if err != nil {
		return nil, err
	}
	if err := host.Manager.Add(provider); err != nil {
		return nil, fmt.Errorf("adding the provider: %w", err)
	}
	if err := found.addUpkeep(); err != nil {
		return nil, err
	}
	return provider, found.addNodeClasses(provider)
}

// sdkConfig is where AWS is and who we are there, as the SDK finds it: the environment (AWS_REGION, AWS_ENDPOINT_URL,
// …), files, the roles of a pod or of a machine.
func sdkConfig(ctx context.Context, host *operator.Host) (sdk.Config, error) {
	conf, err := access.Load(ctx, config.WithAppID("tenon"), config.WithRetryer(func() sdk.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = awsAttempts })
	}), config.WithHTTPClient(awsClient()))
	if err != nil {
		return sdk.Config{}, fmt.Errorf("reading the configuration of AWS: %w", err)
	}
	if conf.Region == "" {
		limited, cancel := context.WithTimeout(ctx, regionPatience)
		defer cancel()
		if conf.Region, err = regionOfMachine(limited, conf); err != nil {
			return sdk.Config{}, fmt.Errorf("finding the region: AWS_REGION is not set and the machine does not say; "+
				"set AWS_REGION: %w", err)
		}
	}
	conf.HTTPClient = plainBodies{conf.HTTPClient}
	count, err := access.Count(host.Metrics, time.Now)
	if err != nil {
		return sdk.Config{}, err
	}
	conf.APIOptions = append(conf.APIOptions, count, renewSession(conf.Credentials), access.Fence(host.Leading))
	return conf, nil
}

func newParts(conf sdk.Config, s *settings, host *operator.Host) (*parts, error) {
	f := &parts{settings: s, host: host, config: conf, ec2: ec2.NewFromConfig(conf),
		memory: machine.NewMemory(time.Now), guard: &recovery.Guard{Tell: func(c recovery.Failure) {
			host.Failed(c.Panic, c.Stack)
		}}}
	var err error
	if f.prices, err = price.NewBook(conf.Region, time.Now); err != nil {
		return nil, err
	}
	versions, err := discovery.NewDiscoveryClientForConfig(host.Config)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask for the version of the API server: %w", err)
	}
	ca, err := ownCA(host.Config)
	if err != nil {
		return nil, err
	}
	f.cluster = cluster.New(cluster.Options{
		EKS: eks.NewFromConfig(conf), Name: s.clusterName, Endpoint: s.clusterEndpoint, CABundle: s.clusterCABundle,
		OwnCA:   ca,
		FromEKS: s.eksControlPlane, Discovery: versions, Services: host.Manager.GetAPIReader(), Guard: f.guard,
		Now: time.Now,
	})
	f.network = network.New(network.Options{API: f.ec2, Cluster: s.clusterName, SubnetRefresh: s.subnetRefresh,
		VPC: f.cluster.VPC, Now: time.Now})
	f.images = image.New(image.Options{
		EC2: f.ec2, SSM: ssm.NewFromConfig(conf), Version: f.cluster.Version, Refresh: s.amiRefresh,
		Latest: s.amiLatest, Now: time.Now,
	})
	if s.zonalShift {
		f.shifts = &refresh.Shifts{
			API: arczonalshift.NewFromConfig(conf), Cluster: f.cluster.ARN, Changed: host.CatalogChanged,
			Guard: f.guard,
			News:  &refresh.ShiftNews{Client: host.Manager.GetClient(), Events: host.Events, Leads: host.Leading},
		}
	}
	return f, nil
}

// ownCA is the certificate authority that the controller trusts.
func ownCA(of *rest.Config) ([]byte, error) {
	copied := rest.CopyConfig(of)
	if err := rest.LoadTLSFiles(copied); err != nil {
		return nil, fmt.Errorf("reading the certificate authority of the cluster: %w", err)
	}
	return copied.CAData, nil
}

// newProvider makes the provider and shows what it counts.
func (f *parts) newProvider() (*aws.Provider, error) {
	s, host := f.settings, f.host
	counted, err := metrics.New(host.Metrics)
	if err != nil {
		return nil, err
	}
	shapes := machine.NewShapes(machine.Settings{
		Region: f.config.Region, VMMemoryOverheadPercent: s.memoryOverheadPercent, ReservedENIs: s.reservedENIs,
		Expressions: s.gates.Enabled(gateNodeClassCEL),
	}, f.memory)
	options := aws.Options{
		EC2: f.ec2, Classes: host.Manager.GetClient(), Claims: host.Manager.GetAPIReader(), Shapes: shapes,
		Prices: f.prices, Network: f.network,
		Images: f.images, Cluster: f.cluster.Cluster, ClusterName: s.clusterName, Identity: f.identity,
		ReservedCapacity: host.Enabled(gateReservedCapacity),
		Metrics:          counted, Refused: host.Refused, Guard: f.guard, Now: time.Now,
	}
	if f.shifts != nil {
		options.Shifted = f.shifts.Away
	}
	provider, err := aws.New(options)
	if err != nil || !host.ClusterState {
		return provider, err
	}
	if err := host.Metrics.Register(provider.TypeStats()); err != nil {
		return nil, fmt.Errorf("showing what EC2 sells: %w", err)
	}
	return provider, nil
}

// addNodeClasses adds the keeper of EC2NodeClasses.
func (f *parts) addNodeClasses(provider *aws.Provider) error {
	s, host := f.settings, f.host
	shown, err := nodeclass.NewMetrics(host.Metrics, host.Manager.GetClient(), time.Now)
	if err != nil {
		return err
	}
	options := nodeclass.Options{
		Client: host.Manager.GetClient(), Network: f.network, Images: f.images, Templates: f.ec2, Events: host.Events,
		CABundle: f.cluster.CABundle,
		Profiles: profile.New(profile.Options{API: iam.NewFromConfig(f.config), Cluster: s.clusterName,
			Region: f.config.Region, Default: s.defaultProfile, Now: time.Now}),
		Cluster: s.clusterName, ReservedCapacity: host.Enabled(gateReservedCapacity),
		Expressions: s.gates.Enabled(gateNodeClassCEL), Metrics: shown,
		Every: min(s.amiRefresh, s.subnetRefresh), Guard: f.guard, Now: time.Now,
	}
	if !s.disableDryRun {
		options.Rehearser = provider
	}
	return nodeclass.Setup(host.Manager, options)
}

// addUpkeep adds what goes on in the background.
func (f *parts) addUpkeep() error {
	s, host := f.settings, f.host
	prices := &refresh.Prices{Book: f.prices, Spot: f.ec2, Changed: host.CatalogChanged, Guard: f.guard}
	if !s.isolatedVPC {
		// The Pricing API is in a few regions only, which sell the prices of all.
		prices.OnDemand = pricing.NewFromConfig(f.config, func(o *pricing.Options) {
			o.Region = price.EndpointRegion(f.config.Region)
		})
	}
	if err := errors.Join(host.Manager.Add(prices), refresh.TellAges(host.Metrics, f.prices)); err != nil {
		return fmt.Errorf("adding the refresh of prices: %w", err)
	}
	if f.shifts != nil {
		if err := host.Manager.Add(f.shifts); err != nil {
			return fmt.Errorf("adding the look at zonal shifts: %w", err)
		}
	}
	if host.Enabled(gateReservedCapacity) {
		reserved := &refresh.Reserved{Client: host.Manager.GetClient(), EC2: f.ec2, Reservations: f.network,
			Now: host.Now, Guard: f.guard}
		if err := host.Manager.Add(reserved); err != nil {
			return fmt.Errorf("adding the look at reserved nodes: %w", err)
		}
	}
	if err := f.addInterruptions(); err != nil {
		return err
	}
	nodes := &refresh.Nodes{Client: host.Client, EC2: f.ec2, Memory: f.memory, Cluster: s.clusterName,
		Identity: f.identity}
	return nodes.Setup(host.Manager)
}

// addInterruptions adds what hears that instances are taken away.
func (f *parts) addInterruptions() error {
	s, host := f.settings, f.host
	watcher, err := interrupt.New(interrupt.Options{
		Client: host.Manager.GetClient(), SQS: sqs.NewFromConfig(f.config), Queue: s.interruptionQueue, EC2: f.ec2,
		Instances: f.ec2, Region: f.config.Region, Events: host.Events,
		Metrics: host.Metrics, Rebalance: interrupt.Rebalance(s.rebalance), Guard: f.guard,
		// The ends that it writes down are compared with the API server's time.
		Now: host.Now,
	})
	if err != nil {
		return err
	}
	if err := host.Manager.Add(watcher); err != nil {
		return fmt.Errorf("adding the watch for interruptions: %w", err)
	}
	return nil
}
