package apitest

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/convert"
)

func TestProvisioner(t *testing.T) {
	run(t, `
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
spec:
  provider: {}
`, []apiCase{
		{name: "settings in place, of any shape", create: `spec: {provider: {instanceProfile: a, unheard: {of: [1]}}}`,
			stored: `spec: {provider: {instanceProfile: a, unheard: {of: [1]}}}`},
		{name: "a provider that is no object", create: `spec: {provider: a}`, refused: "spec.provider"},
		{name: "two providers", create: `spec: {providerRef: {name: a}}`, refused: "provider and providerRef exclude " +
			"each other"},
		{name: "a reference without a name", create: `spec: {provider: null, providerRef: {kind: AWSNodeTemplate}}`,
			refused: "spec.providerRef.name"},
		{name: "two ways to lose empty nodes",
			create:  `spec: {ttlSecondsAfterEmpty: 1, consolidation: {enabled: true}}`,
			refused: "ttlSecondsAfterEmpty and consolidation.enabled exclude each other"},
		{name: "consolidation that is off", create: `spec: {ttlSecondsAfterEmpty: 1, consolidation: {enabled: false}}`},
		{name: "a time of less than nothing", create: `spec: {ttlSecondsUntilExpired: -1}`,
			refused: "spec.ttlSecondsUntilExpired"},
		{name: "a weight", create: `spec: {weight: 101}`, refused: "spec.weight"},
		{name: "limits as numbers and quantities", create: `spec: {limits: {resources: {cpu: 1000, memory: 1000Gi}}}`},
		{name: "limits that can't be read", create: `spec: {limits: {resources: {cpu: 1e1.5}}}`,
			refused: "spec.limits.resources.cpu"},
		{name: "a field that is not known", create: `spec: {ttlSecondAfterEmpty: 1}`, refused: "ttlSecondAfterEmpty"},
		{name: "a change of mind", create: `spec: {weight: 1}`,
			update: `spec: {weight: 2, provider: null, providerRef: {name: a}}`,
			stored: `spec: {weight: 2, provider: null}`},
	})
}

func TestAWSNodeTemplate(t *testing.T) {
	run(t, `
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
spec: {}
`, []apiCase{
		{name: "nothing at all", create: `{}`},
		{name: "everything", create: `
spec:
  amiFamily: Ubuntu
  amiSelector: {"aws::name": a, "aws::owners": self}
  subnetSelector: {aws-ids: "subnet-1,subnet-2"}
  securityGroupSelector: {Name: "*"}
  instanceProfile: nodes
  tags: {a: b}
  userData: hello
  context: c
  detailedMonitoring: true
  launchTemplate: mine
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: optional}
  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 20Gi, volumeType: gp3, encrypted: true}}]`},
		{name: "a family", create: `spec: {amiFamily: Gentoo}`, refused: "spec.amiFamily"},
		{name: "a field that is not known", create: `spec: {instanceProfil: a}`, refused: "instanceProfil"},
	})
}

// TestProvisionerNameLabel: the one label of that generation that templates, requirements and claims may have.
func TestProvisionerNameLabel(t *testing.T) {
	c := strictClient(t)
	pool := newPool("labelled")
	pool.Spec.Template.Labels = map[string]string{"karpenter.sh/provisioner-name": "labelled"}
	if err := c.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	claim := newClaim("labelled")
	claim.Spec.Requirements = append(claim.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
		Key: "karpenter.sh/provisioner-name", Operator: corev1.NodeSelectorOpIn, Values: []string{"labelled"},
	})
	if err := c.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

// TestConverted: what tenon convert makes of the founding documents, and of cases of our own, is taken as it is.
func TestConverted(t *testing.T) {
	var sources []convert.Source
	for _, pattern := range []string{"founding", "cases"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "internal", "convert", "testdata", pattern, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("found %d manifests (%v)", len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, convert.Source{Name: file, Text: text})
		}
	}
	l := newLab(t)
	c := client.WithFieldValidation(l.Client(scheme(t)), "Strict")
	for _, cluster := range []string{"my-cluster", ""} {
		for _, source := range sources {
			result, errs := convert.Convert([]convert.Source{source}, convert.Options{Cluster: cluster,
				ProvisionerLabel: cluster == ""})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			for i := range result.Documents {
				text, err := result.Documents[i].YAML()
				if err != nil {
					t.Fatal(err)
				}
				object := &unstructured.Unstructured{}
				if err := yaml.UnmarshalStrict(text, &object.Object); err != nil {
					t.Fatalf("%s: %v", source.Name, err)
				}
				for _, one := range eachItem(t, object) {
					if here, err := c.IsObjectNamespaced(one); err != nil {
						t.Fatal(err)
					} else if here {
						one.SetNamespace(l.Namespace())
					}
					if err := c.Create(t.Context(), one); err != nil {
						t.Errorf("%s: %s %s is refused: %v\n%s", source.Name, one.GetKind(), one.GetName(), err, text)
						continue
					}
					remove(t, c, one)
				}
			}
		}
	}
}

// eachItem is the object, or those of a list.
func eachItem(t *testing.T, object *unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	if object.GetKind() != "List" {
		return []*unstructured.Unstructured{object}
	}
	list, err := object.ToList()
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out
}
