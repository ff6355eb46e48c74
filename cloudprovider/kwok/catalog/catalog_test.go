package catalog_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
)

func defaults(t *testing.T) map[string]*cloudprovider.InstanceType {
	t.Helper()
	types, err := catalog.Default()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*cloudprovider.InstanceType{}
	for _, it := range types {
		byName[it.Name] = it
	}
	if len(byName) != len(types) {
		t.Fatalf("%d types have %d names", len(types), len(byName))
	}
	return byName
}

func TestDefaultIsRich(t *testing.T) {
	types := defaults(t)
	if len(types) < 500 {
		t.Errorf("%d instance types, want the whole region", len(types))
	}
	zones, capacityTypes, arches := map[string]int{}, map[string]int{}, map[string]int{}
	for _, it := range types {
		arches[it.Labels[corev1.LabelArchStable][0]]++
		for _, o := range it.Offerings {
			zones[o.Labels[corev1.LabelTopologyZone]]++
			capacityTypes[o.Labels[v1.CapacityTypeLabelKey]]++
		}
	}
	if len(zones) < 3 || len(capacityTypes) != 2 || len(arches) != 2 {
		t.Errorf("zones %v, capacity types %v, architectures %v", zones, capacityTypes, arches)
	}
}

func TestDefaultIsSound(t *testing.T) {
	for name, it := range defaults(t) {
		for key, values := range it.Labels {
			for _, value := range values {
				if errs := validation.IsValidLabelValue(value); value == "" || len(errs) > 0 {
					t.Errorf("%s: label %s=%q: %v", name, key, value, errs)
				}
			}
		}
		allocatable := it.Allocatable()
		for _, resource := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
			corev1.ResourcePods, corev1.ResourceCPU} {
			if q := allocatable[resource]; q.Sign() <= 0 {
				t.Errorf("%s: nothing of %s is left for pods", name, resource)
			}
		}
	}
}

func TestDefaultKnowsM5Large(t *testing.T) {
	it := defaults(t)["m5.large"]
	if it == nil {
		t.Fatal("m5.large is missing")
	}
	wantLabels := map[string]string{
		corev1.LabelInstanceTypeStable:      "m5.large",
		corev1.LabelArchStable:              "amd64",
		corev1.LabelOSStable:                "linux",
		corev1.LabelTopologyRegion:          "us-west-2",
		kwokv1alpha1.InstanceFamilyLabelKey: "m5",
		kwokv1alpha1.InstanceSizeLabelKey:   "large",
		kwokv1alpha1.InstanceCPULabelKey:    "2",
		kwokv1alpha1.InstanceMemoryLabelKey: "8Gi",
	}
	for key, want := range wantLabels {
		if got := it.Labels[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("label %s = %v, want %s", key, got, want)
		}
	}
	// 3 interfaces of 10 addresses: 29 pods, so 11*29+255+100 = 674 MiB are kept; and 60+10 milli-CPU.
	allocatable := it.Allocatable()
	if got := allocatable.Pods().Value(); got != 29 {
		t.Errorf("pods %d, want 29", got)
	}
	if got, want := allocatable.Memory().Value(), int64(8192-674)<<20; got != want {
		t.Errorf("allocatable memory %d, want %d", got, want)
	}
	if got := allocatable.Cpu().MilliValue(); got != 1930 {
		t.Errorf("allocatable CPU %dm, want 1930m", got)
	}
	for _, o := range it.Offerings {
		if o.Labels[v1.CapacityTypeLabelKey] == v1.CapacityTypeOnDemand && o.Price != 0.096 {
			t.Errorf("on-demand price %v, want 0.096", o.Price)
		}
	}
}

func TestDefaultKnowsAccelerators(t *testing.T) {
	types := defaults(t)
	for name, want := range map[string]struct {
		resource corev1.ResourceName
		count    int64
	}{
		"g5.12xlarge":   {"nvidia.com/gpu", 4},
		"g4ad.xlarge":   {"amd.com/gpu", 1},
		"inf2.24xlarge": {"aws.amazon.com/neuron", 6},
		"dl1.24xlarge":  {"habana.ai/gaudi", 8},
	} {
		got := types[name].Capacity[want.resource]
		if got.Value() != want.count {
			t.Errorf("%s has %s of %s, want %d", name, got.String(), want.resource, want.count)
		}
	}
}

func TestDefaultNamesOddSizes(t *testing.T) {
	types := defaults(t)
	for name, want := range map[string][2]string{
		"c5.metal":        {"c5", "metal"},
		"m7i.metal-24xl":  {"m7i", "metal-24xl"},
		"u-6tb1.56xlarge": {"u-6tb1", "56xlarge"},
	} {
		it := types[name]
		if it == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		got := [2]string{it.Labels[kwokv1alpha1.InstanceFamilyLabelKey][0],
			it.Labels[kwokv1alpha1.InstanceSizeLabelKey][0]}
		if got != want {
			t.Errorf("%s: family and size %v, want %v", name, got, want)
		}
	}
}
