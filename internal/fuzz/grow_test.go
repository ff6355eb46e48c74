package fuzz

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
)

func (s *source) pool(i int) *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: s.meta("pool", fmt.Sprint("pool", i))}
	t := &p.Spec.Template
	t.Spec.NodeClassRef = &v1.NodeClassReference{Group: classGroup, Kind: classKind, Name: choose(s, className,
		className, className, "nowhere")}
	t.Spec.ExpireAfter = s.lasting()
	for range s.upTo(2) {
		r := v1.NodeSelectorRequirementWithMinValues{Key: s.labelKey(), Operator: s.operator(), Values: s.values()}
		if s.one(4) {
			least := s.upTo(5)
			r.MinValues = &least
		}
		t.Spec.Requirements = append(t.Spec.Requirements, r)
	}
	if s.one(3) {
		t.Labels = map[string]v1.LabelValue{choose(s, "team", "tier", corev1.LabelTopologyZone,
			"bad key"): v1.LabelValue(s.value())}
	}
	if s.one(3) {
		t.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: s.value(), Effect: s.effect()}}
	}
	if s.one(4) {
		t.Spec.StartupTaints = []v1.Taint{{Key: "starting", Effect: s.effect()}}
	}
	if s.one(3) {
		t.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Duration(s.number()) * time.Second}
	}
	if s.one(3) {
		p.Spec.Limits = corev1.ResourceList{choose(s, corev1.ResourceCPU, "nodes", corev1.ResourceMemory,
			"nvidia.com/gpu"): s.quantity()}
	}
	p.Spec.Disruption = v1.Disruption{ConsolidationPolicy: choose(s, v1.ConsolidationPolicyWhenEmptyOrUnderutilized,
		v1.ConsolidationPolicyWhenEmpty, v1.ConsolidationPolicyBalanced, "odd"),
		ConsolidateAfter: s.lasting(), Budgets: []v1.Budget{{Nodes: choose(s, "100%", "1", "0", "10%", "-3", "x",
			"99999999999999999999%")}}}
	if s.one(4) {
		schedule := choose(s, "* * * * *", "0 9 * * mon", "CRON_TZ=Nowhere 0 0 * * *", "@daily", "")
		p.Spec.Disruption.Budgets = append(p.Spec.Disruption.Budgets, v1.Budget{Nodes: "0", Schedule: &schedule,
			Duration: &metav1.Duration{Duration: time.Duration(s.number()) * time.Minute}})
	}
	if s.one(4) {
		weight := int32(s.number())
		p.Spec.Weight = &weight
	}
	if s.one(6) {
		replicas := int64(s.upTo(4))
		p.Spec.Replicas = &replicas
	}
	return p
}

