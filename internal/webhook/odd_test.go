package webhook_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	awsv1beta1 "github.com/tenon-sh/tenon/api/aws/v1beta1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
)

// oddKind is a kind in one version: an object of it, and the leaves that say something odd.
type oddKind struct {
	version, other, kind string
	// object is its spec and its status, as JSON with leaves that are drawn.
	object string
}

// Parts of the objects: a leaf is text, time, expiry, duration, quantity or int, in <>.
const (
	oddTaints     = `"taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": <time>}]`
	oddConditions = `"conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": <text>,
		"lastTransitionTime": <time>, "observedGeneration": <int>}]`
	oddDisks = `"tags": {"k": <text>}, "userData": <text>, "blockDeviceMappings": [{"deviceName": <text>,
		"ebs": {"volumeSize": <quantity>, "iops": <int>, "encrypted": false}}]`
	oddClass = `"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "n"}`
)

// oddKinds are all kinds with two versions, in both.
func oddKinds() []oddKind {
	return []oddKind{
		{"karpenter.sh/v1", "v1beta1", "NodePool", `"spec": {"template": {"metadata": {"annotations": {"a": <text>}},
			"spec": {"requirements": [], ` + oddTaints + `, ` + oddClass + `, "expireAfter": <expiry>,
			"terminationGracePeriod": <duration>}}, "limits": {"nodes": <quantity>}, "replicas": <int>,
			"disruption": {"consolidateAfter": <expiry>,
			"budgets": [{"nodes": "1", "schedule": "@daily", "duration": <duration>}]}},
			"status": {` + oddConditions + `, "nodes": <int>, "resources": {"cpu": <quantity>}}`},
		{"karpenter.sh/v1beta1", "v1", "NodePool", `"spec": {"template": {"metadata": {"labels": {}},
			"spec": {"requirements": [], ` + oddTaints + `, "kubelet": {"maxPods": <int>,
			"systemReserved": {"cpu": <quantity>}}, "resources": {"requests": {"cpu": <quantity>}}}},
			"limits": {"cpu": <quantity>}, "weight": <int>, "disruption": {"consolidationPolicy": "WhenEmpty",
			"consolidateAfter": <expiry>, "expireAfter": <expiry>}},
			"status": {` + oddConditions + `, "resources": {"cpu": <quantity>}}`},
		{"karpenter.sh/v1", "v1beta1", "NodeClaim", `"spec": {"requirements": [], ` + oddTaints + `, ` + oddClass + `,
			"resources": {"requests": {"cpu": <quantity>}}, "expireAfter": <expiry>,
			"terminationGracePeriod": <duration>}, "status": {` + oddConditions + `,
			"capacity": {"cpu": <quantity>}, "lastPodEventTime": <time>, "nodeName": <text>}`},
		{"karpenter.sh/v1beta1", "v1", "NodeClaim", `"spec": {"requirements": [], ` + oddTaints + `,
			"resources": {"requests": {"cpu": <quantity>}}, "kubelet": {"podsPerCore": <int>,
			"evictionMaxPodGracePeriod": <int>}, "nodeClassRef": {"name": "n"}}, "status": {` + oddConditions + `,
			"capacity": {"cpu": <quantity>}, "nodeName": <text>}`},
		{"karpenter.k8s.aws/v1", "v1beta1", "EC2NodeClass", `"spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}],
			"role": "r", "subnetSelectorTerms": [{"tags": {"a": "b"}}], "securityGroupSelectorTerms": [{"id": "sg-1"}],
			"kubelet": {"maxPods": <int>}, "ipPrefixCount": <int>, ` + oddDisks + `}, "status": {` + oddConditions + `,
			"capacityReservations": [{"availabilityZone": "z", "endTime": <time>, "id": "cr-1", "instanceType": "t",
			"instanceMatchCriteria": "open", "ownerID": "012345678901"}]}`},
		{"karpenter.k8s.aws/v1beta1", "v1", "EC2NodeClass", `"spec": {"amiFamily": "Ubuntu", ` + oddDisks + `},
			"status": {` + oddConditions + `, "amis": [{"id": "a", "name": <text>, "requirements": []}]}`},
	}
}

