package workload

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
)

// diverse draws a fifth each of plain pods, zone spread, hostname spread, zone self-affinity and hostname
// anti-affinity. A rule selects the pods of its fifth that carry the same of seven values.
func diverse(w *Workload, r *rand.Rand, n int) {
	for i := range n {
		fifth := i % 5
		value := string(rune('a' + r.IntN(7)))
		key := [...]string{"plain", "zone-spread", "host-spread", "zone-together", "host-apart"}[fifth]
		selector := selecting(key, value)
		t := &template{
			app: fmt.Sprintf("%s-%s", key, value), labels: map[string]string{key: value},
			milli: pick(r, 100, 250, 500, 1000, 1500), memory: pick(r, 100, 256, 512, 1024, 2048, 4096),
		}
		switch fifth {
		case 1:
			t.spec = spread(corev1.LabelTopologyZone, selector, corev1.DoNotSchedule)
		case 2:
			t.spec = spread(corev1.LabelHostname, selector, corev1.DoNotSchedule)
		case 3:
			t.spec = together(corev1.LabelTopologyZone, selector)
		case 4:
			t.spec = apart(corev1.LabelHostname, selector)
		}
		w.Pods = append(w.Pods, t.pending(i))
	}
}

// preferences draws pods that would like a zone, a quarter of them each, would rather not share a host with their kind
// and like to be even over the zones. Four pods in a row are of one size, so that all wishes can come true: on a node
// for each pod.
func preferences(w *Workload, r *rand.Rand, n int) {
	const key, value = "kind", "wishful"
	selector := selecting(key, value)
	var milli, memory int64
	for i := range n {
		if i%len(zones()) == 0 {
			milli, memory = pick(r, 100, 250, 500, 1000, 1500), pick(r, 100, 256, 512, 1024, 2048, 4096)
		}
		zone := zones()[i%len(zones())]
		t := &template{app: "wishful", labels: map[string]string{key: value}, milli: milli, memory: memory,
			spec: func(s *corev1.PodSpec) {
				affinity(s).NodeAffinity =
					&corev1.NodeAffinity{
						PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
							Weight: 10, Preference: corev1.NodeSelectorTerm{
								MatchExpressions: []corev1.NodeSelectorRequirement{{
									Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn,
									Values: []string{zone}}},
							},
						}},
					}
				affinity(s).PodAntiAffinity =
					&corev1.PodAntiAffinity{
						PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
							Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname,
								LabelSelector: selector},
						}},
					}
				spread(corev1.LabelTopologyZone, selector, corev1.ScheduleAnyway)(s)
			}}
		w.Pods = append(w.Pods, t.pending(i))
	}
}

func pick(r *rand.Rand, values ...int64) int64 { return values[r.IntN(len(values))] }
