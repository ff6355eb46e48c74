package choose_test

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

func require(key string, op corev1.NodeSelectorOperator, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values}
}

func TestAllows(t *testing.T) {
	tests := []struct {
		name   string
		r      v1.NodeSelectorRequirementWithMinValues
		value  string
		exists bool
		want   bool
	}{
		{"In has it", require("k", corev1.NodeSelectorOpIn, "a", "b"), "b", true, true},
		{"In lacks it", require("k", corev1.NodeSelectorOpIn, "a"), "b", true, false},
		{"In without the label", require("k", corev1.NodeSelectorOpIn, ""), "", false, false},
		{"NotIn has it", require("k", corev1.NodeSelectorOpNotIn, "a"), "a", true, false},
		{"NotIn lacks it", require("k", corev1.NodeSelectorOpNotIn, "a"), "b", true, true},
		{"NotIn without the label", require("k", corev1.NodeSelectorOpNotIn, "a"), "", false, true},
		{"Exists", require("k", corev1.NodeSelectorOpExists), "a", true, true},
		{"Exists without the label", require("k", corev1.NodeSelectorOpExists), "", false, false},
		{"DoesNotExist", require("k", corev1.NodeSelectorOpDoesNotExist), "a", true, false},
		{"DoesNotExist without the label", require("k", corev1.NodeSelectorOpDoesNotExist), "", false, true},
		{"Gt above", require("k", corev1.NodeSelectorOpGt, "4"), "5", true, true},
		{"Gt equal", require("k", corev1.NodeSelectorOpGt, "4"), "4", true, false},
		{"Gt compares numbers, not text", require("k", corev1.NodeSelectorOpGt, "9"), "16", true, true},
		{"Lt below", require("k", corev1.NodeSelectorOpLt, "4"), "3", true, true},
		{"Lt equal", require("k", corev1.NodeSelectorOpLt, "4"), "4", true, false},
		{"Gte equal", require("k", v1.NodeSelectorOpGte, "4"), "4", true, true},
		{"Gte below", require("k", v1.NodeSelectorOpGte, "4"), "3", true, false},
		{"Lte equal", require("k", v1.NodeSelectorOpLte, "4"), "4", true, true},
		{"Lte above", require("k", v1.NodeSelectorOpLte, "4"), "5", true, false},
		{"Gt on a word", require("k", corev1.NodeSelectorOpGt, "4"), "large", true, false},
		{"Gt with two bounds", require("k", corev1.NodeSelectorOpGt, "4", "5"), "6", true, false},
		{"Gt without the label", require("k", corev1.NodeSelectorOpGt, "4"), "", false, false},
		{"unknown operator", require("k", "Near", "4"), "4", true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := choose.Allows(&test.r, test.value, test.exists); got != test.want {
				t.Errorf("Allows(%v, %q, %v) = %v, want %v", test.r, test.value, test.exists, got, test.want)
			}
		})
	}
}

func machine(name, cpu string, systems []string, offerings ...cloudprovider.Offering) *cloudprovider.InstanceType {
	return &cloudprovider.InstanceType{
		Name: name,
		Labels: map[string][]string{corev1.LabelInstanceTypeStable: {name}, corev1.LabelOSStable: systems,
			"cpu": {cpu}},
		Capacity:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		Overhead:  corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		Offerings: offerings,
	}
}

func offer(zone, capacityType string, price float64) cloudprovider.Offering {
	return cloudprovider.Offering{
		Labels:    map[string]string{corev1.LabelTopologyZone: zone, v1.CapacityTypeLabelKey: capacityType},
		Price:     price,
		Available: true,
	}
}

func world() []*cloudprovider.InstanceType {
	gpu := machine("gpu", "8", []string{"linux"}, offer("a", "on-demand", 3))
	gpu.Labels["gpu-name"] = []string{"x100"}
	return []*cloudprovider.InstanceType{
		machine("big", "8", []string{"linux", "windows"}, offer("a", "spot", 0.3), offer("b", "on-demand", 0.8)),
		gpu,
		machine("small", "2", []string{"linux"}, offer("b", "on-demand", 0.2), offer("a", "on-demand", 0.2),
			offer("a", "spot", 0.1)),
	}
}

func refs(candidates []choose.Candidate) []string {
	var out []string
	for i := range candidates {
		r := candidates[i].Ref()
		out = append(out, r.Type+":"+r.Zone+":"+r.CapacityType)
	}
	return out
}

