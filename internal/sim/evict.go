package sim

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// evict answers a request to evict a pod, by the API server's rules.
func (s *Sim) evict(r *replica, wish *corev1.Pod, eviction *policyv1.Eviction) error {
	pod, ok := find[*corev1.Pod](s.store, pods, keyOf(wish))
	if !ok {
		return apierrors.NewNotFound(resourceOf(pods), wish.Name)
	}
	var grace *int64
	if o := eviction.DeleteOptions; o != nil {
		grace = o.GracePeriodSeconds
		if p := o.Preconditions; p != nil && p.UID != nil && *p.UID != pod.UID {
			return apierrors.NewConflict(resourceOf(pods), pod.Name, fmt.Errorf("it has the UID %s", pod.UID))
		}
	}
	s.judge.evicting(r, pod)
	if isDone(pod) || pod.Status.Phase == corev1.PodPending || pod.DeletionTimestamp != nil {
		s.store.endPod(pod, grace)
		return nil
	}
	mine := s.guardsOf(pod)
	if len(mine) > 1 {
		return apierrors.NewInternalError(errors.New("this pod has more than one PodDisruptionBudget"))
	}
	if len(mine) == 1 {
		if err := s.spend(mine[0], pod); err != nil {
			return err
		}
	}
	s.trace.note("%s: evicts %s from %s", r, pod.Name, pod.Spec.NodeName)
	s.store.endPod(pod, grace)
	return nil
}

// spend takes one disruption from the budget, or refuses.
func (s *Sim) spend(g *policyv1.PodDisruptionBudget, pod *corev1.Pod) error {
	always := g.Spec.UnhealthyPodEvictionPolicy != nil && *g.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
	enough := g.Status.DesiredHealthy > 0 && g.Status.CurrentHealthy >= g.Status.DesiredHealthy
	if !isReady(pod) && (always || enough) {
		return nil
	}
	if g.Status.ObservedGeneration < g.Generation || g.Status.DisruptionsAllowed <= 0 {
		return apierrors.NewTooManyRequests("the pod's disruption budget "+g.Name+" does not allow it", 0)
	}
	s.judge.spending(g)
	edit(s.store, guards, keyOf(g), g.UID, func(g *policyv1.PodDisruptionBudget) {
		g.Status.DisruptionsAllowed--
		if g.Status.DisruptedPods == nil {
			g.Status.DisruptedPods = map[string]metav1.Time{}
		}
		g.Status.DisruptedPods[pod.Name] = metav1.NewTime(s.clock.seconds())
	})
	return nil
}

func (s *Sim) guardsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, g := range list[*policyv1.PodDisruptionBudget](s.store, guards) {
		if g.Namespace == pod.Namespace && selects(g, pod) {
			out = append(out, g)
		}
	}
	return out
}

func selects(g *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	return labels.SelectorFromSet(g.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels))
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// bindAsAsked binds a pod for the program: unlike kube-scheduler's own, such a binding is judged.
func (s *Sim) bindAsAsked(r *replica, wish *corev1.Pod, binding *corev1.Binding) error {
	pod, ok := find[*corev1.Pod](s.store, pods, keyOf(wish))
	if !ok {
		return apierrors.NewNotFound(resourceOf(pods), wish.Name)
	}
	if binding.UID != "" && binding.UID != pod.UID {
		return apierrors.NewConflict(resourceOf(pods), pod.Name, fmt.Errorf("it has the UID %s", pod.UID))
	}
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return apierrors.NewConflict(resourceOf(pods), pod.Name, fmt.Errorf("it is on %q already", pod.Spec.NodeName))
	}
	s.trace.note("%s: binds %s to %s", r, pod.Name, binding.Target.Name)
	s.bind(pod, binding.Target.Name)
	return nil
}

// bind puts a pod on a node. The API server asks nobody whether it fits.
func (s *Sim) bind(pod *corev1.Pod, node string) {
	edit(s.store, pods, keyOf(pod), pod.UID, func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.NominatedNodeName = node, ""
		setPodCondition(p, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(s.clock.seconds())})
	})
}

func setPodCondition(pod *corev1.Pod, c corev1.PodCondition) {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == c.Type {
			pod.Status.Conditions[i] = c
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}