// lasting draws a duration as the API server hands it out.
func (s *source) lasting() v1.NillableDuration {
	text := choose(s, "0s", "30s", "Never", "720h", "1s")
	if text == "Never" {
		return v1.NeverDuration()
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return v1.NillableDuration{Duration: &d, Raw: text}
}

func (s *source) effect() corev1.TaintEffect {
	return choose(s, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule)
}

func (s *source) labelKey() string {
	return choose(s, corev1.LabelTopologyZone, v1.CapacityTypeLabelKey, corev1.LabelInstanceTypeStable,
		corev1.LabelArchStable, "team", "generation", corev1.LabelHostname, v1.NodePoolLabelKey, "app")
}

func (s *source) value() string {
	return choose(s, "a", "b", "spot", "on-demand", "type0", "amd64", "blue", "3", "", "pool0", "node0")
}

func (s *source) values() []string {
	var out []string
	for range s.upTo(3) {
		out = append(out, s.value())
	}
	return out
}

func (s *source) operator() corev1.NodeSelectorOperator {
	return choose(s, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
		corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt,
		corev1.NodeSelectorOpLt, "Odd")
}

// addMachine puts in a claim, its node, or only one of the two, in some state.
func (w *world) addMachine(s *source, i int) {
	t := w.types[s.upTo(len(w.types)-1)]
	pool, name, id := w.pools[s.upTo(len(w.pools)-1)], fmt.Sprint("node", i), fmt.Sprint("fuzz:///", i)
	labels := map[string]string{v1.NodePoolLabelKey: pool.Name, corev1.LabelInstanceTypeStable: t.Name,
		corev1.LabelTopologyZone: choose(s, "a", "b"),
		v1.CapacityTypeLabelKey:  choose(s, v1.CapacityTypeOnDemand, v1.CapacityTypeSpot), corev1.LabelHostname: name,
		v1.NodeClassLabelKey(classGroup, classKind): className}
	what := s.upTo(5)
	if what != 1 {
		c := &v1.NodeClaim{ObjectMeta: s.meta("claim", fmt.Sprint("claim", i))}
		c.Labels, c.Finalizers = labels, []string{v1.TerminationFinalizer}
		c.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
		c.Spec.ExpireAfter = s.lasting()
		c.Spec.TerminationGracePeriod = pool.Spec.Template.Spec.TerminationGracePeriod
		c.Status.Capacity, c.Status.Allocatable = t.Capacity, t.Allocatable()
		if s.one(8) {
			c.Spec.Resources.Requests, c.Status.Allocatable = s.resources(), s.resources()
		}
		for k, kind := range []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered,
			v1.ConditionTypeInitialized} {
			if what == 0 || what != 3 && k < what-1 {
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind,
					Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: s.when()})
			}
		}
		if c.Status.ProviderID, c.Status.NodeName = id, name; what == 3 {
			c.Status.ProviderID, c.Status.NodeName = "", ""
		} else if s.one(6) {
			c.Status.ProviderID = fmt.Sprint("fuzz:///", s.upTo(5)) // another claim's machine
		}
		w.claims = append(w.claims, c)
	}
	if what != 2 {
		n := &corev1.Node{ObjectMeta: s.meta("node", name)}
		n.Labels = map[string]string{v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true"}
		for k, v := range labels {
			n.Labels[k] = v
		}
		if !s.one(5) {
			n.Finalizers = []string{v1.TerminationFinalizer}
		}
		if n.Spec.ProviderID = id; s.one(6) {
			n.Spec.ProviderID = fmt.Sprint("fuzz:///", s.upTo(5)) // a twin, or an impostor
		}
		if s.one(4) {
			n.Spec.Taints = []corev1.Taint{choose(s, v1.DisruptedNoScheduleTaint(), v1.UnregisteredNoExecuteTaint(),
				corev1.Taint{Key: "dedicated", Effect: s.effect()}, corev1.Taint{Key: corev1.TaintNodeNotReady,
					Effect: s.effect()})}
		}
		n.Spec.Unschedulable = s.one(8)
		n.Status.Capacity, n.Status.Allocatable = t.Capacity, t.Allocatable()
		if s.one(8) {
			n.Status.Allocatable = s.resources()
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: choose(s, corev1.ConditionTrue,
			corev1.ConditionTrue, corev1.ConditionUnknown, corev1.ConditionFalse), LastTransitionTime: s.when()}}
		w.nodes = append(w.nodes, n)
	}
	if !s.one(5) {
		machine := &cloudprovider.Instance{ProviderID: id, Type: t.Name, ClaimName: fmt.Sprint("claim", i),
			ClaimUID: fmt.Sprint("claim-claim", i), CreatedAt: start().Add(-time.Hour), Labels: labels}
		if s.one(6) { // launched for another claim, or for one of this name that was there before
			machine.ClaimName, machine.ClaimUID = fmt.Sprint("claim", s.upTo(5)), fmt.Sprint("claim-claim", s.upTo(5))
		}
		w.running = append(w.running, machine)
	}
}

func (s *source) daemon(i int) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("daemon", i),
		UID: types.UID(fmt.Sprint("daemon", i))}}
	d.Spec.Template.Labels = map[string]string{"app": s.value()}
	d.Spec.Template.Spec = s.podSpec()
	return d
}

func (s *source) pod(w *world, i int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: s.meta("pod", fmt.Sprintf("pod%02d", i))}
	p.Namespace, p.Labels = choose(s, "default", "default", "other"), map[string]string{"app": s.value()}
	p.Spec = s.podSpec()
	controls := true
	if !s.one(4) {
		kind := choose(s, "ReplicaSet", "ReplicaSet", "DaemonSet", "Node", "Job")
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "owner",
			UID: types.UID(fmt.Sprint("owner", s.upTo(3))), Controller: &controls}}
	}
	p.Status.Phase = choose(s, corev1.PodPending, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded,
		corev1.PodFailed)
	switch {
	case len(w.nodes) > 0 && s.one(2):
		p.Spec.NodeName = w.nodes[s.upTo(len(w.nodes)-1)].Name
		at := s.when()
		p.Status.StartTime = &at
	case !s.one(5):
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, LastTransitionTime: s.when()}}
	}
	if s.one(8) { // what a kubelet says, which nobody checks
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c0", AllocatedResources: s.resources(),
			Resources: &corev1.ResourceRequirements{Requests: s.resources()}}}
	}
	if s.one(6) {
		p.Status.NominatedNodeName = fmt.Sprint("node", s.upTo(5))
	}
	if s.one(6) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady,
			Status: corev1.ConditionTrue})
	}
	if p.DeletionTimestamp != nil {
		grace := s.number()
		p.DeletionGracePeriodSeconds = &grace
	}
	return p
}

