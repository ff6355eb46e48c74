package defaultspread

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
)

// With whom a pod is spread follows from its Service and its controller, and whoever depends on them is named.
func TestServicesAndControllersTell(t *testing.T) {
	yes := true
	labels := map[string]string{"app": "web", "tier": "front"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p", Labels: labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs",
			Controller: &yes}}}}
	d, base := New([]corev1.TopologySpreadConstraint{{MaxSkew: 1}}), &podspec.Spec{}
	d.Read(pod, base)
	p := &cluster.Pod{UID: "p", Namespace: "default", Labels: cluster.LabelsOf(labels)}
	if got, _, text := d.Of(p); got != base || text != "" {
		t.Errorf("nobody selects it, and it is spread: %s", text)
	}
	labelsOf := func(string) cluster.Labels { return p.Labels }
	for _, s := range []struct {
		what string
		uids []string
		want string
	}{
		{"a Service of others", d.SetService("default", "other", map[string]string{"app": "db"}, labelsOf), ""},
		{"a Service", d.SetService("default", "web", map[string]string{"app": "web"}, labelsOf), "p"},
		{"the same", d.SetService("default", "web", map[string]string{"app": "web"}, labelsOf), ""},
		{"its ReplicaSet", d.SetController(&appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rs"},
			Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
				"tier": "front"}}}}), "p"},
	} {
		if s.want == "" && len(s.uids) > 0 || s.want != "" && !slices.Equal(s.uids, []string{s.want}) {
			t.Errorf("%s concerns %q, want %q", s.what, s.uids, s.want)
		}
	}
	if _, with, _ := d.Of(p); with.Labels.String() != "app In [web]; tier In [front]" {
		t.Errorf("spread with %s", with.Labels)
	}
	d.Forget("p")
	if uids := d.SetService("default", "web", nil, labelsOf); len(uids) > 0 || len(d.podsOf) > 0 {
		t.Error("a pod that is gone is kept")
	}
}
