package convert

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// manifestFiles are the founding documents' manifests, and cases of our own.
func manifestFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"testdata/founding/*.yaml", "testdata/cases/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files (%v)", pattern, len(files), err)
		}
		out = append(out, files...)
	}
	return out
}

// printed converts one file; the notes come first, as comments.
func printed(t *testing.T, file string, o Options) string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	result, errs := Convert([]Source{{Name: filepath.Base(file), Text: source}}, o)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var b strings.Builder
	for _, n := range result.Notes {
		b.WriteString("# note: " + n + "\n")
	}
	for i := range result.Documents {
		text, err := result.Documents[i].YAML()
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 || len(result.Notes) > 0 {
			b.WriteString("---\n")
		}
		b.Write(text)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, file := range manifestFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := printed(t, file, Options{Cluster: "my-cluster"})
			golden := filepath.Join("testdata", "golden", filepath.Base(file))
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the result is not %s (go test ./internal/convert -update writes it anew):\n%s", golden, got)
			}
		})
	}
}

// Converting what was converted changes nothing, not even a byte.
func TestV1StaysAsItIs(t *testing.T) {
	for _, file := range manifestFiles(t) {
		golden := filepath.Join("testdata", "golden", filepath.Base(file))
		text, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		result, errs := Convert([]Source{{Name: golden, Text: text}}, Options{})
		if len(errs) > 0 || len(result.Notes) > 0 {
			t.Errorf("%s: errors %v, notes %v", golden, errs, result.Notes)
		}
		for i := range result.Documents {
			d := &result.Documents[i]
			if again, err := d.YAML(); err != nil || d.Changed() || !strings.Contains(string(text),
				strings.TrimSpace(string(again))) {
				t.Errorf("%s: document %d changed: %s (%v)", golden, d.Number, again, err)
			}
		}
	}
}

