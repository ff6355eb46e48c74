package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// tryNew looks, for each pod that found no place, whether one more node of any pool would have taken it, beside
// everything that was placed.
func (r *replay) tryNew(s *scheduler) {
	for _, pod := range slices.Sorted(maps.Keys(r.p.Unplaced)) {
		if what := r.firstTaker(s, r.pods[pod]); what != "" {
			r.find(missed, r.p.Unplaced[pod], "pod %s has no place (%s), though kube-scheduler would take it on one "+
				"more node: %s", pod, r.p.Unplaced[pod], what)
		}
	}
}

func (r *replay) firstTaker(s *scheduler, pod *corev1.Pod) string {
	const name = "one-more"
	for _, p := range r.w.Pools {
		for _, t := range r.w.Types {
			if r.exceeded(p, t) != "" || asksForChoice(p) {
				continue
			}
			for _, o := range t.Offerings {
				if !o.Available || o.ReservationID != "" { // which of the new nodes will be reserved ones is open
					continue
				}
				for _, labels := range poolLabels(p, t, o) {
					join(s, newNode(name, labels, p, t), t)
					why := s.refuse(pod, name)[name]
					s.removeNode(name)
					if why == "" {
						return fmt.Sprintf("%s of %s in %s, %s", t.Name, p.Name, labels[corev1.LabelTopologyZone],
							labels[capacityTypeLabel])
					}
				}
			}
		}
	}
	return ""
}

// asksForChoice is true of pools that want several types to choose from: what one node more could be is not decided by
// one type then.
func asksForChoice(p *nodePool) bool {
	return slices.ContainsFunc(p.Spec.Template.Spec.Requirements, func(r requirement) bool {
		return r.MinValues != nil
	})
}

// poolLabels are the labels that a node of the pool would have, in every way that the pool leaves open; none if the
// pool rules the offering out.
func poolLabels(p *nodePool, t *instanceType, o typeOffering) []map[string]string {
	labels := map[string]string{
		poolLabel: p.Name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
		p.Spec.Template.Spec.NodeClassRef.Group + "/kwoknodeclass": p.Spec.Template.Spec.NodeClassRef.Name,
	}
	for key, values := range t.Labels {
		labels[key] = values[0]
	}
	maps.Copy(labels, o.Labels)
	maps.Copy(labels, p.Spec.Template.Metadata.Labels)
	out := []map[string]string{labels}
	for _, r := range p.Spec.Template.Spec.Requirements {
		if r.Key != rackLabel {
			if value, ok := labels[r.Key]; !meets(r, value, ok) {
				return nil
			}
			continue
		}
		out = nil
		for _, value := range r.Values { // the only open label is asked for with In
			open := maps.Clone(labels)
			open[rackLabel] = value
			out = append(out, open)
		}
	}
	return out
}

func meets(r requirement, value string, present bool) bool {
	switch r.Operator {
	case "In":
		return present && slices.Contains(r.Values, value)
	case "NotIn":
		return !present || !slices.Contains(r.Values, value)
	case "Exists":
		return present
	}
	have, _ := strconv.Atoi(value)
	bound, _ := strconv.Atoi(r.Values[0])
	return present && (r.Operator == "Gt" && have > bound || r.Operator == "Lt" && have < bound ||
		r.Operator == "Gte" && have >= bound || r.Operator == "Lte" && have <= bound)
}
