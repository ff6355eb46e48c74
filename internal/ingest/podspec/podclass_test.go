package podspec

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/resource"
)

// asking is a pod that asks for one of each resource.
func asking(names ...string) *corev1.PodSpec {
	list := make(corev1.ResourceList)
	for _, name := range names {
		list[corev1.ResourceName(name)] = apiresource.MustParse("1")
	}
	return &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list}}}}
}

func read(s *Specs, pod *corev1.PodSpec) *Spec {
	return s.Of(&metav1.ObjectMeta{Namespace: "default"}, pod, &corev1.PodStatus{})
}

// Pods that ask for the same share a spec and a class; what no pod has is forgotten, and takes no bytes.
func TestSpecsAreSharedAndForgotten(t *testing.T) {
	s := New()
	first := s.Class(read(&s, asking("cpu")))
	if again := s.Class(read(&s, asking("cpu"))); again != first {
		t.Error("two pods that ask for the same have two classes")
	}
	other := s.Class(read(&s, asking("memory")))
	if other == first || s.KnownClass(other.Key) != other || s.Entries().Classes != 2 {
		t.Errorf("classes %+v", s.Entries())
	}
	s.Labels(map[string]string{"app": "web"})
	s.Forget(Used{Classes: map[*cluster.PodClass]bool{first: true}})
	if left := s.Entries(); left != (Entries{PodKeys: 1, Classes: 1}) {
		t.Errorf("%+v is left", left)
	}
	if s.Bytes() != s.countBytes() || s.KnownClass(other.Key) != nil {
		t.Errorf("%d bytes are counted, there are %d", s.Bytes(), s.countBytes())
	}
}

// A class does not count what nobody offers, and is made anew once somebody does.
func TestWhatIsOfferedGetsANumber(t *testing.T) {
	s := New()
	class := s.Class(read(&s, asking("example.com/ring")))
	if _, missing := s.Obstacles(class.Key); !slices.Equal(missing, []string{"example.com/ring"}) ||
		len(class.Unsupported) != 1 {
		t.Fatalf("missing %q, %q", missing, class.Unsupported)
	}
	s.Dims.Offer(nil, []corev1.ResourceList{{"example.com/ring": apiresource.MustParse("2")}})
	if !s.Dims.TakeNewOffers() || s.Dims.TakeNewOffers() {
		t.Error("a new offer is told once")
	}
	s.NumberRequested()
	now := s.Remake(s.Dims.LacksDimension)[class]
	dim, _ := s.Dims.Names.Lookup("example.com/ring")
	if now == nil || len(now.Unsupported) > 0 || now.Requests[dim] != 1 || !s.Dims.TakeMeasureDue() {
		t.Errorf("the class is %+v", now)
	}
}

// A number that nobody uses is given to somebody who found none, after a while.
func TestNumbersAreGivenBack(t *testing.T) {
	d := New().Dims
	for i := range resource.Size {
		d.Number(corev1.ResourceList{corev1.ResourceName(fmt.Sprintf("example.com/%d", i)): apiresource.MustParse("1")})
	}
	if !d.IsOut() {
		t.Fatal("there are numbers left")
	}
	var used [resource.Size]bool
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	if d.FreeUnused(used, now) || d.FreeUnused(used, now.Add(ReclaimAfter-1)) {
		t.Error("a number is taken away at once")
	}
	if !d.FreeUnused(used, now.Add(ReclaimAfter)) {
		t.Error("no number is free")
	}
}
