package aws_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws"
	"github.com/tenon-sh/tenon/cloudprovider/aws/machine"
	"github.com/tenon-sh/tenon/cloudprovider/aws/metrics"
	"github.com/tenon-sh/tenon/cloudprovider/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloudprovider/aws/price"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
)

// quiet writes no events.
type quiet struct{}

func (quiet) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// TestTemplatesGoWithTheirClass: what a launch has made is found and removed when the class goes.
func TestTemplatesGoWithTheirClass(t *testing.T) {
	w, p := start(t, setup{})
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Spec.Role, c.Spec.InstanceProfile, c.Status.InstanceProfile = "", new("mine"), "mine"
		c.Finalizers = []string{awsv1.TerminationFinalizer}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), claim()); err != nil {
		t.Fatal(err)
	}
	list := w.sim.World.Templates()
	if len(list) == 0 {
		t.Fatal("the launch has made no launch template")
	}
	if err := w.kube.Delete(t.Context(), w.class()); err != nil {
		t.Fatal(err)
	}
	keeper := nodeclass.New(nodeclass.Options{
		Client: w.kube, Templates: w.ec2, Events: quiet{}, Cluster: cluster, Now: time.Now,
		Profiles: profile.New(profile.Options{Cluster: cluster, Region: region, Now: time.Now}),
	})
	if _, err := keeper.Reconcile(t.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}}); err != nil {
		t.Fatal(err)
	}
	if left := w.sim.World.Templates(); len(left) != 0 {
		t.Errorf("%d of %d launch templates are left", len(left), len(list))
	}
}

// TestStampIsOfTheClassItself: an instance bears the hash of the class that it was launched from, and nothing is
// launched from a class that has changed since it was looked at.
func TestStampIsOfTheClassItself(t *testing.T) {
	w, p := start(t, setup{})
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Annotations[awsv1.HashAnnotationKey] = "of-before"
	}); err != nil {
		t.Fatal(err)
	}
	got, err := p.Create(t.Context(), claim())
	if err != nil {
		t.Fatal(err)
	}
	want, err := w.class().Hash(caBundle)
	if err != nil || got.Annotations[awsv1.HashAnnotationKey] != want ||
		got.Annotations[awsv1.HashVersionAnnotationKey] != awsv1.HashVersion {
		t.Errorf("annotations are %v, want the hash %s (%v)", got.Annotations, want, err)
	}
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Spec.UserData = new("echo hello")
		c.Generation++
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), claim()); !cloudprovider.IsNotReady(err) || !strings.Contains(err.Error(),
		"being looked at") {
		t.Errorf("a class that has changed since it was looked at: %v", err)
	}
}

// TestOpenReservationsAreLeftAlone: with reserved capacity in use, an instance on demand takes no place in a
// reservation.
func TestOpenReservationsAreLeftAlone(t *testing.T) {
	for _, reserving := range []bool{true, false} {
		w, p := start(t, setup{families: []string{"m5"}}, func(o *aws.Options) { o.ReservedCapacity = reserving })
		for _, zone := range w.sim.World.Zones() {
			w.sim.World.AddReservation(ec2types.CapacityReservation{InstanceType: new("m5.large"),
				AvailabilityZone:   new(zone.Name),
				TotalInstanceCount: new(int32(1)), CreateDate: new(time.Now())})
		}
		if _, err := p.Create(t.Context(), claim(in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand),
			in(corev1.LabelInstanceTypeStable, "m5.large"))); err != nil {
			t.Fatal(err)
		}
		if took := w.alive()[0].CapacityReservation != ""; took == reserving {
			t.Errorf("reserved capacity in use %v: the instance is in a reservation: %v", reserving, took)
		}
	}
}

