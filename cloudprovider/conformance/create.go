package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

func createChecks() []check {
	return []check{
		{"CreateAnswer", "Create says what was launched: id, claim, type, labels, resources, price and time.",
			createAnswer},
		{"CreateCheapest", "Create launches the cheapest available offering that the claim's requirements allow.",
			createCheapest},
		{"CreateHoldsRequests", "Create launches a type whose allocatable resources hold the claim's requests.",
			createHoldsRequests},
		{"CreateOnce", "Create is idempotent by the claim's UID: called again, it returns the instance that is there.",
			createOnce},
		{"CreateOnceConcurrently", "Create is idempotent by the claim's UID when calls run at the same time.",
			createOnceConcurrently},
		{"CreateOnceAfterRestart", "Create is idempotent by the claim's UID for a controller that died and came back.",
			createOnceAfterRestart},
		{"CreateForEachClaim", "Claims with different UIDs get different instances, even under one name.",
			createForEachClaim},
	}
}

func createAnswer(ctx context.Context, w *world) error {
	claim := w.claim()
	begin := time.Now()
	got, err := w.Provider.Create(ctx, claim)
	if err != nil {
		return fmt.Errorf("creating an instance: %w", err)
	}
	if got.ProviderID == "" || got.ClaimName != claim.Name || got.ClaimUID != string(claim.UID) {
		return fmt.Errorf("the instance has id %q and is for claim %q, UID %q; want an id, %q, %q", got.ProviderID,
			got.ClaimName, got.ClaimUID, claim.Name, claim.UID)
	}
	if age := begin.Sub(got.CreatedAt); got.CreatedAt.IsZero() || age > time.Hour || age < -time.Hour {
		return fmt.Errorf("the CreatedAt is %v, want about now", got.CreatedAt)
	}
	if got.Terminating {
		return fmt.Errorf("a new instance is Terminating")
	}
	return w.isSold(ctx, got)
}

// isSold tells whether the instance is what one of the catalog's offerings promises.
func (w *world) isSold(ctx context.Context, got *cloudprovider.Instance) error {
	all, err := w.offerings(ctx, func(s sold) bool { return s.kind.Name == got.Type })
	if err != nil {
		return fmt.Errorf("looking for the instance's type %q in the catalog: %w", got.Type, err)
	}
	i := slices.IndexFunc(all, func(s sold) bool {
		for key, value := range s.offering.Labels {
			if got.Labels[key] != value {
				return false
			}
		}
		return true
	})
	if i < 0 {
		return fmt.Errorf("the instance's labels %v are those of none of the offerings of %s", got.Labels, got.Type)
	}
	s := all[i]
	if got.Price != s.offering.Price {
		return fmt.Errorf("the instance costs %v, its offering %v", got.Price, s.offering.Price)
	}
	for key, values := range s.kind.Labels {
		if !slices.Contains(values, got.Labels[key]) {
			return fmt.Errorf("the instance's label %s is %q, its type allows %v", key, got.Labels[key], values)
		}
	}
	if !equal(got.Capacity, s.kind.Capacity) {
		return fmt.Errorf("the instance's capacity is %v, its type's %v", got.Capacity, s.kind.Capacity)
	}
	if !equal(got.Allocatable, s.kind.Allocatable()) {
		return fmt.Errorf("the instance's allocatable is %v, its type's %v", got.Allocatable, s.kind.Allocatable())
	}
	return nil
}

func equal(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		y, ok := b[name]
		if !ok || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}

// createCheapest narrows the catalog in several ways and compares the launch with the cheapest of what is left.
func createCheapest(ctx context.Context, w *world) error {
	all, err := w.offerings(ctx, anything)
	if err != nil {
		return err
	}
	cheapest, dearest := all[0], all[len(all)-1]
	zone, terms := dearest.ref().Zone, dearest.ref().CapacityType
	for _, asked := range []struct {
		requirements []v1.NodeSelectorRequirementWithMinValues
		allowed      func(sold) bool
	}{
		{nil, anything},
		{[]v1.NodeSelectorRequirementWithMinValues{in(corev1.LabelInstanceTypeStable, cheapest.kind.Name,
			dearest.kind.Name)},
			func(s sold) bool { return s.kind.Name == cheapest.kind.Name || s.kind.Name == dearest.kind.Name }},
		{[]v1.NodeSelectorRequirementWithMinValues{in(corev1.LabelTopologyZone, zone)},
			func(s sold) bool { return s.ref().Zone == zone }},
		{[]v1.NodeSelectorRequirementWithMinValues{in(v1.CapacityTypeLabelKey, terms),
			notIn(corev1.LabelInstanceTypeStable, cheapest.kind.Name)},
			func(s sold) bool { return s.ref().CapacityType == terms && s.kind.Name != cheapest.kind.Name }},
		{[]v1.NodeSelectorRequirementWithMinValues{in(corev1.LabelInstanceTypeStable, dearest.kind.Name),
			in(v1.CapacityTypeLabelKey, terms), in(corev1.LabelTopologyZone, zone)},
			func(s sold) bool { return s.ref() == dearest.ref() }},
	} {
		allowed, err := w.offerings(ctx, asked.allowed)
		if err != nil {
			continue // a catalog this small can't answer this question
		}
		got, err := w.create(ctx, asked.requirements...)
		if err != nil {
			return fmt.Errorf("requirements %v: %w", asked.requirements, err)
		}
		if err := meets(got, asked.requirements); err != nil {
			return err
		}
		if got.Price != allowed[0].offering.Price {
			return fmt.Errorf("requirements %v: launched %s at %v, while %s costs %v", asked.requirements,
				got.Type, got.Price,
				allowed[0].kind.Name, allowed[0].offering.Price)
		}
	}
	return nil
}

