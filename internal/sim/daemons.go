package sim

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/plan"
)

// priorityClasses are those of the cluster, by name.
func priorityClasses() map[string]int32 {
	return map[string]int32{"idle": -10, "system": 1000}
}

// drawDaemonSets are people who make DaemonSets that other pods leave little room for, or that leave little for others:
// one that fits on no machine or on few, very many small ones, and some of another priority than the pods have. They
// are gone when the faults are over, but for those that use up every machine and preempt nobody: with them, too, the
// cluster has to come to rest if pods are told their nodes.
func (s *Sim) drawDaemonSets() {
	c := s.clock
	class := pick(c, []string{"", "", "idle", "system"})
	var made []*appsv1.DaemonSet
	switch c.number(0, 4) {
	case 0:
		made = append(made, s.makeDaemonSet(class, int64(c.number(100, 1000))*1000))
	case 1:
		made = append(made, s.makeDaemonSet(class, int64(c.number(1, 8))*1000))
	case 2:
		for range c.number(8, 24) {
			made = append(made, s.makeDaemonSet(class, int64(c.number(4, 24))*100))
		}
	case 3:
		for range c.number(2, 5) {
			made = append(made, s.makeDaemonSet(pick(c, []string{"", "idle", "system"}), int64(c.number(1, 20))*100))
		}
	case 4: // the largest machine has 16 CPUs
		for range c.number(17, 24) {
			made = append(made, s.makeDaemonSet(pick(c, []string{"", "idle"}), 1000))
		}
		if s.policy.Placement != plan.PlaceByEvent { // pods are told their nodes
			return
		}
	}
	for _, ds := range made {
		s.adversaryState.undo = append(s.adversaryState.undo, func() { s.endDaemonSet(ds) })
	}
}

func (s *Sim) makeDaemonSet(class string, cpu int64) *appsv1.DaemonSet {
	s.adversaryState.count++
	ds := &appsv1.DaemonSet{}
	ds.Namespace, ds.Name = namespace, fmt.Sprintf("daemon-%d", s.adversaryState.count)
	ds.UID, ds.Generation, ds.CreationTimestamp = types.UID("ds-"+ds.Name), 1, metav1.NewTime(s.clock.seconds())
	t := &ds.Spec.Template
	t.Labels = map[string]string{"daemon": ds.Name}
	t.Spec.PriorityClassName = class
	requests := corev1.ResourceList{
		corev1.ResourceCPU:    *apiresource.NewMilliQuantity(cpu, apiresource.DecimalSI),
		corev1.ResourceMemory: *apiresource.NewQuantity(64<<20, apiresource.BinarySI),
	}
	t.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}
	s.trace.note("someone: makes DaemonSet %s of %dm CPU and priority class %q", ds.Name, cpu, class)
	s.daemons, s.judge.unused.tight = append(s.daemons, ds), true
	for _, r := range s.replicas {
		s.clock.after(s.clock.between(time.Millisecond, 2*time.Second), func() { r.hearOfDaemons() })
	}
	s.tendDaemonsSoon()
	return ds
}

// endDaemonSet is somebody who deletes a DaemonSet, and its pods with it.
func (s *Sim) endDaemonSet(ds *appsv1.DaemonSet) {
	s.trace.note("someone: deletes DaemonSet %s", ds.Name)
	s.daemons = slices.DeleteFunc(s.daemons, func(o *appsv1.DaemonSet) bool { return o == ds })
	for _, r := range s.replicas {
		r.hearOfDaemons()
	}
	for _, pod := range list[*corev1.Pod](s.store, pods) {
		if metav1.IsControlledBy(pod, ds) {
			s.store.endPod(pod, nil)
		}
	}
}

// hearOfDaemons brings what the replica knows of DaemonSets up to date.
func (r *replica) hearOfDaemons() {
	if r.dead {
		return
	}
	for _, uid := range r.daemons {
		if !slices.ContainsFunc(r.sim.daemons, func(ds *appsv1.DaemonSet) bool { return ds.UID == uid }) {
			r.book.DeleteDaemon(uid)
		}
	}
	r.daemons = nil
	for _, ds := range r.sim.daemons {
		r.book.SetDaemon(ds.DeepCopy())
		r.daemons = append(r.daemons, ds.UID)
	}
	r.poke()
}

// hearOfPriorities tells the replica what priority classes there are.
func (r *replica) hearOfPriorities() {
	for _, name := range []string{"idle", "system"} {
		r.book.SetPriorityClass(&schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Value: priorityClasses()[name],
		})
	}
}

// tendDaemonsSoon has the DaemonSet controller do its round.
func (s *Sim) tendDaemonsSoon() {
	if len(s.daemons) > 0 {
		s.soon(&s.asked.daemons, 10*time.Millisecond, 300*time.Millisecond, s.tendDaemons)
	}
}

