package sim

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

// mayCost is what the unused nodes of an owner may cost per hour: the nodes of a plan, and two more like the dearest
// of them. Such a plan is for the pods of all owners: they share nodes. What shrinks before it is up is planned for
// again before it is known to be of no use, so that there may be two such plans.
func (v *unusedJudge) mayCost() float64 {
	plan := 0.0
	for _, owner := range v.owners() {
		if a := v.of[owner]; a.pod != nil {
			plan += v.planFor(a.pod, max(a.alive, a.wanted), v.tight || a.share == 1)
		}
	}
	if v.shrinks {
		plan *= 2
	}
	return plan + 2*min(plan, v.dearestOnSale())
}

// dearestOnSale is what the dearest machine costs where it is cheapest.
func (v *unusedJudge) dearestOnSale() float64 {
	dearest := 0.0
	for _, t := range v.sim.cloud.types {
		price := math.Inf(1)
		for i := range t.Offerings {
			if o := &t.Offerings[i]; v.sim.sells(o) {
				price = min(price, o.Price)
			}
		}
		dearest = max(dearest, price)
	}
	return dearest
}

// planFor is what the nodes for so many pods cost per hour if they are all of the cheapest kind for that; apart says
// that each pod needs a node of its own.
func (v *unusedJudge) planFor(pod *corev1.PodSpec, count int, apart bool) float64 {
	best := math.Inf(1)
	for _, t := range v.sim.cloud.types {
		share := machineShare(t, pod)
		if share == 0 {
			continue
		}
		if apart {
			share = 1
		}
		for i := range t.Offerings {
			if o := &t.Offerings[i]; v.sim.sells(o) {
				best = min(best, o.Price*float64((count+share-1)/share))
			}
		}
	}
	return best
}

// sells reports whether some pool takes the offering.
func (s *Sim) sells(o *cloudprovider.Offering) bool {
	return slices.ContainsFunc(list[*v1.NodePool](s.store, pools), func(p *v1.NodePool) bool {
		return !slices.ContainsFunc(p.Spec.Template.Spec.Requirements,
			func(r v1.NodeSelectorRequirementWithMinValues) bool {
				return r.Key == v1.CapacityTypeLabelKey && !slices.Contains(r.Values, o.Labels[v1.CapacityTypeLabelKey])
			})
	})
}

// shareOf is how many such pods the smallest machine takes.
func (s *Sim) shareOf(pod *corev1.PodSpec) int { return machineShare(s.cloud.types[0], pod) }

// machineShare is how many such pods a machine of the type takes.
func machineShare(t *cloudprovider.InstanceType, pod *corev1.PodSpec) int {
	share := int(t.Capacity.Pods().Value())
	for name, ask := range pod.Containers[0].Resources.Requests {
		room := t.Capacity[name].DeepCopy()
		room.Sub(t.Overhead[name])
		share = min(share, int(room.MilliValue()/ask.MilliValue()))
	}
	return share
}

// machinePrice is what a machine costs per hour.
func (s *Sim) machinePrice(m *machine) float64 {
	for _, t := range s.cloud.types {
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if t.Name == m.instance.Type &&
				o.Labels[corev1.LabelTopologyZone] == m.instance.Labels[corev1.LabelTopologyZone] &&
				o.Labels[v1.CapacityTypeLabelKey] == m.instance.Labels[v1.CapacityTypeLabelKey] {
				return o.Price
			}
		}
	}
	return 0
}
