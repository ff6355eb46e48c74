package ingest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/internal/resource"
)

// A request below zero makes no room for others, and nobody has less than nothing of anything.
func TestAmountsBelowZeroAreNothing(t *testing.T) {
	b, _ := newBook()
	p := judgedPod("web")
	p.Spec.Containers = []corev1.Container{{Name: "c",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: apiresource.MustParse("-2"), corev1.ResourceMemory: apiresource.MustParse("1Gi")}}}}
	b.SetPod(p)
	s := b.Snapshot()
	if got := s.Pods[0].Class.Requests; got[resource.CPU] != 0 || got[resource.Memory] != 1<<30 ||
		got[resource.Pods] != 1 {
		t.Errorf("a request of -2 CPUs and 1Gi counts as %s", s.Names.String(got))
	}
	list := corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("-1"),
		corev1.ResourceMemory: apiresource.MustParse("2Gi")}
	if got := b.specs.Dims.Measure(list); got[resource.CPU] != 0 || got[resource.Memory] != 2<<30 {
		t.Errorf("a capacity of -1 CPU and 2Gi counts as %s", s.Names.String(got))
	}
}
