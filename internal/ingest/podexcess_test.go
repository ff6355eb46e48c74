package ingest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/hostile"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/ingest/podspec"
)

// TestLongListsAreRefusedByName: what is read in full up to the bound is refused beyond it, on that pod alone and in
// words.
func TestLongListsAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		most  int
		of    func(n int) *corev1.Pod
		field string
	}{
		{podspec.MostPodTerms, hostile.Together, "spec.affinity"},
		{podspec.MostPodTerms, hostile.TogetherEverywhere, "spec.affinity"},
		{podspec.MostPodTerms, hostile.Apart, "spec.affinity"},
		{podspec.MostPodTerms, hostile.PreferredTerms, "spec.affinity"},
		{podspec.MostSpreads, func(n int) *corev1.Pod {
			return hostile.Spread(n, corev1.ScheduleAnyway)
		}, "spec.topologySpreadConstraints"},
		{podspec.MostSpreads, func(n int) *corev1.Pod {
			return hostile.Spread(n, corev1.DoNotSchedule)
		}, "spec.topologySpreadConstraints"},
		{podspec.MostSelectorLabels, hostile.NodeSelector, "spec.nodeSelector"},
		{podspec.MostNodeTerms, func(n int) *corev1.Pod {
			return hostile.NodeAffinity(n, 1, 1)
		}, "spec.affinity.nodeAffinity"},
		{podspec.MostNodeExpressions, func(n int) *corev1.Pod {
			return hostile.NodeAffinity(1, n, 1)
		}, "spec.affinity.nodeAffinity"},
		{podspec.MostNodeExpressions, hostile.RepeatedExpressions, "spec.affinity.nodeAffinity"},
		{podspec.MostNodeValues, func(n int) *corev1.Pod {
			return hostile.NodeAffinity(1, 1, n)
		}, "spec.affinity.nodeAffinity"},
		{podspec.MostNodeTerms, hostile.PreferredNodes, "spec.affinity.nodeAffinity"},
		{podspec.MostTolerations, hostile.Tolerant, "spec.tolerations"},
		{podspec.MostContainers / 2, hostile.Containers, "containers"},
		{podspec.MostHostPorts, hostile.HostPorts, "host ports"},
		{decode.MostSelectorParts, hostile.SelectorExpressions, "spec.affinity"},
		{decode.MostSelectorParts - 1, hostile.ManyNamespaces, "spec.affinity"},
		{decode.MostSelectorParts - 1, hostile.LabelKeys, "spec.affinity"},
		{podspec.MostVolumes, func(n int) *corev1.Pod { return hostile.Mounting("volumes", n) }, "spec.volumes"},
	} {
		b, _ := newBook()
		for _, n := range []int{c.most, c.most + 1} {
			pod := c.of(n)
			b.SetPod(pod)
			p, _ := b.pods.Get(string(pod.UID))
			refused := strings.Join(p.Class.Unsupported, "; ")
			if over := strings.Contains(refused, "found, at most"); over != (n > c.most) {
				t.Fatalf("%s with %d: %q", pod.Name, n, refused)
			} else if over && !strings.Contains(refused, c.field) {
				t.Errorf("%s with %d: %q does not name %s", pod.Name, n, refused, c.field)
			}
			if cpu := p.Class.Requests[0]; cpu < 100 {
				t.Errorf("%s with %d takes %d of its node", pod.Name, n, cpu)
			}
			b.DeletePod(pod)
		}
	}
}

// TestNodeSelectorTimesTerms: each alternative of a pod repeats its node selector, so both count together.
func TestNodeSelectorTimesTerms(t *testing.T) {
	b, _ := newBook()
	pod := hostile.NodeAffinity(podspec.MostNodeTerms, 1, 1)
	pod.Spec.NodeSelector = hostile.NodeSelector(podspec.MostSelectorLabels).Spec.NodeSelector
	b.SetPod(pod)
	p, _ := b.pods.Get(string(pod.UID))
	if len(p.Class.Unsupported) != 1 || len(p.Class.Terms) != 1 || len(p.Class.Terms[0]) != 0 {
		t.Errorf("refused by %q, with %d terms", p.Class.Unsupported, len(p.Class.Terms))
	}
}

// TestToleranceOfADrainIsRead: a pod that runs and stays through a drain does so whatever else it has.
func TestToleranceOfADrainIsRead(t *testing.T) {
	b, _ := newBook()
	pod := hostile.Tolerant(2 * podspec.MostTolerations)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "karpenter.sh/disrupted",
		Operator: corev1.TolerationOpExists})
	b.SetPod(pod)
	if p, _ := b.pods.Get(string(pod.UID)); !p.StaysThroughDrain {
		t.Error("the pod would be evicted")
	}
}

