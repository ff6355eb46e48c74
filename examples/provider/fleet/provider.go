package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/provider/machines"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/choose"
)

// Tags of machines: for which NodeClaim each was started.
const (
	tagName = "nodeclaim"
	tagUID  = "nodeclaim-uid"
)

// idPrefix is what provider ids begin with.
const idPrefix = "fleet://"

// Provider runs nodes on the fleet. It remembers nothing: whatever it has to know stands on the machines.
type Provider struct {
	fleet   *machines.Fleet
	classes client.Reader
	leading func() bool
}

var _ cloudprovider.Provider = (*Provider)(nil)

// NewProvider returns a provider that reads its NodeClasses from where it is told, and asks whether it leads before it
// changes something.
func NewProvider(fleet *machines.Fleet, classes client.Reader, leading func() bool) *Provider {
	return &Provider{fleet: fleet, classes: classes, leading: leading}
}

// errNotLeading says that another replica leads by now, and acts: this process may have been frozen meanwhile. It is
// asked right before each call that changes something, behind every wait.
var errNotLeading = errors.New("this replica no longer leads, so it changes nothing")

// Name implements cloudprovider.Provider.
func (p *Provider) Name() string { return "fleet" }

// NodeClasses implements cloudprovider.Provider.
func (p *Provider) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{GroupVersion().WithKind(Kind)}
}

// InstanceTypes implements cloudprovider.Provider: what the pool's NodeClass sells.
func (p *Provider) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	class, err := p.class(ctx, pool.Spec.Template.Spec.NodeClassRef.Name)
	if err != nil {
		return nil, err
	}
	return catalog(class), nil
}

// class returns a NodeClass that can be used.
func (p *Provider) class(ctx context.Context, name string) (*FleetNodeClass, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	class := &FleetNodeClass{}
	err := p.classes.Get(ctx, types.NamespacedName{Name: name}, class)
	switch ready := meta.FindStatusCondition(class.Status.Conditions, v1.ConditionTypeReady); {
	case apierrors.IsNotFound(err):
		return nil, &cloudprovider.NotReadyError{NodeClass: name, Message: "there is no FleetNodeClass of this name"}
	case err != nil:
		return nil, fmt.Errorf("getting FleetNodeClass %s: %w", name, err)
	case class.DeletionTimestamp != nil:
		return nil, &cloudprovider.NotReadyError{NodeClass: name, Message: "it is being deleted"}
	case ready != nil && ready.Status != metav1.ConditionTrue:
		return nil, &cloudprovider.NotReadyError{NodeClass: name, Message: ready.Message}
	}
	return class, nil
}

// Create implements cloudprovider.Provider. The claim's UID is the machine's name, so a second call finds the machine
// of the first, whatever would stop a launch now.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloudprovider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if there, err := p.fleet.Get(string(claim.UID)); there != nil || err != nil {
		return instanceOf(there), err
	}
	class, err := p.class(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil {
		return nil, err
	}
	// choose knows which offerings the claim allows, cheapest first. What the fleet refuses is passed over.
	ranked := choose.Ranked(catalog(class), claim)
	soldOut := map[cloudprovider.OfferingRef]bool{}
	for {
		chosen, err := choose.Available(ranked, func(o cloudprovider.OfferingRef) bool { return soldOut[o] })
		if err != nil {
			return nil, err
		}
		order := orderOf(chosen.Ref())
		if !p.leading() {
			return nil, errNotLeading
		}
		m, err := p.fleet.Start(machines.Machine{
			Name: string(claim.UID), Order: order, Tags: map[string]string{tagName: claim.Name,
				tagUID: string(claim.UID)},
		})
		if errors.Is(err, machines.ErrSoldOut) {
			soldOut[chosen.Ref()] = true
			continue
		}
		return instanceOf(m), err
	}
}

// orderOf is an offering in the fleet's words.
func orderOf(o cloudprovider.OfferingRef) machines.Order {
	return machines.Order{Shape: o.Type, Zone: o.Zone, Terms: o.CapacityType}
}

// instanceOf is a machine in Tenon's words; nil for none.
func instanceOf(m *machines.Machine) *cloudprovider.Instance {
	if m == nil {
		return nil
	}
	for _, t := range catalog(&FleetNodeClass{}) {
		for i := range t.Offerings {
			c := choose.Candidate{Type: t, Offering: &t.Offerings[i]}
			if orderOf(c.Ref()) != m.Order {
				continue
			}
			out := c.Instance(&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: m.Tags[tagName],
				UID: types.UID(m.Tags[tagUID])}})
			out.ProviderID, out.CreatedAt = idPrefix+m.Name, m.Started
			return out
		}
	}
	// It is of a kind that is no longer sold: what is known of it must do, so that it can still be ended.
	return &cloudprovider.Instance{
		ProviderID: idPrefix + m.Name, ClaimName: m.Tags[tagName], ClaimUID: m.Tags[tagUID], Type: m.Order.Shape,
		CreatedAt: m.Started,
		Labels:    map[string]string{},
	}
}

// Get implements cloudprovider.Provider.
func (p *Provider) Get(ctx context.Context, providerID string) (*cloudprovider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, ours := strings.CutPrefix(providerID, idPrefix)
	if !ours {
		return nil, &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	m, err := p.fleet.Get(name)
	if err == nil && m == nil {
		err = &cloudprovider.NotFoundError{ProviderID: providerID}
	}
	return instanceOf(m), err
}

// List implements cloudprovider.Provider.
func (p *Provider) List(ctx context.Context) ([]*cloudprovider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all, err := p.fleet.List()
	var out []*cloudprovider.Instance
	for _, m := range all {
		out = append(out, instanceOf(m))
	}
	return out, err
}

// Delete implements cloudprovider.Provider. A pretend machine ends at once: the next call says NotFound.
func (p *Provider) Delete(ctx context.Context, providerID string, owner cloudprovider.Owner) error {
	there, err := p.Get(ctx, providerID)
	if err != nil {
		return err
	}
	if !owner.Of(there.ClaimUID) {
		return &cloudprovider.NotOwnedError{ProviderID: providerID, Want: owner, Owner: there.Owner()}
	}
	if !p.leading() {
		return errNotLeading
	}
	return p.fleet.Stop(strings.TrimPrefix(providerID, idPrefix))
}

// Drifted implements cloudprovider.Provider: a machine has drifted if its NodeClass no longer allows its zone.
func (p *Provider) Drifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	class, err := p.class(ctx, claim.Spec.NodeClassRef.Name)
	if cloudprovider.IsNotReady(err) {
		return "", nil // a class that can't be used now says nothing of machines that run
	}
	if err != nil {
		return "", err
	}
	there, err := p.Get(ctx, claim.Status.ProviderID)
	if err != nil {
		return "", err
	}
	if len(class.Spec.Zones) > 0 && !slices.Contains(class.Spec.Zones, there.Labels[corev1.LabelTopologyZone]) {
		return "ZoneDrift", nil
	}
	return "", nil
}

// RepairPolicies implements cloudprovider.Provider.
func (p *Provider) RepairPolicies() []cloudprovider.RepairPolicy {
	return []cloudprovider.RepairPolicy{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Toleration: 10 * time.Minute},
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: 10 * time.Minute},
	}
}
