package sim

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const (
	// atOnce is how long pods may wait when the agent has taken back what it did to a node that stands for them:
	// kube-scheduler has but to look.
	atOnce = 30 * time.Second
	// soonEnough is how long pods may wait once the agent is gone: for the next try and for its node, with what is
	// to be seen of it before the rest follows.
	soonEnough = 12 * time.Minute
)

// prepareHour draws a cluster with an agent in it, and who suffers from it.
func (s *Sim) prepareHour() *agent {
	c := s.clock
	v := s.judge.unused
	kind := nodeAgents()[int(s.seed)%len(nodeAgents())]
	v.on, v.billed, v.shrinks = true, true, kind == "shrink"
	s.store.create(s.hourPool("general", kind))
	victim := s.hourSet("victim", kind)
	s.store.create(victim)
	bystander := s.hourSet("bystander", "")
	// also of our own: a drain leaves it
	bystander.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	one := int32(1)
	bystander.Spec.Replicas = &one
	s.store.create(bystander)
	for _, set := range list[*appsv1.ReplicaSet](s.store, sets) {
		cpu := set.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]
		if kind == "shrink" && cpu.Cmp(shrunkCPU()) <= 0 {
			v.about(set.UID).share = 1 // what the agent leaves takes one of them, so that each needs a node
		}
	}
	a := s.startAgent(kind)
	a.victims[victim.UID] = true
	crashes := c.number(0, 3)
	if s.slowHour() { // and no restart, which would widen the bound
		a.delay, crashes = c.between(12*time.Second, 55*time.Second), 0
	}
	if !s.slowHour() && (kind == "taint NoSchedule" || kind == "cordon" || kind == "shrink") && c.chance(0.7) {
		a.from, a.delay = "joined", 0 // a later one often comes when pods are there, and does them no harm
	}
	s.clock.after(time.Second, v.watch)
	for range crashes {
		c.after(c.between(time.Minute, 55*time.Minute), s.crash)
	}
	if spares(kind) {
		c.after(c.between(5*time.Minute, 45*time.Minute), s.growBystander)
	}
	return a
}

// slowHour reports whether the agent lets pods of a large owner run for a while on each node, so that the nodes seem
// well.
func (s *Sim) slowHour() bool { return s.seed%4 == 0 }

// spares reports whether the agent leaves the bystander alone, which tolerates its taint and asks for no label.
func spares(kind string) bool {
	return kind == "taint NoExecute" || kind == "taint NoSchedule" || kind == "relabel" || kind == "evict"
}

// hourPolicies are the consolidation policies that there are.
func hourPolicies() []v1.ConsolidationPolicy {
	return []v1.ConsolidationPolicy{v1.ConsolidationPolicyWhenEmpty, v1.ConsolidationPolicyBalanced,
		v1.ConsolidationPolicyWhenEmptyOrUnderutilized}
}

func (s *Sim) hourPool(name, kind string) *v1.NodePool {
	c := s.clock
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t := &p.Spec.Template
	t.Spec.NodeClassRef = &v1.NodeClassReference{Group: classGroup, Kind: classKind, Name: className}
	t.Spec.ExpireAfter = v1.NeverDuration()
	t.Labels = map[string]v1.LabelValue{specialLabel: "special"}
	t.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: v1.CapacityTypeLabelKey,
		Operator: corev1.NodeSelectorOpIn,
		Values: pick(c, [][]string{{v1.CapacityTypeOnDemand}, {v1.CapacityTypeSpot},
			{v1.CapacityTypeSpot, v1.CapacityTypeOnDemand}})}}
	p.Spec.Disruption = v1.Disruption{
		ConsolidationPolicy: pick(c, hourPolicies()),
		ConsolidateAfter:    pick(c, []v1.NillableDuration{lasting(0), lasting(30 * time.Second), v1.NeverDuration()}),
		Budgets:             []v1.Budget{{Nodes: pick(c, []string{"100%", "1", "10%"})}},
	}
	return p
}

