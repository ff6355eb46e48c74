package catalog

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// Region is the region that the embedded catalog describes; its zones are the region with a letter.
const Region = "us-west-2"

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// shape is one line of ec2.csv.
type shape struct {
	name         string
	vcpu         int64
	memoryMiB    int64
	arch         string
	accelerator  string
	accelerators int64
	storageGB    int64
	maxENIs      int64
	ipsPerENI    int64
	zones        string
	onDemand     float64
	spot         []float64 // one a zone, or none
}

func parseEC2(r io.Reader) ([]*cloudprovider.InstanceType, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("parsing the CSV: %w", err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the file is empty; run make generate")
	}
	index := map[string]int{}
	for i, column := range rows[0] {
		index[column] = i
	}
	types := make([]*cloudprovider.InstanceType, 0, len(rows)-1)
	for _, row := range rows[1:] {
		s, err := readShape(index, row)
		if err != nil {
			return nil, fmt.Errorf("instance type %s: %w", row[0], err)
		}
		types = append(types, s.instanceType())
	}
	sortByName(types)
	return types, nil
}

// fields reads the cells of a row by column name and remembers the first that is wrong.
type fields struct {
	index map[string]int
	row   []string
	err   error
}

func (f *fields) text(column string) string {
	i, ok := f.index[column]
	if !ok {
		f.fail(column, "the column is missing")
		return ""
	}
	return f.row[i]
}

func (f *fields) number(column string) int64 {
	text := f.text(column)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		f.fail(column, fmt.Sprintf("%q is not a whole number", text))
	}
	return n
}

func (f *fields) price(column, text string) float64 {
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || p <= 0 {
		f.fail(column, fmt.Sprintf("%q is not a price", text))
	}
	return p
}

func (f *fields) fail(column, message string) {
	if f.err == nil {
		f.err = fmt.Errorf("column %s: %s; run make generate", column, message)
	}
}

func readShape(index map[string]int, row []string) (*shape, error) {
	f := &fields{index: index, row: row}
	s := &shape{
		name:         f.text("name"),
		vcpu:         f.number("vcpu"),
		memoryMiB:    f.number("memory_mib"),
		arch:         f.text("arch"),
		accelerator:  f.text("accelerator"),
		accelerators: f.number("accelerators"),
		storageGB:    f.number("storage_gb"),
		maxENIs:      f.number("max_enis"),
		ipsPerENI:    f.number("ips_per_eni"),
		zones:        f.text("zones"),
		onDemand:     f.price("on_demand", f.text("on_demand")),
	}
	for _, text := range strings.Fields(f.text("spot")) {
		s.spot = append(s.spot, f.price("spot", text))
	}
	if len(s.spot) != 0 && len(s.spot) != len(s.zones) {
		f.fail("spot", fmt.Sprintf("%d prices for %d zones", len(s.spot), len(s.zones)))
	}
	return s, f.err
}

func (s *shape) instanceType() *cloudprovider.InstanceType {
	capacity := s.capacity()
	labels := shapeLabels(s.name, []string{s.arch}, []string{string(corev1.Linux)}, capacity)
	labels[corev1.LabelTopologyRegion] = []string{Region}
	return &cloudprovider.InstanceType{
		Name:      s.name,
		Labels:    labels,
		Capacity:  capacity,
		Overhead:  s.overhead(),
		Offerings: s.offerings(),
	}
}

// defaultDiskGiB is the root volume of a node without disks of its own.
const defaultDiskGiB = 20

func (s *shape) capacity() corev1.ResourceList {
	disk := *resource.NewQuantity(defaultDiskGiB*gib, resource.BinarySI)
	if s.storageGB > 0 {
		disk = *resource.NewQuantity(s.storageGB*1e9, resource.DecimalSI)
	}
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(s.vcpu, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(s.memoryMiB*mib, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(s.maxPods(), resource.DecimalSI),
		corev1.ResourceEphemeralStorage: disk,
	}
	if s.accelerator != "" {
		list[corev1.ResourceName(s.accelerator)] = *resource.NewQuantity(s.accelerators, resource.DecimalSI)
	}
	return list
}

// maxENIsPerCard bounds the interfaces that count: pods get addresses from the first network card only.
const maxENIsPerCard = 15

// maxPods is how many pods get an address of their own: each interface keeps one address for itself, and two pods of
// the host network need none.
func (s *shape) maxPods() int64 {
	return min(s.maxENIs, maxENIsPerCard)*(s.ipsPerENI-1) + 2
}

// overhead is what EKS's node images set aside for the kubelet and the system, and the kubelet's eviction threshold:
// 11 MiB a pod + 255 MiB + 100 MiB of memory; 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 %
// of the rest; 1 GiB + 10 % of the disk.
func (s *shape) overhead() corev1.ResourceList {
	capacity := s.capacity()
	disk := capacity[corev1.ResourceEphemeralStorage]
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(reservedMilliCPU(s.vcpu), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity((11*s.maxPods()+255+100)*mib, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(gib+disk.Value()/10, resource.BinarySI),
	}
}

func reservedMilliCPU(cores int64) int64 {
	first := min(cores, 1)
	second := min(max(cores-1, 0), 1)
	nextTwo := min(max(cores-2, 0), 2)
	rest := max(cores-4, 0)
	tenths := 600*first + 100*second + 50*nextTwo + 25*rest // tenths of a milli-CPU
	return tenths / 10
}

func (s *shape) offerings() []cloudprovider.Offering {
	out := make([]cloudprovider.Offering, 0, 2*len(s.zones))
	for i, letter := range s.zones {
		zone := Region + string(letter)
		out = append(out, offering(zone, v1.CapacityTypeOnDemand, s.onDemand))
		if len(s.spot) > 0 {
			out = append(out, offering(zone, v1.CapacityTypeSpot, s.spot[i]))
		}
	}
	return out
}

func offering(zone, capacityType string, price float64) cloudprovider.Offering {
	return cloudprovider.Offering{
		Labels:    map[string]string{corev1.LabelTopologyZone: zone, v1.CapacityTypeLabelKey: capacityType},
		Price:     price,
		Available: true,
	}
}
