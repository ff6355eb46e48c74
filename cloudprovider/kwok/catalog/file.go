package catalog

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// fileType is an entry of an instance types file.
type fileType struct {
	Name             string              `json:"name"`
	Offerings        []fileOffering      `json:"offerings"`
	Architecture     string              `json:"architecture"`
	OperatingSystems []string            `json:"operatingSystems"`
	Resources        map[string]quantity `json:"resources"`
}

// fileOffering keeps the capital letters of the format; JSON keys are read in any case.
type fileOffering struct {
	Price               *float64          `json:"Price"`
	Available           *bool             `json:"Available"`
	ReservationCapacity int               `json:"ReservationCapacity"`
	Requirements        []fileRequirement `json:"Requirements"`
}

type fileRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// quantity is a resource quantity that may stand in the file as text or as a number. It is parsed when its entry is
// checked, so that an error can say whose it is.
type quantity string

func (q *quantity) UnmarshalJSON(data []byte) error {
	*q = quantity(strings.Trim(string(data), `"`))
	return nil
}

// Parse reads an instance types file: a JSON list of entries with name, offerings, architecture, operatingSystems and
// resources. Entries of one name that differ in architecture or operating systems only become one type that can be
// had in each of them. Errors name the entry, the field and what to write instead.
func Parse(r io.Reader) ([]*cloudprovider.InstanceType, error) {
	var raw []json.RawMessage
	decoder := json.NewDecoder(r)
	if err := decoder.Decode(&raw); err != nil {
		return nil, fmt.Errorf("the file must be a JSON list of instance types: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is text after the list; remove what follows its closing bracket")
	}
	byName := map[string]*cloudprovider.InstanceType{}
	for i, text := range raw {
		next, err := parseEntry(text)
		if err != nil {
			return nil, fmt.Errorf("entry %d%s: %w", i, nameOf(text), err)
		}
		have, ok := byName[next.Name]
		if !ok {
			byName[next.Name] = next
			continue
		}
		if err := merge(have, next); err != nil {
			return nil, fmt.Errorf("entry %d%s: %w", i, nameOf(text), err)
		}
	}
	if len(byName) == 0 {
		return nil, fmt.Errorf("the list is empty; name at least one instance type")
	}
	types := slices.Collect(maps.Values(byName))
	sortByName(types)
	return types, nil
}

// nameOf is the entry's name for an error message, if it has one.
func nameOf(text json.RawMessage) string {
	var named struct{ Name string }
	if json.Unmarshal(text, &named) != nil || named.Name == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", named.Name)
}

func parseEntry(text json.RawMessage) (*cloudprovider.InstanceType, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	var entry fileType
	if err := decoder.Decode(&entry); err != nil {
		return nil, fmt.Errorf(
			"%s; an entry has name, offerings, architecture, operatingSystems and resources, and an "+
				"offering has Price, Available and Requirements", strings.TrimPrefix(err.Error(), "json: "))
	}
	if entry.Name == "" {
		return nil, fmt.Errorf("name is missing; give the value of the %s label", corev1.LabelInstanceTypeStable)
	}
	arch, err := entry.architecture()
	if err != nil {
		return nil, err
	}
	if len(entry.OperatingSystems) == 0 || slices.Contains(entry.OperatingSystems, "") {
		return nil, fmt.Errorf(`operatingSystems must name at least one system; write ["linux"]`)
	}
	capacity, err := entry.capacity()
	if err != nil {
		return nil, err
	}
	if len(entry.Offerings) == 0 {
		return nil, fmt.Errorf("offerings is empty; give at least one with a Price and its zone and capacity type")
	}
	out := &cloudprovider.InstanceType{
		Name:     entry.Name,
		Labels:   shapeLabels(entry.Name, []string{arch}, entry.OperatingSystems, capacity),
		Capacity: capacity,
		Overhead: fileOverhead(),
	}
	for i, o := range entry.Offerings {
		converted, err := o.convert()
		if err != nil {
			return nil, fmt.Errorf("offerings[%d]: %w", i, err)
		}
		out.Offerings = append(out.Offerings, converted)
	}
	return out, nil
}

