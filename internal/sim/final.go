package sim

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/internal/cluster"
)

// firstProblem is the first thing that is not as it should be once everything has come to rest; empty if all is well.
func (s *Sim) firstProblem() string {
	s.forgiven = forgivenCounts{}
	for _, check := range []func() string{s.machinesInOrder, s.claimsInOrder, s.nodesInOrder, s.podsInOrder} {
		if wrong := check(); wrong != "" {
			return wrong
		}
	}
	return ""
}

// The promises about a cluster that has come to rest from which somebody may be excused.
const (
	driftedGo   = "a drifted node is replaced"
	podsRun     = "a pod that can run does"
	staticIsMet = "a static pool has as many nodes as it asks for"
)

// forgivenCounts counts what is forgiven in one look at a cluster that may have come to rest: only the last look
// counts.
type forgivenCounts map[string]int

func (m forgivenCounts) asks(promise string) { m[askedFor+promise]++ }

// spares reports whether the reason holds, and counts it.
func (m forgivenCounts) spares(promise string, p excuseReason) bool {
	if !p.holds() {
		return false
	}
	m[excusedBy+promise+": "+p.name]++
	return true
}

// count adds what was forgiven in the last look.
func (m forgivenCounts) count(seen map[string]int) {
	for what, n := range m {
		seen[what] += n
	}
}

// machinesInOrder: every machine has its claim.
func (s *Sim) machinesInOrder() string {
	owner := map[types.UID]*v1.NodeClaim{}
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		owner[c.UID] = c
	}
	for _, m := range s.cloud.machines {
		if m.namesake {
			continue
		}
		c := owner[types.UID(m.instance.ClaimUID)]
		switch {
		case c == nil:
			return fmt.Sprintf("machine %s has no claim (it was launched for %s)", m.instance.ProviderID,
				m.instance.ClaimName)
		case c.Status.ProviderID != m.instance.ProviderID:
			return fmt.Sprintf("claim %s names %q and not its machine %s", c.Name, c.Status.ProviderID,
				m.instance.ProviderID)
		}
	}
	return ""
}

// claimsInOrder: every claim has its machine and its node, and is ready.
func (s *Sim) claimsInOrder() string {
	joined := map[string]string{}
	for _, n := range list[*corev1.Node](s.store, nodes) {
		joined[n.Spec.ProviderID] = n.Name
	}
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		switch {
		case c.DeletionTimestamp != nil:
			return fmt.Sprintf("claim %s is still being deleted", c.Name)
		case s.cloud.find(c.Status.ProviderID) == nil:
			return fmt.Sprintf("claim %s has no machine (%q)", c.Name, c.Status.ProviderID)
		case c.Labels[corev1.LabelInstanceTypeStable] == "":
			return fmt.Sprintf("claim %s does not say what it has become", c.Name)
		case joined[c.Status.ProviderID] == "":
			return fmt.Sprintf("claim %s has no node", c.Name)
		case joined[c.Status.ProviderID] != c.Status.NodeName:
			return fmt.Sprintf("claim %s names the node %q and has %s", c.Name, c.Status.NodeName,
				joined[c.Status.ProviderID])
		case !meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionTypeReady):
			return fmt.Sprintf("claim %s is not Ready", c.Name)
		case meta.IsStatusConditionTrue(c.Status.Conditions, v1.ConditionTypeDisruptionReason):
			return fmt.Sprintf("claim %s is marked for disruption", c.Name)
		case c.Annotations[cluster.MoveAnnotation] != "":
			return fmt.Sprintf("claim %s is in the move %s, which has come to its end", c.Name,
				c.Annotations[cluster.MoveAnnotation])
		case s.driftedAndMayGo(c):
			return fmt.Sprintf("claim %s has drifted and stays", c.Name)
		}
	}
	return ""
}

// nodesInOrder: every node has its claim, is open, and is needed.
func (s *Sim) nodesInOrder() string {
	disrupted := v1.DisruptedNoScheduleTaint()
	for _, n := range list[*corev1.Node](s.store, nodes) {
		claim := s.claimOf(n.Name)
		switch {
		case n.DeletionTimestamp != nil:
			return fmt.Sprintf("node %s is still being deleted", n.Name)
		case claim == nil:
			return fmt.Sprintf("node %s has no claim", n.Name)
		}
		for i := range n.Spec.Taints {
			if t := &n.Spec.Taints[i]; t.MatchTaint(&disrupted) {
				return fmt.Sprintf("node %s is fenced for no reason", n.Name)
			}
		}
		if !slices.ContainsFunc(s.tenantsOn(n.Name), func(p *corev1.Pod) bool { return !isDone(p) }) && s.mayGo(claim) {
			return fmt.Sprintf("node %s is empty and stays", n.Name)
		}
	}
	return ""
}

// mayGo reports whether an empty node of the claim's pool should be removed.
func (s *Sim) mayGo(claim *v1.NodeClaim) bool {
	pool, ok := find[*v1.NodePool](s.store, pools, claim.Labels[v1.NodePoolLabelKey])
	return ok && pool.Spec.Replicas == nil && !pool.Spec.Disruption.ConsolidateAfter.IsNever()
}

