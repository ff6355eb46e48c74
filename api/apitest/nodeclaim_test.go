package apitest

import (
	"io/fs"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
)

const nodeClaim = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  labels: {karpenter.sh/nodepool: default}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
  resources: {requests: {cpu: 1, memory: 1Gi}}
`

func TestNodeClaimSpec(t *testing.T) {
	run(t, nodeClaim, []apiCase{
		{name: "defaults", stored: `spec: {expireAfter: 720h, terminationGracePeriod: null, taints: null}`},
		{name: "no spec", create: `spec: null`, refused: "spec: Required value"},
		{name: "no resources", create: `spec: {resources: null}`},
		{name: "a resource that is a word", create: `spec: {resources: {requests: {cpu: much}}}`,
			refused: "spec.resources.requests.cpu"},
		{name: "limits are for pools", create: `spec: {resources: {limits: {cpu: 1}}}`,
			refused: `unknown field "spec.resources.limits"`},
		{name: "tied to its pool",
			create: `spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [default]}]}`},
	})
}

func TestNodeClaimRequirements(t *testing.T) {
	run(t, nodeClaim, requirementCases("spec.requirements", func(text string) string {
		return "spec: {requirements: [" + text + "]}"
	}))
}

func TestNodeClaimTaints(t *testing.T) {
	run(t, nodeClaim, taintCases("spec.taints", func(text string) string {
		return "spec: {taints: [" + text + "]}"
	}))
}

func TestNodeClaimStartupTaints(t *testing.T) {
	run(t, nodeClaim, taintCases("spec.startupTaints", func(text string) string {
		return "spec: {startupTaints: [" + text + "]}"
	}))
}

func TestNodeClaimClassAndLifetime(t *testing.T) {
	run(t, nodeClaim, classAndLifetimeCases("spec", func(text string) string { return "spec: {" + text + "}" }))
}

// TestNodeClaimConditions: a condition may lack what Karpenter's schema lets it lack.
func TestNodeClaimConditions(t *testing.T) {
	c := strictClient(t)
	object := &unstructured.Unstructured{Object: parse(t, nodeClaim)}
	object.SetName("conditions")
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, c, object) })
	const condition = `type: Launched, status: "True", lastTransitionTime: "2026-01-31T12:00:00Z"`
	for name, tc := range map[string]struct{ text, refused string }{
		"neither reason nor message": {text: condition},
		"both empty":                 {text: condition + `, reason: "", message: ""`},
		"both":                       {text: condition + `, reason: Launched, message: it is there`},
		"a reason of two words":      {condition + `, reason: not so`, "status.conditions[0].reason"},
		"no time":                    {`type: Launched, status: "True"`, "status.conditions[0].lastTransitionTime"},
	} {
		t.Run(name, func(t *testing.T) {
			object.Object["status"] = parse(t, "conditions: [{"+tc.text+"}]")
			err := c.Status().Update(t.Context(), object.DeepCopy())
			if tc.refused != "" {
				wantRefusal(t, err, tc.refused)
			} else if err != nil {
				t.Errorf("the API server refused: %v", err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestNodeClaimConditionsInEachVersion: the versions have the same schema of a condition.
func TestNodeClaimConditionsInEachVersion(t *testing.T) {
	text, err := fs.ReadFile(crds.FS(), "karpenter.sh_nodeclaims.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	for _, v := range definition.Spec.Versions {
		condition := v.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"].Items.Schema
		reason := condition.Properties["reason"]
		if want := []string{"lastTransitionTime", "status", "type"}; !slices.Equal(condition.Required, want) ||
			reason.MinLength != nil || reason.Pattern != "^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$" {
			t.Errorf("%s requires %v, and a reason %v of the form %s",
				v.Name, condition.Required, reason.MinLength, reason.Pattern)
		}
	}
	if len(definition.Spec.Versions) != 2 {
		t.Errorf("there are %d versions", len(definition.Spec.Versions))
	}
}
