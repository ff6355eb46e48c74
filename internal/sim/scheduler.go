package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// amount is what a pod takes or a node has: thousandths of a CPU, bytes of memory, and pods.
type amount struct{ cpu, memory, pods int64 }

func (a amount) add(b amount) amount {
	return amount{a.cpu + b.cpu, a.memory + b.memory, a.pods + b.pods}
}
func (a amount) within(b amount) bool {
	return a.cpu <= b.cpu && a.memory <= b.memory && a.pods <= b.pods
}

// of is the part that somebody asks for who asks for b.
func (a amount) of(b amount) amount {
	if b.cpu == 0 {
		a.cpu = 0
	}
	if b.memory == 0 {
		a.memory = 0
	}
	return a
}

func sizeOf(pod *corev1.Pod) amount {
	r := pod.Spec.Containers[0].Resources.Requests
	return amount{cpu: r.Cpu().MilliValue(), memory: r.Memory().Value(), pods: 1}
}

func roomOf(list corev1.ResourceList) amount {
	return amount{cpu: list.Cpu().MilliValue(), memory: list.Memory().Value(), pods: list.Pods().Value()}
}

// seen is a node as kube-scheduler sees it while it looks for places.
type seen struct {
	node       *corev1.Node
	room, used amount
	// kept is the room of pods that are nominated to the node and not there yet.
	kept map[types.UID]keptRoom
}

// keptRoom is what a pod that is nominated needs. Only pods of no higher priority leave it alone.
type keptRoom struct {
	size     amount
	priority int32
}

// scheduleSoon has kube-scheduler look at pods that wait.
func (s *Sim) scheduleSoon() {
	if s.scheduling {
		return
	}
	s.scheduling = true
	s.clock.after(s.clock.between(20*time.Millisecond, 300*time.Millisecond), func() {
		s.scheduling = false
		s.schedule()
	})
}

// schedule is one round of kube-scheduler over all pods that wait. What it binds takes effect a moment later; until
// then the room counts as taken. It decides at random between nodes that do.
func (s *Sim) schedule() {
	var waiting []*corev1.Pod
	view, at := []*seen{}, map[string]*seen{}
	for _, n := range list[*corev1.Node](s.store, nodes) {
		v := &seen{node: n, room: roomOf(n.Status.Allocatable), kept: map[types.UID]keptRoom{}}
		view, at[n.Name] = append(view, v), v
	}
	for _, p := range list[*corev1.Pod](s.store, pods) {
		node := p.Spec.NodeName
		if to, assumed := s.assumed[p.UID]; assumed && node == "" {
			node = to
		}
		switch v := at[node]; {
		case isDone(p):
		case node == "" && p.DeletionTimestamp == nil:
			waiting = append(waiting, p)
			if v := at[p.Status.NominatedNodeName]; v != nil {
				v.kept[p.UID] = keptRoom{sizeOf(p), priorityOf(p)}
			}
		case v != nil:
			v.used = v.used.add(sizeOf(p))
		}
	}
	slices.SortStableFunc(waiting, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(priorityOf(b), priorityOf(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	for _, p := range waiting {
		s.place(p, view)
	}
}

// place finds a node for a pod: the one it is nominated to if that will do, or any other.
func (s *Sim) place(p *corev1.Pod, view []*seen) {
	var fits []*seen
	allowed := s.spreads(p, view)
	for _, v := range view {
		if !v.takes(p) || !allowed(v) {
			continue
		}
		if v.node.Name == p.Status.NominatedNodeName {
			fits = []*seen{v}
			break
		}
		fits = append(fits, v)
	}
	if len(fits) == 0 && ofDaemonSet(p) && s.preempt(p, view) {
		return
	}
	if len(fits) == 0 {
		s.giveUp(p, fmt.Sprintf("0/%d nodes are available.", len(view)))
		for _, v := range view {
			delete(v.kept, p.UID)
		}
		return
	}
	v := pick(s.clock, fits)
	v.used = v.used.add(sizeOf(p))
	delete(v.kept, p.UID)
	key, uid, node, nodeUID := keyOf(p), p.UID, v.node.Name, v.node.UID
	s.assumed[uid] = node
	s.clock.after(s.clock.between(5*time.Millisecond, 250*time.Millisecond), func() {
		delete(s.assumed, uid)
		now, ok := find[*corev1.Pod](s.store, pods, key)
		there := s.store.get(nodes, node)
		if !ok || now.UID != uid || now.Spec.NodeName != "" || now.DeletionTimestamp != nil || there == nil ||
			there.GetUID() != nodeUID {
			s.scheduleSoon()
			return
		}
		s.trace.note("scheduler: %s -> %s", now.Name, node)
		s.judge.bound = s.clock.now
		s.bind(now, node)
	})
}

// takes reports whether the pod may go to the node, as far as anybody knows.
func (v *seen) takes(p *corev1.Pod) bool { return v.suits(p) && v.with(p).within(v.room) }

// suits reports whether the pod may go to the node, room aside.
func (v *seen) suits(p *corev1.Pod) bool {
	if ofDaemonSet(p) {
		return pinnedTo(p) == v.node.Name && tolerates(p, v.node.Spec.Taints)
	}
	if v.node.Spec.Unschedulable || !tolerates(p, v.node.Spec.Taints) || hasNoPlace(p) {
		return false
	}
	for key, value := range p.Spec.NodeSelector {
		if v.node.Labels[key] != value {
			return false
		}
	}
	return true
}

// with is what would be taken of the node if the pod came.
func (v *seen) with(p *corev1.Pod) amount {
	all := v.used.add(sizeOf(p))
	for uid, kept := range v.kept {
		if uid != p.UID && kept.priority >= priorityOf(p) {
			all = all.add(kept.size)
		}
	}
	return all
}

func tolerates(p *corev1.Pod, taints []corev1.Taint) bool {
	for i := range taints {
		t := &taints[i]
		if t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool {
			return (o.Key == t.Key || o.Key == "" && o.Operator == corev1.TolerationOpExists) &&
				(o.Effect == "" || o.Effect == t.Effect) &&
				(o.Operator == corev1.TolerationOpExists || o.Value == t.Value)
		}) {
			return false
		}
	}
	return true
}

// refusal is what kube-scheduler says of a pod that it has found no place for.
func refusal(p *corev1.Pod) string {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// wasTried reports whether kube-scheduler has looked for a place for the pod and found none.
func wasTried(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

// giveUp tells the world that there is no place for the pod. A nomination goes with it, whoever made it: since there is
// nobody to preempt, kube-scheduler takes the pod for one without a node. It says so again when its words differ.
func (s *Sim) giveUp(p *corev1.Pod, words string) {
	lost := p.Status.NominatedNodeName != ""
	if wasTried(p) && !lost && refusal(p) == words {
		return
	}
	if lost {
		s.trace.note("scheduler: %s is no longer nominated to %s", p.Name, p.Status.NominatedNodeName)
		s.seen["nomination lost"]++
		s.scheduleSoon() // the room that was kept may do for others
	}
	edit(s.store, pods, keyOf(p), p.UID, func(p *corev1.Pod) {
		p.Status.NominatedNodeName = ""
		setPodCondition(p, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: words,
			LastTransitionTime: metav1.NewTime(s.clock.seconds())})
	})
}
