package aws_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ownership"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/catalog"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"

	simec2 "github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/ec2"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/network"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
)

const (
	region   = "us-west-2"
	cluster  = "lab"
	identity = "0f0e0d0c-0b0a-4908-8706-050403020100"
	// caBundle is the certificate that nodes are told to trust; it goes into the class's hash.
	caBundle = "Y2E="
)

// world is a simulated EC2 with a network, two images and a class, seen through the SDK over HTTP, and an API server in
// memory.
type world struct {
	sim     *ec2sim.Server
	http    *httptest.Server
	faults  *faults.Injector
	net     cloud.Network
	images  map[string]string // by architecture
	kube    client.Client
	ec2     *ec2.Client
	prices  *price.Book
	network *network.Finder
}

// setup changes how a world is made.
type setup struct {
	families []string
	timing   cloud.Timing
	limits   simec2.Limits
	tries    int
	clock    wire.Clock
	gates    []wire.Gate
	// direct leaves the network out (bubble_test.go).
	direct bool
}

// goods are what EC2 sells in the region. Reading them takes a while, and nobody changes them.
type goods struct {
	kinds  []ec2types.InstanceTypeInfo
	zones  map[string][]string
	prices *catalog.PriceList
}

var sold = sync.OnceValues(func() (goods, error) {
	kinds, zones, err := catalog.Region(region)
	if err != nil {
		return goods{}, err
	}
	prices, err := catalog.Prices(region)
	return goods{kinds, zones, prices}, err
})

func newWorld(ctx context.Context, s setup) (*world, error) {
	if len(s.families) == 0 {
		s.families = []string{"t3", "m5", "c5", "r6g", "g4dn"}
	}
	all, err := sold()
	if err != nil {
		return nil, err
	}
	var kinds []ec2types.InstanceTypeInfo
	for _, i := range all.kinds {
		if family, _, _ := strings.Cut(string(i.InstanceType), "."); slices.Contains(s.families, family) {
			kinds = append(kinds, i)
		}
	}
	w := &world{faults: faults.New(faults.Options{Clock: wire.RealClock{}}), images: map[string]string{}}
	w.sim, err = ec2sim.New(ec2sim.Options{
		Config: cloud.Config{Region: region, Types: kinds, TypeZones: all.zones, Prices: all.prices, Timing: s.timing,
			Clock: s.clock},
		Limits: &s.limits, Gates: append([]wire.Gate{w.faults}, s.gates...),
	})
	if err != nil {
		return nil, err
	}
	if w.net, err = w.sim.World.AddStarterNetwork(cluster); err != nil {
		return nil, err
	}
	for arch, kind := range map[string]ec2types.ArchitectureValues{
		v1.ArchitectureAmd64: ec2types.ArchitectureValuesX8664,
		v1.ArchitectureArm64: ec2types.ArchitectureValuesArm64,
	} {
		w.images[arch] = w.sim.World.AddImage(ec2types.Image{Name: new("node-" + arch), Architecture: kind})
	}
	o := ec2.Options{
		Region: region, BaseEndpoint: new("http://127.0.0.1"), RetryMaxAttempts: max(3, s.tries),
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""), HTTPClient: direct{w.sim},
	}
	if !s.direct {
		w.http = httptest.NewServer(w.sim)
		o.BaseEndpoint, o.HTTPClient = new(w.http.URL), nil
	}
	w.ec2 = ec2.New(o)
	if err := w.read(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// read sets up what the provider is made from.
func (w *world) read(ctx context.Context) error {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, awsv1.AddToScheme} {
		if err := add(s); err != nil {
			return err
		}
	}
	w.kube = fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&awsv1.EC2NodeClass{},
		&v1.NodeClaim{}).WithObjects(w.class()).Build()
	w.network = network.New(network.Options{API: w.ec2, Now: time.Now})
	var err error
	if w.prices, err = price.NewBook(region, time.Now); err != nil {
		return err
	}
	return w.prices.RefreshSpot(ctx, w.ec2)
}

func (w *world) close() {
	if w.http != nil {
		w.http.Close()
	}
}

// class is one whose status is what its controller would have found.
func (w *world) class() *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{
		Name: "default", UID: "6f6c3b7e-2b5f-4d2a-9c3b-0d6a6f1f2a11", Generation: 1,
		Annotations: map[string]string{awsv1.HashVersionAnnotationKey: awsv1.HashVersion},
	}}
	class.Spec.AMIFamily = new(awsv1.AMIFamilyAL2)
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "node-*"}}
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{
		Tags: map[string]string{"karpenter.sh/discovery": cluster},
	}}
	class.Spec.SecurityGroupSelectorTerms =
		[]awsv1.SecurityGroupSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": cluster}}}
	class.Spec.Role = "KarpenterNodeRole-" + cluster
	class.Status.InstanceProfile = cluster + "_1"
	class.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: w.net.SecurityGroup}}
	for i, zone := range w.sim.World.Zones() {
		class.Status.Subnets = append(class.Status.Subnets, awsv1.Subnet{ID: w.net.Private[i], Zone: zone.Name,
			ZoneID: zone.ID})
	}
	for _, arch := range []string{v1.ArchitectureAmd64, v1.ArchitectureArm64} {
		class.Status.AMIs = append(class.Status.AMIs, awsv1.AMI{ID: w.images[arch], Name: "node-" + arch,
			Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable,
				Operator: corev1.NodeSelectorOpIn, Values: []string{arch}}}})
	}
	class.Status.Conditions = []metav1.Condition{{Type: v1.ConditionTypeReady, Status: metav1.ConditionTrue,
		Reason: "Ready", ObservedGeneration: class.Generation, LastTransitionTime: metav1.Now()}}
	if hash, err := class.Hash(caBundle); err == nil {
		class.Annotations[awsv1.HashAnnotationKey] = hash
	}
	return class
}

