package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// told remembers events.
type told []string

func (t *told) Eventf(about, _ runtime.Object, _, reason, _, note string, args ...any) {
	*t = append(*t, reason+": "+fmt.Sprintf(note, args...))
}

// stage is one definition, and a keeper of it whose clock and neighbours are made up.
type stage struct {
	*testing.T
	*definitions
	clock   time.Time
	patches int
	told    told
	alive   map[string]bool
}

// poolsCRD is a definition of NodePools with these versions; the first is stored.
func poolsCRD(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "nodepools.karpenter.sh"}}
	out.Spec.Group, out.Spec.Names.Kind, out.Spec.Names.ListKind = "karpenter.sh", "NodePool", "NodePoolList"
	for i, version := range versions {
		out.Spec.Versions = append(out.Spec.Versions,
			apiextensionsv1.CustomResourceDefinitionVersion{Name: version, Served: i == 0, Storage: i == 0})
	}
	return out
}

func newStage(t *testing.T, leads bool, definition *apiextensionsv1.CustomResourceDefinition) *stage {
	t.Helper()
	s := &stage{T: t, clock: time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), alive: map[string]bool{}}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(definition).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			s.patches++
			return c.Patch(ctx, o, p, opts...)
		}}).Build()
	service := &apiextensionsv1.ServiceReference{Namespace: "karpenter", Name: "tenon", Port: new(int32(8443))}
	s.definitions = &definitions{client: c, address: Address{Service: service}, leads: func() bool { return leads },
		answers: func(host string) bool { return s.alive[host] }, now: func() time.Time { return s.clock },
		teller: teller{log: logr.Discard(), events: &s.told}, contests: map[string]*contest{}}
	return s
}

func (s *stage) look() time.Duration {
	s.Helper()
	again, err := s.point(s.Context(), []byte("trusted"))
	if err != nil {
		s.Fatal(err)
	}
	return again
}

func (s *stage) read() *apiextensionsv1.CustomResourceDefinition {
	s.Helper()
	out := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.client.Get(s.Context(), client.ObjectKey{Name: "nodepools.karpenter.sh"}, out); err != nil {
		s.Fatal(err)
	}
	return out
}

// change is what another writer does.
func (s *stage) change(how func(*apiextensionsv1.CustomResourceDefinition)) {
	s.Helper()
	definition := s.read()
	how(definition)
	if err := s.client.Update(s.Context(), definition); err != nil {
		s.Fatal(err)
	}
}

// TestTwoWriters: who answers every change at once is answered less and less often, and people are told of which field.
func TestTwoWriters(t *testing.T) {
	for field, undo := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"spec.versions[v1beta1].served": func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[1].Served = false
		},
		"spec.conversion.strategy": func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		},
		"spec.conversion.webhook.clientConfig.caBundle": func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("theirs")
		},
		"spec.conversion.webhook.clientConfig.service": func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Conversion.Webhook.ClientConfig.Service.Name = "karpenter"
		},
	} {
		s := newStage(t, true, poolsCRD("v1", "v1beta1"))
		s.look()
		for end := s.clock.Add(time.Hour); s.clock.Before(end); {
			s.change(undo)
			// The watch shows each change at once, so it is looked at without a pause, too.
			s.look()
			s.clock = s.clock.Add(max(s.look(), time.Second))
		}
		if s.patches < 12 || s.patches > 30 {
			t.Errorf("%s: %d patches within an hour", field, s.patches)
		}
		if len(s.told) == 0 || !strings.HasPrefix(s.told[0], EventContested+": "+field+" was changed again by ") {
			t.Errorf("%s: told is %q", field, s.told)
		}
		s.change(undo)
		s.clock = s.clock.Add(longestPause)
		if s.look(); len(differences(s.read(), 1, s.wanted([]byte("trusted")))) > 0 {
			t.Errorf("%s: after the longest pause it is not put right: %+v", field, s.read().Spec)
		}
	}
}

// TestTwoWritersAndOlderObjects: while objects are stored as v1beta1, who changes a definition is answered within the
// first pause each time, because fields are dropped until then. People are not told more than once a minute.
func TestTwoWritersAndOlderObjects(t *testing.T) {
	definition := poolsCRD("v1", "v1beta1")
	definition.Status.StoredVersions = []string{"v1beta1", "v1"}
	s := newStage(t, true, definition)
	s.look()
	for range 180 {
		s.change(func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		})
		if wait := s.look(); wait > firstPause {
			t.Fatalf("after %d changes the next one waits %v", s.patches, wait)
		}
		s.clock = s.clock.Add(firstPause)
		s.look()
		if clientConfig(s.read()) == nil {
			t.Fatalf("after %d changes nobody converts", s.patches)
		}
	}
	if len(s.told) != 3 || !strings.Contains(s.told[2], "the next time that takes 1s.") {
		t.Errorf("told within three minutes is %q", s.told)
	}
}