// TestRehearsalIsOfThePools: a launch is rehearsed on a type that a pool of the class uses, and without accelerators.
func TestRehearsalIsOfThePools(t *testing.T) {
	watch := &spy{}
	w, p := start(t, setup{}, func(o *aws.Options) { watch.EC2API, o.EC2 = o.EC2, watch })
	kinds := func() string {
		t.Helper()
		calls, err := p.Rehearse(t.Context(), w.class())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			_ = c.Run(t.Context())
		}
		return watch.last
	}
	if got := kinds(); !strings.HasPrefix(got, "t3.") {
		t.Errorf("without pools %s is rehearsed, want the cheapest", got)
	}
	big := pool()
	big.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
		// The first is cheaper.
		in(corev1.LabelInstanceTypeStable, "g4dn.xlarge", "r6g.4xlarge"), in(v1.CapacityTypeLabelKey,
			v1.CapacityTypeSpot)}
	other := pool()
	other.Name = "another"
	other.Spec.Template.Spec.NodeClassRef.Name = "another"
	for _, pool := range []*v1.NodePool{big, other} {
		if err := w.kube.Create(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	if got := kinds(); got != "r6g.4xlarge" {
		t.Errorf("%s is rehearsed, want the type of the pool without accelerators", got)
	}
}

// spy notes the type of the last instance that was asked for by itself.
type spy struct {
	aws.EC2API
	last string
}

func (s *spy) RunInstances(ctx context.Context, in *ec2.RunInstancesInput,
	opts ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	s.last = string(in.InstanceType)
	return s.EC2API.RunInstances(ctx, in, opts...)
}

// TestExpressionsReachTheNode: what a class computes is handed to the kubelet, type by type.
func TestExpressionsReachTheNode(t *testing.T) {
	w, p := start(t, setup{families: []string{"m5"}}, func(o *aws.Options) {
		o.Shapes = machine.NewShapes(machine.Settings{Region: region, VMMemoryOverheadPercent: 0.075,
			Expressions: true}, machine.NewMemory(time.Now))
	})
	if err := w.changeClass(t.Context(), func(c *awsv1.EC2NodeClass) {
		c.Spec.Kubelet = awsv1.KubeletConfiguration{
			"maxPods": rawJSON(`"vcpus * 7"`), "kubeReserved": rawJSON(`{"cpu": "vcpus * 40", "memory": "1Gi"}`),
			"systemReserved": rawJSON(`{"cpu": "100m"}`)}
	}); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{
		"m5.large":   {"--max-pods=14", "--kube-reserved=cpu=80m,memory=1Gi", "--system-reserved=cpu=100m"},
		"m5.4xlarge": {"--max-pods=112", "--kube-reserved=cpu=640m,memory=1Gi", "--system-reserved=cpu=100m"},
	} {
		got, err := p.Create(t.Context(), claim(in(corev1.LabelInstanceTypeStable, kind)))
		if err != nil {
			t.Fatal(err)
		}
		data := ""
		for _, i := range w.alive() {
			if strings.HasSuffix(got.ProviderID, i.ID) {
				data = string(i.UserData)
			}
		}
		for _, text := range want {
			if !strings.Contains(data, text) {
				t.Errorf("%s is not told %s:\n%s", kind, text, data)
			}
		}
		if strings.Contains(data, "vcpus") {
			t.Errorf("%s is told an expression:\n%s", kind, data)
		}
	}
}

func rawJSON(text string) apiextensionsv1.JSON { return apiextensionsv1.JSON{Raw: []byte(text)} }

// TestStats: what the provider does is measured under the contract's names.
func TestStats(t *testing.T) {
	registry := prometheus.NewRegistry()
	stats, err := metrics.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	w, p := start(t, setup{families: []string{"m5"}}, func(o *aws.Options) { o.Metrics = stats })
	if err := registry.Register(p.TypeStats()); err != nil {
		t.Fatal(err)
	}
	if err := w.exhaust(t.Context(), cloudprovider.OfferingRef{Type: "m5.large", Zone: "us-west-2a",
		CapacityType: v1.CapacityTypeOnDemand}); err != nil {
		t.Fatal(err)
	}
	only := claim(in(corev1.LabelInstanceTypeStable, "m5.large"), in(corev1.LabelTopologyZone, "us-west-2a"),
		in(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand))
	if _, err := p.Create(t.Context(), only); !cloudprovider.IsNoCapacity(err) {
		t.Fatalf("error is %v", err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values[f.GetName()] += m.String() + "\n"
		}
	}
	for name, want := range map[string]string{
		"karpenter_cloudprovider_batcher_batch_size":                    "create_fleet",
		"karpenter_cloudprovider_batcher_batch_time_seconds":            "create_fleet",
		"karpenter_cloudprovider_instance_launch_failures_total":        "InsufficientInstanceCapacity",
		"karpenter_cloudprovider_instance_type_cpu_cores":               "m5.large",
		"karpenter_cloudprovider_instance_type_memory_bytes":            "m5.large",
		"karpenter_cloudprovider_instance_type_offering_available":      "us-west-2a",
		"karpenter_cloudprovider_instance_type_offering_price_estimate": "on-demand",
		"karpenter_ec2nodeclasses_userdata_bytes":                       "default",
	} {
		if !strings.Contains(values[name], want) {
			t.Errorf("%s has no %s: %.300s", name, want, values[name])
		}
	}
	if !strings.Contains(values["karpenter_cloudprovider_instance_launch_failures_total"], "us-west-2a") {
		t.Errorf("the zone is not told: %s", values["karpenter_cloudprovider_instance_launch_failures_total"])
	}
	// A class that is gone leaves nothing.
	if err := w.kube.Delete(t.Context(), w.class()); err != nil {
		t.Fatal(err)
	}
	if families, err = registry.Gather(); err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "karpenter_ec2nodeclasses_userdata_bytes" {
			t.Errorf("the class is gone, and there is still %s", f)
		}
	}
}