// provider returns a new one, as a controller has it that has just been started and leads.
func (w *world) provider(change ...func(*aws.Options)) (*aws.Provider, error) {
	o := aws.Options{
		EC2: w.ec2, Classes: w.kube, Claims: w.kube, ClusterName: cluster, Identity: identity, ReservedCapacity: true,
		Network: w.network, Prices: w.prices,
		Shapes: machine.NewShapes(machine.Settings{Region: region, VMMemoryOverheadPercent: 0.075},
			machine.NewMemory(time.Now)),
		Cluster: func(context.Context) (family.Cluster, error) {
			return family.Cluster{Name: cluster, Endpoint: "https://lab.example", CABundle: caBundle,
				ServiceCIDR: "10.100.0.0/16"}, nil
		},
	}
	for _, c := range change {
		c(&o)
	}
	p, err := aws.New(o)
	if err != nil {
		return nil, err
	}
	return p, p.Lead(context.Background())
}

// start makes a world and a provider for a test.
func start(t *testing.T, s setup, change ...func(*aws.Options)) (*world, *aws.Provider) {
	t.Helper()
	w, err := newWorld(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	p, err := w.provider(change...)
	if err != nil {
		t.Fatal(err)
	}
	return w, p
}

func classRef() v1.NodeClassReference {
	return v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
}

func pool() *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	ref := classRef()
	p.Spec.Template.Spec.NodeClassRef = &ref
	return p
}

// claim is a new one that asks for little.
func claim(requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodeClaim {
	ref := classRef()
	c := &v1.NodeClaim{}
	c.UID = uuid.NewUUID()
	c.Name = "general-" + string(c.UID)[:8]
	c.Labels = map[string]string{v1.NodePoolLabelKey: "general", "team": "a"}
	c.Spec.NodeClassRef = &ref
	c.Spec.Requirements = requirements
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return c
}

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// changeClass edits the class, as its controller does.
func (w *world) changeClass(ctx context.Context, change func(*awsv1.EC2NodeClass)) error {
	class := &awsv1.EC2NodeClass{}
	if err := w.kube.Get(ctx, types.NamespacedName{Name: "default"}, class); err != nil {
		return err
	}
	change(class)
	if err := w.kube.Update(ctx, class.DeepCopy()); err != nil {
		return err
	}
	fresh := &awsv1.EC2NodeClass{}
	if err := w.kube.Get(ctx, types.NamespacedName{Name: "default"}, fresh); err != nil {
		return err
	}
	fresh.Status = class.Status
	return w.kube.Status().Update(ctx, fresh)
}

// edit is changeClass where nothing can go wrong.
func (w *world) edit(change func(*awsv1.EC2NodeClass)) {
	if err := w.changeClass(context.Background(), change); err != nil {
		panic(err)
	}
}

// record writes on the claim what the core writes there after a launch.
func (w *world) record(ctx context.Context, c *v1.NodeClaim, i *cloudprovider.Instance) error {
	stored := &v1.NodeClaim{}
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(c), stored); err != nil {
		return err
	}
	stored.Status.ProviderID, stored.Status.ImageID = i.ProviderID, i.ImageID
	return w.kube.Status().Update(ctx, stored)
}

// alive lists the instances that EC2 really runs.
func (w *world) alive() []cloud.Instance {
	return slices.DeleteFunc(w.sim.World.Instances(), func(i cloud.Instance) bool { return !i.State.Alive() })
}

// leave has a subnet say that it has so many free addresses.
func (w *world) leave(subnet string, free int) {
	if err := w.sim.World.SetFreeAddresses(subnet, free); err != nil {
		panic(err.Message)
	}
}

// exhaust takes away all capacity of the offerings.
func (w *world) exhaust(_ context.Context, refs ...cloudprovider.OfferingRef) error {
	for _, r := range refs {
		w.sim.World.SetCapacity(cloud.CapacityRule{Type: r.Type, Zone: r.Zone, Market: cloud.Market(r.CapacityType),
			Total: 0})
	}
	return nil
}

// kill ends an instance behind the provider's back.
func (w *world) kill(_ context.Context, providerID string) error {
	id := providerID[strings.LastIndex(providerID, "/")+1:]
	if err := w.sim.World.Withdraw(id, "Server.SpotInstanceTermination", "taken back"); err != nil {
		return fmt.Errorf("%s", err.Message)
	}
	return nil
}

// strip takes the tags off an instance that only Tenon writes.
func (w *world) strip(id string) error {
	if err := w.sim.World.RemoveTags([]string{id}, []cloud.TagMatch{{Key: ownership.LaunchTagKey},
		{Key: ownership.ClaimsTagKey},
		{Key: awsv1.NodeClaimTagKey}}); err != nil {
		return fmt.Errorf("%s", err.Message)
	}
	return nil
}
