package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	crds "github.com/tenon-sh/tenon/charts/karpenter-crd"
	"github.com/tenon-sh/tenon/internal/lab/labtest"
	"github.com/tenon-sh/tenon/internal/webhook"
)

// TestFoundingManifests: each applies as it is written, reads back in v1beta1 as it was written, and says the same in
// v1.
func TestFoundingManifests(t *testing.T) {
	w := newWorld(t)
	w.start(true)
	w.serves()
	for file, objects := range w.founding() {
		for _, object := range objects {
			t.Run(file+"/"+object.GetKind(), func(t *testing.T) {
				w := &world{T: t, lab: w.lab, c: w.c, ctx: t.Context()}
				w.must(w.c.Create(w.ctx, object.DeepCopy()))
				defer func() { w.must(w.c.Delete(w.ctx, object.DeepCopy())) }()
				old := w.read(object.GetAPIVersion(), object.GetKind(), object.GetName())
				if missing := lacks(object.Object["spec"], old.Object["spec"]); missing != nil {
					t.Errorf("read back in v1beta1 it lacks %v:\n%v", missing, old.Object["spec"])
				}
				group := object.GroupVersionKind().Group
				stored := w.read(group+"/v1", object.GetKind(), object.GetName())
				// What is stored is valid in v1: a change there is accepted even where it is checked as a whole.
				stored.SetResourceVersion("")
				stored.SetUID("")
				stored.SetName(object.GetName() + "-again")
				w.must(w.c.Create(w.ctx, stored, client.DryRunAll))
			})
		}
	}
}

// lacks returns what of the first is missing in the second.
func lacks(want, have any) []any {
	a, ok := want.(map[string]any)
	if !ok {
		// What is read from YAML has other types of numbers.
		if reflect.DeepEqual(want, have) || fmt.Sprint(want) == fmt.Sprint(have) {
			return nil
		}
		return []any{want}
	}
	b, _ := have.(map[string]any)
	var out []any
	for key, value := range a {
		if missing := lacks(value, b[key]); missing != nil {
			out = append(append(out, key), missing...)
		}
	}
	return out
}

