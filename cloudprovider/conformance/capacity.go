package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

func capacityChecks() []check {
	return []check{
		{"NoCapacity", "Create returns NoCapacity with the offerings that the cloud refused, and launches nothing.",
			noCapacity},
		{"NextCheapest", "Create passes over an offering without capacity if the claim allows another.", nextCheapest},
		{"ShortageAfterLaunch", "Create finds the instance that is there, whatever would stop a launch now.",
			shortageAfterLaunch},
		{"Impossible", "Create returns NoCapacity if nothing in the catalog is enough, and launches nothing.",
			impossible},
		{"NotReady", "Create returns NotReady while the NodeClass can't be used, and launches nothing.", notReady},
	}
}

// exactly requires one offering.
func exactly(o cloudprovider.OfferingRef) []v1.NodeSelectorRequirementWithMinValues {
	return []v1.NodeSelectorRequirementWithMinValues{
		in(corev1.LabelInstanceTypeStable, o.Type), in(corev1.LabelTopologyZone, o.Zone), in(v1.CapacityTypeLabelKey,
			o.CapacityType),
	}
}

// exhaustCheapest takes away the capacity of the cheapest offering, and returns all.
func (w *world) exhaustCheapest(ctx context.Context) ([]sold, error) {
	if w.Exhaust == nil {
		return nil, noHook("Exhaust")
	}
	all, err := w.offerings(ctx, anything)
	if err != nil {
		return nil, err
	}
	if err := w.Exhaust(ctx, all[0].ref()); err != nil {
		return nil, fmt.Errorf("exhausting %v: %w", all[0].ref(), err)
	}
	return all, nil
}

func noCapacity(ctx context.Context, w *world) error {
	all, err := w.exhaustCheapest(ctx)
	if err != nil {
		return err
	}
	gone := all[0].ref()
	_, err = w.Provider.Create(ctx, w.claim(exactly(gone)...))
	none, ok := errors.AsType[*cloudprovider.NoCapacityError](err)
	if !ok {
		return fmt.Errorf("a Create of an exhausted offering returned %v, want a NoCapacityError", err)
	}
	if !slices.Contains(none.Exhausted, gone) {
		return fmt.Errorf("the error lists %v, want %v in it", none.Exhausted, gone)
	}
	return w.listed(ctx, 0)
}

func nextCheapest(ctx context.Context, w *world) error {
	all, err := w.exhaustCheapest(ctx)
	if err != nil {
		return err
	}
	if len(all) == 1 {
		return &notRun{"the catalog has only one offering"}
	}
	got, err := w.create(ctx)
	if err != nil {
		return fmt.Errorf("with %d offerings left: %w", len(all)-1, err)
	}
	if want := all[1]; got.Price != want.offering.Price {
		return fmt.Errorf("launched %s at %v, the cheapest that is left is %v at %v", got.Type, got.Price, want.ref(),
			want.offering.Price)
	}
	return nil
}

func shortageAfterLaunch(ctx context.Context, w *world) error {
	if w.Exhaust == nil {
		return noHook("Exhaust")
	}
	all, err := w.offerings(ctx, anything)
	if err != nil {
		return err
	}
	cheapest := all[0].ref()
	claim := w.claim(exactly(cheapest)...)
	first, err := w.Provider.Create(ctx, claim)
	if err != nil {
		return fmt.Errorf("creating an instance: %w", err)
	}
	if err := w.Exhaust(ctx, cheapest); err != nil {
		return fmt.Errorf("exhausting %v: %w", cheapest, err)
	}
	second, err := w.Provider.Create(ctx, claim)
	if err != nil {
		return fmt.Errorf("the instance is there, but after a shortage began Create fails: %w", err)
	}
	if first.ProviderID != second.ProviderID {
		return fmt.Errorf("one claim got %s and then %s", first.ProviderID, second.ProviderID)
	}
	return nil
}

func impossible(ctx context.Context, w *world) error {
	claim := w.claim()
	claim.Spec.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1000000")
	_, err := w.Provider.Create(ctx, claim)
	if !cloudprovider.IsNoCapacity(err) {
		return fmt.Errorf("a Create for a million CPUs returned %v, want a NoCapacityError", err)
	}
	_, err = w.Provider.Create(ctx, w.claim(in(corev1.LabelInstanceTypeStable, "no-such-type")))
	if !cloudprovider.IsNoCapacity(err) {
		return fmt.Errorf("a Create of a type that isn't sold returned %v, want a NoCapacityError", err)
	}
	return w.listed(ctx, 0)
}

func notReady(ctx context.Context, w *world) error {
	if w.BlockNodeClass == nil {
		return noHook("BlockNodeClass")
	}
	if err := w.BlockNodeClass(ctx); err != nil {
		return fmt.Errorf("blocking the NodeClass: %w", err)
	}
	_, err := w.Provider.Create(ctx, w.claim())
	if !cloudprovider.IsNotReady(err) {
		return fmt.Errorf("a Create with a blocked NodeClass returned %v, want a NotReadyError", err)
	}
	return w.listed(ctx, 0)
}
