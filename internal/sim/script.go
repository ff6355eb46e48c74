package sim

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

const (
	namespace    = "default"
	startupTaint = "sim.example/starting"
	specialLabel = "example.com/tier"
)

// choosePolicy draws how the program is set up.
func (s *Sim) choosePolicy() {
	s.deletesNodes = s.clock.chance(0.5)
	s.policy.Placement = pick(s.clock, []plan.PlacementMode{plan.PlaceByNomination, plan.PlaceByBinding,
		plan.PlaceByEvent})
	s.policy.StaticCapacity = s.clock.chance(0.4)
	s.policy.Repair = disrupt.RepairSettings{Enabled: s.clock.chance(0.3), MaxUnhealthy: 20,
		Policies: []disrupt.RepairPolicy{
			{Type: string(corev1.NodeReady), Status: string(corev1.ConditionUnknown), Toleration: 2 * time.Minute,
				HasGrace: s.seed%4 > 0, Grace: time.Duration(s.seed%4) * 20 * time.Second}}}
	s.policy.Repair.Legacy = s.clock.chance(0.3)
	s.policy.Disrupt = disrupt.Settings{
		MinSaving: pick(s.clock, []float64{0, 0.05, 0.3}), MinSavingPerPod: pick(s.clock, []float64{0, 0.0001}),
		EvictionsPerHour: pick(s.clock, []int{0, 2}), BalancedK: 2,
		SpotToSpot: s.clock.chance(0.5), SpotTypes: pick(s.clock, []int{1, 3, 15}), SpotRisk: pick(s.clock,
			[]float64{0, 0.1}),
		ReplacementTimeout: s.clock.between(time.Minute, 8*time.Minute), DriftWatch: s.clock.between(10*time.Second,
			2*time.Minute),
	}
}

// prepare draws the cluster, what people do with it and what goes wrong, and says how long the faults last.
func (s *Sim) prepare() time.Duration {
	c := s.clock
	faultTime := c.between(60*time.Second, 4*time.Minute)
	s.store.create(s.newPool("general", false))
	if c.chance(0.6) {
		s.store.create(s.newPool("special", true))
	}
	if s.policy.StaticCapacity && c.chance(0.6) {
		s.store.create(s.newStaticPool())
	}
	for i := range c.number(1, 3) {
		name := fmt.Sprintf("app%d", i)
		s.store.create(s.newSet(name))
		if c.chance(0.4) {
			s.store.create(s.newGuard(name))
		}
	}
	for range c.number(1, 6) {
		c.after(c.between(5*time.Second, faultTime), s.scale)
	}
	if c.chance(0.3) {
		s.drawSaving(faultTime)
	}
	s.drawFaultRates(faultTime)
	s.drawAdversaries(faultTime)
	return faultTime
}

// drawSaving makes a cluster in which much can be saved: many pods come and some of them go again, and whatever costs
// less is done, at once and all at the same time.
func (s *Sim) drawSaving(faultTime time.Duration) {
	c := s.clock
	s.policy.Disrupt.MinSaving, s.policy.Disrupt.MinSavingPerPod, s.policy.Disrupt.EvictionsPerHour = 0, 0, 0
	s.policy.Disrupt.SpotToSpot, s.policy.Disrupt.SpotTypes = true, 1
	for _, pool := range list[*v1.NodePool](s.store, pools) {
		edit(s.store, pools, keyOf(pool), pool.UID, func(p *v1.NodePool) {
			p.Annotations = nil
			p.Spec.Limits = nil
			p.Spec.Disruption = v1.Disruption{ConsolidationPolicy: v1.ConsolidationPolicyWhenEmptyOrUnderutilized,
				ConsolidateAfter: lasting(c.between(0, 5*time.Second).Truncate(time.Second)),
				Budgets:          []v1.Budget{{Nodes: "100%"}}}
		})
	}
	for range c.number(1, 3) {
		at := c.between(0, faultTime/2)
		for _, set := range list[*appsv1.ReplicaSet](s.store, sets) {
			many, few := int32(c.number(6, 16)), int32(c.number(2, 5))
			c.after(at, func() { s.scaleTo(set, many) })
			c.after(at+c.between(15*time.Second, faultTime/2), func() { s.scaleTo(set, few) })
		}
	}
}

