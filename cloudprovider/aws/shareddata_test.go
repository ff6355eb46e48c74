package aws_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// allFamilies are all that EC2 sells in the region.
func allFamilies(b testing.TB) []string {
	all, err := sold()
	if err != nil {
		b.Fatal(err)
	}
	var out []string
	for _, i := range all.kinds {
		if family, _, _ := strings.Cut(string(i.InstanceType), "."); !slices.Contains(out, family) {
			out = append(out, family)
		}
	}
	return out
}

// BenchmarkManyClasses says how much memory is in use for the lists of 45 EC2NodeClasses, with all instance types of
// the region.
func BenchmarkManyClasses(b *testing.B) {
	for b.Loop() {
		w, err := newWorld(b.Context(), setup{families: allFamilies(b), direct: true})
		if err != nil {
			b.Fatal(err)
		}
		p, err := w.provider()
		if err != nil {
			b.Fatal(err)
		}
		var lists [][]*cloudprovider.InstanceType
		var before uint64
		offerings := 0
		for i := range 46 {
			if i == 1 { // the first has to read what EC2 sells
				before = heap()
			}
			class := w.class()
			class.Name, class.UID = fmt.Sprintf("class-%02d", i), types.UID(fmt.Sprintf("uid-%02d", i))
			class.Status.InstanceProfile = class.Name
			if i%2 == 1 { // half of them differ in what their nodes have for pods
				class.Spec.Kubelet = awsv1.KubeletConfiguration{"maxPods": {Raw: fmt.Append(nil, 20+i)}}
			}
			if err := w.kube.Create(b.Context(), class); err != nil {
				b.Fatal(err)
			}
			of := pool()
			of.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: classRef().Group, Kind: classRef().Kind,
				Name: class.Name}
			list, err := p.InstanceTypes(b.Context(), of)
			if err != nil {
				b.Fatal(err)
			}
			lists = append(lists, list)
			for _, t := range list {
				offerings += len(t.Offerings)
			}
		}
		b.ReportMetric(float64(heap()-before)/45/1e6, "MB/class")
		b.ReportMetric(float64(offerings)/46, "offerings/class")
		b.ReportMetric(float64(len(lists[0])), "types/class")
		runtime.KeepAlive(lists)
		runtime.KeepAlive(p)
		w.close()
	}
}

// What is the same in the lists of two classes is kept once, and nothing else.
func TestClassesShareWhatIsTheSame(t *testing.T) {
	w, p := start(t, setup{})
	list := func(name string, maxPods int) []*cloudprovider.InstanceType {
		class := w.class()
		class.Name, class.UID = name, types.UID("uid-"+name)
		if maxPods > 0 {
			class.Spec.Kubelet = awsv1.KubeletConfiguration{"maxPods": {Raw: fmt.Append(nil, maxPods)}}
		}
		if err := w.kube.Create(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		of := pool()
		of.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: classRef().Group, Kind: classRef().Kind,
			Name: name}
		out, err := p.InstanceTypes(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	a, b, c := list("a", 0), list("b", 0), list("c", 7)
	if len(a) == 0 || len(b) != len(a) || len(c) != len(a) {
		t.Fatalf("the classes have %d, %d and %d types", len(a), len(b), len(c))
	}
	for i := range a {
		for _, other := range []*cloudprovider.InstanceType{b[i], c[i]} {
			if reflect.ValueOf(a[i].Labels).Pointer() != reflect.ValueOf(other.Labels).Pointer() {
				t.Errorf("the labels of %s are kept twice", a[i].Name)
			}
			if got := other.Offerings[0].Labels[awsv1.NodeClassLabelKey]; got == "a" || got == "" {
				t.Errorf("%s has the class %q", a[i].Name, got)
			}
		}
		if reflect.ValueOf(a[i].Capacity).Pointer() != reflect.ValueOf(b[i].Capacity).Pointer() {
			t.Errorf("the capacity of %s is kept twice for two classes that differ in nothing", a[i].Name)
		}
		if got := c[i].Capacity.Pods().Value(); got != 7 || a[i].Capacity.Pods().Value() == 7 {
			t.Errorf("%s has room for %d pods, want 7; for the others %s", a[i].Name, got, a[i].Capacity.Pods())
		}
	}
}