func (s *Sim) hourSet(name, kind string) *appsv1.ReplicaSet {
	c := s.clock
	replicas, grace := int32(pick(c, []int{1, 1, 2, 5, 12, 20})), int64(pick(c, []int{0, 1, 30}))
	if s.slowHour() {
		replicas = 12
	}
	labels := map[string]string{"app": name}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	set.Spec.Replicas, set.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
	t := &set.Spec.Template
	t.Labels, t.Annotations = labels, map[string]string{}
	t.Spec.TerminationGracePeriodSeconds = &grace
	tenths := pick(c, []int{c.number(5, 30), c.number(30, 40)})
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *apiresource.NewMilliQuantity(int64(tenths)*100, apiresource.DecimalSI),
		corev1.ResourceMemory: *apiresource.NewQuantity(int64(c.number(1, 8))<<28, apiresource.BinarySI),
	}
	if c.chance(0.3) { // one node takes all of them
		requests = corev1.ResourceList{
			corev1.ResourceCPU:    apiresource.MustParse("50m"),
			corev1.ResourceMemory: apiresource.MustParse("32Mi"),
		}
	}
	t.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}
	if kind == "relabel" {
		t.Spec.NodeSelector = map[string]string{specialLabel: "special"}
	}
	return set
}

// growBystander: pods of another owner get their nodes at once, whatever the agent does to the victim.
func (s *Sim) growBystander() {
	set, _ := find[*appsv1.ReplicaSet](s.store, sets, namespace+"/bystander")
	more := *set.Spec.Replicas + int32(s.clock.number(1, 4))
	s.scaleTo(set, more)
	s.clock.after(5*time.Minute, func() {
		for _, p := range list[*corev1.Pod](s.store, pods) {
			waited := s.clock.now.Sub(p.CreationTimestamp.Time) > 4*time.Minute && len(s.replicas) > 0 &&
				s.clock.now.Sub(s.replicas[0].started) > 4*time.Minute
			if p.Labels["app"] == "bystander" && p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil &&
				waited {
				s.fail("one owner's trouble never holds up another's", "%s has waited on %q since %s", p.Name,
					p.Spec.NodeName, p.CreationTimestamp)
			}
		}
	})
}

// leftUnused is a node that stands for pods of the victim, if they wait: the agent has struck it and nobody ends it.
// Empty for none.
func (s *Sim) leftUnused(a *agent) string {
	if s.someRun("victim") {
		return ""
	}
	for _, n := range list[*corev1.Node](s.store, nodes) {
		claim := s.claimOf(n.Name)
		if !a.struck[n.UID] || n.DeletionTimestamp != nil || len(s.podsOn(n.Name)) > 0 {
			continue
		}
		if claim == nil || claim.DeletionTimestamp != nil {
			continue
		}
		for owner := range s.judge.unused.madeFor[claim.UID] {
			if a.victims[owner] && !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 {
				s.seen["witness"]++
				return n.Name
			}
		}
	}
	return ""
}

// takenByOthers reports whether pods of others have come to the node first: then the victim's may need another.
func (s *Sim) takenByOthers(node string) bool {
	return slices.ContainsFunc(s.tenantsOn(node), func(p *corev1.Pod) bool { return p.Labels["app"] != "victim" })
}

// someRun reports whether some pod of the set runs.
func (s *Sim) someRun(set string) bool {
	return slices.ContainsFunc(list[*corev1.Pod](s.store, pods), func(p *corev1.Pod) bool {
		return p.Labels["app"] == set && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
	})
}

// recover ends the agent and waits until all pods run; it says how long that took.
func (s *Sim) recover(a *agent) time.Duration {
	a.stop()
	if len(s.replicas) == 0 {
		s.start()
	}
	stopped := s.clock.now
	shown := ""
	if a.tidy {
		shown = s.leftUnused(a)
	}
	for s.failure == nil {
		s.clock.runUntil(s.clock.now.Add(time.Second), s.over)
		waiting := ""
		for _, p := range list[*corev1.Pod](s.store, pods) {
			if p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil {
				waiting = p.Name
			}
		}
		switch took := s.clock.now.Sub(stopped); {
		case waiting == "":
			return took
		case shown != "" && took > atOnce:
			node := shown
			if shown = ""; !s.someRun("victim") && !s.takenByOthers(node) {
				s.fail("pods run within seconds where a node stands for them",
					"%s waits %s after the agent has taken back what it did", waiting, took)
			}
		case took > soonEnough:
			s.fail("pods run soon after the cause has gone", "%s waits %s after the agent has stopped", waiting, took)
		}
	}
	return 0
}
