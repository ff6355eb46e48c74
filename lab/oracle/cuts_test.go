package oracle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// mostParts is how many parts of a list are looked at one by one.
const mostParts = 4

// podCuts take one thing each from a pod and say whether it was there.
func podCuts() []func(*corev1.Pod) bool {
	out := []func(*corev1.Pod) bool{
		changes(func(p *corev1.Pod) { p.Spec.Affinity = nil }),
		changes(func(p *corev1.Pod) {
			if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil {
				a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
			}
			if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
				a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
			}
			if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
				a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = nil
			}
		}),
		changes(func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = nil }),
		changes(func(p *corev1.Pod) { p.Spec.Volumes = nil }),
		changes(func(p *corev1.Pod) { p.Spec.InitContainers = nil }),
		changes(func(p *corev1.Pod) { p.Spec.Overhead = nil }),
		changes(func(p *corev1.Pod) { p.Spec.Resources = nil }),
		changes(func(p *corev1.Pod) { p.Spec.Priority = nil }),
		changes(func(p *corev1.Pod) { p.Spec.NodeSelector = nil }),
		changes(func(p *corev1.Pod) { p.Spec.Tolerations = nil }),
		changes(func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil }),
		changes(func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }),
		changes(func(p *corev1.Pod) { delete(p.Labels, revisionLabel) }),
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory,
		corev1.ResourceEphemeralStorage, gpu, hugepages} {
		out = append(out, changes(func(p *corev1.Pod) {
			delete(p.Spec.Containers[0].Resources.Requests, name)
			delete(p.Spec.Containers[0].Resources.Limits, name)
		}))
	}
	for i := range mostParts {
		out = append(out, partCuts(i)...)
	}
	return out
}

// partCuts take from the i-th part of each list.
func partCuts(i int) []func(*corev1.Pod) bool {
	return []func(*corev1.Pod) bool{
		changes(func(p *corev1.Pod) { p.Spec.Volumes = without(p.Spec.Volumes, i) }),
		changes(func(p *corev1.Pod) { p.Spec.Tolerations = without(p.Spec.Tolerations, i) }),
		changes(func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = without(p.Spec.TopologySpreadConstraints, i)
		}),
		changes(func(p *corev1.Pod) {
			if i < len(p.Spec.TopologySpreadConstraints) {
				c := &p.Spec.TopologySpreadConstraints[i]
				c.MinDomains, c.NodeAffinityPolicy, c.NodeTaintsPolicy, c.MatchLabelKeys = nil, nil, nil, nil
			}
		}),
		changes(func(p *corev1.Pod) {
			if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
				a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = without(
					a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, i)
			}
		}),
		changes(func(p *corev1.Pod) {
			if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
				a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = without(
					a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, i)
			}
		}),
		changes(func(p *corev1.Pod) {
			a := p.Spec.Affinity
			if a == nil || a.NodeAffinity == nil ||
				a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
				return
			}
			required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			required.NodeSelectorTerms = without(required.NodeSelectorTerms, i)
			if len(required.NodeSelectorTerms) == 0 {
				a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
			}
		}),
		changes(func(p *corev1.Pod) {
			if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil &&
				a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
				for j := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
					t := &a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[j]
					if len(t.MatchExpressions) > 1 {
						t.MatchExpressions = without(t.MatchExpressions, i)
					}
				}
			}
		}),
	}
}

func without[T any](list []T, i int) []T {
	if i >= len(list) {
		return list
	}
	return slices.Delete(slices.Clone(list), i, i+1)
}

// changes makes a cut of a function.
func changes(cut func(*corev1.Pod)) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		before := p.DeepCopy()
		cut(p)
		return !apiequality.Semantic.DeepEqual(before, p)
	}
}

func nodeCuts() []func(*corev1.Node) bool {
	drop := func(key string) func(*corev1.Node) bool {
		return func(n *corev1.Node) bool {
			_, had := n.Labels[key]
			delete(n.Labels, key)
			return had
		}
	}
	return []func(*corev1.Node) bool{
		func(n *corev1.Node) bool {
			had := len(n.Spec.Taints) > 0 || n.Spec.Unschedulable
			n.Spec.Taints, n.Spec.Unschedulable = nil, false
			return had
		},
		drop(rackLabel), drop(coresLabel), drop(corev1.LabelArchStable), drop(corev1.LabelOSStable),
		drop(corev1.LabelInstanceTypeStable), drop(capacityTypeLabel),
	}
}

// poolSteps take from pools and from what is sold.
func poolSteps() []step {
	edit := func(cut func(p *nodePool) bool) step {
		return func(w *world, i int) (*world, bool) {
			if i >= len(w.Pools) {
				return nil, false
			}
			p, c := *w.Pools[i], w.clone()
			if !cut(&p) {
				return nil, true
			}
			c.Pools[i] = &p
			return c, true
		}
	}
	out := []step{
		edit(func(p *nodePool) bool { had := p.Spec.Limits != nil; p.Spec.Limits = nil; return had }),
		edit(func(p *nodePool) bool { had := p.Spec.Weight != nil; p.Spec.Weight = nil; return had }),
		edit(func(p *nodePool) bool {
			spec := &p.Spec.Template.Spec
			had := len(spec.Taints)+len(spec.StartupTaints) > 0
			spec.Taints, spec.StartupTaints = nil, nil
			return had
		}),
		edit(func(p *nodePool) bool {
			had := p.Spec.Template.Metadata.Labels != nil
			p.Spec.Template.Metadata.Labels = nil
			return had
		}),
		func(w *world, i int) (*world, bool) { // the offerings, counted through
			for t, it := range w.Types {
				if i < len(it.Offerings) {
					c, smaller := w.clone(), *it
					smaller.Offerings = without(it.Offerings, i)
					c.Types[t] = &smaller
					return c, true
				}
				i -= len(it.Offerings)
			}
			return nil, false
		},
	}
	for r := range mostParts + 2 {
		out = append(out, edit(func(p *nodePool) bool {
			before := len(p.Spec.Template.Spec.Requirements)
			p.Spec.Template.Spec.Requirements = without(p.Spec.Template.Spec.Requirements, r)
			return len(p.Spec.Template.Spec.Requirements) < before
		}))
	}
	return out
}
