package hostile_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/internal/hostile"
	"github.com/tenon-sh/tenon/internal/plan"
)

// Who may make a DaemonSet in a namespace can't keep all others from their nodes by one that fits on no machine.
func TestADaemonSetThatFitsNowhere(t *testing.T) {
	for name, cpu := range map[string]string{"ten thousand CPUs": "10000", "one more than any machine has": "449"} {
		book := newBook(t, ordinary)
		p := hostile.Pod("huge")
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = apiresource.MustParse(cpu)
		feed(book, hostile.DaemonSet(p))
		stock(t, book)
		out := plan.Make(book.Snapshot(), policy(), nil, nil)
		if n := len(placedPods(&out.Placement)); n != ordinary {
			t.Errorf("%s: %d of %d pods have a place", name, n, ordinary)
		}
	}
}
