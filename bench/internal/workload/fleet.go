package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// shape says how the requests of deployments are distributed: CPU around a median, with a long tail, and memory for
// each core likewise.
type shape struct {
	milli, milliSpread   float64 // median, and the standard deviation of its logarithm
	perCore, coreSpread  float64 // MiB for each core
	leastMilli, maxMilli int64
}

// deployments draws templates until their replicas make n pods, and lets each make its pods. Replica counts follow
// Pareto's law: most deployments are small and a few are huge, but none has more than a tenth of all pods.
func deployments(w *Workload, r *rand.Rand, n int, s shape, adapt func(i int, t *template)) {
	for i := 0; n > 0; i++ {
		replicas := min(int(2*math.Pow(1-r.Float64(), -1/1.1)), n, max(len(w.Pods)+n, 10)/10)
		t := s.draw(r)
		t.app = fmt.Sprintf("app-%04d", i)
		if adapt != nil {
			adapt(i, t)
		}
		for k := range replicas {
			w.Pods = append(w.Pods, t.pending(k))
		}
		n -= replicas
	}
}

// draw makes a template with requests such as people write: round numbers.
func (s shape) draw(r *rand.Rand) *template {
	milli := int64(s.milli * math.Exp(s.milliSpread*r.NormFloat64()))
	milli = rounded(min(max(milli, s.leastMilli), s.maxMilli), 10)
	memory := int64(float64(milli) / 1000 * s.perCore * math.Exp(s.coreSpread*r.NormFloat64()))
	return &template{milli: milli, memory: rounded(min(max(memory, 32), 512<<10), 32)}
}

// rounded keeps about two digits: the larger a number, the coarser the steps in which it is written.
func rounded(value, step int64) int64 {
	for value >= 20*step {
		step *= 2
	}
	return max((value+step/2)/step*step, step)
}

// web is the mix of an ordinary fleet: a quarter of a core at the median, 3 GiB for each core.
func web() shape {
	return shape{milli: 250, milliSpread: 1.2, perCore: 3 << 10, coreSpread: 0.9, leastMilli: 10, maxMilli: 16000}
}

// fleet draws an ordinary fleet.
func fleet(w *Workload, r *rand.Rand, n int) { deployments(w, r, n, web(), nil) }

// memoryHeavy draws caches and databases: 6 to 30 GiB for each core.
func memoryHeavy(w *Workload, r *rand.Rand, n int) {
	deployments(w, r, n, shape{milli: 500, milliSpread: 0.9, perCore: 13 << 10, coreSpread: 0.5, leastMilli: 50,
		maxMilli: 8000}, nil)
}

// cpuHeavy draws encoders and builds: less than a GiB for each core.
func cpuHeavy(w *Workload, r *rand.Rand, n int) {
	deployments(w, r, n, shape{milli: 1500, milliSpread: 0.8, perCore: 700, coreSpread: 0.4, leastMilli: 100,
		maxMilli: 16000}, nil)
}

const gpu = "nvidia.com/gpu"

// gpuMix draws a fleet in which a fifth of the deployments ask for GPUs, for which there is a pool that keeps others
// out.
func gpuMix(w *Workload, r *rand.Rand, n int) {
	gpus := familyPool("gpu", familiesOf(w.Types, "gp")...)
	gpus.Spec.Template.Spec.Taints = []v1.Taint{{Key: gpu, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	w.Pools = append(w.Pools, gpus)
	deployments(w, r, n, web(), func(i int, t *template) {
		if i%5 != 4 {
			return
		}
		gpus := pick(r, 1, 1, 1, 1, 1, 2, 2, 4, 8)
		t.more = corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
		t.milli = gpus * pick(r, 1000, 2000, 3000, 6000)
		t.memory = gpus * pick(r, 4<<10, 8<<10, 12<<10, 24<<10)
		t.spec = func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: gpu, Operator: corev1.TolerationOpExists}}
		}
	})
}

// armOrAMD draws a fleet of which a third runs on one architecture, a third on the other and a third on either.
func armOrAMD(w *Workload, r *rand.Rand, n int) {
	deployments(w, r, n, web(), func(i int, t *template) {
		switch i % 3 {
		case 0:
			t.spec = selectNodes(corev1.LabelArchStable, "amd64")
		case 1:
			t.spec = selectNodes(corev1.LabelArchStable, "arm64")
		}
	})
}

// limitsBound draws a fleet of which half fits into the pool's limit: a third of the deployments come first if there is
// not enough for all, and the limit has the cores that half of the pods ask for if the important ones are counted
// first.
func limitsBound(w *Workload, r *rand.Rand, n int) {
	high := int32(1000)
	even := shape{milli: 500, milliSpread: 0.4, perCore: 3 << 10, coreSpread: 0.6, leastMilli: 100, maxMilli: 2000}
	deployments(w, r, n, even, func(i int, t *template) {
		if i%3 == 0 {
			t.spec = func(s *corev1.PodSpec) { s.Priority, s.PriorityClassName = &high, "important" }
		}
	})
	order := slices.Clone(w.Pods)
	slices.SortStableFunc(order, func(a, b *corev1.Pod) int { return cmp.Compare(priority(b), priority(a)) })
	var milli int64
	for _, p := range order[:n/2] {
		milli += p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	w.Pools[0].Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(milli/1000,
		resource.DecimalSI)}
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}