func (s *source) podSpec() corev1.PodSpec {
	var spec corev1.PodSpec
	for i := range 1 + s.upTo(1) {
		c := corev1.Container{Name: fmt.Sprint("c", i), Resources: corev1.ResourceRequirements{Requests: s.resources()}}
		if s.one(6) {
			c.Resources.Limits = s.resources()
		}
		if s.one(6) {
			c.Ports = []corev1.ContainerPort{{HostPort: int32(s.upTo(2)), HostIP: choose(s, "", "0.0.0.0", "10.0.0.1",
				"::1", "odd"), Protocol: choose(s, corev1.ProtocolTCP, "", "ODD")}}
		}
		spec.Containers = append(spec.Containers, c)
	}
	if s.one(6) {
		always := corev1.ContainerRestartPolicyAlways
		spec.InitContainers = []corev1.Container{{Name: "i", RestartPolicy: choose(s, nil, &always),
			Resources: corev1.ResourceRequirements{Requests: s.resources()}}}
	}
	if s.one(8) {
		spec.Overhead = s.resources()
	}
	if s.one(2) {
		grace := s.number()
		spec.TerminationGracePeriodSeconds = &grace
	}
	if s.one(4) {
		spec.NodeSelector = map[string]string{s.labelKey(): s.value()}
	}
	for range s.upTo(2) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: choose(s, "dedicated", "",
			v1.DisruptedTaintKey), Operator: choose(s, corev1.TolerationOpExists, corev1.TolerationOpEqual, ""),
			Value: s.value(), Effect: choose(s, "", s.effect())})
	}
	if s.one(8) {
		priority := int32(s.number())
		spec.Priority = &priority
	}
	if s.one(12) {
		spec.SchedulerName = "another"
	}
	if s.one(5) {
		spec.Volumes = []corev1.Volume{{Name: "v",
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("disk",
					s.upTo(3))},
			}}}
	}
	s.affinity(&spec)
	return spec
}

func (s *source) selector() *metav1.LabelSelector {
	switch s.upTo(5) {
	case 0:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.value()}}
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return nil
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
			Operator: choose(s, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpExists,
				"Odd"), Values: s.values()}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
}

func (s *source) podTerm() corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{LabelSelector: s.selector(), TopologyKey: choose(s, corev1.LabelHostname,
		corev1.LabelTopologyZone, v1.CapacityTypeLabelKey, "team", "")}
	if s.one(6) {
		t.NamespaceSelector = s.selector()
	}
	if s.one(6) {
		t.Namespaces = []string{choose(s, "default", "other", "nowhere")}
	}
	if s.one(8) {
		t.MatchLabelKeys = []string{"app"}
	}
	return t
}

func (s *source) nodeTerms() []corev1.NodeSelectorTerm {
	var out []corev1.NodeSelectorTerm
	for range s.upTo(2) {
		var t corev1.NodeSelectorTerm
		for range s.upTo(2) {
			t.MatchExpressions = append(t.MatchExpressions, corev1.NodeSelectorRequirement{Key: s.labelKey(),
				Operator: s.operator(), Values: s.values()})
		}
		if s.one(8) {
			t.MatchFields = []corev1.NodeSelectorRequirement{{Key: choose(s, "metadata.name", "odd"),
				Operator: corev1.NodeSelectorOpIn, Values: []string{"node0"}}}
		}
		out = append(out, t)
	}
	return out
}

// affinity draws the rules of a pod about nodes and other pods.
func (s *source) affinity(spec *corev1.PodSpec) {
	a := &corev1.Affinity{}
	if s.one(5) {
		a.NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: s.nodeTerms()},
		}
	}
	if s.one(3) {
		a.PodAffinity = &corev1.PodAffinity{}
		for range 1 + s.upTo(1) {
			a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution =
				append(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, s.podTerm())
		}
		if s.one(4) {
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution =
				[]corev1.WeightedPodAffinityTerm{{Weight: int32(s.number()), PodAffinityTerm: s.podTerm()}}
		}
	}
	if s.one(4) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{s.podTerm()},
		}
	}
	if *a != (corev1.Affinity{}) {
		spec.Affinity = a
	}
	most := s.upTo(2)
	for range most - s.upTo(2) { // mostly none
		least := int32(s.upTo(4))
		c := corev1.TopologySpreadConstraint{MaxSkew: int32(choose(s, 1, 2, 0, -1)),
			TopologyKey: choose(s, corev1.LabelTopologyZone, corev1.LabelHostname, "team"), WhenUnsatisfiable: choose(s,
				corev1.DoNotSchedule, corev1.ScheduleAnyway, "Odd"), LabelSelector: s.selector()}
		if s.one(3) {
			c.MinDomains = &least
		}
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, c)
	}
}
