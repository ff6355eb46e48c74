package ingest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// TestKeptNodeIsNotCordoned: a node that we keep for a move looks cordoned to Kubernetes, and to us as it will be.
func TestKeptNodeIsNotCordoned(t *testing.T) {
	b, _ := newBook()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true,
		Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
			{Key: "a", Effect: corev1.TaintEffectNoSchedule}}}}
	b.SetNode(node)
	if n := b.Snapshot().Node("n"); !n.Cordoned || len(n.Taints) != 2 {
		t.Errorf("a node that somebody has cordoned: %+v", n)
	}
	kept := node.DeepCopy()
	kept.Annotations = map[string]string{cluster.KeptForAnnotation: "underutilized-x"}
	b.SetNode(kept)
	if n := b.Snapshot().Node("n"); n.Cordoned || n.KeptFor != "underutilized-x" || len(n.Taints) != 1 ||
		n.Taints[0].Key != "a" {
		t.Errorf("a node that is kept: %+v", n)
	}
	if !opensNode(b.nodes["n"], &cluster.Node{Name: "n",
		Taints: []cluster.Taint{{Key: "a", Effect: cluster.NoSchedule}}}) {
		t.Error("nobody notices that it is opened")
	}
}
