package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// converted converts a manifest.
func converted(t *testing.T, manifest, version string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	made, err := testConverter(t).convert(t.Context(), raw, version)
	if err != nil {
		t.Fatal(err)
	}
	out, err := parse(made)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// at is the text of what is at the end of a way; the items of a list have numbers.
func at(object any, way string) string {
	for key := range strings.FieldsSeq(way) {
		switch o := object.(type) {
		case map[string]any:
			object = o[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(o) {
				return ""
			}
			object = o[i]
		default:
			return ""
		}
	}
	if object == nil {
		return ""
	}
	return fmt.Sprint(object)
}

const (
	hubPool = `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a}, spec: {template: {spec: {
  requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}, expireAfter: %s,
  terminationGracePeriod: %s,
  taints: [{key: k, effect: NoSchedule, timeAdded: %s}]}}},
  status: {nodes: 0, conditions: [{type: Ready, lastTransitionTime: %s}]}}`
	oldPool = `{apiVersion: karpenter.sh/v1beta1, kind: NodePool, metadata: {name: a}, spec: {limits: {cpu: %s},
  disruption: {expireAfter: %s}, template: {spec: {requirements: [], kubelet: {maxPods: %s},
  taints: [{key: k, effect: NoSchedule, timeAdded: %s}]}}}}`
	oldClaim = `{apiVersion: karpenter.sh/v1beta1, kind: NodeClaim, metadata: {name: a,
  labels: {karpenter.sh/nodepool: %s}}, spec: {requirements: [],
  nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: a}}}`
	small = `2024-01-01t00:00:00z`
	huge  = `99999999999999h`
)

// TestUnreadableLeavesMove: what no type can read stands in the other version where a readable value would.
func TestUnreadableLeavesMove(t *testing.T) {
	old := converted(t, fmt.Sprintf(hubPool, huge, huge, small, small), "karpenter.sh/v1beta1")
	hub := converted(t, fmt.Sprintf(oldPool, "much", huge, "3000000000", small), "karpenter.sh/v1")
	for _, tc := range []struct{ got, want string }{
		{at(old, "spec disruption expireAfter"), huge},
		{at(old, "spec template spec taints 0 timeAdded"), small},
		{at(old, "status conditions 0 lastTransitionTime"), small},
		{at(hub, "spec template spec expireAfter"), huge},
		{at(hub, "spec template spec taints 0 timeAdded"), small},
		{at(hub, "spec limits cpu"), "much"},
		{at(hub, "metadata annotations compatibility.karpenter.sh/v1beta1-kubelet-conversion"),
			`{"maxPods":3000000000}`},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

// TestEditBesideUnreadable: a client of v1beta1 changes one field, and what v1beta1 can't even read stays.
func TestEditBesideUnreadable(t *testing.T) {
	old := converted(t, fmt.Sprintf(hubPool, "1h", huge, small, small), "karpenter.sh/v1beta1")
	old["spec"].(map[string]any)["weight"] = json.Number("7")
	old["spec"].(map[string]any)["disruption"].(map[string]any)["expireAfter"] = "2h"
	text, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	hub := converted(t, string(text), "karpenter.sh/v1")
	for _, tc := range []struct{ got, want string }{
		{at(hub, "spec weight"), "7"},
		{at(hub, "spec template spec expireAfter"), "2h"},
		{at(hub, "spec template spec terminationGracePeriod"), huge},
		{at(hub, "spec template spec taints 0 timeAdded"), small},
		{at(hub, "metadata annotations"), ""},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

// TestFilledInExpiryIsNotNoted: what a v1beta1 claim gets from its pool does not show in v1beta1; what its pool does
// not say does.
func TestFilledInExpiryIsNotNoted(t *testing.T) {
	for pool, want := range map[string]string{"a": "720h", "b": "Never"} {
		hub := converted(t, fmt.Sprintf(oldClaim, pool), "karpenter.sh/v1")
		if got := at(hub, "spec expireAfter"); got != want {
			t.Errorf("a claim of pool %s expires after %q, want %q", pool, got, want)
		}
		if got := at(hub, "metadata annotations"); got != "" {
			t.Errorf("a claim of pool %s that was filled in notes %s", pool, got)
		}
		for _, tc := range []struct{ expiry, want string }{{want, ""},
			{"48h", `map[tenon.sh/v1-only:[{"at":["spec","expireAfter"],"is":"48h"}]]`}} {
			hub["spec"].(map[string]any)["expireAfter"] = tc.expiry
			text, err := json.Marshal(hub)
			if err != nil {
				t.Fatal(err)
			}
			if got := at(converted(t, string(text), "karpenter.sh/v1beta1"), "metadata annotations"); got != tc.want {
				t.Errorf("with %s, pool %s: annotations %s, want %s", tc.expiry, pool, got, tc.want)
			}
		}
	}
}

// TestUnknownExpiry: a v1 claim can be read in v1beta1 even if nobody can say what its pool does.
func TestUnknownExpiry(t *testing.T) {
	const claim = `{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: a,
  labels: {karpenter.sh/nodepool: broken}}, spec: {requirements: [], expireAfter: 1h}}`
	got := at(converted(t, claim, "karpenter.sh/v1beta1"), "metadata annotations tenon.sh/v1-only")
	if !strings.Contains(got, `"1h"`) {
		t.Errorf("noted is %s", got)
	}
}

// TestExpiryOfAnOddPool: a pool of which something can't be read has claims all the same.
func TestExpiryOfAnOddPool(t *testing.T) {
	for text, want := range map[string]string{"1h": "1h", "Never": "Never", huge: "Never"} {
		pool := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, hubPool, text, huge, small, small), &pool.Object); err != nil {
			t.Fatal(err)
		}
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object,
				_ ...client.GetOption) error {
				u, ok := into.(*unstructured.Unstructured)
				if !ok {
					return errors.New("the pool has a time that its type can't read")
				}
				u.Object = pool.Object
				return nil
			},
		}).Build()
		if got, err := expiryFrom(c)(t.Context(), "a"); err != nil || got.String() != want {
			t.Errorf("with %s: %s %v", text, got, err)
		}
	}
}

// TestOrdinaryObjectsNeedNoTexts: what people write needs no annotation about how it was written.
func TestOrdinaryObjectsNeedNoTexts(t *testing.T) {
	files, err := filepath.Glob("testdata/founding/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	manifests := []string{fmt.Sprintf(hubPool, "720h", "1h0m0s", `"2024-01-01T00:00:00Z"`, `"2024-01-01T00:00:00Z"`),
		fmt.Sprintf(oldClaim, "a"), fmt.Sprintf(oldPool, "1000", "720h", "20", `"2024-01-01T00:00:00Z"`)}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, strings.Split(string(text), "\n---\n")...)
	}
	for _, manifest := range manifests {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
			t.Fatal(err)
		}
		kind, to := kindOf(object), "v1"
		if kind.Version == "v1" {
			to = "v1beta1"
		}
		if spec := object["spec"].(map[string]any); kind.Kind == "NodePool" && spec["disruption"] == nil {
			spec["disruption"] = map[string]any{"budgets": []any{}} // the API server fills it in
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		made := converted(t, string(text), kind.Group+"/"+to)
		if got := at(made, "metadata annotations "+noteOn(kindOf(made))); strings.Contains(got, `"text"`) {
			t.Errorf("%s\nhas a note about its text: %s", text, got)
		}
	}
}

