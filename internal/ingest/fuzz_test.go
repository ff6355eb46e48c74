package ingest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/plan"
	"github.com/tenon-sh/tenon/internal/validate"
)

func fuzzBook(now time.Time) *Book {
	kind := cluster.ClassRef{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}
	b := New(func() time.Time { return now }, validate.Labels{}, []cluster.ClassRef{kind})
	kind.Name = "default"
	b.SetNodeClass(kind, cluster.NodeClassState{Ready: true})
	return b
}

type nothingSold struct{}

func (nothingSold) InstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return nil, nil
}

func fuzzTime() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) }

// FuzzPool takes in a NodePool as it is stored, whatever is in it. It becomes a pool or a problem in its own condition;
// it hides no other pool, and it can be planned with.
func FuzzPool(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"name":"p","uid":"u","generation":1},` +
			`"spec":{"template":{"spec":{"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass",` +
			`"name":"default"},"requirements":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["a"],` +
			`"minValues":2}],"expireAfter":"720h"}},"limits":{"cpu":"10","nodes":"3"},` +
			`"disruption":{"consolidateAfter":"30s","budgets":[{"nodes":"10%","schedule":"0 9 * * mon",` +
			`"duration":"1h"}]},"weight":10}}`,
		`{"metadata":{"name":"p","annotations":{"tenon.sh/dry-run":"true","tenon.sh/drift-strategy":"canary",` +
			`"tenon.sh/soft-expiry":"1h"}},"spec":{"replicas":3}}`,
		`{"metadata":{"name":"p"},"spec":{"limits":{"cpu":"1e1.5"},"template":{"spec":{"expireAfter":"soon"}},` +
			`"disruption":{"consolidateAfter":"Never","budgets":[{"nodes":"-1"},{"nodes":"x%"}]}}}`,
		`{"metadata":{"name":"p","deletionTimestamp":"2026-03-28T11:00:00Z"},` +
			`"spec":{"template":{"spec":{"taints":[{"key":"a","effect":"Odd"}],"startupTaints":[{}],` +
			`"requirements":[{"key":"","operator":"Gt","values":["many"]}]}}}}`,
		`{}`, `{"metadata":{"name":"p"},"spec":[]}`,
		`{"metadata":{"name":"p"},"spec":{"template":{"metadata":{"labels":{"a":{"b":1}}}}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object := map[string]any{}
		if json.Unmarshal(data, &object) != nil {
			return
		}
		u := &unstructured.Unstructured{Object: object}
		u.SetName("p")
		b := fuzzBook(fuzzTime())
		good := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "good", UID: "good"}}
		good.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
			Name: "default"}
		b.SetPool(good)
		b.setStoredPool(u)
		b.setStoredPool(u)
		b.FetchCatalogs(context.Background(), nothingSold{})
		s := b.Snapshot()
		if s.Pool("good") == nil || s.Pool("p") == nil {
			t.Fatalf("of two pools %d are known", len(s.Pools))
		}
		if p := s.Pool("p"); (p.ConsolidateAfter.For < 0 || p.Template.TerminationGrace < 0) && len(p.Problems) == 0 {
			t.Errorf("%s becomes a pool with times that are negative, and no problem", data)
		}
		plan.Make(s, plan.Policy{StaticCapacity: true}, nil, nil)
		b.DeletePool("p")
		if left := b.Snapshot(); left.Pool("p") != nil || left.Pool("good") == nil {
			t.Error("the pool is deleted and stays, or takes another with it")
		}
	})
}

// FuzzClaim does the same for a NodeClaim.
func FuzzClaim(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"name":"c","uid":"u","labels":{"karpenter.sh/nodepool":"p"},` +
			`"finalizers":["karpenter.sh/termination"],"annotations":{"tenon.sh/seats":"a=1,b=2",` +
			`"tenon.sh/move":"Underutilized/1"}},"spec":{"nodeClassRef":{"group":"karpenter.kwok.sh",` +
			`"kind":"KWOKNodeClass","name":"default"},"expireAfter":"Never","requirements":[]},` +
			`"status":{"providerID":"x:///1","nodeName":"n","conditions":[{"type":"Launched","status":"True",` +
			`"lastTransitionTime":"2026-03-28T11:00:00Z"}]}}`,
		`{"metadata":{"name":"c","annotations":{"tenon.sh/interruption":"SpotInterruption 2026-03-28T12:02:00Z",` +
			`"karpenter.sh/nodeclaim-termination-timestamp":"soon","tenon.sh/rest":"1 2026-03-28T12:02:00Z",` +
			`"tenon.sh/replaces":"x"}},"status":{"capacity":{"cpu":"-5","memory":"9E"}}}`,
		`{"metadata":{"name":"c","deletionTimestamp":"2026-03-28T11:00:00Z"},` +
			`"spec":{"terminationGracePeriod":"2562047h"}}`,
		`{}`, `{"spec":{"requirements":"none"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		object := map[string]any{}
		if json.Unmarshal(data, &object) != nil {
			return
		}
		u := &unstructured.Unstructured{Object: object}
		u.SetName("c")
		b := fuzzBook(fuzzTime())
		b.setStoredClaim(u)
		b.setStoredClaim(u)
		s := b.Snapshot()
		if len(s.Claims) != 1 {
			t.Fatalf("there are %d claims", len(s.Claims))
		}
		p := plan.Make(s, plan.Policy{}, nil, nil)
		plan.Check(p, s)
		b.DeleteClaim("c")
		if left := b.Snapshot(); len(left.Claims) != 0 {
			t.Error("the claim is deleted and stays")
		}
	})
}

