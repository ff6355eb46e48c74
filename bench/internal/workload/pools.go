package workload

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	kwokv1alpha1 "github.com/tenon-sh/tenon/api/kwok/v1alpha1"
)

const (
	teamPools   = 40
	sharedPools = 20
	teamLabel   = "example.com/team"
)

// manyPools draws a fleet for 60 pools: 40 belong to a team each, which its pods select and others do not tolerate, and
// 20 are for everybody, each with a few families of its own.
func manyPools(w *Workload, r *rand.Rand, n int) {
	w.Pools = nil
	names := familiesOf(w.Types, "cmr")
	for i := range teamPools {
		team := fmt.Sprintf("team-%02d", i)
		p := usualPool(team, w.Types)
		if i%4 == 3 {
			p = familyPool(team, names[i%len(names)], names[(i+7)%len(names)], names[(i+13)%len(names)])
		}
		p.Spec.Template.Labels = map[string]string{teamLabel: team}
		p.Spec.Template.Spec.Taints = []v1.Taint{{Key: teamLabel, Value: team, Effect: corev1.TaintEffectNoSchedule}}
		w.Pools = append(w.Pools, p)
	}
	for i := range sharedPools {
		terms := []string{v1.CapacityTypeSpot, v1.CapacityTypeOnDemand}
		if i%5 == 0 {
			terms = terms[1:]
		}
		w.Pools = append(w.Pools, pool(fmt.Sprintf("shared-%02d", i),
			in(v1.CapacityTypeLabelKey, terms...),
			in(kwokv1alpha1.InstanceFamilyLabelKey, names[2*i%len(names)], names[(2*i+1)%len(names)],
				names[(3*i+11)%len(names)])))
	}
	deployments(w, r, n, web(), func(i int, t *template) {
		if i%3 == 0 {
			return
		}
		team := fmt.Sprintf("team-%02d", r.IntN(teamPools))
		t.spec = func(s *corev1.PodSpec) {
			selectNodes(teamLabel, team)(s)
			s.Tolerations = []corev1.Toleration{{Key: teamLabel, Value: team, Effect: corev1.TaintEffectNoSchedule}}
		}
	})
}
