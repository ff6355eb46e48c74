package sim

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestEvictionIsTheAPIServers holds the simulated eviction to the API server's rules: a simulation that grants too much
// would hide what it should show.
func TestEvictionIsTheAPIServers(t *testing.T) {
	always := policyv1.AlwaysAllow
	for _, c := range []struct {
		name    string
		guards  int
		status  policyv1.PodDisruptionBudgetStatus
		policy  *policyv1.UnhealthyPodEvictionPolicyType
		phase   corev1.PodPhase
		ready   bool
		granted bool
		allowed int32 // of the budget, afterwards
	}{
		{name: "without a budget", phase: corev1.PodRunning, ready: true, granted: true},
		{name: "within the budget", guards: 1, status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 2,
			CurrentHealthy: 3, DesiredHealthy: 1},
			phase: corev1.PodRunning, ready: true, granted: true, allowed: 1},
		{name: "beyond the budget", guards: 1, status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1,
			DesiredHealthy: 1}, phase: corev1.PodRunning, ready: true},
		{name: "an old count", guards: 1, status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 2,
			ObservedGeneration: -1},
			phase: corev1.PodRunning, ready: true, allowed: 2},
		{name: "two budgets", guards: 2, status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 2},
			phase: corev1.PodRunning, ready: true, allowed: 2},
		{name: "not begun", guards: 1, phase: corev1.PodPending, granted: true},
		{name: "unready, and too few are healthy", guards: 1,
			status: policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 1}, phase: corev1.PodRunning},
		{name: "unready, and the budget does not mind", guards: 1,
			status: policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 1}, policy: &always,
			phase: corev1.PodRunning, granted: true},
		{name: "unready, and enough are healthy", guards: 1,
			status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1},
			phase:  corev1.PodRunning, granted: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(1, Options{})
			pod := s.newSet("app").Spec.Template
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app-1", Labels: pod.Labels},
				Spec: pod.Spec}
			p.Spec.NodeName, p.Status.Phase = "node-1", c.phase
			grace := int64(30)
			p.Spec.TerminationGracePeriodSeconds = &grace
			if c.ready {
				setPodCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			}
			s.store.create(p)
			for i := range c.guards {
				one := intstr.FromInt32(1)
				g := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
					Name: string(rune('a' + i))}, Status: c.status}
				g.Spec = policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
					MaxUnavailable: &one, UnhealthyPodEvictionPolicy: c.policy}
				g.Status.ObservedGeneration++
				s.store.create(g)
			}
			err := s.evict(&replica{sim: s}, p, &policyv1.Eviction{})
			if granted := err == nil; granted != c.granted {
				t.Errorf("granted: %t (%v), want %t", granted, err, c.granted)
			}
			if err != nil && c.guards == 1 && !apierrors.IsTooManyRequests(err) {
				t.Errorf("refused with %v, want 429", err)
			}
			now, _ := find[*corev1.Pod](s.store, pods, keyOf(p))
			if leaving := now != nil && now.DeletionTimestamp != nil; leaving != c.granted {
				t.Errorf("the pod leaves: %t, want %t", leaving, c.granted)
			}
			if c.granted && now.DeletionTimestamp.Sub(s.clock.now) != 30*time.Second {
				t.Errorf("it must be gone at %s, want in 30s", now.DeletionTimestamp)
			}
			if g, ok := find[*policyv1.PodDisruptionBudget](s.store, guards, namespace+"/a"); ok &&
				g.Status.DisruptionsAllowed != c.allowed {
				t.Errorf("the budget allows %d afterwards, want %d", g.Status.DisruptionsAllowed, c.allowed)
			}
		})
	}
}

// Three pods are ready of a workload that wants two: a budget that says how many must be there counts the pods, one
// that says how many may be missing asks their owner.
func TestHowBudgetsAreCounted(t *testing.T) {
	none, two := intstr.FromInt32(0), intstr.FromInt32(2)
	for name, c := range map[string]struct {
		spec policyv1.PodDisruptionBudgetSpec
		want policyv1.PodDisruptionBudgetStatus
	}{
		"two must be there": {policyv1.PodDisruptionBudgetSpec{MinAvailable: &two},
			policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 2, ExpectedPods: 3, DisruptionsAllowed: 1}},
		"none may be missing": {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none},
			policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 2, ExpectedPods: 2, DisruptionsAllowed: 1}},
		"two may be missing": {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &two},
			policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 0, ExpectedPods: 2, DisruptionsAllowed: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(1, Options{})
			set := s.newSet("app")
			*set.Spec.Replicas = 2
			s.store.create(set)
			for range 3 {
				s.makePod(set)
			}
			for _, p := range list[*corev1.Pod](s.store, pods) {
				edit(s.store, pods, keyOf(p), p.UID, func(p *corev1.Pod) {
					setPodCondition(p, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
				})
			}
			c.spec.Selector = set.Spec.Selector
			s.store.create(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
				Name: "app"}, Spec: c.spec})
			s.tendGuards()
			g, _ := find[*policyv1.PodDisruptionBudget](s.store, guards, namespace+"/app")
			c.want.CurrentHealthy, c.want.ObservedGeneration, c.want.DisruptedPods = 3, g.Generation,
				g.Status.DisruptedPods
			if !reflect.DeepEqual(g.Status, c.want) {
				t.Errorf("the status is %+v, want %+v", g.Status, c.want)
			}
		})
	}
}
