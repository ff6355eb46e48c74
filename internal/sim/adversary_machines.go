package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/command"
	"github.com/tenon-sh/tenon/internal/lifecycle"
)

// copyNode is a Node that names a machine which is another Node's: a copy that somebody has made of it, with everything
// that is written on it. It is deleted after a while.
func (s *Sim) copyNode() {
	node, ok := s.any(nodes).(*corev1.Node)
	if !ok || node.DeletionTimestamp != nil {
		return
	}
	s.adversaryState.count++
	name := fmt.Sprintf("impostor-%d", s.adversaryState.count)
	fake := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(node.Labels),
		Annotations: maps.Clone(node.Annotations)}}
	fake.Labels[v1.NodeClassLabelKey(classGroup, classKind)] = className // somebody may have taken it off the other
	if s.clock.chance(0.7) {
		fake.Finalizers = []string{v1.TerminationFinalizer}
	}
	fake.Spec.ProviderID, fake.Spec.Taints = node.Spec.ProviderID, slices.Clone(node.Spec.Taints)
	fake.Spec.Unschedulable = true // nobody is there to run anything
	fake.Status = *node.Status.DeepCopy()
	s.trace.note("someone: makes Node %s, which names the machine of %s", name, node.Name)
	s.store.create(fake)
	s.adversaryState.false = append(s.adversaryState.false, name)
	s.deleteLater(name)
}

// joinTwice is a kubelet that has joined a second time by another name: two Nodes, one machine. The second takes pods
// and runs none.
func (s *Sim) joinTwice() {
	m := s.anyMachine()
	if m == nil || !m.joined || m.namesake {
		return
	}
	s.adversaryState.count++
	name := fmt.Sprintf("twin-%d", s.adversaryState.count)
	labels := maps.Clone(m.instance.Labels)
	labels[corev1.LabelHostname] = name
	labels[v1.NodeClassLabelKey(classGroup, classKind)] = className
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	node.Spec.ProviderID, node.Spec.Taints = m.instance.ProviderID, []corev1.Taint{v1.UnregisteredNoExecuteTaint()}
	node.Status = corev1.NodeStatus{Capacity: m.instance.Capacity, Allocatable: m.instance.Allocatable,
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(s.clock.seconds())}}}
	s.trace.note("kubelet: %s joins once more, as %s", m.instance.ProviderID, name)
	s.store.create(node)
	s.adversaryState.false = append(s.adversaryState.false, name)
	s.deleteLater(name)
}

func (s *Sim) deleteLater(name string) {
	s.clock.after(s.clock.between(2*time.Second, 2*time.Minute), func() {
		if node, ok := find[*corev1.Node](s.store, nodes, name); ok {
			s.trace.note("someone: deletes Node %s", name)
			s.store.erase(node)
		}
	})
}

// loseAllClaims is when all claims are gone at once: etcd was restored, or the CustomResourceDefinitions were made
// anew.
func (s *Sim) loseAllClaims() {
	all := list[*v1.NodeClaim](s.store, claims)
	if len(all) < 5 || s.adversaryState.buried {
		return
	}
	s.adversaryState.buried = true
	s.trace.note("someone: loses all %d claims", len(all))
	for _, c := range all {
		node, there := find[*corev1.Node](s.store, nodes, c.Status.NodeName)
		if m := s.cloud.find(c.Status.ProviderID); m != nil {
			m.buried = c.DeletionTimestamp == nil && !(there && node.DeletionTimestamp != nil)
		}
		s.store.remove(c)
	}
}

// confirmOrphans is a person who has looked at the machines without claims, and says that they may be ended. Every
// replica hears of it, also one that begins later.
func (s *Sim) confirmOrphans() {
	s.adversaryState.confirmed = s.clock.now
	s.trace.note("someone: says that machines of nobody may be ended")
	for _, r := range s.replicas {
		s.tellSystem(r)
		r.poke()
	}
}

// tellSystem shows a replica the namespace kube-system.
func (s *Sim) tellSystem(r *replica) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "this-cluster"}}
	if at := s.adversaryState.confirmed; !at.IsZero() {
		ns.Annotations = map[string]string{cluster.EndOrphansAnnotation: at.UTC().Format(time.RFC3339)}
	}
	r.book.SetNamespace(ns)
}