// meets looks whether the instance's labels meet requirements with In and NotIn.
func meets(got *cloudprovider.Instance, requirements []v1.NodeSelectorRequirementWithMinValues) error {
	for _, r := range requirements {
		if slices.Contains(r.Values, got.Labels[r.Key]) != (r.Operator == corev1.NodeSelectorOpIn) {
			return fmt.Errorf("the instance's label %s is %q, required is %s %v", r.Key, got.Labels[r.Key],
				r.Operator, r.Values)
		}
	}
	return nil
}

// createHoldsRequests asks for a little more than the cheapest type has of CPU, so that it must be passed over.
func createHoldsRequests(ctx context.Context, w *world) error {
	all, err := w.offerings(ctx, anything)
	if err != nil {
		return err
	}
	claim := w.claim()
	more := all[0].kind.Allocatable()[corev1.ResourceCPU].DeepCopy()
	more.SetMilli(more.MilliValue() + 1)
	claim.Spec.Resources.Requests[corev1.ResourceCPU] = more
	enough, err := w.offerings(ctx, func(s sold) bool { return holds(s.kind, claim.Spec.Resources.Requests) })
	if err != nil {
		return &notRun{"no type of the catalog is bigger than the cheapest"}
	}
	got, err := w.Provider.Create(ctx, claim)
	if err != nil {
		return fmt.Errorf("creating an instance for %s of CPU: %w", more.String(), err)
	}
	for name, want := range claim.Spec.Resources.Requests {
		if have := got.Allocatable[name]; have.Cmp(want) < 0 {
			return fmt.Errorf("%s has %s of %s, requested are %s", got.Type, have.String(), name, want.String())
		}
	}
	if got.Price != enough[0].offering.Price {
		return fmt.Errorf("launched %s at %v for %s of CPU, while %s costs %v", got.Type, got.Price, more.String(),
			enough[0].kind.Name, enough[0].offering.Price)
	}
	return nil
}

func createOnce(ctx context.Context, w *world) error {
	claim := w.claim()
	first, err := w.Provider.Create(ctx, claim)
	if err != nil {
		return fmt.Errorf("creating the first time: %w", err)
	}
	return w.createdAlready(ctx, claim, first)
}

func createOnceAfterRestart(ctx context.Context, w *world) error {
	if w.Restart == nil {
		return noHook("Restart")
	}
	claim := w.claim()
	first, err := w.Provider.Create(ctx, claim)
	if err != nil {
		return fmt.Errorf("creating the first time: %w", err)
	}
	if w.Provider, err = w.Restart(ctx); err != nil {
		return fmt.Errorf("restarting: %w", err)
	}
	if err := w.found(ctx, first); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	return w.createdAlready(ctx, claim, first)
}

// createdAlready looks whether another Create returns the first one's instance and launches nothing.
func (w *world) createdAlready(ctx context.Context, claim *v1.NodeClaim, first *cloudprovider.Instance) error {
	second, err := w.Provider.Create(ctx, claim)
	if err != nil {
		return fmt.Errorf("creating the second time: %w", err)
	}
	if err := same(first, second); err != nil {
		return fmt.Errorf("the second Create differs from the first: %w", err)
	}
	return w.listed(ctx, 1)
}

func createOnceConcurrently(ctx context.Context, w *world) error {
	const calls = 8
	claim := w.claim()
	var group sync.WaitGroup
	answers, failures := make([]*cloudprovider.Instance, calls), make([]error, calls)
	for i := range calls {
		group.Go(func() { answers[i], failures[i] = w.Provider.Create(ctx, claim) })
	}
	group.Wait()
	for i := range calls {
		if failures[i] != nil {
			return fmt.Errorf("one of %d calls at the same time: %w", calls, failures[i])
		}
		if answers[i].ProviderID != answers[0].ProviderID {
			return fmt.Errorf("calls at the same time got %s and %s", answers[0].ProviderID, answers[i].ProviderID)
		}
	}
	return w.listed(ctx, 1)
}

func createForEachClaim(ctx context.Context, w *world) error {
	one, other := w.claim(), w.claim()
	namesake := w.claim()
	namesake.Name = one.Name
	seen := map[string]bool{}
	for _, claim := range []*v1.NodeClaim{one, other, namesake} {
		got, err := w.Provider.Create(ctx, claim)
		if err != nil {
			return fmt.Errorf("creating an instance: %w", err)
		}
		if seen[got.ProviderID] {
			return fmt.Errorf("two claims got the instance %s", got.ProviderID)
		}
		seen[got.ProviderID] = true
	}
	return w.listed(ctx, len(seen))
}