// plainLeaf is what everybody can read.
func plainLeaf(leaf string) string {
	return map[string]string{"text": `"a"`, "time": `"2024-01-01T00:00:00Z"`, "expiry": `"720h"`, "duration": `"1h"`,
		"quantity": `"20Gi"`, "int": `1`}[leaf]
}

// oddLeaf is what some can't read, or would write in another way.
func oddLeaf(random *rand.Rand, leaf string) string {
	values := map[string][]string{
		"text": {`""`, `"\u00fc\u2028\ud83d\ude00"`, `"<&>\"\\"`, `"1601000001"`},
		"time": {`"2024-01-01t00:00:00z"`, `"2024-01-01T00:00:00Z"`, `"2016-12-31T23:59:60Z"`,
			`"2024-01-01T00:00:00.123456789Z"`, `"2024-01-01T00:00:00,5+01:00"`, `"2024-01-01T00:00:00x5Z"`,
			`"2024-01-01T00:00:00+99:99"`, `"0000-01-01T00:00:00+01:00"`, `"9999-12-31T23:59:59-01:00"`,
			`"0001-01-01T00:00:00Z"`, `"2024-01-01T00:00:00ZT"`},
		"expiry":   {`"Never"`, `"0s"`, `"60m"`, `"99999999999999h"`, `"-5m"`, `"1.5h"`, `"1h0m0s"`},
		"duration": {`"60m"`, `"1h0m"`, `"99999999999999h"`, `"-5m"`, `"1.5h"`, `"24h0s"`},
		"quantity": {`1000`, `"1000m"`, `"-1"`, `"1e3"`, `"1e999"`, `"1e1.5"`, `"100000000000000000000000000"`,
			`"0.5"`, `"much"`, `9223372036854775807`},
		"int": {`0`, `-1`, `110`, `2147483648`, `9223372036854775807`, `9223372036854775808`, `1e3`, `1.5`},
	}[leaf]
	return append(values, `null`, `""`)[random.IntN(len(values)+2)]
}

// draw makes an object: its leaves are plain but for one or two.
func (k oddKind) draw(w *world, random *rand.Rand, name string) *unstructured.Unstructured {
	w.Helper()
	leaf := regexp.MustCompile("<[a-z]+>")
	count, next := len(leaf.FindAllString(k.object, -1)), -1
	odd := []int{random.IntN(count), random.IntN(count)}
	object := leaf.ReplaceAllStringFunc(k.object, func(found string) string {
		if next++; slices.Contains(odd, next) {
			return oddLeaf(random, strings.Trim(found, "<>"))
		}
		return plainLeaf(strings.Trim(found, "<>"))
	})
	const frame = `{"apiVersion": %q, "kind": %q, "metadata": {"name": %q, "labels": {"karpenter.sh/nodepool": ` +
		`"p"}}, %s}`
	out := &unstructured.Unstructured{}
	if err := json.Unmarshal(fmt.Appendf(nil, frame, k.version, k.kind, name, object), &out.Object); err != nil {
		w.Fatalf("%s: %v", object, err)
	}
	return out
}

// store has the API server store an object and its status, and says whether it took it; the status it may refuse.
func (w *world) store(object *unstructured.Unstructured) bool {
	w.Helper()
	status := object.Object["status"]
	err := w.c.Create(w.ctx, object)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return false
	}
	w.must(err)
	stored := object.DeepCopy()
	object.Object["status"] = status
	err = w.c.Status().Update(w.ctx, object)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		object.Object = stored.Object
		return true
	}
	w.must(err)
	return true
}

