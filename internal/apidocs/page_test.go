package main

import (
	"strings"
	"testing"
	"testing/fstest"

	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, shortNames: [wd]}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    deprecationWarning: use v1
    schema:
      openAPIV3Schema:
        type: object
        description: Widget of old.
        properties:
          spec: {type: object, properties: {old: {type: boolean}}}
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Age, jsonPath: .metadata.creationTimestamp, type: date}
    - {name: CPU, jsonPath: .spec.cpu, type: string, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        description: Widget is a thing. It has more to say.
        properties:
          apiVersion: {type: string}
          spec:
            type: object
            description: spec is asked for.
            required: [name, size]
            x-kubernetes-validations:
            - {rule: "true", message: name goes with size.}
            properties:
              name:
                {type: string, pattern: "^(a|b)$", minLength: 1, description: "name of it,\n  one | two <three>"}
              size: {type: integer, minimum: 1, maximum: 9, default: 3}
              cpu:
                x-kubernetes-int-or-string: true
                pattern: "^[KMGTPE]$"
                anyOf: [{type: integer}, {type: string}]
              parts:
                type: array
                maxItems: 4
                items:
                  type: object
                  x-kubernetes-validations:
                  - {rule: "self.kind != ''", message: a part has a kind}
                  properties:
                    kind: {type: string, enum: [Left, Right]}
              tags: {type: object, additionalProperties: {type: string, maxLength: 5}}
          status:
            type: object
            properties:
              since: {type: string, format: date-time}
              conditions:
                type: array
                items:
                  type: object
                  properties: {lastTransitionTime: {type: string}, reason: {type: string, maxLength: 7},
                    type: {type: string}}
`

func TestPageTellsEveryField(t *testing.T) {
	definitions, err := read(fstest.MapFS{"a.yaml": {Data: []byte(definition)}})
	if err != nil {
		t.Fatal(err)
	}
	got := page(definitions[0])
	for _, want := range []string{
		"# Widget\n\nGroup `example.com`, resource `widgets` (`wd`). It is in a namespace.\n",
		"## v1\n\nWidget is a thing. It has more to say. Objects are stored in this version.\n\n`kubectl get` shows " +
			"Age, CPU (with `-o wide`).\n",
		"### spec of v1\n\nspec is asked for.\n\nRule: name goes with size.\n",
		"| `spec.cpu` | quantity |  |  |  |\n",
		"| `spec.name` | string |  | required; matches `^(a\\|b)$`; not empty | name of it, one \\| two &lt;three> |\n",
		"| `spec.parts` | list of objects |  | at most 4 items; each: a part has a kind |  |\n| `spec.parts[].kind` " +
			"| string |  | one of `Left`, `Right` |  |\n",
		"| `spec.size` | integer | `3` | 1 to 9 |  |\n",
		"| `spec.tags` | map of strings |  | each: at most 5 characters |  |\n",
		"| `status.conditions` | list of conditions |  |  |  |\n| `status.since` | time |  |  |  |\n",
		"## v1beta1\n\nWidget of old. It is deprecated: use v1.\n",
		"| `spec.old` | boolean |  |  |  |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks\n%s", want)
		}
	}
	for _, unwanted := range []string{"`apiVersion`", "`spec.metadata`", "`status.conditions[]",
		"| `spec.size` | integer | `3` | required"} {
		if strings.Contains(got, unwanted) {
			t.Errorf("the page has %s", unwanted)
		}
	}
	if strings.Index(got, "## v1\n") > strings.Index(got, "## v1beta1\n") {
		t.Error("the version that is stored does not come first")
	}
	if want := "| [Widget](widget.md) | `example.com` | v1beta1, v1 | Widget is a thing. |\n"; !strings.Contains(
		index(definitions), want) {
		t.Errorf("the index lacks\n%s", want)
	}
	if t.Failed() {
		t.Log(got)
	}
}

// TestEveryFieldHasAMeaning: a field without a comment in the Go types would have an empty cell.
func TestEveryFieldHasAMeaning(t *testing.T) {
	definitions, err := read(crds.FS())
	if err != nil {
		t.Fatal(err)
	}
	if len(definitions) < 4 {
		t.Fatalf("%d kinds", len(definitions))
	}
	for _, d := range definitions {
		for _, line := range strings.Split(page(d), "\n") {
			if strings.HasPrefix(line, "| `") && strings.HasSuffix(line, "|  |") {
				t.Errorf("%s: no meaning in %s", d.Spec.Names.Kind, line)
			}
		}
	}
}
