package machines

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/change"
)

// TestKeptNodeIsNotCordoned: a node that we keep for a move looks cordoned to Kubernetes, and to us as it will be.
func TestKeptNodeIsNotCordoned(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true,
		Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
			{Key: "a", Effect: corev1.TaintEffectNoSchedule}}}}
	if n := ReadNode(node, false, nil); !n.Cordoned || len(n.Taints) != 2 {
		t.Errorf("a node that somebody has cordoned: %+v", n)
	}
	kept := node.DeepCopy()
	kept.Annotations = map[string]string{cluster.KeptForAnnotation: "underutilized-x"}
	if n := ReadNode(kept, false, nil); n.Cordoned || n.KeptFor != "underutilized-x" || len(n.Taints) != 1 ||
		n.Taints[0].Key != "a" {
		t.Errorf("a node that is kept: %+v", n)
	}
	if !Opens(&NodeEntry{Node: ReadNode(kept, false, nil)}, &cluster.Node{Name: "n",
		Taints: []cluster.Taint{{Key: "a", Effect: cluster.NoSchedule}}}) {
		t.Error("nobody notices that it is opened")
	}
}

// A heartbeat is no change; what is told about health is one that no placement depends on.
func TestWhatANodesChangeMeans(t *testing.T) {
	before := &NodeEntry{Node: &cluster.Node{Name: "n", Version: "1", Ready: true}}
	for _, c := range []struct {
		what    string
		now     cluster.Node
		want    change.Kind
		changed bool
	}{
		{"a heartbeat", cluster.Node{Name: "n", Version: "2", Ready: true}, change.None, false},
		{"a condition", cluster.Node{Name: "n", Version: "2", Ready: true,
			Conditions: []cluster.NodeCondition{{Type: "Disk"}}}, change.None, true},
		{"it is not ready", cluster.Node{Name: "n", Version: "2"}, change.Room, true},
	} {
		if got, changed := NodeChange(before, &c.now); got != c.want || changed != c.changed {
			t.Errorf("%s: %b, %t", c.what, got, changed)
		}
	}
}