// TestBrokenTexts: an annotation that somebody wrote changes no metadata and makes no object one that clients can't
// read.
func TestBrokenTexts(t *testing.T) {
	for _, note := range []string{
		`[{"at":["metadata","name"],"shown":"a","is":"b","text":true}]`,
		`[{"at":["metadata"],"shown":{},"is":{},"text":true}]`,
		`[{"at":["metadata","annotations","x"],"is":5,"text":true}]`,
		`[{"at":["metadata","annotations","x"],"null":true,"text":true}]`,
		`[{"at":["metadata","annotations"],"is":{"x":null},"text":true}]`,
		`[{"at":["metadata","annotations"],"is":"x","text":true}]`,
		`[{"at":["kind"],"shown":"NodePool","is":"Pod","text":true}]`,
		`[{"at":["spec","weight"],"shown":7,"is":{},"text":true}]`,
		`[{"at":["spec","template","spec","taints"],"is":"x","text":true}]`,
		`[{"at":["spec","template","spec","taints"],"is":[5],"text":true}]`,
		`[{"at":["spec","limits"],"is":{"cpu":{}},"text":true}]`, `[{"at":["spec","nothing"],"is":5,"text":true}]`,
		`[{"at":["spec","limits","cpu"],"item":true,"is":5,"text":true}]`,
		`[{"at":[],"is":5,"text":true}]`, `[{"text":true}]`,
	} {
		const pool = `{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"a"%s},` +
			`"spec":{"weight":7,"template":{"spec":{"requirements":[]}}}}`
		text, err := json.Marshal(map[string]string{"tenon.sh/v1-only": note})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprint(converted(t, fmt.Sprintf(pool, ""), "karpenter.sh/v1"))
		annotated := fmt.Sprintf(pool, `,"annotations":`+string(text))
		if got := fmt.Sprint(converted(t, annotated, "karpenter.sh/v1")); got != want {
			t.Errorf("%s made of it\n%s, want\n%s", note, got, want)
		}
	}
}
