package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// older is a cluster with NodePools that v1beta1 has stored. A list is given in pages of two, and the rest of a list is
// forgotten as soon as an object is rewritten, as it is after five minutes by an API server.
type older struct {
	client.Client
	names []string
	// stubborn are refused.
	stubborn map[string]bool
	patched  []string
}

func newOlder(t *testing.T, names ...string) *older {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := &older{names: names, stubborn: map[string]bool{}}
	definition := poolsCRD("v1", "v1beta1")
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{}}}
	definition.Status.StoredVersions = []string{"v1beta1", "v1"}
	o.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(definition).WithStatusSubresource(definition).
		WithInterceptorFuncs(interceptor.Funcs{List: o.list, Patch: o.patch}).Build()
	return o
}

func (o *older) list(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	from, patched := 0, len(o.patched)
	if options.Continue != "" {
		if _, err := fmt.Sscanf(options.Continue, "%d after %d", &from, &patched); err != nil {
			return err
		}
	}
	if patched != len(o.patched) {
		return apierrors.NewResourceExpired("the continue token is too old")
	}
	out := list.(*metav1.PartialObjectMetadataList)
	end := min(from+2, len(o.names))
	for _, name := range o.names[from:end] {
		out.Items = append(out.Items,
			metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
	}
	if out.Continue = ""; end < len(o.names) {
		out.Continue = fmt.Sprintf("%d after %d", end, patched)
	}
	return nil
}

func (o *older) patch(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch,
	_ ...client.PatchOption) error {
	o.patched = append(o.patched, object.GetName())
	if o.stubborn[object.GetName()] {
		return errors.New("a policy says no")
	}
	return nil
}

func (o *older) stored(t *testing.T) []string {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := o.Get(t.Context(), client.ObjectKey{Name: "nodepools.karpenter.sh"}, &definition); err != nil {
		t.Fatal(err)
	}
	return definition.Status.StoredVersions
}

// TestOneObjectStopsNoOther: what can't be rewritten is named, the others are rewritten, and only it is tried again.
func TestOneObjectStopsNoOther(t *testing.T) {
	o := newOlder(t, "a", "b", "c", "d", "e")
	o.stubborn["b"] = true
	m := &migration{client: o, log: logr.Discard(), done: map[string]progress{}}
	err := m.all(t.Context())
	if err == nil || !strings.Contains(err.Error(),
		"1 of 5 can't be, and the others are; the first one: rewriting NodePool b: a policy says no") {
		t.Errorf("the error is %v", err)
	}
	if !slices.Equal(o.patched, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("rewritten were %v", o.patched)
	}
	if got := o.stored(t); len(got) != 2 {
		t.Errorf("with an object left, stored are %v", got)
	}
	o.patched, o.stubborn = nil, map[string]bool{}
	if err := m.all(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.Equal(o.patched, []string{"b"}) || !slices.Equal(o.stored(t), []string{"v1"}) {
		t.Errorf("the second time rewritten were %v, stored are %v", o.patched, o.stored(t))
	}
}

// TestDefinitionChangedMeanwhile: what was rewritten before the definition changed may be of the older version again.
func TestDefinitionChangedMeanwhile(t *testing.T) {
	o := newOlder(t, "a", "b")
	before := progress{generation: 7, objects: map[types.UID]bool{"a": true, "b": true}}
	m := &migration{client: o, log: logr.Discard(), done: map[string]progress{"nodepools.karpenter.sh": before}}
	if err := m.all(t.Context()); err != nil {
		t.Error(err)
	}
	if !slices.Equal(o.patched, []string{"a", "b"}) {
		t.Errorf("rewritten were %v", o.patched)
	}
}
