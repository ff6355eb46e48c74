package main

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/access"
	"github.com/tenon-sh/tenon/cloudprovider/aws/cluster"
	"github.com/tenon-sh/tenon/cloudprovider/aws/contain"
	"github.com/tenon-sh/tenon/cloudprovider/aws/image"
	"github.com/tenon-sh/tenon/cloudprovider/aws/interrupt"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
	"github.com/tenon-sh/tenon/cloudprovider/aws/upkeep"
	"github.com/tenon-sh/tenon/internal/validate"
)

// newAWS is Amazon EC2.
func newAWS(*options) (cloud, error) {
	return cloud{
		scheme:  awsv1.AddToScheme,
		classes: []schema.GroupVersionKind{awsv1.GroupVersion().WithKind(awsv1.Kind)},
		labels:  validate.Labels{WellKnown: awsLabels(), RestrictedDomains: []string{awsv1.Group}},
		build:   buildAWS,
	}, nil
}

// awsLabels are the labels that instance types and offerings of EC2 decide, whether or not a type has them.
func awsLabels() map[string]bool {
	out := map[string]bool{}
	for _, key := range []string{
		awsv1.InstanceCategoryLabelKey, awsv1.InstanceFamilyLabelKey, awsv1.InstanceGenerationLabelKey, awsv1.InstanceSizeLabelKey,
		awsv1.InstanceCapabilityFlexLabelKey, awsv1.InstanceCPULabelKey, awsv1.InstanceCPUManufacturerLabelKey,
		awsv1.InstanceCPUSustainedClockSpeedMhzLabelKey, awsv1.InstanceMemoryLabelKey, awsv1.InstanceEBSBandwidthLabelKey,
		awsv1.InstanceNetworkBandwidthLabelKey, awsv1.InstanceHypervisorLabelKey, awsv1.InstanceEncryptionInTransitSupportedLabelKey,
		awsv1.InstanceLocalNVMELabelKey, awsv1.InstanceGPUNameLabelKey, awsv1.InstanceGPUManufacturerLabelKey, awsv1.InstanceGPUCountLabelKey,
		awsv1.InstanceGPUMemoryLabelKey, awsv1.InstanceAcceleratorNameLabelKey, awsv1.InstanceAcceleratorManufacturerLabelKey,
		awsv1.InstanceAcceleratorCountLabelKey, awsv1.InstanceTenancyLabelKey,
		awsv1.CapacityReservationIDLabelKey, awsv1.CapacityReservationTypeLabelKey, awsv1.CapacityReservationInterruptibleLabelKey,
		awsv1.PlacementGroupIDLabelKey, awsv1.PlacementGroupPartitionLabelKey, awsv1.ZoneIDLabelKey, awsv1.NodeClassLabelKey,
		corev1.LabelWindowsBuild,
	} {
		out[key] = true
	}
	return out
}

// awsFacts are the parts that find out what is there.
type awsFacts struct {
	config  sdk.Config
	ec2     *ec2.Client
	cluster *cluster.Finder
	network *network.Finder
	images  *image.Finder
	prices  *price.Book
	memory  *machine.Memory
	shifts  *upkeep.Shifts // nil if zonal shifts are not looked at
	// identity tells the cluster from others of the same name.
	identity string
	guard    *contain.Guard
}