// orphansWait: of machines whose claims are all gone at once, few are ended before a person has said that it is right,
// whoever leads. Of others, no replica ends more than that within an hour.
func (j *judge) orphansWait(r *replica, m *machine) {
	f, now := &j.sim.adversaryState, j.sim.clock.now
	if c, ok := r.ending(); !ok || c.Claim != "" || !f.confirmed.IsZero() {
		// It has just been launched, for a claim that is gone already; it goes with its claim, which was being deleted
		// when the replica looked; or a person has looked.
		return
	}
	if r.launching() && m.by == r {
		return // it was launched a moment ago, for a claim that is gone: nobody has ever been there
	}
	const promise = "many orphans wait for a person"
	j.asks(promise)
	most := max(3, (len(j.sim.cloud.machines)+9)/10)
	f.ends = append(f.ends, orphanEnd{at: now, by: r, buried: m.buried})
	buried, own := 0, 0
	for _, e := range f.ends {
		if e.buried {
			buried++
		}
		if e.by == r && now.Before(e.at.Add(time.Hour)) {
			own++
		}
	}
	if m.buried && buried > most {
		j.sim.fail(promise, "%s ends %s, the %d. machine of nobody since all claims were lost, and %d may go", r,
			m.instance.ProviderID, buried, most)
	}
	if own > most {
		j.sim.fail(promise, "%s ends %s, the %d. machine of nobody within an hour, and %d may go", r,
			m.instance.ProviderID, own, most)
	}
}

// orphanEnd is a machine of nobody that was ended.
type orphanEnd struct {
	at     time.Time
	by     *replica
	buried bool
}

// ending is the end of a machine that the replica is asking for.
func (r *replica) ending() (c command.Terminate, ok bool) {
	if r.current == nil {
		return c, false
	}
	c, ok = r.current.command.(command.Terminate)
	return c, ok
}

// launching reports whether the replica is just launching a machine.
func (r *replica) launching() bool {
	if r.current == nil {
		return false
	}
	_, ok := r.current.command.(command.LaunchInstance)
	return ok
}

// watchOrphans is a person who looks at the pools' conditions every minute once the faults are over, and confirms that
// machines which nobody claims may be ended. Where there is no pool, it is the event on the namespace kube-system that
// tells.
func (s *Sim) watchOrphans() {
	held := slices.ContainsFunc(list[*v1.NodePool](s.store, pools), func(p *v1.NodePool) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == cluster.OrphansHeld && c.Status == metav1.ConditionTrue &&
				c.Reason == lifecycle.ManyOrphans
		})
	})
	if r := s.leader(); r != nil && len(list[*v1.NodePool](s.store, pools)) == 0 {
		held = r.holdsOrphans
	}
	if held && s.clock.now.After(s.adversaryState.confirmed.Add(10*time.Minute)) {
		s.confirmOrphans()
	}
	s.clock.after(time.Minute, s.watchOrphans)
}

// namesakes is another cluster of the same name in the same account: its machines carry the same tags, but for the
// claims that they were made for, and nothing that would tell the clusters apart.
func (s *Sim) namesakes() {
	for range s.clock.number(1, 3) {
		s.adversaryState.count++
		t := pick(s.clock, s.cloud.types)
		id := fmt.Sprintf("sim:///zone-a/i-other-%d", s.adversaryState.count)
		s.trace.note("cloud: runs %s for another cluster of this name", id)
		s.cloud.machines = append(s.cloud.machines, &machine{namesake: true, image: s.cloud.image, never: true,
			node: id, instance: cloudprovider.Instance{
				ProviderID: id, Type: t.Name, ClaimName: fmt.Sprintf("other-%d", s.adversaryState.count),
				ClaimUID: fmt.Sprintf("other-uid-%d", s.adversaryState.count), CreatedAt: s.clock.now, Unproven: true,
				Labels: map[string]string{corev1.LabelTopologyZone: "zone-a",
					v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand, corev1.LabelInstanceTypeStable: t.Name},
				Capacity: t.Capacity, Allocatable: t.Allocatable()}})
	}
}

// staleFirstList is a replica that dies, and another that takes over with a cache of a moment ago: what was made since
// then is missing from it, and comes later. Its own first list was current, but its watch is behind. It waits for
// claims and nodes; pods are looked at once more before their machine is ended.
func (s *Sim) staleFirstList(which ...kind) {
	old := s.leader()
	if old == nil || len(s.replicas) > 1 {
		return
	}
	old.kill()
	ago := s.clock.between(time.Second, 90*time.Second)
	r := s.start()
	s.trace.note("%s: its first lists are %s old", r, ago.Round(time.Millisecond))
	for _, k := range which {
		for _, obj := range list[client.Object](s.store, k) {
			if obj.GetCreationTimestamp().After(s.clock.now.Add(-ago)) {
				r.take(k, obj, true)
			}
		}
		s.clock.after(s.clock.between(200*time.Millisecond, 20*time.Second), func() {
			if !r.dead {
				r.streams[k].relist()
				r.poke()
			}
		})
	}
}
