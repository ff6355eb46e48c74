package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/command"
)

const (
	// endsOnlyItsOwn and endsDrained are what is asked of every machine that a replica has the cloud end.
	endsOnlyItsOwn = "no machine is ended that is somebody's"
	endsDrained    = "no machine is ended before its pods have left"
	// stuckFor is how long past its grace period a pod that is being deleted is waited for.
	stuckFor = time.Minute
)

// ends: a replica asks the cloud to end a machine. It is nobody's, or its claim is on its way out; and its pods have
// left, or its time is up.
func (j *judge) ends(r *replica, id string) {
	s := j.sim
	m := s.cloud.find(id)
	if m == nil || m.instance.Terminating {
		return
	}
	owner := s.ownerOf(m)
	j.asks(endsOnlyItsOwn)
	switch {
	case m.namesake && s.adversaryState.confirmed.IsZero():
		s.fail(endsOnlyItsOwn, "%s ends %s (%s), a machine of another cluster of the same name", r, id, told(r))
		return
	case owner == nil:
		s.seen["machine of nobody ended"]++
		j.orphansWait(r, m)
	case owner.DeletionTimestamp == nil:
		s.fail(endsOnlyItsOwn, "%s ends %s (%s), the machine of %s, which is not being deleted", r, id, told(r),
			owner.Name)
		return
	}
	j.asks(endsDrained)
	staying := j.notLeft(m)
	if len(staying) == 0 {
		return
	}
	if owner != nil {
		if end, has := endOf(owner); has && !s.clock.now.Before(end) {
			return
		}
	}
	node, there := find[*corev1.Node](s.store, nodes, m.node)
	j.charge(endsDrained, []excuseReason{
		is(cutOff, r.stale),
		is("the node was removed by force, or made anew", !there || node.Spec.ProviderID != id ||
			node.Labels[v1.NodeRegisteredLabelKey] == ""),
		is("the claim was removed by force", owner == nil),
		is("the cloud's list had lost the machine", m.asleep && j.lately(m)),
		is("the pods came after the replica had looked", !r.knowsAny(staying)),
		is("the claim of the machine has said that it is ending", owner != nil && isTerminating(owner)),
	}, "%s ends %s (%s), and %s is still on %s", r, id, told(r), staying[0].Name, m.node)
}

// told is the command that is being carried out.
func told(r *replica) string {
	if r.current == nil {
		return "by no command"
	}
	return r.current.command.Key()
}

// ownerOf is the claim that a machine was launched for; nil if it is no more.
func (s *Sim) ownerOf(m *machine) *v1.NodeClaim {
	for _, c := range list[*v1.NodeClaim](s.store, claims) {
		if string(c.UID) == m.instance.ClaimUID {
			return c
		}
	}
	return nil
}

// notLeft are the pods on a machine's node that a drain has to wait for.
func (j *judge) notLeft(m *machine) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range j.sim.tenantsOn(m.node) {
		if isDone(p) || !m.joined || tolerates(p, []corev1.Taint{v1.DisruptedNoScheduleTaint()}) {
			// who tolerates the fence stays
			continue
		}
		if p.DeletionTimestamp != nil && !j.sim.clock.now.Before(p.DeletionTimestamp.Add(stuckFor)) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// lately reports whether the machine is so young that the cloud's list may not show it.
func (j *judge) lately(m *machine) bool {
	return j.sim.clock.now.Before(m.instance.CreatedAt.Add(j.sim.cloud.late + time.Minute))
}

// knowsAny reports whether the replica knew of one of the pods when it began what it does.
func (r *replica) knowsAny(staying []*corev1.Pod) bool {
	for _, p := range staying {
		if r.current != nil && r.current.tenants[string(p.UID)] {
			return true
		}
	}
	return false
}

func isTerminating(claim *v1.NodeClaim) bool {
	for _, c := range claim.Status.Conditions {
		if c.Type == v1.ConditionTypeInstanceTerminating {
			return c.Status == "True"
		}
	}
	return false
}

// tenantsOf are the pods that the replica knows on the node of a machine that it is about to end.
func (r *replica) tenantsOf(c command.Command) map[string]bool {
	end, ok := c.(command.Terminate)
	if !ok {
		return nil
	}
	out := make(map[string]bool)
	m := r.sim.cloud.find(end.ProviderID)
	if m == nil {
		return out
	}
	for _, p := range r.podsOf(m.node) {
		out[string(p.UID)] = true
	}
	return out
}