// TestPolicyReachesInheritedProfiles: profiles that an older Karpenter made are not under our path, and still ours to
// remove.
func TestPolicyReachesInheritedProfiles(t *testing.T) {
	for _, action := range []string{"iam:DeleteInstanceProfile", "iam:RemoveRoleFromInstanceProfile"} {
		found := false
		for _, s := range readPolicy(t) {
			tags := s.Condition["StringEquals"]
			found = found || has(s.Action, action) &&
				has(s.Resource, "arn:${PARTITION}:iam::${ACCOUNT_ID}:instance-profile/*") &&
				has(tags["aws:ResourceTag/kubernetes.io/cluster/${CLUSTER_NAME}"], "owned") &&
				has(tags["aws:ResourceTag/topology.kubernetes.io/region"], "${REGION}")
		}
		if !found {
			t.Errorf("no statement allows %s on a profile at another path that is tagged as the cluster's", action)
		}
	}
}

func has(l list, text string) bool {
	for _, one := range l {
		if one == text {
			return true
		}
	}
	return false
}

// priceless knows no price of one type.
type priceless struct {
	*price.Book
	name string
}

func (p priceless) OnDemand(kind, zone string) (float64, bool) {
	if kind == p.name {
		return 0, false
	}
	return p.Book.OnDemand(kind, zone)
}

// TestTypesWithoutAPriceAreEstimated and sold all the same. How many there are is logged once, and counted.
func TestTypesWithoutAPriceAreEstimated(t *testing.T) {
	w, p := start(t, setup{families: []string{"m5"}}, func(o *aws.Options) {
		o.Prices = priceless{o.Prices.(*price.Book), "m5.large"}
	})
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) {
		lines = append(lines, args)
	}, funcr.Options{}))
	for generation := range int64(3) {
		if err := w.changeClass(ctx, func(c *awsv1.EC2NodeClass) {
			c.Generation = generation
			c.Status.Conditions[0].ObservedGeneration = generation
		}); err != nil {
			t.Fatal(err)
		}
		types, err := p.InstanceTypes(ctx, pool())
		if err != nil {
			t.Fatal(err)
		}
		sold := 0
		for _, kind := range types {
			for _, o := range kind.Offerings {
				onDemand := kind.Name == "m5.large" && o.Labels[v1.CapacityTypeLabelKey] == v1.CapacityTypeOnDemand
				if o.PriceEstimated != onDemand || onDemand && o.Price != 0.096 {
					t.Errorf("%s %v costs %v, estimated %v", kind.Name, o.Labels, o.Price, o.PriceEstimated)
				}
				if onDemand {
					sold++
				}
			}
		}
		if sold != 3 {
			t.Errorf("m5.large is sold in %d zones on demand, want 3", sold)
		}
	}
	want := strings.NewReader("# HELP tenon_aws_price_estimated_types How many instance types of a class have a " +
		"price that is estimated.\n" +
		"# TYPE tenon_aws_price_estimated_types gauge\ntenon_aws_price_estimated_types{ec2nodeclass=\"default\"} 1\n")
	if err := testutil.CollectAndCompare(p.TypeStats(), want, "tenon_aws_price_estimated_types"); err != nil {
		t.Error(err)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `"types"=1`) || !strings.Contains(lines[0], "m5.large") {
		t.Errorf("the log says %q", lines)
	}
}