func TestRanked(t *testing.T) {
	tests := []struct {
		name         string
		requirements []v1.NodeSelectorRequirementWithMinValues
		cpu          string
		want         []string
	}{
		{"everything, cheapest first, ties by name and zone", nil, "1",
			[]string{"small:a:spot", "small:a:on-demand", "small:b:on-demand", "big:a:spot", "big:b:on-demand",
				"gpu:a:on-demand"}},
		{"by zone", []v1.NodeSelectorRequirementWithMinValues{require(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn,
			"b")}, "1",
			[]string{"small:b:on-demand", "big:b:on-demand"}},
		{"by capacity type and size", []v1.NodeSelectorRequirementWithMinValues{
			require(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpNotIn, "on-demand"),
			require("cpu", v1.NodeSelectorOpGte, "8")}, "1",
			[]string{"big:a:spot"}},
		{"requests count what the system keeps", nil, "2", []string{"big:a:spot", "big:b:on-demand",
			"gpu:a:on-demand"}},
		{"a label that only some types have must exist", []v1.NodeSelectorRequirementWithMinValues{require("gpu-name",
			corev1.NodeSelectorOpExists)}, "1",
			[]string{"gpu:a:on-demand"}},
		{"a label that only some types have must not exist",
			[]v1.NodeSelectorRequirementWithMinValues{require("gpu-name", corev1.NodeSelectorOpDoesNotExist),
				require("cpu", corev1.NodeSelectorOpGt, "2")}, "1",
			[]string{"big:a:spot", "big:b:on-demand"}},
		{"a label of the node's own rules nothing out",
			[]v1.NodeSelectorRequirementWithMinValues{require("example.com/team", corev1.NodeSelectorOpIn, "blue"),
				require("gpu-name", corev1.NodeSelectorOpExists)}, "1",
			[]string{"gpu:a:on-demand"}},
		{"one of several values is enough", []v1.NodeSelectorRequirementWithMinValues{require(corev1.LabelOSStable,
			corev1.NodeSelectorOpIn, "windows")}, "1",
			[]string{"big:a:spot", "big:b:on-demand"}},
		{"two requirements on one label both hold", []v1.NodeSelectorRequirementWithMinValues{require("cpu",
			corev1.NodeSelectorOpGt, "1"), require("cpu", corev1.NodeSelectorOpLt, "4")}, "1",
			[]string{"small:a:spot", "small:a:on-demand", "small:b:on-demand"}},
		{"nothing is big enough", nil, "9", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			claim := &v1.NodeClaim{}
			claim.Spec.Requirements = test.requirements
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(test.cpu)}
			if got := refs(choose.Ranked(world(), claim)); !slices.Equal(got, test.want) {
				t.Errorf("Ranked = %v\nwant     %v", got, test.want)
			}
		})
	}
}

func TestLabelsAreDecidedByTheClaim(t *testing.T) {
	claim := &v1.NodeClaim{}
	claim.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{require(corev1.LabelOSStable,
		corev1.NodeSelectorOpNotIn, "linux")}
	ranked := choose.Ranked(world(), claim)
	if len(ranked) == 0 {
		t.Fatal("no candidate runs windows")
	}
	labels := ranked[0].Labels()
	if labels[corev1.LabelOSStable] != "windows" || labels[corev1.LabelTopologyZone] != "a" || labels["cpu"] != "8" {
		t.Errorf("labels of the node: %v", labels)
	}
}

func TestAvailable(t *testing.T) {
	types := world()
	types[2].Offerings[2].Available = false // small:a:spot, the cheapest
	ranked := choose.Ranked(types, &v1.NodeClaim{})
	got, err := choose.Available(ranked, func(r cloudprovider.OfferingRef) bool {
		return r.Type == "small" && r.Zone == "a"
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := (cloudprovider.OfferingRef{Type: "small", Zone: "b", CapacityType: "on-demand"}); got.Ref() != want {
		t.Errorf("got %v, want %v", got.Ref(), want)
	}
	_, err = choose.Available(ranked, func(cloudprovider.OfferingRef) bool { return true })
	if none, ok := errors.AsType[*cloudprovider.NoCapacityError](err); !ok || len(none.Exhausted) != len(ranked) {
		t.Errorf("error %v, want NoCapacity with all %d offerings", err, len(ranked))
	}
	_, err = choose.Available(nil, func(cloudprovider.OfferingRef) bool { return false })
	if none, ok := errors.AsType[*cloudprovider.NoCapacityError](err); !ok || len(none.Exhausted) != 0 {
		t.Errorf("error %v, want NoCapacity that lists nothing", err)
	}
}

// TestListRanksAlike holds a list that was sorted before against one that is sorted for each claim.
func TestListRanksAlike(t *testing.T) {
	types := world()
	list := choose.NewList(types)
	for _, asked := range [][]v1.NodeSelectorRequirementWithMinValues{
		nil,
		{require(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "b")},
		{require("cpu", v1.NodeSelectorOpGte, "8"), require("team", corev1.NodeSelectorOpIn, "x")},
		{require(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "windows")},
		{require(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "nothing")},
	} {
		claim := &v1.NodeClaim{}
		claim.Spec.Requirements = asked
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		want, got := choose.Ranked(types, claim), list.Ranked(claim)
		if !slices.Equal(refs(got), refs(want)) {
			t.Errorf("%v: got %v, want %v", asked, refs(got), refs(want))
		}
		for i := range got {
			for _, key := range []string{corev1.LabelOSStable, corev1.LabelTopologyZone, "cpu", "none"} {
				if one, all := got[i].Label(key), want[i].Labels()[key]; one != all {
					t.Errorf("label %s is %q, and among all %q", key, one, all)
				}
			}
		}
	}
}