// architecture is the value of the kubernetes.io/arch label; EC2's word for amd64 is understood too.
func (e *fileType) architecture() (string, error) {
	switch e.Architecture {
	case "":
		return "", fmt.Errorf("architecture is missing; write %q or %q", v1.ArchitectureAmd64, v1.ArchitectureArm64)
	case "x86_64":
		return v1.ArchitectureAmd64, nil
	default:
		return e.Architecture, nil
	}
}

func (e *fileType) capacity() (corev1.ResourceList, error) {
	out := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")} // Kubernetes' own default
	for _, name := range slices.Sorted(maps.Keys(e.Resources)) {
		q, err := resource.ParseQuantity(string(e.Resources[name]))
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("resources[%s]: %q is not a quantity; write one such as \"4\" or \"16Gi\"", name,
				e.Resources[name])
		}
		out[corev1.ResourceName(name)] = q
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, ok := out[name]; !ok {
			return nil, fmt.Errorf("resources[%s] is missing; give a quantity such as \"4\" or \"16Gi\"", name)
		}
	}
	return out, nil
}

// fileOverhead is what Karpenter's kwok provider sets aside on every node, whatever its size, so that the same file
// gives the same nodes.
func fileOverhead() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("10Mi"),
	}
}

func (o *fileOffering) convert() (cloudprovider.Offering, error) {
	if o.Price == nil {
		return cloudprovider.Offering{}, fmt.Errorf("field Price is missing; give US dollars per hour, such as 0.096")
	}
	if *o.Price <= 0 || math.IsInf(*o.Price, 0) {
		return cloudprovider.Offering{}, fmt.Errorf("field Price is %v; give US dollars per hour above zero, such as "+
			"0.096", *o.Price)
	}
	if o.ReservationCapacity < 0 {
		return cloudprovider.Offering{}, fmt.Errorf("field ReservationCapacity is %d; give zero or more",
			o.ReservationCapacity)
	}
	labels := map[string]string{}
	for i, r := range o.Requirements {
		if r.Key == "" || r.Operator != string(corev1.NodeSelectorOpIn) || len(r.Values) != 1 || r.Values[0] == "" {
			return cloudprovider.Offering{}, fmt.Errorf("field Requirements[%d] (key %q, operator %q, values %q): an "+
				"offering has exactly "+
				`one value a key; write {"key": …, "operator": "In", "values": ["…"]}`, i, r.Key, r.Operator, r.Values)
		}
		if _, ok := labels[r.Key]; ok {
			return cloudprovider.Offering{}, fmt.Errorf("field Requirements[%d]: key %q is there already; remove one "+
				"of the two", i, r.Key)
		}
		labels[r.Key] = r.Values[0]
	}
	for _, key := range []string{corev1.LabelTopologyZone, v1.CapacityTypeLabelKey} {
		if labels[key] == "" {
			return cloudprovider.Offering{},
				fmt.Errorf(`field Requirements lacks %s; add {"key": %q, "operator": "In", "values": ["…"]}`, key, key)
		}
	}
	return cloudprovider.Offering{
		Labels:              labels,
		Price:               *o.Price,
		Available:           o.Available == nil || *o.Available,
		ReservationCapacity: o.ReservationCapacity,
	}, nil
}

// merge adds next's architectures and operating systems to have, which is the same shape at the same prices.
func merge(have, next *cloudprovider.InstanceType) error {
	if !reflect.DeepEqual(have.Offerings, next.Offerings) || !sameResources(have.Capacity, next.Capacity) {
		return fmt.Errorf("name %q is there already with other offerings or resources; give each type its own name",
			next.Name)
	}
	for _, key := range []string{corev1.LabelArchStable, corev1.LabelOSStable} {
		have.Labels[key] = union(have.Labels[key], next.Labels[key])
	}
	return nil
}

func union(a, b []string) []string {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

func sameResources(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}
