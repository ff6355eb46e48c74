package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/uuid"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// world is a check's cloud with the moves that checks make.
type world struct {
	*Cloud
	patience time.Duration
}

// claim returns a NodeClaim that no cloud has seen, which asks for little and allows what the requirements allow.
func (w *world) claim(requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodeClaim {
	id := uuid.NewUUID()
	class := w.NodeClass
	claim := &v1.NodeClaim{}
	claim.Name = "conformance-" + string(id)[:8]
	claim.UID = id
	if w.Pool != nil {
		claim.Labels = map[string]string{v1.NodePoolLabelKey: w.Pool.Name}
	}
	claim.Spec.NodeClassRef = &class
	claim.Spec.Requirements = requirements
	claim.Spec.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("64Mi"),
		corev1.ResourcePods:   resource.MustParse("1"),
	}
	return claim
}

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func notIn(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: values}
}

// create launches an instance for a claim with the requirements.
func (w *world) create(ctx context.Context, requirements ...v1.NodeSelectorRequirementWithMinValues) (
	*cloudprovider.Instance, error) {
	instance, err := w.Provider.Create(ctx, w.claim(requirements...))
	if err != nil {
		return nil, fmt.Errorf("creating an instance: %w", err)
	}
	return instance, nil
}

// listed is an error unless List has as many instances as wanted.
func (w *world) listed(ctx context.Context, want int) error {
	instances, err := w.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("listing instances: %w", err)
	}
	if len(instances) != want {
		return fmt.Errorf("the List has %d instances, want %d: %v", len(instances), want, ids(instances))
	}
	return nil
}

func ids(instances []*cloudprovider.Instance) []string {
	var out []string
	for _, i := range instances {
		out = append(out, i.ProviderID)
	}
	return out
}

// end calls Delete until it says NotFound.
func (w *world) end(ctx context.Context, i *cloudprovider.Instance) error {
	id := i.ProviderID
	deadline := time.Now().Add(w.patience)
	for wait := time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := w.Provider.Delete(ctx, id, i.Owner())
		if cloudprovider.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("deleting instance %s: %w", id, err)
		}
		if err := w.onItsWayOut(ctx, id); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a Delete of %s still returns nil after %s, never NotFound", id, w.patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// onItsWayOut looks at an instance for which Delete returned nil.
func (w *world) onItsWayOut(ctx context.Context, id string) error {
	instance, err := w.Provider.Get(ctx, id)
	if cloudprovider.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting instance %s, which is ending: %w", id, err)
	}
	if !instance.Terminating {
		return fmt.Errorf("instance %s is there after Delete and is not Terminating", id)
	}
	return nil
}

// clean ends what is left, and fails if the cloud doesn't get empty.
func (w *world) clean(ctx context.Context) error {
	instances, err := w.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("listing what is left: %w", err)
	}
	for _, i := range instances {
		if err := w.end(ctx, i); err != nil {
			return fmt.Errorf("cleaning up: %w", err)
		}
	}
	return w.listed(ctx, 0)
}

// sold is an offering with its type.
type sold struct {
	kind     *cloudprovider.InstanceType
	offering cloudprovider.Offering
}

func (s sold) ref() cloudprovider.OfferingRef {
	return cloudprovider.OfferingRef{
		Type:         s.kind.Name,
		Zone:         s.offering.Labels[corev1.LabelTopologyZone],
		CapacityType: s.offering.Labels[v1.CapacityTypeLabelKey],
	}
}

// offerings lists what is sold now and passes the filter; cheapest first.
func (w *world) offerings(ctx context.Context, keep func(sold) bool) ([]sold, error) {
	types, err := w.Provider.InstanceTypes(ctx, w.Pool)
	if err != nil {
		return nil, fmt.Errorf("asking for the catalog: %w", err)
	}
	var out []sold
	for _, t := range types {
		if !holds(t, w.claim().Spec.Resources.Requests) {
			continue
		}
		for _, o := range t.Offerings {
			if s := (sold{t, o}); o.Available && keep(s) {
				out = append(out, s)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the catalog has no available offering for the check")
	}
	slices.SortStableFunc(out, func(a, b sold) int {
		switch {
		case a.offering.Price < b.offering.Price:
			return -1
		case a.offering.Price > b.offering.Price:
			return 1
		default:
			return 0
		}
	})
	return out, nil
}

func anything(sold) bool { return true }

func holds(t *cloudprovider.InstanceType, requests corev1.ResourceList) bool {
	for name, want := range requests {
		left := t.Capacity[name].DeepCopy()
		if kept, ok := t.Overhead[name]; ok {
			left.Sub(kept)
		}
		if left.Cmp(want) < 0 {
			return false
		}
	}
	return true
}