// clusterIdentity is the UID of the namespace kube-system: no two clusters have the same, whatever they are called.
func clusterIdentity(ctx context.Context, on ground) (string, error) {
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := on.mgr.GetAPIReader().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("finding out the cluster's identity, the UID of namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(system.UID), nil
}

// buildAWS makes the provider and what works behind it: the keeper of EC2NodeClasses, the prices, the names of instances.
func buildAWS(ctx context.Context, on ground) (cloudprovider.Provider, error) {
	conf, err := awsConfig(ctx, on.leads)
	if err != nil {
		return nil, err
	}
	facts, err := newAWSFacts(conf, on)
	if err != nil {
		return nil, err
	}
	if facts.identity, err = clusterIdentity(ctx, on); err != nil {
		return nil, err
	}
	provider, err := facts.newProvider(on)
	if err != nil {
		return nil, err
	}
	if err := on.mgr.Add(provider); err != nil {
		return nil, fmt.Errorf("adding the provider: %w", err)
	}
	if err := facts.addUpkeep(on); err != nil {
		return nil, err
	}
	return provider, facts.addNodeClasses(on, provider)
}

// awsConfig is where AWS is and who we are there, as the SDK finds it: the environment (AWS_REGION, AWS_ENDPOINT_URL, …), files,
// the roles of a pod or of a machine.
func awsConfig(ctx context.Context, leads func() bool) (sdk.Config, error) {
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
			return sdk.Config{}, fmt.Errorf("finding the region: AWS_REGION is not set and the machine does not say; set AWS_REGION: %w", err)
		}
	}
	conf.HTTPClient = plainBodies{conf.HTTPClient}
	count, err := access.Count(metrics.Registry, time.Now)
	if err != nil {
		return sdk.Config{}, err
	}
	conf.APIOptions = append(conf.APIOptions, count, renewSession(conf.Credentials))
	if leads != nil {
		conf.APIOptions = append(conf.APIOptions, access.Fence(leads))
	}
	return conf, nil
}

func newAWSFacts(conf sdk.Config, on ground) (*awsFacts, error) {
	o := &on.o.aws
	f := &awsFacts{config: conf, ec2: ec2.NewFromConfig(conf), memory: machine.NewMemory(time.Now), guard: &contain.Guard{Tell: func(c contain.Failure) {
		on.failures.add(c.Panic, c.Stack)
	}}}
	var err error
	if f.prices, err = price.NewBook(conf.Region, time.Now); err != nil {
		return nil, err
	}
	versions, err := discovery.NewDiscoveryClientForConfig(on.config)
	if err != nil {
		return nil, fmt.Errorf("preparing to ask for the version of the API server: %w", err)
	}
	ca, err := ownCA(on.config)
	if err != nil {
		return nil, err
	}
	f.cluster = cluster.New(cluster.Options{
		EKS: eks.NewFromConfig(conf), Name: o.clusterName, Endpoint: o.clusterEndpoint, CABundle: o.clusterCABundle, OwnCA: ca,
		FromEKS: o.eksControlPlane, Discovery: versions, Services: on.mgr.GetAPIReader(), Guard: f.guard, Now: time.Now,
	})
	f.network = network.New(network.Options{API: f.ec2, Cluster: o.clusterName, SubnetRefresh: o.subnetRefresh, VPC: f.cluster.VPC, Now: time.Now})
	f.images = image.New(image.Options{
		EC2: f.ec2, SSM: ssm.NewFromConfig(conf), Version: f.cluster.Version, Refresh: o.amiRefresh, Latest: o.amiLatest, Now: time.Now,
	})
	if o.zonalShift {
		f.shifts = &upkeep.Shifts{
			API: arczonalshift.NewFromConfig(conf), Cluster: f.cluster.ARN, Changed: on.restock.ring, Guard: f.guard,
			News: &upkeep.ShiftNews{Client: on.mgr.GetClient(), Events: on.events, Leads: on.leads},
		}
	}
	return f, nil
}

// ownCA is the certificate authority that the controller trusts.
func ownCA(config *rest.Config) ([]byte, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the certificate authority of the cluster: %w", err)
	}
	return config.CAData, nil
}

// newProvider makes the provider and shows what it counts.
func (f *awsFacts) newProvider(on ground) (*aws.Provider, error) {
	o := &on.o.aws
	stats, err := aws.NewStats(metrics.Registry)
	if err != nil {
		return nil, err
	}
	shapes := machine.NewShapes(machine.Settings{
		Region: f.config.Region, VMMemoryOverheadPercent: o.memoryOverheadPercent, ReservedENIs: o.reservedENIs,
		Expressions: o.gates[gateNodeClassCEL],
	}, f.memory)
	options := aws.Options{
		EC2: f.ec2, Classes: on.mgr.GetClient(), Claims: on.mgr.GetAPIReader(), Shapes: shapes, Prices: f.prices, Network: f.network,
		Images: f.images, Cluster: f.cluster.Cluster, ClusterName: o.clusterName, Identity: f.identity, ReservedCapacity: on.o.gates[gateReservedCapacity],
		Stats: stats, Refused: on.refusals.now, Guard: f.guard, Now: time.Now,
	}
	if f.shifts != nil {
		options.Shifted = f.shifts.Away
	}
	provider, err := aws.New(options)
	if err != nil || on.o.disableObserve {
		return provider, err
	}
	if err := metrics.Registry.Register(provider.TypeStats()); err != nil {
		return nil, fmt.Errorf("showing what EC2 sells: %w", err)
	}
	return provider, nil
}

