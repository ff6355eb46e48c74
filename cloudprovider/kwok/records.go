package kwok

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

const (
	providerIDPrefix = "kwok://"
	// InstanceLabelKey marks the ConfigMaps that are instances: kubectl get configmaps -A -l tenon.sh/kwok-instance.
	InstanceLabelKey = "tenon.sh/kwok-instance"
	instanceDataKey  = "instance.json"
	joinedDataKey    = "joined"
)

// record is an instance as its ConfigMap holds it.
type record struct {
	ClaimName   string              `json:"claimName"`
	ClaimUID    string              `json:"claimUID"`
	NodeClass   string              `json:"nodeClass"`
	Type        string              `json:"type"`
	Labels      map[string]string   `json:"labels"`
	Capacity    corev1.ResourceList `json:"capacity"`
	Allocatable corev1.ResourceList `json:"allocatable"`
	Price       float64             `json:"price"`
	CreatedAt   time.Time           `json:"createdAt"`
	// JoinsAt is when the machine has booted; nil if it never will.
	JoinsAt *time.Time `json:"joinsAt,omitempty"`
	// NodeLabels are labels of the Node that come from the claim, which may be gone when the node joins.
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// Drift is the fault of that name when the instance was launched: it is what the class asked for then.
	Drift cloudprovider.DriftReason `json:"drift,omitempty"`

	// joined is set once the Node has been there; it is not made a second time.
	joined bool
}

// instanceName is the name of a claim's instance: readable, and another one for every claim that ever has the name.
func instanceName(claimName, claimUID string) string {
	sum := sha256.Sum256([]byte(claimUID))
	return claimName + "-" + hex.EncodeToString(sum[:4])
}

func (r *record) name() string       { return instanceName(r.ClaimName, r.ClaimUID) }
func (r *record) providerID() string { return providerIDPrefix + r.name() }

// nodeName is the claim's name, so that the two are easily seen to belong together.
func (r *record) nodeName() string { return r.ClaimName }

// instance is a copy: the caller may change it while the machine boots.
func (r *record) instance() *cloudprovider.Instance {
	return &cloudprovider.Instance{
		ProviderID:  r.providerID(),
		ClaimName:   r.ClaimName,
		ClaimUID:    r.ClaimUID,
		Type:        r.Type,
		Labels:      maps.Clone(r.Labels),
		Capacity:    r.Capacity.DeepCopy(),
		Allocatable: r.Allocatable.DeepCopy(),
		Price:       r.Price,
		CreatedAt:   r.CreatedAt,
	}
}

func newRecord(i *cloudprovider.Instance, claim *v1.NodeClaim) *record {
	return &record{
		ClaimName:   i.ClaimName,
		ClaimUID:    i.ClaimUID,
		NodeClass:   claim.Spec.NodeClassRef.Name,
		Type:        i.Type,
		Labels:      i.Labels,
		Capacity:    i.Capacity,
		Allocatable: i.Allocatable,
		Price:       i.Price,
		CreatedAt:   time.Now().UTC(),
		NodeLabels:  claimLabels(claim),
	}
}

// claimLabels are the claim's own labels and those that its requirements fix.
func claimLabels(claim *v1.NodeClaim) map[string]string {
	out := map[string]string{}
	for _, r := range claim.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			out[r.Key] = r.Values[0]
		}
	}
	maps.Copy(out, claim.Labels)
	return out
}

// records keeps instances in the Kubernetes API.
type records struct {
	api       API
	namespace string
}

// add writes the record; the error is AlreadyExists if the claim has an instance.
func (s records) add(ctx context.Context, r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing instance %s as JSON: %w", r.name(), err)
	}
	object := s.object(r.name())
	object.Labels = map[string]string{InstanceLabelKey: "true"}
	object.Data = map[string]string{instanceDataKey: string(text)}
	if err := s.api.Create(ctx, object); err != nil {
		return cloudError("starting instance "+r.name(), err)
	}
	return nil
}

// get finds the instance of a provider ID.
func (s records) get(ctx context.Context, providerID string) (*record, error) {
	name, ours := strings.CutPrefix(providerID, providerIDPrefix)
	if !ours || name == "" {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	object := &corev1.ConfigMap{}
	err := s.api.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) || err == nil && object.Labels[InstanceLabelKey] == "" {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	if err != nil {
		return nil, cloudError("getting instance "+name, err)
	}
	return readRecord(object)
}

func (s records) list(ctx context.Context) ([]*record, error) {
	objects := &corev1.ConfigMapList{}
	err := s.api.List(ctx, objects, client.InNamespace(s.namespace), client.HasLabels{InstanceLabelKey})
	if err != nil {
		return nil, cloudError("listing instances", err)
	}
	out := make([]*record, 0, len(objects.Items))
	for i := range objects.Items {
		r, err := readRecord(&objects.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func readRecord(object *corev1.ConfigMap) (*record, error) {
	r := &record{}
	if err := json.Unmarshal([]byte(object.Data[instanceDataKey]), r); err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s as an instance (delete it if it is none): %w", object.Namespace,
			object.Name, err)
	}
	if r.name() != object.Name {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: it describes instance %s; delete the ConfigMap",
			object.Namespace, object.Name, r.name())
	}
	r.joined = object.Data[joinedDataKey] != ""
	return r, nil
}

// markJoined notes that the Node has been there; NotFound if the instance has ended meanwhile.
func (s records) markJoined(ctx context.Context, r *record) error {
	patch := fmt.Sprintf(`{"data":{%q:"true"}}`, joinedDataKey)
	err := s.api.Patch(ctx, s.object(r.name()), client.RawPatch(types.MergePatchType, []byte(patch)))
	if apierrors.IsNotFound(err) {
		return &cloudprovider.NotFoundError{ProviderID: r.providerID()}
	}
	if err != nil {
		return cloudError("noting that the node of instance "+r.name()+" has joined", err)
	}
	return nil
}

// remove ends the instance; it is no error if that has happened already.
func (s records) remove(ctx context.Context, r *record) error {
	if err := s.api.Delete(ctx, s.object(r.name())); err != nil && !apierrors.IsNotFound(err) {
		return cloudError("ending instance "+r.name(), err)
	}
	return nil
}

func (s records) object(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
}
