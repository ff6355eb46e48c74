package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
)

// fewTypes is the size of the smaller catalog.
const fewTypes = 400

// sold is what the cloud sells: all of EC2's shapes, or a few hundred for general use.
func sold(few bool) ([]*cloudprovider.InstanceType, error) {
	all, err := catalog.Default()
	if err != nil {
		return nil, err
	}
	if !few {
		return all, nil
	}
	var general []*cloudprovider.InstanceType
	for _, t := range all {
		if isGeneral(t) {
			general = append(general, t)
		}
	}
	if len(general) < fewTypes {
		return nil, fmt.Errorf("the catalog has %d types for general use; %d are needed", len(general), fewTypes)
	}
	out := make([]*cloudprovider.InstanceType, fewTypes)
	for i := range out {
		out[i] = general[i*len(general)/fewTypes]
	}
	return out, nil
}

// isGeneral tells virtual machines of the families c, m and r that are sold in all zones and in both ways.
func isGeneral(t *cloudprovider.InstanceType) bool {
	return strings.ContainsRune("cmr", rune(t.Name[0])) && !strings.Contains(t.Name, "metal") &&
		len(t.Offerings) == 2*len(zones())
}

// zones are those of the catalog.
func zones() []string {
	var out []string
	for _, letter := range "abcd" {
		out = append(out, catalog.Region+string(letter))
	}
	return out
}

// Domains are the zones and capacity types in which the workload's types are sold.
func (w *Workload) Domains() (zones, terms []string) {
	z, c := make(map[string]bool), make(map[string]bool)
	for _, t := range w.Types {
		for _, o := range t.Offerings {
			z[o.Labels[corev1.LabelTopologyZone]] = true
			c[o.Labels[v1.CapacityTypeLabelKey]] = true
		}
	}
	return slices.Sorted(maps.Keys(z)), slices.Sorted(maps.Keys(c))
}

// usualPool is a pool as people have them and as the peer's documentation suggests: spot and on-demand, any
// architecture, the families c, m and r. Without the last, a solver that fills the largest machine it finds would end
// up on ones with terabytes of memory, and be easy to beat.
func usualPool(name string, types []*cloudprovider.InstanceType) *v1.NodePool {
	return familyPool(name, familiesOf(types, "cmr")...)
}

// familyPool is a pool that may buy some families.
func familyPool(name string, families ...string) *v1.NodePool {
	return pool(name,
		in(v1.CapacityTypeLabelKey, v1.CapacityTypeSpot, v1.CapacityTypeOnDemand),
		in(corev1.LabelArchStable, "amd64", "arm64"),
		in(corev1.LabelOSStable, string(corev1.Linux)),
		in(kwokv1alpha1.InstanceFamilyLabelKey, families...))
}

func pool(name string, requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodePool {
	p := &v1.NodePool{}
	p.Name = name
	p.UID = uid("pool", name)
	p.Generation = 1
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind,
		Name: NodeClass}
	p.Spec.Template.Spec.Requirements = requirements
	return p
}

// NodeClass is the name of the NodeClass that all pools refer to.
const NodeClass = "default"

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// familiesOf lists the families whose names begin with one of the letters.
func familiesOf(types []*cloudprovider.InstanceType, letters string) []string {
	var out []string
	for _, t := range types {
		family := t.Labels[kwokv1alpha1.InstanceFamilyLabelKey][0]
		if strings.ContainsRune(letters, rune(family[0])) && !slices.Contains(out, family) {
			out = append(out, family)
		}
	}
	slices.Sort(out)
	return out
}
