package actuate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
)

// TestNodeIsKeptAndOpened keeps a node for a move, and opens it; a node that somebody else has cordoned stays closed.
func TestNodeIsKeptAndOpened(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{v1.UnregisteredNoExecuteTaint()}}}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	s := newStage(t, interceptor.Funcs{}, ours("a"), node, other)
	for _, step := range []struct {
		command command.Command
		node    string
		closed  bool
		mark    string
	}{
		{command.Register{Claim: "a", Node: "a", KeepFor: "underutilized-x"}, "a", true, "underutilized-x"},
		{command.Open{Claim: "a", Node: "a"}, "a", false, ""},
		{command.Open{Claim: "a", Node: "b"}, "b", true, ""},
	} {
		if out := s.do(step.command); out.Err != nil {
			t.Fatal(out.Err)
		}
		n := &corev1.Node{}
		if err := s.api.Get(t.Context(), client.ObjectKey{Name: step.node}, n); err != nil {
			t.Fatal(err)
		}
		if n.Spec.Unschedulable != step.closed || n.Annotations[cluster.KeptForAnnotation] != step.mark {
			t.Errorf("after %+v the node is closed: %v, marked %q", step.command, n.Spec.Unschedulable,
				n.Annotations[cluster.KeptForAnnotation])
		}
	}
}