// TestDefinitionsAppliedOnce: who applies the definitions now and then is answered at once, and nobody is told.
func TestDefinitionsAppliedOnce(t *testing.T) {
	s := newStage(t, true, poolsCRD("v1", "v1beta1"))
	for range 5 {
		s.look()
		if !s.read().Spec.Versions[1].Served {
			t.Fatal("v1beta1 is not served")
		}
		s.clock = s.clock.Add(remembers + time.Minute)
		s.change(func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[1].Served = false })
	}
	if len(s.told) > 0 {
		t.Errorf("told is %q", s.told)
	}
}

// TestOlderStored: whoever starts while objects are stored as v1beta1 has to convert them first, and once they are
// stored anew nobody has.
func TestOlderStored(t *testing.T) {
	s := newStage(t, true, poolsCRD("v1", "v1beta1"))
	w := &Webhook{definitions: s.definitions}
	for _, tc := range []struct {
		stored       []string
		serves, want bool
	}{
		{[]string{"v1beta1", "v1"}, false, false}, {[]string{"v1beta1", "v1"}, true, true},
		{[]string{"v1"}, true, false},
	} {
		if tc.serves {
			w.served.Store(&tls.Certificate{})
		}
		definition := s.read()
		definition.Status.StoredVersions = tc.stored
		if err := s.client.Status().Update(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		if s.look(); w.MustConvert() != tc.want {
			t.Errorf("stored %v, serving %v: it must convert: %v", tc.stored, tc.serves, !tc.want)
		}
	}
}

// TestAnotherWebhook: only the leader takes the place of a webhook that answers.
func TestAnotherWebhook(t *testing.T) {
	const host = "old-karpenter.karpenter.svc:8443"
	for _, tc := range []struct{ leads, alive, want bool }{
		{leads: false, alive: true, want: false}, {leads: false, alive: false, want: true},
		{leads: true, alive: true, want: true},
	} {
		definition := poolsCRD("v1", "v1beta1")
		definition.Spec.Versions[1].Served = true
		theirs := &apiextensionsv1.WebhookClientConfig{CABundle: []byte("theirs"),
			Service: &apiextensionsv1.ServiceReference{Namespace: "karpenter", Name: "old-karpenter",
				Port: new(int32(8443))}}
		definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: theirs},
		}
		s := newStage(t, tc.leads, definition)
		s.alive[host] = tc.alive
		s.look()
		config := clientConfig(s.read())
		if got := config.Service.Name == "tenon"; got != tc.want || got != (string(config.CABundle) == "trusted") {
			t.Errorf("leads %v, the other answers %v: the definition names %+v", tc.leads, tc.alive, config)
		}
	}
}

// TestOneVersion: a definition without v1, or without v1beta1, has nothing to convert.
func TestOneVersion(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		s := newStage(t, true, poolsCRD(version))
		before := s.read()
		if s.look(); s.patches > 0 || !reflect.DeepEqual(before, s.read()) {
			t.Errorf("the definition with %s only was changed: %+v", version, s.read().Spec)
		}
	}
}

// TestADefinitionThatIsRefused: an admission policy that refuses a change of one definition holds up no other.
func TestADefinitionThatIsRefused(t *testing.T) {
	pools, claims := poolsCRD("v1", "v1beta1"), poolsCRD("v1", "v1beta1")
	claims.Name, claims.Spec.Names.Kind, claims.Spec.Names.ListKind = "nodeclaims.karpenter.sh", "NodeClaim",
		"NodeClaimList"
	s := newStage(t, true, pools)
	s.client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(s.client.Scheme()).WithObjects(pools,
		claims).Build(),
		interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			if o.GetName() == pools.Name {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"},
					o.GetName(), nil)
			}
			return c.Patch(ctx, o, p, opts...)
		}})
	if _, err := s.point(t.Context(), []byte("trusted")); err == nil || !strings.Contains(err.Error(), pools.Name) {
		t.Errorf("the definition that is refused is told as %v", err)
	}
	var out apiextensionsv1.CustomResourceDefinition
	if err := s.client.Get(t.Context(), client.ObjectKey{Name: claims.Name}, &out); err != nil ||
		!out.Spec.Versions[1].Served {
		t.Errorf("the other definition does not serve v1beta1: %v %+v", err, out.Spec.Versions)
	}
}
