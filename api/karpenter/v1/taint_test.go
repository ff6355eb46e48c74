package v1

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCoreTaints(t *testing.T) {
	if got := CoreTaints(nil); got != nil {
		t.Errorf("no taints became %v", got)
	}
	now := metav1.Now()
	ours := []Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoExecute, TimeAdded: &now}}
	got := CoreTaints(ours)
	if len(got) != 1 || got[0].Key != "a" || got[0].Value != "b" || got[0].Effect != corev1.TaintEffectNoExecute {
		t.Fatalf("got %+v", got)
	}
	if got[0].TimeAdded == ours[0].TimeAdded || !got[0].TimeAdded.Equal(ours[0].TimeAdded) {
		t.Errorf("the time was shared or lost: %v", got[0].TimeAdded)
	}
}