// addNodeClasses adds the keeper of EC2NodeClasses.
func (f *awsFacts) addNodeClasses(on ground, provider *aws.Provider) error {
	o := &on.o.aws
	shown, err := nodeclass.NewMetrics(metrics.Registry, on.mgr.GetClient(), time.Now)
	if err != nil {
		return err
	}
	options := nodeclass.Options{
		Client: on.mgr.GetClient(), Network: f.network, Images: f.images, Templates: f.ec2, Events: on.events, CABundle: f.cluster.CABundle,
		Profiles: profile.New(profile.Options{API: iam.NewFromConfig(f.config), Cluster: o.clusterName, Region: f.config.Region, Default: o.defaultProfile, Now: time.Now}),
		Cluster:  o.clusterName, ReservedCapacity: on.o.gates[gateReservedCapacity], Expressions: o.gates[gateNodeClassCEL], Metrics: shown,
		Every: min(o.amiRefresh, o.subnetRefresh), Guard: f.guard, Now: time.Now,
	}
	if !o.disableDryRun {
		options.Rehearser = provider
	}
	return nodeclass.Setup(on.mgr, options)
}

// addUpkeep adds what goes on in the background.
func (f *awsFacts) addUpkeep(on ground) error {
	prices := &upkeep.Prices{Book: f.prices, Spot: f.ec2, Changed: on.restock.ring, Guard: f.guard}
	if !on.o.aws.isolatedVPC {
		// The Pricing API is in a few regions only, which sell the prices of all.
		prices.OnDemand = pricing.NewFromConfig(f.config, func(o *pricing.Options) { o.Region = price.EndpointRegion(f.config.Region) })
	}
	if err := errors.Join(on.mgr.Add(prices), upkeep.TellAges(metrics.Registry, f.prices)); err != nil {
		return fmt.Errorf("adding the refresh of prices: %w", err)
	}
	if f.shifts != nil {
		if err := on.mgr.Add(f.shifts); err != nil {
			return fmt.Errorf("adding the look at zonal shifts: %w", err)
		}
	}
	if on.o.gates[gateReservedCapacity] {
		reserved := &upkeep.Reserved{Client: on.mgr.GetClient(), EC2: f.ec2, Reservations: f.network, Now: on.clock.Now, Guard: f.guard}
		if err := on.mgr.Add(reserved); err != nil {
			return fmt.Errorf("adding the look at reserved nodes: %w", err)
		}
	}
	if err := f.addInterruptions(on); err != nil {
		return err
	}
	nodes := &upkeep.Nodes{Client: tolerantClient{on.mgr.GetClient()}, EC2: f.ec2, Memory: f.memory, Cluster: on.o.aws.clusterName, Identity: f.identity}
	return nodes.Setup(on.mgr)
}

// addInterruptions adds what hears that instances are taken away.
func (f *awsFacts) addInterruptions(on ground) error {
	o := &on.o.aws
	watcher, err := interrupt.New(interrupt.Options{
		Client: on.mgr.GetClient(), SQS: sqs.NewFromConfig(f.config), Queue: o.interruptionQueue, EC2: f.ec2, Instances: f.ec2, Region: f.config.Region, Events: on.events,
		Metrics: metrics.Registry, Rebalance: interrupt.Rebalance(o.rebalance), Guard: f.guard,
		// The ends that it writes down are compared with the API server's time.
		Now: on.clock.Now,
	})
	if err != nil {
		return err
	}
	if err := on.mgr.Add(watcher); err != nil {
		return fmt.Errorf("adding the watch for interruptions: %w", err)
	}
	return nil
}
