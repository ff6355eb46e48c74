// Package aws runs nodes on Amazon EC2.
//
// It is an edge and a public one: it speaks cloudprovider's words and the API types, calls AWS through the SDK and
// reads EC2NodeClasses and NodeClaims. What a machine is like, what it costs, what it boots and where it stands is
// found out by the packages below it (machine, price, family, image, network); package offer puts it together into a
// catalog, and here instances are launched, found and ended.
//
// A launch goes like this: the claim's offerings are narrowed to what one fleet can ask for (package launch), each
// gets a launch template (package template), and claims that ask for the same are launched by one call.
// Which instance is whose survives every crash: see package ownership.
package aws

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/launch"
	"github.com/tenon-sh/tenon/cloudprovider/aws/offer"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"
	"github.com/tenon-sh/tenon/cloudprovider/aws/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
	"github.com/tenon-sh/tenon/cloudprovider/aws/recovery"
)

// Options say how a Provider works.
type Options struct {
	// EC2 is required.
	EC2 EC2API
	// Classes reads EC2NodeClasses and may be a cache. Required.
	Classes client.Reader
	// Claims reads NodeClaims and must ask the API server, not a cache: what it says decides whose an instance is. If
	// it is nil only tags tell.
	Claims client.Reader
	// Shapes, Prices and Network are required.
	Shapes  offer.Shapes
	Prices  offer.Prices
	Network Network
	// Images is told of images that EC2 does not know; may be nil.
	Images launch.Images
	// Cluster tells how nodes join. Required.
	Cluster func(context.Context) (family.Cluster, error)
	// ClusterName is the cluster's name in tags. Required.
	ClusterName string
	// Identity tells the cluster from others of the same name: the UID of its namespace kube-system. Instances that
	// carry another's are not seen. If it is empty only the name counts.
	Identity string
	// ReservedCapacity says whether the classes' capacity reservations are sold.
	ReservedCapacity bool
	// Refused tells of offerings whether the core holds something against them now: that EC2 had none, or has taken one
	// back. A claim names types and zones, and so may ask for one of them again. They are left out unless there is
	// nothing else. Nil for none.
	Refused func() func(cloudprovider.OfferingRef) bool
	// Shifted tells whether AWS has moved traffic away from the zone of the id: nothing is sold there then. Nil for no
	// zone.
	Shifted func(zoneID string) bool
	// Guard catches panics of what goes on in the background; nil to tell nobody of them.
	Guard *recovery.Guard
	// Metrics counts what EC2 refuses; may be nil.
	Metrics *metrics.EC2
	// Now tells the time; time.Now if it is nil.
	Now func() time.Time
	// Wait lets time pass before something is tried again, unless the context ends first; nil for the real clock.
	Wait func(ctx context.Context, d time.Duration)
}

// Provider is Amazon EC2.
type Provider struct {
	o           Options
	classes     classReader
	catalog     *offer.Catalog
	templates   *template.Store
	register    *ownership.Register
	instances   *ownership.Instances
	launcher    *launch.Launcher
	createCalls createCalls
	terminator  *terminator
}

var _ cloudprovider.Provider = (*Provider)(nil)

// New returns a provider. Its Start method, which a manager runs on the leader, takes over from the one before and
// tidies up.
func New(o Options) (*Provider, error) {
	for name, missing := range map[string]bool{
		"EC2": o.EC2 == nil, "Classes": o.Classes == nil, "Shapes": o.Shapes == nil, "Prices": o.Prices == nil,
		"Network": o.Network == nil, "Cluster": o.Cluster == nil, "ClusterName": o.ClusterName == "",
	} {
		if missing {
			return nil, fmt.Errorf("making an AWS provider: Options.%s is missing", name)
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = launch.Sleep
	}
	p := &Provider{o: o, classes: classReader{o.Classes}, templates: template.NewStore(o.EC2, o.Now),
		register: ownership.NewRegister(), terminator: newTerminator(o.EC2, o.Metrics)}
	p.catalog = offer.New(offer.Options{EC2: o.EC2, Shapes: o.Shapes, Prices: o.Prices, Network: o.Network,
		ReservedCapacity: o.ReservedCapacity, Shifted: o.Shifted, Now: o.Now})
	o.Metrics.SkipMissingClasses(p.classes.has)
	p.instances = ownership.NewInstances(p.register, ownership.Options{EC2: o.EC2, Claims: o.Claims,
		ClusterName: o.ClusterName,
		Identity:    o.Identity, Shifted: o.Shifted, Metrics: o.Metrics, Guard: o.Guard, Now: o.Now})
	p.launcher = launch.New(launch.Options{EC2: o.EC2, Network: o.Network, Images: o.Images, Cluster: o.Cluster,
		ClusterName: o.ClusterName, Identity: o.Identity, Refused: o.Refused, Catalog: p.catalog,
		Templates: p.templates,
		Register:  p.register, Instances: p.instances, Metrics: o.Metrics, Guard: o.Guard, Now: o.Now, Wait: o.Wait})
	return p, nil
}

// Name implements cloudprovider.Provider.
func (p *Provider) Name() string { return "aws" }

// NodeClasses implements cloudprovider.Provider.
func (p *Provider) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{awsv1.GroupVersion().WithKind(awsv1.Kind)}
}

// RepairPolicies implements cloudprovider.Provider: those of the kubelet, and of the node monitoring agent of EKS.
func (p *Provider) RepairPolicies() []cloudprovider.RepairPolicy {
	// a kubelet that is gone evicts nobody; while it works, the NodeClaim says how long pods have
	atOnce := time.Duration(0)
	out := []cloudprovider.RepairPolicy{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Toleration: 30 * time.Minute,
			TerminationGracePeriod: &atOnce},
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: 30 * time.Minute,
			TerminationGracePeriod: &atOnce},
		{Type: "AcceleratedHardwareReady", Status: corev1.ConditionFalse, Toleration: 10 * time.Minute},
	}
	for _, kind := range []corev1.NodeConditionType{"StorageReady", "NetworkingReady", "KernelReady",
		"ContainerRuntimeReady"} {
		out = append(out, cloudprovider.RepairPolicy{Type: kind, Status: corev1.ConditionFalse,
			Toleration: 30 * time.Minute})
	}
	return out
}

// TypeStats are the metrics of what the classes that were asked about can buy.
func (p *Provider) TypeStats() prometheus.Collector { return p.catalog.Metrics() }
