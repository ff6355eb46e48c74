package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Definitions are the names of the CustomResourceDefinitions with more than one version.
func Definitions() []string {
	return []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"}
}

// Address is where the API server finds the webhook: a Service, or a URL.
type Address struct {
	URL     string
	Service *apiextensionsv1.ServiceReference
}

// names are what the certificate must be good for.
func (a Address) names() []string {
	if a.Service != nil {
		host := a.Service.Name + "." + a.Service.Namespace + ".svc"
		return []string{host, host + ".cluster.local"}
	}
	if at, err := url.Parse(a.URL); err == nil {
		return []string{at.Hostname()}
	}
	return nil
}

// definitions keeps what the CustomResourceDefinitions say about conversion.
type definitions struct {
	client  client.Client
	address Address
	// leads says whether this replica leads; nil if there is only one.
	leads func() bool
}

// point makes every definition that has an older version serve it, with this webhook to convert it and the bundle to trust. Definitions
// that are not there, or that have one version only, are left alone. It says whether any of them is left to ask another replica.
//
// As they are installed, the definitions neither serve the older version nor say how to convert it: objects would be stored
// unconverted until a controller runs.
func (d *definitions) point(ctx context.Context, bundle []byte) (elsewhere bool, err error) {
	for _, name := range Definitions() {
		other, err := d.pointOne(ctx, name, bundle)
		if err != nil {
			return elsewhere, fmt.Errorf("telling CustomResourceDefinition %s where its versions are converted: %w", name, err)
		}
		elsewhere = elsewhere || other
	}
	return elsewhere, nil
}

func (d *definitions) pointOne(ctx context.Context, name string, bundle []byte) (elsewhere bool, err error) {
	for range tries {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := d.client.Get(ctx, client.ObjectKey{Name: name}, &definition); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		older := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == olderVersion })
		if older < 0 {
			return false, nil
		}
		have, want := clientConfig(&definition), d.wanted(&definition, bundle)
		elsewhere = want.URL != nil && *want.URL != d.address.URL
		right := have != nil && sameConfig(have, want) && definition.Spec.Versions[older].Served
		owned := slices.IndexFunc(definition.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == fieldManager })
		switch {
		case right && owned < 0:
			return elsewhere, nil
		case right:
			err = d.client.Patch(ctx, &definition, client.RawPatch(types.JSONPatchType, disowned(owned)))
		default:
			err = d.client.Patch(ctx, &definition, client.RawPatch(types.JSONPatchType, patchOf(&definition, older, want)), client.FieldOwner(fieldManager))
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			return elsewhere, err
		}
	}
	return elsewhere, err
}

// fieldManager is whose the changes to definitions are, until they are disowned.
const fieldManager = "tenon-webhook"

// disowned makes the changes nobody's: if they stayed ours, whoever applies the definitions on the server's side, as Helm does,
// would meet a conflict about the list of versions.
func disowned(entry int) []byte {
	return fmt.Appendf(nil, `[{"op":"test","path":"/metadata/managedFields/%d/manager","value":%q},{"op":"remove","path":"/metadata/managedFields/%d"}]`,
		entry, fieldManager, entry)
}

// olderVersion is the version that is converted.
const olderVersion = "v1beta1"

// wanted is what the definition should say. Replicas that are reached by URLs of their own leave the one that answers where it is,
// unless they lead: otherwise two of them would go on changing it.
func (d *definitions) wanted(definition *apiextensionsv1.CustomResourceDefinition, bundle []byte) *apiextensionsv1.WebhookClientConfig {
	want := &apiextensionsv1.WebhookClientConfig{CABundle: bundle}
	if d.address.Service != nil {
		want.Service = d.address.Service
		return want
	}
	want.URL = &d.address.URL
	have := clientConfig(definition)
	if d.leads != nil && !d.leads() && have != nil && have.URL != nil && answers(*have.URL) {
		want.URL = have.URL
	}
	return want
}

// answers tells whether somebody listens at a URL.
func answers(address string) bool {
	at, err := url.Parse(address)
	if err != nil {
		return false
	}
	dialer := &net.Dialer{Timeout: time.Second}
	connection, err := tls.DialWithDialer(dialer, "tcp", at.Host, &tls.Config{InsecureSkipVerify: true}) // nothing is said to it
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

func clientConfig(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	conversion := definition.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil {
		return nil
	}
	return conversion.Webhook.ClientConfig
}

func sameConfig(a, b *apiextensionsv1.WebhookClientConfig) bool {
	if !bytes.Equal(a.CABundle, b.CABundle) || (a.URL == nil) != (b.URL == nil) || (a.Service == nil) != (b.Service == nil) {
		return false
	}
	if a.URL != nil {
		return *a.URL == *b.URL
	}
	return a.Service != nil && a.Service.Namespace == b.Service.Namespace && a.Service.Name == b.Service.Name &&
		same(a.Service.Path, b.Service.Path) && same(a.Service.Port, b.Service.Port)
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// patchOf makes a definition serve its older version and ask the webhook, if nobody has changed the definition meanwhile.
func patchOf(definition *apiextensionsv1.CustomResourceDefinition, older int, want *apiextensionsv1.WebhookClientConfig) []byte {
	type step struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	text, err := json.Marshal([]step{
		{"test", "/metadata/resourceVersion", definition.ResourceVersion},
		{"add", "/spec/conversion", apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: want, ConversionReviewVersions: []string{"v1"}},
		}},
		{"replace", fmt.Sprintf("/spec/versions/%d/served", older), true},
	})
	if err != nil {
		return nil // texts and numbers can always be written
	}
	return text
}
