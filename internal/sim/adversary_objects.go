package sim

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// garbage is what people and scripts write where something else is expected.
func garbage() []string {
	return []string{"", " ", "true", "null", "{}", "[]", "-1", "99999999999999999999", "1h", "\x00", "ü=ö", `{"kind":`,
		"SpotInterruption at noon",
		"2026-03-02T08:00:00Z", strings.Repeat("x,", 2000)}
}

// writeGarbage writes garbage into annotations that the program reads. Whoever did it takes it back in the end.
func (s *Sim) writeGarbage() {
	text := pick(s.clock, garbage())
	key := pick(s.clock, []string{cluster.SeatsAnnotation, cluster.MoveAnnotation, cluster.ReplacesAnnotation,
		cluster.RestAnnotation, cluster.SavingRestAnnotation,
		cloudprovider.InterruptionAnnotation, v1.NodeClaimTerminationTimestampAnnotationKey, dryRunAnnotation,
		canaryAnnotation, softAnnotation,
		v1.DoNotDisruptAnnotationKey, v1.NodePoolHashAnnotationKey})
	k := pick(s.clock, []kind{claims, nodes, pools, pods})
	obj := s.any(k)
	if obj == nil {
		return
	}
	s.trace.note("someone: writes %.20q into %s of %s %s", text, key, k, obj.GetName())
	name, uid := keyOf(obj), obj.GetUID()
	old, had := obj.GetAnnotations()[key]
	s.annotate(k, name, string(uid), key, text, true)
	s.adversaryState.undo = append(s.adversaryState.undo, func() {
		if now := s.store.get(k, name); now != nil && now.GetAnnotations()[key] == text {
			s.annotate(k, name, string(uid), key, old, had && key != v1.DoNotDisruptAnnotationKey)
		}
		// What is written on a claim is copied to its node when that registers.
		for _, n := range list[*corev1.Node](s.store, nodes) {
			if k == claims && n.Annotations[key] == text {
				s.annotate(nodes, n.Name, string(n.UID), key, "", false)
			}
		}
	})
}

// annotate writes an annotation, or takes it away.
func (s *Sim) annotate(k kind, name, uid, key, text string, there bool) {
	now := s.store.get(k, name)
	if now == nil || string(now.GetUID()) != uid {
		return
	}
	next := now.DeepCopyObject().(client.Object)
	all := map[string]string{}
	for key, value := range next.GetAnnotations() {
		all[key] = value
	}
	if all[key] = text; !there {
		delete(all, key)
	}
	next.SetAnnotations(all)
	s.store.write(next)
}

// hostilePods are pods of nobody, with rules that nobody would write. They are gone when the faults are over.
func (s *Sim) hostilePods() {
	for range s.clock.number(1, 5) {
		s.adversaryState.count++
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("hostile-%d",
			s.adversaryState.count), Labels: map[string]string{"app": "hostile"}, Annotations: map[string]string{}}}
		grace := int64(s.clock.number(0, 40))
		p.Spec.TerminationGracePeriodSeconds = &grace
		p.Spec.Containers = []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: *apiresource.NewMilliQuantity(int64(s.clock.number(0, 20))*100,
					apiresource.DecimalSI)}}}}
		p.Status.Phase = corev1.PodPending
		pick(s.clock, oddities())(p)
		s.trace.note("someone: makes pod %s", p.Name)
		s.store.create(p)
		name := keyOf(p)
		s.adversaryState.undo = append(s.adversaryState.undo, func() {
			if now := s.store.get(pods, name); now != nil {
				s.store.remove(now)
			}
		})
	}
}

// oddities are what hostile pods ask for.
func oddities() []func(*corev1.Pod) {
	anywhere := &metav1.LabelSelector{}
	return []func(*corev1.Pod){
		func(p *corev1.Pod) { // no machine has so much
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = apiresource.MustParse("9E")
		},
		func(p *corev1.Pod) { // a resource that nobody has
			p.Spec.Containers[0].Resources.Requests["example.com/unicorn"] = apiresource.MustParse("1")
		},
		func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "nowhere",
				corev1.LabelTopologyZone: "zone-z"}
		},
		func(p *corev1.Pod) { // it keeps everybody away, and is to be beside everybody
			term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: anywhere}
			p.Spec.Affinity = &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
				},
				PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
				},
			}
		},
		func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1 << 30,
				TopologyKey: "nobody/has-this", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: anywhere}}
		},
		func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{
							{}, {MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "x",
								Operator: corev1.NodeSelectorOpGt,
								Values:   []string{"many"}}}}},
					},
				},
			}
		},
		func(p *corev1.Pod) { p.Annotations[v1.DoNotDisruptAnnotationKey] = "-5m" },
		func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
	}
}

// hasNoPlace reports whether a pod asks for what no node can give. Only hostile pods have affinity, which
// kube-scheduler would have to read here, and none of it can be met.
func hasNoPlace(p *corev1.Pod) bool {
	_, unicorn := p.Spec.Containers[0].Resources.Requests["example.com/unicorn"]
	return unicorn || p.Spec.Affinity != nil
}

// hostilePool is a pool with values that pass the API server and make no sense. It goes when the faults are over.
func (s *Sim) hostilePool() {
	s.adversaryState.count++
	p := s.newPool(fmt.Sprintf("hostile-%d", s.adversaryState.count), false)
	in := func(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	many := 50
	switch s.clock.number(0, 6) {
	case 0:
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, in(corev1.LabelTopologyZone,
			"zone-a"), in(corev1.LabelTopologyZone, "zone-b"))
	case 1:
		r := in(corev1.LabelInstanceTypeStable, "small", "medium")
		r.MinValues = &many
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements, r)
	case 2:
		p.Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("0"),
			"nodes": apiresource.MustParse("0")}
	case 3:
		p.Spec.Template.Spec.ExpireAfter = lasting(time.Second)
	case 4:
		p.Spec.Template.Spec.Taints = []v1.Taint{{Key: "nobody", Value: "tolerates",
			Effect: corev1.TaintEffectNoExecute}}
	case 5:
		p.Spec.Template.Spec.NodeClassRef.Name = "there-is-none"
	case 6:
		p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "0"}, {Nodes: "100%"}, {Nodes: "00%"}}
	}
	weight := int32(100)
	p.Spec.Weight = &weight
	s.trace.note("someone: makes pool %s", p.Name)
	s.store.create(p)
	name := p.Name
	s.adversaryState.undo = append(s.adversaryState.undo, func() {
		if now := s.store.get(pools, name); now != nil {
			s.store.erase(now)
		}
	})
}