// FuzzAnnotations writes any text into each annotation that is read, of a claim, a node, a pod and a pool.
func FuzzAnnotations(f *testing.F) {
	for _, text := range []string{"true", "a=1", `[{"class":"x","count":2}]`, "10m", "-1h", "9999999999h",
		"SpotInterruption 2026-03-28T12:02:00Z", "Underutilized/abc", "2026-03-28T12:02:00Z",
		"3 2026-03-28T12:02:00Z", "canary", "\x00", "99999999999999999999", "1e400", "NaN"} {
		f.Add(text, uint8(0))
	}
	keys := []string{v1.DoNotDisruptAnnotationKey, cluster.SeatsAnnotation, cluster.MoveAnnotation,
		cluster.ReplacesAnnotation, cluster.RestAnnotation, cluster.SavingRestAnnotation, cluster.KeptForAnnotation,
		cloudprovider.InterruptionAnnotation, v1.NodeClaimTerminationTimestampAnnotationKey, "tenon.sh/dry-run",
		"tenon.sh/drift-strategy", "tenon.sh/soft-expiry",
		"tenon.sh/spread-by-default", corev1.PodDeletionCost, v1.NodePoolHashAnnotationKey,
		v1.NodePoolHashVersionAnnotationKey}
	f.Fuzz(func(t *testing.T, text string, which uint8) {
		b := fuzzBook(fuzzTime())
		all := map[string]string{}
		for i, key := range keys {
			if which == 0 || int(which)%len(keys) == i {
				all[key] = text
			}
		}
		pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", Annotations: all}}
		pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
			Name: "default"}
		b.SetPool(pool)
		b.FetchCatalogs(context.Background(), nothingSold{})
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c", Annotations: all,
			Labels: map[string]string{v1.NodePoolLabelKey: "p"}, Finalizers: []string{v1.TerminationFinalizer}}}
		claim.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
		claim.Status.ProviderID, claim.Status.NodeName = "x:///1", "n"
		for _, kind := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered,
			v1.ConditionTypeInitialized} {
			claim.Status.Conditions = append(claim.Status.Conditions, metav1.Condition{Type: kind,
				Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(fuzzTime().Add(-time.Hour))})
		}
		b.SetClaim(claim)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", Annotations: all,
			Finalizers: []string{v1.TerminationFinalizer},
			Labels:     map[string]string{v1.NodeClassLabelKey("karpenter.kwok.sh", "KWOKNodeClass"): "default"}}}
		node.Spec.ProviderID = "x:///1"
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		b.SetNode(node)
		at := metav1.NewTime(fuzzTime().Add(-time.Minute))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod", UID: "pod",
			Annotations: all}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}}}
		pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &at
		b.SetPod(pod)
		s := b.Snapshot()
		p := plan.Make(s, plan.Policy{}, nil, nil)
		plan.Check(p, s)
		if cost := s.Pods[0].EvictionCost; !(cost >= -10 && cost <= 10) {
			t.Errorf("%q makes the pod's eviction cost %v", text, cost)
		}
	})
}

// FuzzGrace takes in pods with any grace period. None becomes negative, and a sum with a time does not go back in time.
func FuzzGrace(f *testing.F) {
	for _, n := range []int64{0, 1, 30, -1, 9_300_000_000, 1 << 62, -(1 << 62)} {
		f.Add(n, n)
	}
	f.Fuzz(func(t *testing.T, spec, deletion int64) {
		b := fuzzBook(fuzzTime())
		at := metav1.NewTime(fuzzTime())
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod", UID: "pod",
			DeletionTimestamp: &at, DeletionGracePeriodSeconds: &deletion}, Spec: corev1.PodSpec{NodeName: "n",
			TerminationGracePeriodSeconds: &spec, Containers: []corev1.Container{{Name: "c"}}}}
		b.SetPod(pod)
		p := b.Snapshot().Pods[0]
		if p.Grace < 0 || p.Deleting.Add(p.Grace).Before(p.Deleting) {
			t.Errorf("grace periods of %d and %d seconds become %s", spec, deletion, p.Grace)
		}
	})
}
