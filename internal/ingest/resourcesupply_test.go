package ingest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
	"github.com/tenon-sh/tenon/internal/resource"
)

// selling makes a pool that sells one type with the resources.
func selling(b *Book, names ...string) {
	ref := cluster.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	b.SetNodeClass(ref, cluster.NodeClassState{Ready: true})
	b.SetPool(pool("default"))
	t := &cloudprovider.InstanceType{Name: "large", Capacity: quantity("8")}
	for _, name := range names {
		t.Capacity[corev1.ResourceName(name)] = apiresource.MustParse("4")
	}
	b.setCatalog("default", 0, []*cloudprovider.InstanceType{t}, nil)
}

func findPod(t *testing.T, b *Book, uid string) *cluster.Pod {
	t.Helper()
	for _, p := range b.Snapshot().Pods {
		if p.UID == uid {
			return p
		}
	}
	t.Fatalf("pod %s is gone", uid)
	return nil
}

// TestInventedResourcesTakeNoDimension: what nobody offers can't be had, and must not keep anybody from what can.
func TestInventedResourcesTakeNoDimension(t *testing.T) {
	b, _ := newBook()
	selling(b, "nvidia.com/gpu")
	greedy := odd("greedy", "example.com/r0")
	for i := range 12 {
		greedy.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint("example.com/r", i))] =
			apiresource.MustParse("1")
	}
	b.SetPod(greedy)
	b.SetPod(odd("honest", "nvidia.com/gpu"))
	p := findPod(t, b, "greedy")
	if len(p.Class.Unsupported) != 1 || !strings.Contains(p.Class.Unsupported[0], "no instance type and no node "+
		"offers them") {
		t.Errorf("the pod is told %q", p.Class.Unsupported)
	}
	honest := findPod(t, b, "honest")
	dim, numbered := b.Names().Lookup("nvidia.com/gpu")
	if len(honest.Class.Unsupported) > 0 || !numbered || honest.Class.Requests[dim] != 2 {
		t.Errorf("the pod with a GPU: %+v", honest.Class)
	}
	if n := b.Names().Len(); n != resource.Pods+2 {
		t.Errorf("%d dimensions are in use, want one beside the fixed ones", n)
	}
}

// TestResourceThatAppearsIsCounted: a device plugin, or a catalog, may come after the pods.
func TestResourceThatAppearsIsCounted(t *testing.T) {
	b, _ := newBook()
	b.SetPod(odd("a", "example.com/fpga"))
	b.SetPod(odd("b", "nvidia.com/gpu"))
	if p := findPod(t, b, "a"); len(p.Class.Unsupported) != 1 {
		t.Fatalf("nobody offers it: %+v", p.Class)
	}
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"example.com/fpga": apiresource.MustParse("4")}}})
	selling(b, "nvidia.com/gpu")
	for uid, name := range map[string]string{"a": "example.com/fpga", "b": "nvidia.com/gpu"} {
		p := findPod(t, b, uid)
		dim, ok := b.Names().Lookup(name)
		if len(p.Class.Unsupported) > 0 || !ok || p.Class.Requests[dim] != 2 {
			t.Errorf("%s is offered now: %+v", name, p.Class)
		}
	}
	if dim, _ := b.Names().Lookup("example.com/fpga"); b.Snapshot().Node("n").Allocatable[dim] != 4 {
		t.Errorf("the node shows %v", b.Snapshot().Node("n").Allocatable)
	}
}

// TestWhatIsSoldComesFirst: resources that only nodes offer don't keep a GPU from being counted.
func TestWhatIsSoldComesFirst(t *testing.T) {
	b, clock := newBook()
	selling(b, "nvidia.com/gpu")
	extra := resource.Size - resource.Pods - 1
	devices := corev1.ResourceList{}
	for i := range extra {
		name := fmt.Sprint("example.com/r", i)
		devices[corev1.ResourceName(name)] = apiresource.MustParse("9")
		b.SetPod(odd(fmt.Sprint(i), name))
	}
	b.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Allocatable: devices}})
	b.Snapshot() // all dimensions are taken
	b.SetPod(odd("gpu", "nvidia.com/gpu"))
	if p := findPod(t, b, "gpu"); len(p.Class.Unsupported) != 1 {
		t.Fatalf("there is no dimension left, yet %+v", p.Class)
	}
	clock.tick(2 * podspec.ReclaimAfter)
	p := findPod(t, b, "gpu")
	dim, ok := b.Names().Lookup("nvidia.com/gpu")
	if len(p.Class.Unsupported) > 0 || !ok || p.Class.Requests[dim] != 2 {
		t.Fatalf("the GPU has no dimension: %+v", p.Class)
	}
	refused := 0
	for _, p := range b.Snapshot().Pods {
		if len(p.Class.Unsupported) > 0 {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d pods are refused, want the one whose dimension was given away", refused)
	}
}

// TestTooManyKindsOfResource: a list of thousands of resources is refused by its length.
func TestTooManyKindsOfResource(t *testing.T) {
	b, _ := newBook()
	selling(b, "nvidia.com/gpu")
	p := odd("many", "nvidia.com/gpu")
	for i := range podspec.MostResources + 1 {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint("example.com/r", i))] =
			apiresource.MustParse("1")
	}
	b.SetPod(p)
	class := findPod(t, b, "many").Class
	if len(class.Unsupported) != 1 || !strings.Contains(class.Unsupported[0], "at most 64 are read") {
		t.Errorf("the pod is told %q", class.Unsupported)
	}
}