func (s *Sim) newPool(name string, special bool) *v1.NodePool {
	c := s.clock
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t := &p.Spec.Template
	t.Spec.NodeClassRef = &v1.NodeClassReference{Group: classGroup, Kind: classKind, Name: className}
	t.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	t.Spec.ExpireAfter = v1.NeverDuration()
	if c.chance(0.5) {
		t.Spec.Requirements = append(t.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
			Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{v1.CapacityTypeSpot,
				v1.CapacityTypeOnDemand}})
	}
	if special {
		t.Labels = map[string]v1.LabelValue{specialLabel: "special"}
		if c.chance(0.5) {
			t.Spec.Taints = []v1.Taint{{Key: specialLabel, Value: "special", Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	if c.chance(0.3) {
		t.Spec.StartupTaints = []v1.Taint{{Key: startupTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
	if c.chance(0.4) {
		t.Spec.TerminationGracePeriod = &metav1.Duration{Duration: c.between(20*time.Second,
			3*time.Minute).Truncate(time.Second)}
	}
	p.Spec.Disruption = v1.Disruption{
		ConsolidationPolicy: pick(c, []v1.ConsolidationPolicy{v1.ConsolidationPolicyWhenEmpty,
			v1.ConsolidationPolicyBalanced,
			v1.ConsolidationPolicyWhenEmptyOrUnderutilized, v1.ConsolidationPolicyWhenEmptyOrUnderutilized}),
		ConsolidateAfter: lasting(c.between(0, 90*time.Second).Truncate(time.Second)),
		Budgets:          s.drawBudgets(),
	}
	if c.chance(0.4) {
		p.Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: *apiresource.NewQuantity(int64(c.number(4, 40)),
			apiresource.DecimalSI)}
		if c.chance(0.3) {
			p.Spec.Limits["nodes"] = *apiresource.NewQuantity(int64(c.number(1, 6)), apiresource.DecimalSI)
		}
	}
	if c.chance(0.2) {
		t.Spec.ExpireAfter = lasting(c.between(2*time.Minute, 6*time.Minute).Truncate(time.Second))
	}
	s.drawDisruption(p)
	if c.chance(0.3) {
		weight := int32(c.number(1, 100))
		p.Spec.Weight = &weight
	}
	return p
}

// newStaticPool keeps a number of nodes, whatever the pods say.
func (s *Sim) newStaticPool() *v1.NodePool {
	p := s.newPool("static", false)
	replicas := int64(s.clock.number(0, 3))
	p.Spec.Replicas, p.Spec.Weight = &replicas, nil
	limit, has := p.Spec.Limits["nodes"]
	if p.Spec.Limits = nil; has {
		p.Spec.Limits = corev1.ResourceList{"nodes": limit}
	}
	return p
}

func (s *Sim) newSet(name string) *appsv1.ReplicaSet {
	c := s.clock
	replicas, grace := int32(c.number(0, 8)), int64(c.number(0, 40))
	labels := map[string]string{"app": name}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	set.Spec.Replicas, set.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
	t := &set.Spec.Template
	t.Labels, t.Annotations = labels, map[string]string{}
	t.Spec.TerminationGracePeriodSeconds = &grace
	t.Spec.Containers = []corev1.Container{{Name: "main",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *apiresource.NewMilliQuantity(int64(c.number(1, 30))*100, apiresource.DecimalSI),
			corev1.ResourceMemory: *apiresource.NewQuantity(int64(c.number(1, 24))<<28, apiresource.BinarySI),
		}}}}
	switch {
	case c.chance(0.2):
		t.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: pick(c, zones())}
	case c.chance(0.2):
		t.Spec.NodeSelector = map[string]string{specialLabel: "special"}
		t.Spec.Tolerations = []corev1.Toleration{{Key: specialLabel, Operator: corev1.TolerationOpExists}}
	}
	if c.chance(0.15) {
		t.Annotations[v1.DoNotDisruptAnnotationKey] = pick(c, []string{"true", "true", "90s", "4m"})
	}
	return set
}

func (s *Sim) newGuard(app string) *policyv1.PodDisruptionBudget {
	g := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}}
	g.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	n := intstr.FromInt32(int32(s.clock.number(0, 2)))
	if s.clock.chance(0.5) {
		g.Spec.MaxUnavailable = &n
	} else {
		g.Spec.MinAvailable = &n
	}
	if s.clock.chance(0.3) {
		always := policyv1.AlwaysAllow
		g.Spec.UnhealthyPodEvictionPolicy = &always
	}
	return g
}

// scale is somebody who wants more pods, or fewer.
func (s *Sim) scale() {
	set := pick(s.clock, list[*appsv1.ReplicaSet](s.store, sets))
	replicas := int32(s.clock.number(0, 10))
	if s.clock.chance(0.2) {
		replicas = 0
	}
	s.scaleTo(set, replicas)
}

func (s *Sim) scaleTo(set *appsv1.ReplicaSet, replicas int32) {
	s.trace.note("someone: scales %s to %d", set.Name, replicas)
	edit(s.store, sets, keyOf(set), set.UID, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = &replicas })
}
