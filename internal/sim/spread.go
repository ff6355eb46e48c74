package sim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// spreads reports of nodes whether the pod may go there by its hard spread constraints, as kube-scheduler judges them:
// the domains are those of all nodes that its nodeSelector allows, tainted or not, and pods that are being terminated
// don't count.
func (s *Sim) spreads(p *corev1.Pod, view []*seen) func(*seen) bool {
	var rules []func(*seen) bool
	for i := range p.Spec.TopologySpreadConstraints {
		if c := &p.Spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule {
			rules = append(rules, s.spread(p, c, view))
		}
	}
	return func(v *seen) bool {
		for _, allows := range rules {
			if !allows(v) {
				return false
			}
		}
		return true
	}
}

func (s *Sim) spread(p *corev1.Pod, c *corev1.TopologySpreadConstraint, view []*seen) func(*seen) bool {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		panic(err) // our own
	}
	domain, count := make(map[string]string), make(map[string]int)
	for _, v := range view {
		value, has := v.node.Labels[c.TopologyKey]
		if has && labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(v.node.Labels)) {
			domain[v.node.Name] = value
			count[value] += 0
		}
	}
	for _, o := range list[*corev1.Pod](s.store, pods) {
		node := o.Spec.NodeName
		if to, assumed := s.assumed[o.UID]; assumed && node == "" {
			node = to
		}
		value, counts := domain[node]
		counts = counts && o.Namespace == p.Namespace && o.DeletionTimestamp == nil && !isDone(o)
		if counts && selector.Matches(labels.Set(o.Labels)) {
			count[value]++
		}
	}
	least := -1
	for _, n := range count {
		if least < 0 || n < least {
			least = n
		}
	}
	return func(v *seen) bool {
		value, has := domain[v.node.Name]
		return has && count[value]+1-least <= int(c.MaxSkew)
	}
}
