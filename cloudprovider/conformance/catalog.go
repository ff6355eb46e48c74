package conformance

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

func catalogChecks() []check {
	return []check{
		{"Identity", "A provider has a short lower-case name, a kind of NodeClass, and repair policies that wait.",
			identity},
		{"CatalogOrder", "InstanceTypes is ordered by name, names every type once and says the same when asked again.",
			catalogOrder},
		{"CatalogContent", "Every type has valid labels, more capacity than overhead, and offerings with a price, a " +
			"zone and a capacity type.", catalogContent},
	}
}

func identity(_ context.Context, w *world) error {
	if name := w.Provider.Name(); !regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`).MatchString(name) {
		return fmt.Errorf("the name is %q, want a short lower-case word", name)
	}
	served := false
	for _, gvk := range w.Provider.NodeClasses() {
		if gvk.Group == "" || gvk.Version == "" || gvk.Kind == "" {
			return fmt.Errorf("what NodeClasses lists has %q, which lacks a group, version or kind", gvk)
		}
		served = served || gvk.Group == w.NodeClass.Group && gvk.Kind == w.NodeClass.Kind
	}
	if !served {
		return fmt.Errorf("what NodeClasses lists lacks %s/%s, which the environment's claims refer to",
			w.NodeClass.Group, w.NodeClass.Kind)
	}
	for _, p := range w.Provider.RepairPolicies() {
		if p.Type == "" || p.Status == "" || p.Toleration <= 0 {
			return fmt.Errorf("what RepairPolicies lists has %+v, which lacks a condition, a status or a toleration", p)
		}
	}
	return nil
}

func catalogOrder(ctx context.Context, w *world) error {
	types, err := w.Provider.InstanceTypes(ctx, w.Pool)
	if err != nil {
		return fmt.Errorf("asking for the catalog: %w", err)
	}
	if len(types) == 0 {
		return fmt.Errorf("the catalog is empty")
	}
	for i := 1; i < len(types); i++ {
		if types[i-1].Name >= types[i].Name {
			return fmt.Errorf("%q comes before %q", types[i-1].Name, types[i].Name)
		}
	}
	again, err := w.Provider.InstanceTypes(ctx, w.Pool)
	if err != nil {
		return fmt.Errorf("asking for the catalog again: %w", err)
	}
	if !reflect.DeepEqual(names(types), names(again)) {
		return fmt.Errorf("asked twice, the catalog has %d types and then %d others", len(types), len(again))
	}
	return nil
}

func names(types []*cloudprovider.InstanceType) []string {
	var out []string
	for _, t := range types {
		out = append(out, t.Name)
	}
	return out
}

func catalogContent(ctx context.Context, w *world) error {
	types, err := w.Provider.InstanceTypes(ctx, w.Pool)
	if err != nil {
		return fmt.Errorf("asking for the catalog: %w", err)
	}
	for _, t := range types {
		if err := typeIsSound(t); err != nil {
			return fmt.Errorf("instance type %q: %w", t.Name, err)
		}
	}
	return nil
}

func typeIsSound(t *cloudprovider.InstanceType) error {
	if got := t.Labels[corev1.LabelInstanceTypeStable]; len(got) != 1 || got[0] != t.Name {
		return fmt.Errorf("label %s is %v, want its name", corev1.LabelInstanceTypeStable, got)
	}
	for _, key := range []string{corev1.LabelArchStable, corev1.LabelOSStable} {
		if len(t.Labels[key]) == 0 {
			return fmt.Errorf("label %s is missing", key)
		}
	}
	for key, values := range t.Labels {
		if len(values) == 0 {
			return fmt.Errorf("label %s has no value", key)
		}
		for _, value := range values {
			if err := labelIsValid(key, value); err != nil {
				return err
			}
		}
	}
	if err := resourcesAreSound(t); err != nil {
		return err
	}
	return offeringsAreSound(t)
}

func labelIsValid(key, value string) error {
	if errs := validation.IsQualifiedName(key); len(errs) > 0 {
		return fmt.Errorf("label %q: %s", key, errs[0])
	}
	if errs := validation.IsValidLabelValue(value); value == "" || len(errs) > 0 {
		return fmt.Errorf("label %s has the value %q, which is empty or not valid", key, value)
	}
	return nil
}

func resourcesAreSound(t *cloudprovider.InstanceType) error {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if q := t.Capacity[name]; q.Sign() <= 0 {
			return fmt.Errorf("capacity has no %s", name)
		}
	}
	for name, kept := range t.Overhead {
		have, ok := t.Capacity[name]
		if !ok || kept.Sign() < 0 || have.Cmp(kept) <= 0 {
			return fmt.Errorf("overhead of %s is %s, capacity %s", name, kept.String(), have.String())
		}
	}
	return nil
}

func offeringsAreSound(t *cloudprovider.InstanceType) error {
	if len(t.Offerings) == 0 {
		return fmt.Errorf("there are no offerings")
	}
	seen := map[string]bool{}
	for _, o := range t.Offerings {
		for _, key := range []string{corev1.LabelTopologyZone, v1.CapacityTypeLabelKey} {
			if o.Labels[key] == "" {
				return fmt.Errorf("an offering lacks the label %s", key)
			}
		}
		for key, value := range o.Labels {
			if err := labelIsValid(key, value); err != nil {
				return fmt.Errorf("an offering: %w", err)
			}
		}
		if !(o.Price > 0) || math.IsInf(o.Price, 0) {
			return fmt.Errorf("offering %v has the price %v", o.Labels, o.Price)
		}
		text := fmt.Sprint(o.Labels)
		if seen[text] {
			return fmt.Errorf("offering %v is there twice", o.Labels)
		}
		seen[text] = true
	}
	return nil
}
