package v1beta1_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
	"github.com/tenon-sh/tenon/api/roundtrip"
)

func pool(t *testing.T, text string) *v1beta1.NodePool {
	t.Helper()
	out := &v1beta1.NodePool{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func toV1(t *testing.T, in *v1beta1.NodePool) *v1.NodePool {
	t.Helper()
	out := &v1.NodePool{}
	if err := in.ConvertTo(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func fromV1(t *testing.T, in *v1.NodePool) *v1beta1.NodePool {
	t.Helper()
	out := &v1beta1.NodePool{}
	if err := out.ConvertFrom(in); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNodePoolToV1(t *testing.T) {
	for name, tc := range map[string]struct {
		manifest string
		want     func(*v1.NodePool) any
		is       any
	}{
		"no reference": {"spec: {template: {spec: {requirements: []}}}",
			func(p *v1.NodePool) any { return *p.Spec.Template.Spec.NodeClassRef },
			v1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}},
		"reference under spec": {"spec: {template: {spec: {requirements: []}}, nodeClassRef: {name: gpu}}",
			func(p *v1.NodePool) any { return *p.Spec.Template.Spec.NodeClassRef },
			v1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "gpu"}},
		"reference by kind": {"spec: {template: {spec: {requirements: [], nodeClassRef: {kind: KWOKNodeClass, name: " +
			"a}}}}",
			func(p *v1.NodePool) any { return *p.Spec.Template.Spec.NodeClassRef },
			v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "a"}},
		"reference by group": {"spec: {template: {spec: {requirements: [], nodeClassRef: {apiVersion: " +
			"karpenter.kwok.sh/v1alpha1, name: a}}}}",
			func(p *v1.NodePool) any { return *p.Spec.Template.Spec.NodeClassRef },
			v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "a"}},
		"WhenIdle": {"spec: {template: {spec: {requirements: []}}, disruption: {consolidationPolicy: WhenIdle, " +
			"consolidateAfter: 30s}}",
			func(p *v1.NodePool) any {
				return string(p.Spec.Disruption.ConsolidationPolicy) + " " + p.Spec.Disruption.ConsolidateAfter.String()
			}, "WhenEmpty 30s"},
		"WhenEmpty without a wait": {"spec: {template: {spec: {requirements: []}}, disruption: {consolidationPolicy: " +
			"WhenEmpty}}",
			func(p *v1.NodePool) any {
				return string(p.Spec.Disruption.ConsolidationPolicy) + " " + p.Spec.Disruption.ConsolidateAfter.String()
			}, "WhenEmpty 0s"},
		"WhenUnderutilized with a wait": {"spec: {template: {spec: {requirements: []}}, disruption: " +
			"{consolidationPolicy: WhenUnderutilized, consolidateAfter: 1h}}",
			func(p *v1.NodePool) any {
				return string(p.Spec.Disruption.ConsolidationPolicy) + " " + p.Spec.Disruption.ConsolidateAfter.String()
			}, "WhenEmptyOrUnderutilized 1h"},
		"expireAfter": {"spec: {template: {spec: {requirements: []}}, disruption: {expireAfter: 24h}}",
			func(p *v1.NodePool) any { return p.Spec.Template.Spec.ExpireAfter.String() }, "24h"},
		"no expireAfter": {"spec: {template: {spec: {requirements: []}}}",
			func(p *v1.NodePool) any { return p.Spec.Template.Spec.ExpireAfter.String() }, "720h"},
		"limit that is a number": {"spec: {template: {spec: {requirements: []}}, limits: {cpu: 1000}}",
			func(p *v1.NodePool) any { return p.Spec.Limits.Cpu().Value() }, int64(1000)},
		"kubelet": {"spec: {template: {spec: {requirements: [], kubelet: {maxPods: 20}}}}",
			func(p *v1.NodePool) any { return p.Annotations[v1beta1.KubeletAnnotationKey] }, `{"maxPods":20}`},
		"reference of another version": {"spec: {template: {spec: {requirements: [], nodeClassRef: {name: a}}}}",
			func(p *v1.NodePool) any { return p.Annotations[v1beta1.NodeClassReferenceAnnotationKey] }, `{"name":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.want(toV1(t, pool(t, tc.manifest))); got != tc.is {
				t.Errorf("got %v, want %v", got, tc.is)
			}
		})
	}
}

// TestEditsWin: what somebody changes in one version holds, even if the other version said something there that this
// one could not show.
func TestEditsWin(t *testing.T) {
	stored := &v1.NodePool{}
	stored.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyBalanced
	stored.Spec.Replicas = new(int64(3))
	stored.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.k8s.aws",
		Kind: "EC2NodeClass", Name: "a"}
	old := fromV1(t, stored)
	if old.Spec.Disruption.ConsolidationPolicy != v1beta1.ConsolidationPolicyWhenUnderutilized {
		t.Errorf("Balanced shows as %q", old.Spec.Disruption.ConsolidationPolicy)
	}
	old.Spec.Weight = new(int32(7))
	if got := toV1(t, old).Spec; got.Disruption.ConsolidationPolicy != v1.ConsolidationPolicyBalanced ||
		*got.Replicas != 3 || *got.Weight != 7 {
		t.Errorf("after a change elsewhere: policy %s, replicas %d, weight %d", got.Disruption.ConsolidationPolicy,
			*got.Replicas, *got.Weight)
	}
	old.Spec.Disruption.ConsolidationPolicy = v1beta1.ConsolidationPolicyWhenEmpty
	if got := toV1(t, old).Spec.Disruption.ConsolidationPolicy; got != v1.ConsolidationPolicyWhenEmpty {
		t.Errorf("after a change of the policy to WhenEmpty it is %s", got)
	}
}

// TestReferenceEditedInV1: a reference that v1beta1 had in an odd place is shown in the right one once v1 has changed
// it.
func TestReferenceEditedInV1(t *testing.T) {
	stored := toV1(t, pool(t, "spec: {template: {spec: {requirements: []}}, nodeClassRef: {name: gpu}}"))
	if back := fromV1(t, stored).Spec; back.NodeClassRef == nil || back.NodeClassRef.Name != "gpu" ||
		back.Template.Spec.NodeClassRef != nil {
		t.Errorf("unchanged, the references are %v and %v", back.NodeClassRef, back.Template.Spec.NodeClassRef)
	}
	stored.Spec.Template.Spec.NodeClassRef.Name = "other"
	if back := fromV1(t, stored).Spec; back.NodeClassRef != nil || back.Template.Spec.NodeClassRef.Name != "other" {
		t.Errorf("changed, the references are %v and %v", back.NodeClassRef, back.Template.Spec.NodeClassRef)
	}
}

// TestAnnotationsOfThePeer: what a v1 object of Karpenter keeps for v1beta1 is understood.
func TestAnnotationsOfThePeer(t *testing.T) {
	stored := &v1.NodePool{}
	stored.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.k8s.aws",
		Kind: "EC2NodeClass", Name: "a"}
	stored.Annotations = map[string]string{
		v1beta1.KubeletAnnotationKey:            `{"maxPods": 20}`,
		v1beta1.NodeClassReferenceAnnotationKey: `{"name":"a"}`,
	}
	old := fromV1(t, stored)
	if k := old.Spec.Template.Spec.Kubelet; k == nil || *k.MaxPods != 20 {
		t.Errorf("the kubelet's settings are %v", k)
	}
	if ref := *old.Spec.Template.Spec.NodeClassRef; ref != (v1beta1.NodeClassReference{Name: "a"}) {
		t.Errorf("the reference is %v", ref)
	}
	if again := toV1(t, old); again.Annotations[v1beta1.KubeletAnnotationKey] != `{"maxPods": 20}` {
		t.Errorf("the annotations came back as %v", again.Annotations)
	}
}

// TestBrokenAnnotations: an annotation that is none of ours makes no object unreadable.
func TestBrokenAnnotations(t *testing.T) {
	for _, text := range []string{"x", "{}", "null", `[{"at":["spec"],"is":5}]`, `[{"at":[]}]`,
		`[{"at":["spec","limits"],"item":true,"is":1}]`} {
		stored := &v1.NodePool{}
		stored.Spec.Weight = new(int32(7))
		stored.Annotations = map[string]string{
			roundtrip.V1Beta1OnlyAnnotationKey: text, v1beta1.KubeletAnnotationKey: text,
			v1beta1.NodeClassReferenceAnnotationKey: text,
		}
		if got := fromV1(t, stored).Spec.Weight; got == nil || *got != 7 {
			t.Errorf("with the annotation %s the weight is %v", text, got)
		}
	}
}
