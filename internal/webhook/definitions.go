package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
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
	// answers tells whether somebody listens at a host and port.
	answers func(host string) bool
	now     func() time.Time
	teller  teller
	// contests are, by name, those that somebody else may be changing, too.
	contests map[string]*contest
	// older says of which definitions, by name, objects may be stored as the older version.
	older sync.Map
}

// point makes every definition that has the older version and ours serve both, with this webhook to convert them and
// the bundle to trust. Definitions that are not there, or have only one of the two, are left alone. It returns when to
// look again.
//
// As they are installed, the definitions neither serve the older version nor say how to convert it: objects would be
// stored unconverted until a controller runs.
func (d *definitions) point(ctx context.Context, bundle []byte) (again time.Duration, err error) {
	again = looks
	for _, name := range Definitions() {
		soon, failed := d.pointOne(ctx, name, bundle)
		if failed != nil { // the others can do without this one
			err = errors.Join(err, fmt.Errorf(
				"telling CustomResourceDefinition %s where its versions are converted: %w", name, failed))
			continue
		}
		again = min(again, soon)
	}
	return again, err
}

func (d *definitions) pointOne(ctx context.Context, name string, bundle []byte) (again time.Duration, err error) {
	for range tries {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := d.client.Get(ctx, client.ObjectKey{Name: name}, &definition); err != nil {
			return looks, client.IgnoreNotFound(err)
		}
		d.older.Store(name, slices.Contains(definition.Status.StoredVersions, olderVersion))
		older := indexOf(&definition, olderVersion)
		if older < 0 || indexOf(&definition, newerVersion) < 0 {
			return looks, nil
		}
		want := d.wanted(bundle)
		if d.leaveToOther(clientConfig(&definition), want) {
			return retries, nil
		}
		wrong := differences(&definition, older, want)
		owned := slices.IndexFunc(definition.ManagedFields,
			func(m metav1.ManagedFieldsEntry) bool { return m.Manager == fieldManager })
		switch {
		case len(wrong) == 0 && owned < 0:
			return looks, nil
		case len(wrong) == 0:
			err = d.client.Patch(ctx, &definition, client.RawPatch(types.JSONPatchType, disowned(owned)))
		default:
			if wait := d.contest(name).wait(d.now(), longestFor(&definition)); wait > 0 {
				return wait, nil
			}
			err = d.mend(ctx, &definition, older, want, wrong)
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			return looks, err
		}
	}
	return retries, err
}

// mend puts a definition right.
func (d *definitions) mend(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition, older int,
	want *apiextensionsv1.WebhookClientConfig, wrong []string) error {
	found := definition.DeepCopy()
	patch := client.RawPatch(types.JSONPatchType, patchOf(definition, older, want))
	if err := d.client.Patch(ctx, definition, patch, client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	contest := d.contest(found.Name)
	contest.note(d.now())
	d.teller.tell(found, wrong, contest)
	return nil
}

func (d *definitions) contest(name string) *contest {
	if d.contests[name] == nil {
		d.contests[name] = &contest{}
	}
	return d.contests[name]
}

// olderStored tells whether objects of any definition may be stored as the older version.
func (d *definitions) olderStored() bool {
	found := false
	d.older.Range(func(_, stored any) bool {
		found, _ = stored.(bool)
		return !found // one is enough
	})
	return found
}

// fieldManager is whose the changes to definitions are, until they are disowned.
const fieldManager = "tenon-webhook"

// disowned makes the changes nobody's: if they stayed ours, whoever applies the definitions on the server's side, as
// Helm does, would meet a conflict about the list of versions.
func disowned(entry int) []byte {
	return fmt.Appendf(nil, `[{"op":"test","path":"/metadata/managedFields/%d/manager","value":%q},{"op":"remove",`+
		`"path":"/metadata/managedFields/%d"}]`,
		entry, fieldManager, entry)
}

// olderVersion is converted to newerVersion, and back.
const (
	olderVersion = "v1beta1"
	newerVersion = "v1"
)

func indexOf(definition *apiextensionsv1.CustomResourceDefinition, version string) int {
	return slices.IndexFunc(definition.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
}

// wanted is what a definition should say.
func (d *definitions) wanted(bundle []byte) *apiextensionsv1.WebhookClientConfig {
	want := &apiextensionsv1.WebhookClientConfig{CABundle: bundle, Service: d.address.Service}
	if d.address.Service == nil {
		want.URL = &d.address.URL
	}
	return want
}

// leaveToOther tells whether another webhook is asked and stays it: only the leader takes its place, or anybody if
// nothing answers there. It may be that of an older Karpenter that still leads, or of another replica that is reached
// by a URL of its own.
func (d *definitions) leaveToOther(have, want *apiextensionsv1.WebhookClientConfig) bool {
	if have == nil || sameAddress(have, want) || d.leads == nil || d.leads() {
		return false
	}
	return d.answers(hostOf(have))
}

// hostOf is the host and port that a definition names; empty if it names none.
func hostOf(c *apiextensionsv1.WebhookClientConfig) string {
	const https = "443"
	if c.Service != nil {
		port := https
		if c.Service.Port != nil {
			port = strconv.Itoa(int(*c.Service.Port))
		}
		return net.JoinHostPort(c.Service.Name+"."+c.Service.Namespace+".svc", port)
	}
	if c.URL == nil {
		return ""
	}
	at, err := url.Parse(*c.URL)
	if err != nil {
		return ""
	}
	return net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), https))
}

// answers tells whether somebody listens at a host and port.
func answers(host string) bool {
	dialer := &net.Dialer{Timeout: time.Second}
	config := &tls.Config{InsecureSkipVerify: true} // nothing is said to it
	connection, err := tls.DialWithDialer(dialer, "tcp", host, config)
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

// differences are the fields of a definition that are not as they should be.
func differences(definition *apiextensionsv1.CustomResourceDefinition, older int,
	want *apiextensionsv1.WebhookClientConfig) []string {
	var out []string
	const at = "spec.conversion.webhook.clientConfig."
	have := clientConfig(definition)
	switch {
	case have == nil:
		out = append(out, "spec.conversion.strategy")
	case !sameAddress(have, want) && have.Service != nil:
		out = append(out, at+"service")
	case !sameAddress(have, want):
		out = append(out, at+"url")
	case !bytes.Equal(have.CABundle, want.CABundle):
		out = append(out, at+"caBundle")
	}
	if !definition.Spec.Versions[older].Served {
		out = append(out, "spec.versions["+olderVersion+"].served")
	}
	return out
}

// sameAddress tells whether both send the API server to the same place.
func sameAddress(a, b *apiextensionsv1.WebhookClientConfig) bool {
	if (a.Service == nil) != (b.Service == nil) {
		return false
	}
	if a.Service == nil {
		return same(a.URL, b.URL)
	}
	return a.Service.Namespace == b.Service.Namespace && a.Service.Name == b.Service.Name &&
		same(a.Service.Path, b.Service.Path) && same(a.Service.Port, b.Service.Port)
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// patchOf makes a definition serve its older version and ask the webhook, if nobody has changed the definition
// meanwhile.
func patchOf(definition *apiextensionsv1.CustomResourceDefinition, older int,
	want *apiextensionsv1.WebhookClientConfig) []byte {
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