// Every comment of a manifest is still there, but for those of fields that are gone.
func TestCommentsStay(t *testing.T) {
	for _, file := range manifestFiles(t) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := printed(t, file, Options{Cluster: "my-cluster"})
		for _, line := range strings.Split(string(source), "\n") {
			_, comment, found := strings.Cut(" "+line, " # ")
			if found && !strings.Contains(got, comment) {
				t.Errorf("%s: the comment %q is gone:\n%s", file, comment, got)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	cases := []struct {
		name, text string
		want       []string
	}{
		{"a field that is not known", "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: " +
			"a}\nspec: {ttlSecondAfterEmpty: 1, provider: {}}", []string{"f.yaml: document 1 (Provisioner a)",
			"ttlSecondAfterEmpty"}},
		{"a quantity", "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: {provider: " +
			"{}, limits: {resources: {memory: 1Gi, cpu: 100Gb}}}",
			[]string{"(Provisioner a): spec.limits.resources.cpu can't be read", "64Gi"}},
		{"two quantities", "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: " +
			"{provider: {}, limits: {resources: {memory: 1GB, cpu: 100Gb}}}",
			[]string{"(Provisioner a): spec.limits.resources can't be read", "64Gi"}},
		{"a unit", "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: {provider: {}, " +
			"ttlSecondsAfterEmpty: 30s}", []string{"(Provisioner a): spec.ttlSecondsAfterEmpty can't be read " +
			"(correct or remove it): cannot unmarshal string"}},
		{"a field in a list", "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: " +
			"{provider: {}, taints: [{key: a, effect: NoSchedule}, {key: b, efect: NoSchedule}]}",
			[]string{"(Provisioner a): spec.taints[1].efect can't be read", "unknown field"}},
		{"a launch template", "# first\n---\napiVersion: karpenter.k8s.aws/v1alpha1\nkind: " +
			"AWSNodeTemplate\nmetadata: {name: a}\nspec: {launchTemplate: mine}",
			[]string{"document 1 (AWSNodeTemplate a)", "spec.launchTemplate", "other fields"}},
		{"a template that is not there", "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: " +
			"a}\nspec: {providerRef: {name: b}, kubeletConfiguration: {maxPods: 4}}", []string{"spec.providerRef.name",
			"create the AWSNodeTemplate"}},
		{"a class that is not there", "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\nspec: " +
			"{template: {spec: {requirements: [], kubelet: {maxPods: 4}}}}", []string{"spec.template.spec.kubelet",
			"EC2NodeClass default"}},
		{"kubelets that differ", "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\nspec: " +
			"{template: {spec: {requirements: [], kubelet: {maxPods: 4}}}}\n---\napiVersion: " +
			"karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: b}\nspec: {template: {spec: {requirements: " +
			"[]}}}\n---\napiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec: " +
			"{amiFamily: AL2}", []string{"document 3 (EC2NodeClass default)", "NodePools a and b",
			"a class of its own"}},
		{"Ubuntu", "apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: " +
			"{amiFamily: Ubuntu}", []string{"spec.amiFamily", "amiSelectorTerms"}},
		{"a Machine", "apiVersion: karpenter.sh/v1alpha5\nkind: Machine\nmetadata: {name: a}",
			[]string{`"Machine" can't be converted`}},
		{"a template of helm", "apiVersion: {{ .Values.version }}", []string{"document 1: apiVersion is not a text",
			"helm template"}},
		{"a line of helm", "{{- if .Values.on }}\napiVersion: v1\n{{- end }}", []string{"document 1 is not YAML",
			"helm template"}},
		{"no manifest", "- a\n- b", []string{"document 1 is not a manifest"}},
		{"two that become one", "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\nspec: " +
			"{template: {spec: {requirements: []}}}\n---\napiVersion: karpenter.sh/v1alpha5\nkind: " +
			"Provisioner\nmetadata: {name: a}\nspec: {provider: {}}",
			[]string{`document 2 (Provisioner a): metadata.name "a": f.yaml: document 1 (NodePool a) becomes ` +
				`NodePool a, too; give one of them another name`}},
		{"a class that has the name of a Provisioner's", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: " +
			"karpenter.sh/v1alpha5\n  kind: Provisioner\n  metadata: {name: a}\n  spec: {provider: {}}\n- " +
			"apiVersion: karpenter.k8s.aws/v1\n  kind: EC2NodeClass\n  metadata: {name: provisioner-a}\n",
			[]string{"(EC2NodeClass provisioner-a)", "(Provisioner a) becomes EC2NodeClass provisioner-a, too"}},
		{"an item of a list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: karpenter.sh/v1alpha5\n  kind: " +
			"Provisioner\n  metadata: {name: a}\n  spec: {}", []string{"Provisioner a", "spec.providerRef"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, errs := Convert([]Source{{Name: "f.yaml", Text: []byte(tc.text)}}, Options{})
			if len(errs) != 1 {
				t.Fatalf("errors are %v, want one", errs)
			}
			for _, want := range tc.want {
				if !strings.Contains(errs[0].Error(), want) {
					t.Errorf("the error is %q and does not say %q", errs[0], want)
				}
			}
		})
	}
}

// A Provisioner that Tenon runs becomes the very pool that is there if its label is kept.
func TestProvisionerLabel(t *testing.T) {
	const file = "testdata/founding/004-15-provisioner.yaml"
	for _, keep := range []bool{true, false} {
		got := printed(t, file, Options{Cluster: "my-cluster", ProvisionerLabel: keep})
		if strings.Contains(got, "karpenter.sh/provisioner-name: default") != keep {
			t.Errorf("with --provisioner-label=%v:\n%s", keep, got)
		}
	}
}

// The default profile is for classes that name neither role nor profile, and for no others.
func TestDefaultProfile(t *testing.T) {
	const head = "apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: a}\n"
	for spec, want := range map[string]string{
		"spec: {amiFamily: AL2}":                               "instanceProfile: shared",
		"spec: {amiFamily: AL2, role: KarpenterNodeRole-blue}": "role: KarpenterNodeRole-blue",
		"spec: {amiFamily: AL2, instanceProfile: mine}":        "instanceProfile: mine",
	} {
		for _, cluster := range []string{"", "blue"} {
			result, errs := Convert([]Source{{Name: "f.yaml", Text: []byte(head + spec)}},
				Options{Cluster: cluster, InstanceProfile: "shared"})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			text, err := result.Documents[0].YAML()
			if err != nil {
				t.Fatal(err)
			}
			got, both := string(text), strings.Contains(string(text), "shared") && !strings.Contains(want, "shared")
			if !strings.Contains(got, want) || both {
				t.Errorf("%s in the cluster %q becomes\n%swant %s", spec, cluster, got, want)
			}
		}
	}
}

func TestJSON(t *testing.T) {
	result, errs := Convert([]Source{{Name: "f.yaml", Text: []byte("apiVersion: v1\nkind: Namespace\nmetadata: " +
		"{name: a}\n")}}, Options{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	text, err := result.Documents[0].JSON()
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil || object["kind"] != "Namespace" {
		t.Errorf("JSON is %s (%v)", text, err)
	}
}