// TestQuirksInV1: what v1beta1 leaves unsaid is said in v1.
func TestQuirksInV1(t *testing.T) {
	w := newWorld(t)
	w.start(true)
	w.serves()
	for _, objects := range w.founding() {
		for _, object := range objects {
			w.must(client.IgnoreAlreadyExists(w.c.Create(w.ctx, object)))
		}
	}
	pool := func(name string, way ...string) string {
		return field(w.read("karpenter.sh/v1", "NodePool", name), way...)
	}
	class := func(name string, way ...string) string {
		return field(w.read("karpenter.k8s.aws/v1", "EC2NodeClass", name), way...)
	}
	ref := []string{"spec", "template", "spec", "nodeClassRef"}
	for _, tc := range []struct{ got, want string }{
		{pool("multi-zone", ref...), "map[group:karpenter.k8s.aws kind:EC2NodeClass name:default]"},
		{pool("default", "spec", "limits", "cpu"), "1000"},
		{pool("default", "spec", "disruption", "consolidationPolicy"), "WhenEmpty"},
		{pool("default", "spec", "disruption", "consolidateAfter"), "30s"},
		{pool("spot-nodes", "spec", "disruption", "consolidationPolicy"), "WhenEmpty"},
		{pool("spot-nodes", "spec", "disruption", "consolidateAfter"), "0s"},
		{pool("multi-zone", "spec", "template", "spec", "expireAfter"), "720h"},
		{class("gpu-nodeclass", "spec", "role"), "KarpenterNodeRole-${CLUSTER_NAME}"},
		{class("gpu-nodeclass", "spec", "amiSelectorTerms"), "[map[alias:al2@latest]]"},
		{class("gpu-nodeclass", "spec", "subnetSelectorTerms"),
			"[map[tags:map[karpenter.sh/discovery:${CLUSTER_NAME}]]]"},
		{class("gpu-nodeclass", "spec", "securityGroupSelectorTerms"),
			"[map[tags:map[karpenter.sh/discovery:${CLUSTER_NAME}]]]"},
		{class("default", "spec", "subnetSelectorTerms"), "[map[tags:map[karpenter.sh/discovery:my-cluster]]]"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
}

// TestBeforeAController: as they are installed, the definitions don't serve v1beta1, because nobody could convert it.
func TestBeforeAController(t *testing.T) {
	w := newWorld(t)
	object := w.founding()["003-11-nodepool.yaml"][0]
	if err := w.c.Create(w.ctx, object); err == nil {
		t.Error("v1beta1 was stored without a controller")
	}
}

const v1Pool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: one}
spec:
  template:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      terminationGracePeriod: 1h
  disruption: {consolidationPolicy: Balanced, budgets: [{nodes: "1", reasons: [Drifted]}]}
`

// TestEditInTheOlderVersion: a client of v1beta1 changes one field, and what only v1 can say stays.
func TestEditInTheOlderVersion(t *testing.T) {
	w := newWorld(t)
	w.start(true)
	w.serves()
	w.must(w.c.Create(w.ctx, w.parse(v1Pool)[0]))
	old := w.read("karpenter.sh/v1beta1", "NodePool", "one")
	w.must(unstructured.SetNestedField(old.Object, int64(7), "spec", "weight"))
	w.must(w.c.Update(w.ctx, old))
	stored := w.read("karpenter.sh/v1", "NodePool", "one")
	for _, tc := range []struct{ got, want string }{
		{field(stored, "spec", "weight"), "7"},
		{field(stored, "spec", "template", "spec", "terminationGracePeriod"), "1h"},
		{field(stored, "spec", "disruption", "consolidationPolicy"), "Balanced"},
		{field(stored, "spec", "disruption", "budgets"), "[map[nodes:1 reasons:[Drifted]]]"},
		{field(stored, "metadata", "annotations"), ""},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

// TestWebhookDown: v1 needs no webhook, v1beta1 fails with a word about it, and after a restart it works again.
func TestWebhookDown(t *testing.T) {
	w := newWorld(t)
	first := w.start(true)
	w.serves()
	first.stop()
	w.eventually(func() error {
		if w.list("karpenter.sh/v1beta1", "NodePool") != nil {
			return nil
		}
		if err := w.c.Create(w.ctx, w.parse(v1Pool)[0]); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		return errors.New("v1beta1 is converted without a webhook")
	})
	w.must(client.IgnoreAlreadyExists(w.c.Create(w.ctx, w.parse(v1Pool)[0])))
	stored := w.read("karpenter.sh/v1", "NodePool", "one")
	w.must(unstructured.SetNestedField(stored.Object, int64(3), "spec", "weight"))
	w.must(w.c.Update(w.ctx, stored))
	before, err := w.certificate()
	w.must(err)
	w.start(true)
	w.serves()
	if got := field(w.read("karpenter.sh/v1beta1", "NodePool", "one"), "spec", "weight"); got != "3" {
		t.Errorf("the weight is %s", got)
	}
	after, err := w.certificate()
	w.must(err)
	if !reflect.DeepEqual(before, after) {
		t.Error("the restart has changed the certificate")
	}
}

// TestTwoReplicas: both use one certificate, one of them is asked, and when that ends the other is.
func TestTwoReplicas(t *testing.T) {
	w := newWorld(t)
	first := w.start(true)
	second := w.start(false)
	w.serves()
	if got := w.askedAt(); got != first.url {
		t.Errorf("the API server asks %s, not %s, which leads", got, first.url)
	}
	first.stop()
	w.eventually(func() error {
		if got := w.askedAt(); got != second.url {
			return fmt.Errorf("the API server asks %s, want %s", got, second.url)
		}
		return nil
	})
	w.serves()
}

// TestBothAtOnce: two replicas that find nothing agree on one certificate.
func TestBothAtOnce(t *testing.T) {
	w := newWorld(t)
	both := make(chan struct{}, 2)
	for range 2 {
		go func() { w.start(false); both <- struct{}{} }()
	}
	<-both
	<-both
	w.serves()
}

// TestRotation: a certificate, and even an authority, that is gone is replaced, and the API server trusts the new one.
func TestRotation(t *testing.T) {
	w := newWorld(t)
	w.start(true)
	w.serves()
	for _, keys := range [][]string{{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}, {"ca.crt", "ca.key"}} {
		var secret corev1.Secret
		w.must(w.c.Get(w.ctx, w.secret(), &secret))
		before := secret.DeepCopy().Data
		for _, key := range keys {
			delete(secret.Data, key)
		}
		w.must(w.c.Update(w.ctx, &secret))
		w.touch()
		w.eventually(func() error {
			after, err := w.certificate()
			if err == nil && (len(after[keys[0]]) == 0 || string(after[keys[0]]) == string(before[keys[0]])) {
				err = fmt.Errorf("%s is not new", keys[0])
			}
			return err
		})
		w.serves()
	}
}

// touch changes a definition in something that does not matter, which makes replicas look.
func (w *world) touch() {
	w.Helper()
	definition := w.definition("nodepools.karpenter.sh")
	w.must(w.c.Patch(w.ctx, definition, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, definition.ResourceVersion))))
}

// TestDefinitionsAppliedAgain: whoever applies the chart's definitions again turns v1beta1 off, and the controller
// turns it on.
func TestDefinitionsAppliedAgain(t *testing.T) {
	w := newWorld(t)
	w.start(true)
	w.serves()
	w.lab.InstallCRDs(crds.FS())
	w.eventually(func() error {
		for _, version := range w.definition("nodepools.karpenter.sh").Spec.Versions {
			if !version.Served {
				return fmt.Errorf("%s is not served", version.Name)
			}
		}
		return nil
	})
	w.serves()
}

// TestMigration: objects that v1beta1 has stored, as in a cluster of an old Karpenter, are stored as v1, after which
// v1beta1 can go.
func TestMigration(t *testing.T) {
	l := labtest.New(t)
	w := open(t, l)
	l.InstallCRDs(older(t))
	names := map[string]string{}
	for _, objects := range w.founding() {
		for _, object := range objects {
			w.eventually(func() error { return client.IgnoreAlreadyExists(w.c.Create(w.ctx, object.DeepCopy())) })
			names[object.GetName()] = object.GetKind()
		}
	}
	claim := w.parse(`apiVersion: karpenter.sh/v1beta1
kind: NodeClaim
metadata: {name: one, labels: {karpenter.sh/nodepool: multi-zone}}
spec: {requirements: [], nodeClassRef: {name: default}}
`)[0]
	w.must(w.c.Create(w.ctx, claim))
	pool := w.read("karpenter.sh/v1beta1", "NodePool", "multi-zone")
	w.must(unstructured.SetNestedField(pool.Object, "48h", "spec", "disruption", "expireAfter"))
	w.must(w.c.Update(w.ctx, pool))

	l.InstallCRDs(crds.FS())
	replica := w.start(true)
	w.serves()
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- replica.Migrate(ctx) }()
	w.storesV1()
	// A definition that somebody restores with older objects is found without a restart.
	pools := w.definition("nodepools.karpenter.sh")
	pools.Status.StoredVersions = []string{"v1beta1", "v1"}
	w.must(w.c.Status().Update(w.ctx, pools))
	w.storesV1()
	stop()
	w.must(<-ended)
	replica.stop()
	w.onlyV1()
	for _, tc := range []struct{ got, want string }{
		{field(w.read("karpenter.sh/v1", "NodePool", "gpu-nodes"), "spec", "template", "spec", "nodeClassRef", "group"),
			"karpenter.k8s.aws"},
		{field(w.read("karpenter.sh/v1", "NodePool", "default"), "spec", "disruption", "consolidationPolicy"),
			"WhenEmpty"},
		{field(w.read("karpenter.sh/v1", "NodeClaim", "one"), "spec", "expireAfter"), "48h"},
		{field(w.read("karpenter.k8s.aws/v1", "EC2NodeClass", "default"), "spec", "amiSelectorTerms"),
			"[map[alias:al2@latest]]"},
	} {
		if tc.got != tc.want {
			t.Errorf("without v1beta1 there is %q, want %q", tc.got, tc.want)
		}
	}
}

// storesV1 waits until no other version is stored.
func (w *world) storesV1() {
	w.Helper()
	for _, name := range webhook.Definitions() {
		w.eventually(func() error {
			if got := w.definition(name).Status.StoredVersions; !reflect.DeepEqual(got, []string{"v1"}) {
				return fmt.Errorf("%s has stored %v", name, got)
			}
			return nil
		})
	}
}

// older are our definitions with v1beta1 as the version that is stored.
func older(t *testing.T) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	for _, file := range []string{"karpenter.sh_nodepools.yaml", "karpenter.sh_nodeclaims.yaml",
		"karpenter.k8s.aws_ec2nodeclasses.yaml"} {
		text, err := crds.FS().(interface{ ReadFile(string) ([]byte, error) }).ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		for i := range definition.Spec.Versions {
			v := &definition.Spec.Versions[i]
			v.Served, v.Storage = v.Name == "v1beta1", v.Name == "v1beta1"
		}
		definition.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		definition.ManagedFields, definition.CreationTimestamp = nil, metav1.Time{}
		if text, err = yaml.Marshal(definition); err != nil {
			t.Fatal(err)
		}
		out[file] = &fstest.MapFile{Data: text}
	}
	return out
}

// onlyV1 takes v1beta1 out of the definitions.
func (w *world) onlyV1() {
	w.Helper()
	for _, name := range webhook.Definitions() {
		definition := w.definition(name)
		definition.Spec.Versions = definition.Spec.Versions[:1]
		definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		w.must(w.c.Update(w.ctx, definition))
	}
}
