package catalog_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
)

const offeringText = `{"Price": 0.02, "Available": true, "Requirements": [
	{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
	{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-a"]}]}`

func entry(name, arch, system string) string {
	return `{"name": "` + name + `", "offerings": [` + offeringText + `], "architecture": "` + arch + `",
		"operatingSystems": ["` + system +
		`"], "resources": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "20Gi"}}`
}

func TestParse(t *testing.T) {
	text := "[" + entry("s-4x-arm64-linux", "arm64", "linux") + "," + entry("m5.large", "x86_64", "windows") + "," +
		entry("m5.large", "x86_64", "linux") + "]"
	types, err := catalog.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(types) != 2 || types[0].Name != "m5.large" {
		t.Fatalf("got %d types, first %s; want the two m5.large as one, before s-4x", len(types), types[0].Name)
	}
	for key, want := range map[string][]string{
		corev1.LabelArchStable:              {"amd64"},
		corev1.LabelOSStable:                {"linux", "windows"},
		kwokv1alpha1.InstanceFamilyLabelKey: {"m5"},
		kwokv1alpha1.InstanceSizeLabelKey:   {"large"},
	} {
		if got := types[0].Labels[key]; !slices.Equal(got, want) {
			t.Errorf("m5.large: label %s = %v, want %v", key, got, want)
		}
	}
	generic := types[1]
	for key, want := range map[string]string{
		kwokv1alpha1.InstanceFamilyLabelKey: "s",
		kwokv1alpha1.InstanceSizeLabelKey:   "4",
		kwokv1alpha1.InstanceCPULabelKey:    "4",
		kwokv1alpha1.InstanceMemoryLabelKey: "8Gi",
	} {
		if got := generic.Labels[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: label %s = %v, want %s", generic.Name, key, got, want)
		}
	}
	allocatable := generic.Allocatable()
	if allocatable.Pods().Value() != 110 || allocatable.Cpu().MilliValue() != 3900 {
		t.Errorf("allocatable %v, want 110 pods and 3900m", allocatable)
	}
	o := generic.Offerings[0]
	if o.Price != 0.02 || !o.Available || o.Labels[v1.CapacityTypeLabelKey] != "spot" ||
		o.Labels[corev1.LabelTopologyZone] != "test-zone-a" {
		t.Errorf("offering %+v", o)
	}
}

func TestParseNamesTheMistake(t *testing.T) {
	good := entry("m5.large", "amd64", "linux")
	tests := []struct {
		name, text string
		want       []string
	}{
		{"not a list", `{"name": "x"}`, []string{"JSON list"}},
		{"empty list", `[]`, []string{"list is empty"}},
		{"text after the list", `[` + good + `] ]`, []string{"after the list"}},
		{"no name", strings.Replace("["+good+"]", `"name": "m5.large",`, "", 1),
			[]string{"entry 0", "name is missing"}},
		{"unknown field", strings.Replace("["+good+"]", `"architecture"`, `"arch": "amd64", "architecture"`, 1),
			[]string{"entry 0 (m5.large)", `"arch"`}},
		{"the format before Requirements", strings.Replace("["+good+"]", offeringText,
			`{"capacityType": "spot", "zone": "a", "price": 1}`, 1), []string{"m5.large", `"capacityType"`,
			"Requirements"}},
		{"no architecture", strings.Replace("["+good+"]", `"amd64"`, `""`, 1),
			[]string{"m5.large", "architecture is missing", `"arm64"`}},
		{"no system", strings.Replace("["+good+"]", `["linux"]`, `[]`, 1), []string{"m5.large", "operatingSystems"}},
		{"no memory", strings.Replace("["+good+"]", `"memory": "8Gi",`, ``, 1),
			[]string{"m5.large", "resources[memory] is missing"}},
		{"bad quantity", strings.Replace("["+good+"]", `"8Gi"`, `"8 GB"`, 1),
			[]string{"m5.large", "resources[memory]", "8 GB"}},
		{"no offerings", strings.Replace("["+good+"]", offeringText, ``, 1),
			[]string{"m5.large", "offerings is empty"}},
		{"no price", strings.Replace("["+good+"]", `"Price": 0.02,`, ``, 1), []string{"m5.large", "offerings[0]",
			"Price is missing"}},
		{"price as text", strings.Replace("["+good+"]", `0.02`, `"0.02"`, 1), []string{"m5.large", "Price"}},
		{"negative price", strings.Replace("["+good+"]", `0.02`, `-1`, 1), []string{"m5.large", "offerings[0]",
			"Price is -1"}},
		{"operator NotIn", strings.Replace("["+good+"]", `"In"`, `"NotIn"`, 1), []string{"offerings[0]",
			"Requirements[0]", "NotIn", `"In"`}},
		{"two zones in one", strings.Replace("["+good+"]", `["test-zone-a"]`, `["a", "b"]`, 1),
			[]string{"Requirements[1]", "one value"}},
		{"no zone", strings.Replace("["+good+"]", corev1.LabelTopologyZone, "example.com/hall", 1),
			[]string{"offerings[0]", "lacks " + corev1.LabelTopologyZone}},
		{"same key twice", strings.Replace("["+good+"]", corev1.LabelTopologyZone, v1.CapacityTypeLabelKey, 1),
			[]string{"Requirements[1]", "already"}},
		{"same name, other price", "[" + good + "," + strings.Replace(good, "0.02", "0.03", 1) + "]",
			[]string{"entry 1 (m5.large)", "already"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := catalog.Parse(strings.NewReader(test.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error has several lines: %q", err)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(path, []byte("["+entry("m5.large", "amd64", "linux")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	types, err := catalog.Load(path)
	if err != nil || len(types) != 1 {
		t.Errorf("Load = %d types, %v; want 1", len(types), err)
	}
	if _, err := catalog.Load(path + ".missing"); err == nil || !strings.Contains(err.Error(), path+".missing") {
		t.Errorf("error %v does not name the file", err)
	}
	types, err = catalog.Load("")
	if err != nil || len(types) < 500 {
		t.Errorf("Load(\"\") = %d types, %v; want the embedded catalog", len(types), err)
	}
}
