package ingest

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fleet makes pods of a number of deployments, each with a spread and some with anti-affinity, as a watch would deliver
// them.
func fleet(pods, deployments int) []*corev1.Pod {
	out := make([]*corev1.Pod, pods)
	yes := true
	for i := range out {
		d := i % deployments
		app := fmt.Sprint("app-", d)
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		spec := corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    *apiresource.NewMilliQuantity(int64(100+d), apiresource.DecimalSI),
					corev1.ResourceMemory: *apiresource.NewQuantity(int64(1+d%7)<<28, apiresource.BinarySI)}}}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: selector}},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists",
				Effect: "NoExecute"},
				{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"}},
			Volumes: []corev1.Volume{{Name: "token",
				VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}}},
		}
		if d%4 == 0 {
			spec.Affinity = &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
						{TopologyKey: corev1.LabelHostname, LabelSelector: selector}},
				},
			}
		}
		out[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				UID: types.UID(fmt.Sprintf("%08x-0000-%04d", uint32(i)*2654435761, i%7919)), Namespace: "default",
				Name: fmt.Sprint(app, "-", i),
				Labels: map[string]string{"app": app, "pod-template-hash": fmt.Sprint(d * 7),
					"team": fmt.Sprint(d % 9)},
				OwnerReferences: []metav1.OwnerReference{{UID: types.UID(app), Kind: "ReplicaSet", Controller: &yes}},
			},
			Spec: spec,
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}},
		}
	}
	return out
}

func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestManyPodsCostLittle keeps an eye on what a pod of a known pod key costs. It counts memory, which a busy machine
// does not change; BenchmarkSetPod measures the time.
func TestManyPodsCostLittle(t *testing.T) {
	pods := fleet(20000, 300)
	b, _ := newBook()
	before := heapBytes()
	for _, p := range pods {
		b.SetPod(p)
	}
	each := (heapBytes() - before) / uint64(len(pods))
	if classes := b.specs.Entries().Classes; classes != 300 {
		t.Errorf("%d classes, want 300", classes)
	}
	if each > 1200 {
		t.Errorf("a pod takes %d bytes", each)
	}
	i := 0
	if n := testing.AllocsPerRun(1000, func() { b.SetPod(pods[i%300]); i++ }); n > 5 {
		t.Errorf("%v allocations to take in a pod of a known shape", n)
	}
	runtime.KeepAlive(pods)
	runtime.KeepAlive(b)
}

func BenchmarkSetPod(b *testing.B) {
	pods := fleet(100000, 300)
	for b.Loop() {
		book, _ := newBook()
		for _, p := range pods {
			book.SetPod(p)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pods)), "ns/pod")
}

func BenchmarkSetPodAgain(b *testing.B) {
	pods := fleet(10000, 300)
	book, _ := newBook()
	for _, p := range pods {
		book.SetPod(p)
	}
	for b.Loop() {
		for _, p := range pods {
			book.SetPod(p)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pods)), "ns/pod")
}

// BenchmarkSnapshot takes snapshots of 20,000 pods on 1,000 nodes, one of which has changed each time.
func BenchmarkSnapshot(b *testing.B) {
	pods := fleet(20000, 300)
	book, _ := newBook()
	for i := range 1000 {
		name := fmt.Sprint("node-", i)
		book.SetNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Spec:       corev1.NodeSpec{ProviderID: "kwok://" + name},
			Status:     corev1.NodeStatus{Allocatable: quantity("64")},
		})
		claim := claimObject(name, "1")
		claim.Status.NodeName, claim.Status.ProviderID = name, "kwok://"+name
		book.SetClaim(claim)
	}
	for i, p := range pods {
		if i%10 > 0 {
			p.Spec.NodeName = fmt.Sprint("node-", i%1000)
		}
		book.SetPod(p)
	}
	book.Snapshot()
	i := 0
	for b.Loop() {
		moved := pods[i%len(pods)].DeepCopy()
		moved.Spec.NodeName = fmt.Sprint("node-", i%991)
		book.SetPod(moved)
		book.Snapshot()
		i++
	}
}