// intake is how many bytes it takes to take in objects, and how many of them are kept.
func intake(b *Book, objects []client.Object) (allocated, kept uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Pod:
			b.SetPod(o)
		case *corev1.PersistentVolumeClaim:
			b.SetVolumeClaim(o)
		case *corev1.PersistentVolume:
			b.SetVolume(o)
		}
	}
	runtime.ReadMemStats(&after)
	allocated = after.TotalAlloc - before.TotalAlloc
	runtime.GC()
	runtime.ReadMemStats(&after)
	return allocated, max(after.HeapAlloc, before.HeapAlloc) - before.HeapAlloc
}

// TestHostilePodsAreCheapToTakeIn: each pod costs a few times its own size, and no more than five megabytes are kept.
func TestHostilePodsAreCheapToTakeIn(t *testing.T) {
	for _, c := range hostile.Cases() {
		if len(c.Objects) > 1500 {
			continue // these are thousands of ordinary pods
		}
		b, _ := newBook()
		allocated, kept := intake(b, c.Objects)
		if allocated > 16<<20 || kept > 5<<20 {
			t.Errorf("%s: %d KiB to take in, %d KiB kept", c.Name, allocated>>10, kept>>10)
		}
		runtime.KeepAlive(b)
		runtime.KeepAlive(c)
	}
}

// TestPodsAtTheBoundsAreCheapToTakeIn: what is read in full is read in proportion to its size.
func TestPodsAtTheBoundsAreCheapToTakeIn(t *testing.T) {
	for _, p := range []*corev1.Pod{
		hostile.Together(podspec.MostPodTerms), hostile.TogetherEverywhere(podspec.MostPodTerms),
		hostile.Apart(podspec.MostPodTerms),
		hostile.PreferredTerms(podspec.MostPodTerms),
		hostile.Spread(podspec.MostSpreads, corev1.DoNotSchedule), hostile.NodeSelector(podspec.MostSelectorLabels),
		hostile.NodeAffinity(podspec.MostNodeTerms, 8, 8),
		hostile.NodeAffinity(1, podspec.MostNodeExpressions, 8), hostile.NodeAffinity(1, 1, podspec.MostNodeValues),
		hostile.RepeatedExpressions(podspec.MostNodeExpressions),
		hostile.PreferredNodes(podspec.MostNodeTerms), hostile.Tolerant(podspec.MostTolerations),
		hostile.HostPorts(podspec.MostHostPorts),
		hostile.SelectorExpressions(decode.MostSelectorParts), hostile.Mounting("volumes", podspec.MostVolumes),
	} {
		b, _ := newBook()
		allocated, kept := intake(b, []client.Object{p})
		if allocated > 8<<20 || kept > 5<<20 {
			t.Errorf("%s: %d KiB to take in, %d KiB kept", p.Name, allocated>>10, kept>>10)
		}
		runtime.KeepAlive(b)
	}
}

// TestEventsAboutVolumesAreBatched: a thousand events about the volumes of one pod are looked at once, by the next
// snapshot.
func TestEventsAboutVolumesAreBatched(t *testing.T) {
	b, _ := newBook()
	b.SetStorageClass(hostile.StorageClass(0))
	b.SetPod(hostile.Mounting("volumes", podspec.MostVolumes))
	for i := range podspec.MostVolumes {
		claim := fmt.Sprintf("claim-%05d", i)
		b.SetVolume(hostile.Volume("pv-"+claim, 1))
		b.SetVolumeClaim(hostile.Claim(claim, "pv-"+claim))
	}
	if made := b.specs.Entries().Derived; made > 1 {
		t.Errorf("the pod's class was made %d times for %d events", made, 2*podspec.MostVolumes)
	}
	p := b.Snapshot().Pods[0]
	if len(p.Class.Unsupported) > 0 || len(p.Class.Terms) == 0 {
		t.Errorf("the snapshot has not looked at the volumes: %q", p.Class.Unsupported)
	}
}

// TestMemoryIsSweptByBytes: a large pod that comes again and again in other words is not kept each time.
func TestMemoryIsSweptByBytes(t *testing.T) {
	b, _ := newBook()
	most := 0
	for i := range 2000 {
		pod := hostile.Labelled(1000)
		pod.Labels["round"] = fmt.Sprint(i)
		b.SetPod(pod)
		most = max(most, b.specs.Bytes())
	}
	if most > 2*collectFromBytes || b.specs.Entries().LabelSets > 1000 {
		t.Errorf("%d MiB were kept for one pod, and %d lists of labels", most>>20, b.specs.Entries().LabelSets)
	}
}