// readInto reads an object as a Go client does.
func readInto(object *unstructured.Unstructured) error {
	into := map[string]any{
		"karpenter.sh/v1 NodePool": &v1.NodePool{}, "karpenter.sh/v1beta1 NodePool": &v1beta1.NodePool{},
		"karpenter.sh/v1 NodeClaim": &v1.NodeClaim{}, "karpenter.sh/v1beta1 NodeClaim": &v1beta1.NodeClaim{},
		"karpenter.k8s.aws/v1 EC2NodeClass":      &awsv1.EC2NodeClass{},
		"karpenter.k8s.aws/v1beta1 EC2NodeClass": &awsv1beta1.EC2NodeClass{},
	}[object.GetAPIVersion()+" "+object.GetKind()]
	text, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// touchless writes an object in a version as it was read there: nothing of it may change.
func (w *world) touchless(group, version string, object *unstructured.Unstructured) {
	w.Helper()
	read := w.read(group+"/"+version, object.GetKind(), object.GetName())
	before := read.DeepCopy()
	if err := w.c.Update(w.ctx, read); err != nil {
		if !apierrors.IsInvalid(err) { // one version may refuse what the other takes
			w.Errorf("writing %s in %s: %v", object.GetName(), version, err)
		}
		return
	}
	if read.GetResourceVersion() != before.GetResourceVersion() {
		stored, _ := json.Marshal(before.Object)
		now, _ := json.Marshal(read.Object)
		w.Errorf("writing %s in %s has changed it:\n%s\n%s", object.GetName(), version, stored, now)
	}
}

// TestOddObjects: whatever the API server stores of objects that say something odd, each can be read, written and
// listed in both versions. Definitions of an older release, which refuse less, have stored more.
func TestOddObjects(t *testing.T) {
	for name, definitions := range map[string]fs.FS{"now": crds.FS(), "older": lenient(t)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lab.InstallCRDs(definitions)
			w.start(true)
			w.serves()
			w.must(w.c.Create(w.ctx, w.parse(strings.Replace(v1Pool, "name: one", "name: p", 1))[0]))
			for i, k := range oddKinds() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				w.takes(k, random, name == "now")
			}
			w.lab.InstallCRDs(crds.FS())
			w.serves()
			for _, k := range oddKinds() {
				w.must(w.list(k.version, k.kind))
			}
		})
	}
}

// takes draws objects of a kind and looks at those that the API server takes. readable says that Go types must be able
// to read them.
func (w *world) takes(k oddKind, random *rand.Rand, readable bool) {
	w.Helper()
	const drawn = 40
	group, version, _ := strings.Cut(k.version, "/")
	taken := 0
	for i := range drawn {
		object := k.draw(w, random, fmt.Sprintf("%s-%s-%d", strings.ToLower(k.kind), version, i))
		if !w.store(object) {
			continue
		}
		taken++
		if err := readInto(object); readable && err != nil {
			w.Errorf("%s is stored, and no Go client can read it: %v", object.GetName(), err)
		}
		w.touchless(group, version, object)
		w.touchless(group, k.other, object)
	}
	for _, version := range []string{version, k.other} {
		if err := w.list(group+"/"+version, k.kind); err != nil {
			w.Errorf("listing %ss in %s: %v", k.kind, version, err)
		}
	}
	w.Logf("%s %s: %d of %d were taken", k.version, k.kind, taken, drawn)
	if taken < drawn/4 {
		w.Errorf("only %d of %d %ss of %s were taken", taken, drawn, k.kind, k.version)
	}
}

// lenient are our definitions without what they check of texts and numbers.
func lenient(t *testing.T) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	files, err := fs.Glob(crds.FS(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(crds.FS(), file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		for i := range definition.Spec.Versions {
			loosen(definition.Spec.Versions[i].Schema.OpenAPIV3Schema)
		}
		tree := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": definition.Name}, "spec": definition.Spec}
		if text, err = yaml.Marshal(tree); err != nil {
			t.Fatal(err)
		}
		out[file] = &fstest.MapFile{Data: text}
	}
	return out
}

func loosen(schema *apiextensionsv1.JSONSchemaProps) {
	schema.Pattern, schema.Format, schema.XValidations = "", "", nil
	schema.Minimum, schema.Maximum, schema.MinLength, schema.MaxLength = nil, nil, nil, nil
	for key, inner := range schema.Properties {
		loosen(&inner)
		schema.Properties[key] = inner
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		loosen(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		loosen(schema.AdditionalProperties.Schema)
	}
}