// podsInOrder: every ReplicaSet has its pods, and each that can run does.
func (s *Sim) podsInOrder() string {
	have := map[types.UID]int32{}
	for _, p := range list[*corev1.Pod](s.store, pods) {
		if ofDaemonSet(p) {
			continue // it runs where there is room
		}
		if owner := metav1.GetControllerOfNoCopy(p); owner != nil {
			have[owner.UID]++
		}
		switch {
		case isDone(p):
			have[metav1.GetControllerOfNoCopy(p).UID]--
		case p.DeletionTimestamp != nil:
			return fmt.Sprintf("pod %s is still being deleted", p.Name)
		case p.Spec.NodeName == "" && s.canRun(p):
			return fmt.Sprintf("pod %s has no node", p.Name)
		case p.Spec.NodeName != "" && p.Status.Phase != corev1.PodRunning:
			return fmt.Sprintf("pod %s is on %s and %s", p.Name, p.Spec.NodeName, p.Status.Phase)
		}
	}
	if s.policy.StaticCapacity {
		for _, pool := range list[*v1.NodePool](s.store, pools) {
			if wrong := s.staticInOrder(pool); wrong != "" {
				return wrong
			}
		}
	}
	for _, set := range list[*appsv1.ReplicaSet](s.store, sets) {
		if have[set.UID] != *set.Spec.Replicas {
			return fmt.Sprintf("%s has %d pods and wants %d", set.Name, have[set.UID], *set.Spec.Replicas)
		}
	}
	return ""
}

// staticInOrder: a static pool has as many nodes as it asks for, within its limit. Nodes that somebody gives a pool by
// their label may exceed its limit, which ends none.
func (s *Sim) staticInOrder(pool *v1.NodePool) string {
	if pool.Spec.Replicas == nil || pool.DeletionTimestamp != nil {
		return ""
	}
	have, want := int64(0), *pool.Spec.Replicas
	if limit, has := pool.Spec.Limits["nodes"]; has {
		want = min(want, limit.Value())
	}
	given := false
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		if c.Labels[v1.NodePoolLabelKey] == pool.Name {
			have++
			_, moved := s.judge.repooled[c.UID]
			given = given || moved
		}
	}
	s.forgiven.asks(staticIsMet)
	if have != want {
		enough := given && have > want && have <= *pool.Spec.Replicas
		if s.forgiven.spares(staticIsMet, is("somebody had given it nodes", enough)) {
			return ""
		}
		return fmt.Sprintf("pool %s has %d nodes and wants %d", pool.Name, have, want)
	}
	return ""
}

// canRun reports whether some pool could make a node for the pod within its limits. DaemonSets are left out of a node
// only if no instance type has room for the pod beside them, whatever the limits are. So if one has, a pool must be
// able to make a node with room for both.
func (s *Sim) canRun(p *corev1.Pod) bool {
	var suited []*v1.NodePool
	for _, pool := range list[*v1.NodePool](s.store, pools) {
		if pool.DeletionTimestamp == nil && pool.Spec.Replicas == nil && s.suits(pool, p) {
			suited = append(suited, pool)
		}
	}
	hasRoom := func(room func(*cloudprovider.InstanceType) amount) bool {
		return slices.ContainsFunc(suited, func(pool *v1.NodePool) bool { return s.hasRoom(pool, p, room) })
	}
	s.forgiven.asks(podsRun)
	if !hasRoom(alone) {
		return false
	}
	if len(s.daemons) > 0 && len(suited) > 0 && slices.ContainsFunc(s.cloud.types,
		func(t *cloudprovider.InstanceType) bool {
			return sizeOf(p).within(s.besideDaemons(p, t))
		}) {
		without := !hasRoom(func(t *cloudprovider.InstanceType) amount { return s.besideDaemons(p, t) })
		return !s.forgiven.spares(podsRun, is("DaemonSets leave it no room within the limits", without))
	}
	return true
}

// alone is the room of a machine without DaemonSets.
func alone(t *cloudprovider.InstanceType) amount { return roomOf(t.Allocatable()) }

// besideDaemons is the room that all DaemonSets together leave a pod on a machine, below zero if there is too little
// for them. Those of lower priority give way.
func (s *Sim) besideDaemons(p *corev1.Pod, t *cloudprovider.InstanceType) amount {
	used := amount{}
	for _, ds := range s.daemons {
		if d := daemonPod(ds, ""); priorityOf(d) >= priorityOf(p) {
			used = used.add(sizeOf(d))
		}
	}
	return amount{cpu: alone(t).cpu - used.cpu, memory: alone(t).memory - used.memory, pods: alone(t).pods - used.pods}
}

func (s *Sim) suits(pool *v1.NodePool, p *corev1.Pod) bool {
	if want, ok := p.Spec.NodeSelector[specialLabel]; ok && string(pool.Spec.Template.Labels[specialLabel]) != want {
		return false
	}
	return tolerates(p, v1.CoreTaints(pool.Spec.Template.Spec.Taints))
}

// hasRoom reports whether the pool's limits leave room for a machine on which the pod fits.
func (s *Sim) hasRoom(pool *v1.NodePool, p *corev1.Pod, room func(*cloudprovider.InstanceType) amount) bool {
	used, count := amount{}, int64(0)
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		if c.Labels[v1.NodePoolLabelKey] == pool.Name {
			used, count = used.add(roomOf(c.Status.Capacity)), count+1
		}
	}
	if limit, has := pool.Spec.Limits["nodes"]; has && count >= limit.Value() {
		return false
	}
	for _, t := range s.cloud.types {
		limit, has := pool.Spec.Limits[corev1.ResourceCPU]
		if sizeOf(p).within(room(t)) && (!has || used.add(roomOf(t.Capacity)).cpu <= limit.MilliValue()) {
			return true
		}
	}
	return false
}