// tendDaemons gives each DaemonSet a pod on every node that it may run on. One that has failed is made anew.
func (s *Sim) tendDaemons() {
	there := map[string]bool{}
	for _, p := range list[*corev1.Pod](s.store, pods) {
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil || owner.Kind != "DaemonSet" {
			continue
		}
		node := pinnedTo(p)
		if s.store.get(nodes, node) == nil {
			s.store.remove(p)
			continue
		}
		if isDone(p) {
			s.store.endPod(p, nil)
		}
		there[string(owner.UID)+"/"+node] = true
	}
	for _, ds := range s.daemons {
		for _, n := range list[*corev1.Node](s.store, nodes) {
			pod := daemonPod(ds, n.Name)
			missing := n.DeletionTimestamp == nil && !there[string(ds.UID)+"/"+n.Name]
			if missing && tolerates(pod, n.Spec.Taints) {
				s.made++
				pod.Name = fmt.Sprintf("%s-%d", ds.Name, s.made)
				s.store.create(pod)
			}
		}
	}
}

// daemonPod is the pod that the DaemonSet controller makes for a node.
func daemonPod(ds *appsv1.DaemonSet, node string) *corev1.Pod {
	t := ds.Spec.Template.DeepCopy()
	priority, controls, grace := priorityClasses()[t.Spec.PriorityClassName], true, int64(5)
	t.Spec.Priority, t.Spec.TerminationGracePeriodSeconds = &priority, &grace
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable} {
		t.Spec.Tolerations = append(t.Spec.Tolerations, corev1.Toleration{Key: key,
			Operator: corev1.TolerationOpExists})
	}
	byName := corev1.NodeSelectorRequirement{
		Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
	}
	terms := []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{byName}}}
	t.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
	owner := metav1.OwnerReference{
		APIVersion: "apps/v1", Kind: "DaemonSet", Name: ds.Name, UID: ds.UID, Controller: &controls,
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ds.Namespace, Labels: t.Labels, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: t.Spec, Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// ofDaemonSet reports whether a DaemonSet has made the pod.
func ofDaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(p)
	return owner != nil && owner.Kind == "DaemonSet"
}

// pinnedTo is the node that a DaemonSet's pod is for; empty for any other pod.
func pinnedTo(p *corev1.Pod) string {
	if !ofDaemonSet(p) {
		return ""
	}
	required := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	return required.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

// tenantsOn are the pods on a node but those of DaemonSets, which come with it.
func (s *Sim) tenantsOn(node string) []*corev1.Pod {
	return slices.DeleteFunc(s.podsOn(node), ofDaemonSet)
}

func priorityOf(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// preempt ends pods of lower priority on the node that the pod is for, the least important and youngest first, if it
// fits then; it reports whether it did.
func (s *Sim) preempt(p *corev1.Pod, view []*seen) bool {
	i := slices.IndexFunc(view, func(v *seen) bool { return v.node.Name == pinnedTo(p) })
	if i < 0 || !view[i].suits(p) {
		return false
	}
	v := view[i]
	lower := slices.DeleteFunc(s.podsOn(v.node.Name), func(o *corev1.Pod) bool {
		return isDone(o) || priorityOf(o) >= priorityOf(p)
	})
	slices.SortStableFunc(lower, func(a, b *corev1.Pod) int {
		if d := int(priorityOf(a)) - int(priorityOf(b)); d != 0 {
			return d
		}
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	need := v.with(p)
	for n, o := range lower {
		need = amount{need.cpu - sizeOf(o).cpu, need.memory - sizeOf(o).memory, need.pods - 1}
		if !need.within(v.room) {
			continue
		}
		for _, victim := range lower[:n+1] {
			if victim.DeletionTimestamp == nil {
				s.trace.note("scheduler: %s preempts %s on %s", p.Name, victim.Name, v.node.Name)
				s.seen["preempted"]++
				s.store.endPod(victim, nil)
			}
		}
		if p.Status.NominatedNodeName != v.node.Name {
			edit(s.store, pods, keyOf(p), p.UID, func(p *corev1.Pod) { p.Status.NominatedNodeName = v.node.Name })
		}
		v.kept[p.UID] = keptRoom{sizeOf(p), priorityOf(p)}
		return true
	}
	return false
}

// countDaemons counts the nodes that are made without some DaemonSets.
func (s *Sim) countDaemons(p *plan.Plan) {
	createsNode := func(c command.Command) bool { _, creates := c.(command.CreateClaim); return creates }
	if !slices.ContainsFunc(p.Commands, createsNode) {
		return
	}
	if len(p.Placement.Omitted) > 0 {
		s.seen["node made without a DaemonSet that fits nowhere"]++
	}
	if len(p.Placement.Squeezed) > 0 {
		s.seen["node made although DaemonSets fill it"]++
	}
}
